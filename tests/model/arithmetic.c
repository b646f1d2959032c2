/* The arithmetic of lib/limit against the judge (judge.h): random operations of every
 * kind, and every number of every answer compared.
 *
 *   model_arithmetic [OPERATIONS [SEED]]
 *
 * So many operations for each algorithm; a sequence that fails is made short and printed
 * in the form of tests/data/limit, with its seed. Beside that, on the same runs:
 * - the promise: where a request was refused, the same is admitted after the wait and
 *   after Retry-After, and a microsecond before the wait it is not;
 * - the bound of GCRA: in no closed span are more units admitted than its capacity and
 *   what came back in the span;
 * - a saturated bucket is never a token away from the ideal, over 10^6 requests. */
#include "limit/limit.h"

#include <inttypes.h>
#include <stdio.h>

#include "model/judge.h"
#include "support/rng.h"
#include "support/shrink.h"

#define RUN 400

struct op {
    int64_t step_us; /* the clock's, before it */
    int64_t cost;
    int64_t max; /* from here on; 0: as before */
    bool refund; /* of the newest charge but `back` that was not given back yet */
    unsigned back;
};

struct run {
    struct weir_rule rule;
    int64_t start_us;
    bool steps_back; /* the clock does, or the rule changes: no promise then */
    bool print;
    long refusals;
    uint64_t seed;
};

struct charge {
    int64_t cost;
    struct weir__limit_state state;
    struct judge judge;
};

static void print_answer(const char *who, const struct weir_rule_answer *answer)
{
    printf("%s{\"allowed\": %s, \"remaining\": %" PRId64 ", \"retry_us\": %" PRId64
           ", \"next_us\": %" PRId64 ", \"full_us\": %" PRId64 "}",
           who,
           answer->allowed ? "true" : "false",
           answer->remaining,
           answer->retry_us,
           answer->next_us,
           answer->full_us);
}

static bool same(const struct weir_rule_answer *a, const struct weir_rule_answer *b)
{
    return a->allowed == b->allowed && a->never == b->never && a->cost == b->cost &&
           a->remaining == b->remaining && a->retry_us == b->retry_us &&
           a->next_us == b->next_us && a->full_us == b->full_us;
}

static bool passes(const struct weir__limit *limit,
                   struct weir__limit_state state,
                   int64_t cost,
                   int64_t now_us)
{
    struct weir_rule_answer answer = { 0 };
    weir__limit_decide(limit, state, cost, now_us, &state, &answer);
    return answer.allowed;
}

static bool keeps_promise(const struct weir__limit *limit,
                          struct weir__limit_state state,
                          const struct weir_rule_answer *answer,
                          int64_t now_us)
{
    int64_t retry_after_us = (answer->retry_us + 999999) / 1000000 * 1000000;
    return passes(limit, state, answer->cost, now_us + answer->retry_us) &&
           passes(limit, state, answer->cost, now_us + retry_after_us) &&
           !passes(limit, state, answer->cost, now_us + answer->retry_us - 1);
}

static struct weir__limit compiled(const struct weir_rule *rule)
{
    struct weir__limit limit = { 0 };
    struct weir_error error = { { 0 } };
    if (!weir__limit_compile(rule, &limit, &error)) {
        fprintf(stderr, "%s\n", error.text);
        exit(2);
    }
    return limit;
}

/* True where an operation differs. */
static bool differs(const void *items, size_t len, void *arg)
{
    static struct charge charges[RUN];
    const struct op *ops = items;
    struct run *run = arg;
    struct weir_rule rule = run->rule;
    struct weir__limit limit = compiled(&rule);
    struct weir__limit_state state = { 0, 0 }, new;
    struct judge judge = { .rule = rule };
    int64_t now_us = run->start_us;
    unsigned charges_len = 0;
    for (size_t i = 0; i < len; i++) {
        const struct op *op = &ops[i];
        now_us = now_us + op->step_us > 0 ? now_us + op->step_us : 1;
        if (op->max > 0) {
            rule.max = judge.rule.max = op->max;
            limit = compiled(&rule);
        }
        if (run->print)
            printf("    {\"now_us\": %" PRId64 ", \"max\": %" PRId64, now_us, rule.max);
        if (op->refund) {
            if (run->print)
                printf(", \"refund\": %u},\n", op->back);
            if (charges_len <= op->back)
                continue;
            struct charge *charge = &charges[charges_len - 1 - op->back];
            state =
                weir__limit_refund(&limit, state, charge->cost, charge->state, now_us);
            judge_refund(&judge, charge->cost, &charge->judge, now_us);
            *charge = charges[--charges_len];
            continue;
        }
        struct weir_rule_answer answer = { .rule = NULL };
        weir__limit_decide(&limit, state, op->cost, now_us, &new, &answer);
        struct weir_rule_answer wanted = judge_ask(&judge, op->cost, now_us);
        if (run->print) {
            printf(", \"cost\": %" PRId64, op->cost);
            print_answer(", \"is\": ", &answer);
            print_answer(",\n      \"wanted\": ", &wanted);
            printf("},\n");
        }
        if (!same(&answer, &wanted))
            return true;
        if (!answer.allowed && !answer.never && !run->steps_back) {
            run->refusals++;
            if (!keeps_promise(&limit, state, &answer, now_us))
                return true;
        }
        if (answer.allowed && op->cost > 0) {
            state = new;
            charges[charges_len++] = (struct charge){ op->cost, state, judge };
        }
    }
    return false;
}

/* ---- random runs ---------------------------------------------------------------------
 */

static int64_t pick(struct rng *rng, const int64_t *of, size_t len)
{
    return of[rng_next(rng) % len];
}

/* From 1 to most, small ones as often as large ones. */
static int64_t any_size(struct rng *rng, int64_t most)
{
    int64_t bound = INT64_C(1) << rng_between(rng, 0, 40);
    return rng_between(rng, 1, bound < most ? bound : most);
}

struct kind {
    enum weir_algorithm algorithm;
    enum weir_anchor anchor;
    const char *name;
};

static struct weir_rule random_rule(struct rng *rng, const struct kind *kind)
{
    static const int64_t windows_us[] = {
        1000,          1001,         WEIR_SECONDS(1), WEIR_SECONDS(7), WEIR_MINUTES(1),
        WEIR_HOURS(1), WEIR_DAYS(1), WEIR_DAYS(366)
    };
    struct weir_rule rule = {
        .algorithm = kind->algorithm, .anchor = kind->anchor, .name = "x", .abi = 1
    };
    rule.window_us = pick(rng, windows_us, sizeof windows_us / sizeof *windows_us);
    rule.max = any_size(rng, WEIR__MAX_UNITS);
    if (kind->anchor == WEIR_ANCHOR_MONTH)
        rule.window_us = WEIR_DAYS(31);
    if (kind->algorithm == WEIR_ALGORITHM_SLIDING_COUNTER) {
        int64_t most = rule.window_us - 1;
        most = most < WEIR__COUNTER_MAX ? most : WEIR__COUNTER_MAX;
        rule.max = rule.max < most ? rule.max : most;
    }
    if (kind->algorithm != WEIR_ALGORITHM_TOKEN_BUCKET)
        return rule;
    rule.refill = any_size(rng, WEIR__MAX_UNITS);
    judge_wide most = (judge_wide)WEIR__SPAN_MAX_US * rule.refill / rule.window_us;
    if (rule.max > most)
        rule.max = most > 0 ? (int64_t)most : 1;
    return rule;
}

static int64_t random_cost(struct rng *rng, int64_t max)
{
    switch (rng_between(rng, 0, 9)) {
    case 0:
        return 0;
    case 1:
        return max + rng_between(rng, 0, 1);
    case 2:
        return rng_between(rng, 1, max);
    default:
        return max > 20 ? rng_between(rng, 1, max / 5) : 1;
    }
}

static int64_t random_step_us(struct rng *rng, const struct run *run)
{
    int64_t window_us = run->rule.window_us;
    switch (rng_between(rng, 0, 19)) {
    case 0:
        return window_us;
    case 1:
        return window_us - 1;
    case 2:
        return rng_between(rng, 0, window_us * 3);
    case 3:
        return run->steps_back ? -rng_between(rng, 0, window_us * 3) : 1;
    case 4:
        return run->start_us % window_us; /* a round number, at times */
    default:
        return rng_between(rng, 0, rng_between(rng, 0, window_us / 4));
    }
}

static void
random_run(struct rng *rng, const struct kind *kind, struct run *run, struct op *ops)
{
    run->seed = rng->state;
    run->rule = random_rule(rng, kind);
    run->start_us = rng_between(rng, WEIR_DAYS(1), INT64_C(1) << 51);
    if (rng_between(rng, 0, 1) == 0)
        run->start_us -= run->start_us % run->rule.window_us;
    run->steps_back = rng_between(rng, 0, 2) == 0;
    int64_t max = run->rule.max;
    for (int i = 0; i < RUN; i++) {
        ops[i] = (struct op){ .step_us = random_step_us(rng, run) };
        ops[i].refund = rng_between(rng, 0, 9) == 0;
        ops[i].back = (unsigned)rng_between(rng, 0, 3);
        ops[i].cost = random_cost(rng, max);
        if (run->steps_back && rng_between(rng, 0, 29) == 0) {
            ops[i].max = rng_between(rng, 1, run->rule.max);
            max = ops[i].max;
        }
    }
}

/* ---- the bound and the ideal ---------------------------------------------------------
 */

/* No refunds, no steps back: units admitted from the i-th to the j-th charge. */
static const struct kind bucket = { .algorithm = WEIR_ALGORITHM_TOKEN_BUCKET };

static bool keeps_bound(struct rng *rng)
{
    static int64_t at_us[RUN], units[RUN];
    struct weir_rule rule = random_rule(rng, &bucket);
    struct weir__limit limit = compiled(&rule);
    struct weir__limit_state state = { 0, 0 };
    struct run run = { .rule = rule };
    int64_t now_us = rng_between(rng, 1, INT64_C(1) << 50);
    int len = 0;
    for (int i = 0; i < RUN; i++) {
        struct weir_rule_answer answer = { .rule = NULL };
        int64_t cost = random_cost(rng, rule.max);
        now_us += random_step_us(rng, &run);
        weir__limit_decide(&limit, state, cost, now_us, &state, &answer);
        if (answer.allowed && cost > 0) {
            at_us[len] = now_us;
            units[len++] = cost;
        }
    }
    for (int i = 0; i < len; i++) {
        judge_wide total = 0;
        for (int j = i; j < len; j++) {
            judge_wide back = (judge_wide)(at_us[j] - at_us[i]) * rule.refill;
            total += units[j];
            if (total > rule.max + back / rule.window_us)
                return false;
        }
    }
    return true;
}

/* Somebody always asks for one more. */
static bool near_ideal(struct rng *rng, int64_t refill, int64_t period_us)
{
    struct weir_rule rule = WEIR_TOKEN_BUCKET("x", 20, refill, period_us);
    struct weir__limit limit = compiled(&rule);
    struct weir__limit_state state = { 0, 0 };
    int64_t start_us = rng_between(rng, 1, INT64_C(1) << 50), now_us = start_us;
    judge_wide admitted = 0;
    for (long i = 0; i < 1000000;) {
        struct weir_rule_answer answer = { .rule = NULL };
        do {
            weir__limit_decide(&limit, state, 1, now_us, &state, &answer);
            admitted += answer.allowed;
            i++;
        } while (answer.allowed);
        judge_wide ideal = (judge_wide)(now_us - start_us) * refill;
        judge_wide whole = ideal / period_us + 20;
        if (admitted != whole)
            return false;
        now_us += rng_between(rng, 1, 2 * (period_us / refill) + 1);
        if (now_us - start_us > WEIR_DAYS(5000))
            start_us = now_us, state = (struct weir__limit_state){ 0, 0 }, admitted = 0;
    }
    return true;
}

/* ---- the program
 * ----------------------------------------------------------------------- */

static const struct kind kinds[] = {
    { WEIR_ALGORITHM_FIXED_WINDOW, WEIR_ANCHOR_REQUEST, "fixed window" },
    { WEIR_ALGORITHM_FIXED_WINDOW, WEIR_ANCHOR_CLOCK, "fixed window by the clock" },
    { WEIR_ALGORITHM_FIXED_WINDOW, WEIR_ANCHOR_MONTH, "calendar month" },
    { WEIR_ALGORITHM_TOKEN_BUCKET, WEIR_ANCHOR_REQUEST, "token bucket" },
    { WEIR_ALGORITHM_SLIDING_COUNTER, WEIR_ANCHOR_REQUEST, "sliding counter" },
};

static void report(struct run *run, struct op *ops)
{
    size_t len = shrink(ops, RUN, sizeof *ops, 5000, differs, run);
    printf("seed %" PRIu64 ", %zu operations are enough:\n", run->seed, len);
    printf("  \"max\": %" PRId64 ", \"window_us\": %" PRId64 ", \"refill\": %" PRId64
           ", \"start_us\": %" PRId64 ",\n  \"rows\": [\n",
           run->rule.max,
           run->rule.window_us,
           run->rule.refill,
           run->start_us);
    run->print = true;
    differs(ops, len, run);
    printf("  ]\n");
}

int main(int argc, char **argv)
{
    static struct op ops[RUN];
    static const int64_t rates[][2] = { { 1, WEIR_DAYS(1) },
                                        { 7, WEIR_MINUTES(1) },
                                        { 1000, WEIR_SECONDS(1) },
                                        { 9973, WEIR_SECONDS(1) },
                                        { 700000, WEIR_SECONDS(1) } };
    long operations = argc > 1 ? atol(argv[1]) : 200000;
    struct rng rng = { argc > 2 ? strtoull(argv[2], NULL, 10) : 20261201 };
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        struct run run = { .refusals = 0 };
        uint64_t seed = rng.state;
        for (long done = 0; done < operations; done += RUN) {
            random_run(&rng, &kinds[kind], &run, ops);
            if (!differs(ops, RUN, &run))
                continue;
            printf("%s: differs after %ld operations, ", kinds[kind].name, done);
            report(&run, ops);
            return 1;
        }
        printf("%s x arithmetic: %ld operations, 0 differences, %ld promises kept, seed "
               "%" PRIu64 "\n",
               kinds[kind].name,
               operations,
               run.refusals,
               seed);
    }
    for (long i = 0; i < operations / RUN; i++)
        if (!keeps_bound(&rng)) {
            printf("token bucket: more admitted in a span than the bound\n");
            return 1;
        }
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (!near_ideal(&rng, rates[i][0], rates[i][1])) {
            printf("token bucket: %" PRId64 " in %" PRId64 " us is not the ideal\n",
                   rates[i][0],
                   rates[i][1]);
            return 1;
        }
    printf("token bucket: the bound holds; 10^6 requests at each of 5 rates are the "
           "ideal\n");
    return 0;
}
