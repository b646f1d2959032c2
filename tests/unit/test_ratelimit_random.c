/* Random rules under the real arithmetic, decided as a store does, all or nothing: no
 * field is ever malformed, no number out of its range, and no time too early. What the
 * fields say is read back by the tests' own parser and tried out: the same request is
 * made again at the time that they name. */
#include "ratelimit_fields.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>

#include "limit/limit.h"
#include "support/ratelimit_judge.h"
#include "support/rng.h"

#define RUNS 300
#define REQUESTS 60 /* a run */

/* Rules of a run with their counters. */
struct world {
    struct rng rng;
    uint64_t seed;
    int64_t now_us;
    unsigned len;
    bool names_differ;
    char names[WEIR_RULES_MAX][65];
    struct weir_rule rules[WEIR_RULES_MAX];
    struct weir__limit limits[WEIR_RULES_MAX];
    struct weir__limit_state states[WEIR_RULES_MAX];
    int64_t costs[WEIR_RULES_MAX];
    int64_t later_us;
    struct weir_decision decision;
};

/* Of any magnitude, so that small and huge numbers are as likely. */
static int64_t any(struct rng *rng, int64_t low, int64_t high)
{
    int64_t bound = high;
    for (int64_t halvings = rng_between(rng, 0, 40); halvings > 0; halvings--)
        bound = bound / 2 > low ? bound / 2 : low;
    return rng_between(rng, low, bound);
}

static void make_rule(struct world *world, unsigned i)
{
    static const enum weir_algorithm algorithms[] = {
        WEIR_ALGORITHM_FIXED_WINDOW,
        WEIR_ALGORITHM_TOKEN_BUCKET,
        WEIR_ALGORITHM_SLIDING_COUNTER,
    };
    struct rng *rng = &world->rng;
    struct weir_rule *rule = &world->rules[i];
    unsigned count = sizeof algorithms / sizeof algorithms[0];
    snprintf(world->names[i],
             sizeof world->names[i],
             "%.*s%c",
             (int)rng_between(rng, 0, 63),
             "AZ09._-azAZ09._-azAZ09._-azAZ09._-azAZ09._-azAZ09._-azAZ09._-azA",
             world->names_differ ? 'a' + (int)i : 'a');
    do {
        *rule = (struct weir_rule){
            .algorithm = algorithms[rng_between(rng, 0, count - 1)],
            .name = world->names[i],
            .max = rng_between(rng, 0, 30) ? any(rng, 1, WEIR__MAX_UNITS) : WEIR_BLOCK,
            .window_us = any(rng, WEIR__WINDOW_MIN_US, WEIR__WINDOW_MAX_US),
        };
        if (rule->algorithm == WEIR_ALGORITHM_TOKEN_BUCKET)
            rule->refill = any(rng, 1, WEIR__MAX_UNITS);
        if (rule->algorithm == WEIR_ALGORITHM_FIXED_WINDOW)
            rule->anchor = (enum weir_anchor)rng_between(rng, 0, WEIR_ANCHOR_MONTH);
        if (rule->anchor == WEIR_ANCHOR_MONTH)
            rule->window_us = WEIR_DAYS(31);
    } while (!weir__limit_compile(rule, &world->limits[i], &(struct weir_error){ "" }));
    world->states[i] = (struct weir__limit_state){ 0, 0 };
}

static void make_world(struct world *world, uint64_t seed)
{
    *world = (struct world){ .rng = { seed }, .seed = seed };
    world->now_us = WEIR_SECONDS(1800000000) + rng_between(&world->rng, 0, 1000000);
    world->names_differ = rng_between(&world->rng, 0, 3) > 0;
    /* Few rules mostly: of many some always refuses. */
    world->len = (unsigned)rng_between(
        &world->rng, 1, rng_between(&world->rng, 0, 3) ? 2 : WEIR_RULES_MAX);
    for (unsigned i = 0; i < world->len; i++)
        make_rule(world, i);
}

static bool would_admit(const struct world *world, unsigned i, int64_t after_us)
{
    struct weir__limit_state state;
    struct weir_rule_answer answer;
    weir__limit_decide(&world->limits[i],
                       world->states[i],
                       world->costs[i],
                       world->now_us + after_us,
                       &state,
                       &answer);
    return answer.allowed;
}

static bool would_admit_all(const struct world *world, int64_t after_us)
{
    for (unsigned i = 0; i < world->len; i++)
        if (!would_admit(world, i, after_us))
            return false;
    return true;
}

static int64_t remaining_after(const struct world *world, unsigned i, int64_t after_us)
{
    struct weir__limit_state state;
    struct weir_rule_answer answer;
    weir__limit_decide(&world->limits[i],
                       world->states[i],
                       0,
                       world->now_us + after_us,
                       &state,
                       &answer);
    return answer.remaining;
}

/* Mostly one unit, else all that is left, any number, or more than there ever are. */
static int64_t any_cost(struct world *world, unsigned i)
{
    int64_t max = world->limits[i].max;
    switch (rng_between(&world->rng, 0, 5)) {
    case 0:
        return any(&world->rng, 0, max + max / 50 + 2);
    case 1:
        return remaining_after(world, i, 0);
    default:
        return 1;
    }
}

/* One request, and the answers as a store puts them together. */
static void decide(struct world *world)
{
    struct rng *rng = &world->rng;
    struct weir_decision *decision = &world->decision;
    for (unsigned i = 0; i < world->len; i++)
        world->costs[i] = any_cost(world, i);
    *decision = (struct weir_decision){ .allowed = would_admit_all(world, 0),
                                        .source = WEIR_SOURCE_SHM,
                                        .rules_len = world->len };
    for (unsigned i = 0; i < world->len; i++) {
        struct weir_rule_answer *answer = &decision->rules[i];
        bool charge = decision->allowed || !would_admit(world, i, 0);
        weir__limit_decide(&world->limits[i],
                           world->states[i],
                           charge ? world->costs[i] : 0,
                           world->now_us,
                           &world->states[i],
                           answer);
        answer->rule = &world->rules[i];
        answer->cost = world->costs[i];
    }
    world->later_us = rng_between(rng, 0, 1) ? any(rng, 0, WEIR_HOURS(1)) : 0;
}

#define HOLDS(condition_)                                                                \
    cr_assert(condition_, "seed %" PRIu64 ", at %" PRId64, world->seed, world->now_us)

static void check_retry_after(const struct world *world)
{
    const struct weir_decision *decision = &world->decision;
    int64_t exact = weir__retry_after(decision, 0);
    int64_t later = weir__retry_after(decision, world->later_us);
    bool never = false;
    for (unsigned i = 0; i < world->len; i++)
        never = never || decision->rules[i].never;
    HOLDS((exact > 0) == (!decision->allowed && !never));
    HOLDS(later >= exact && later <= exact + weir__seconds_up(world->later_us));
    if (exact == 0)
        return;
    HOLDS(would_admit_all(world, WEIR_SECONDS(exact)));
    HOLDS(would_admit_all(world, WEIR_SECONDS(later)));
    HOLDS(exact == 1 || !would_admit_all(world, WEIR_SECONDS(exact - 1)));
}

/* What `left` units and a wait of so many seconds say of rule i. */
static void
check_wait(const struct world *world, unsigned i, int64_t left, int64_t seconds)
{
    if (left > 0)
        HOLDS(remaining_after(world, i, WEIR_SECONDS(seconds)) > left);
    else
        HOLDS(would_admit(world, i, WEIR_SECONDS(seconds)));
}

static void check_lists(const struct world *world)
{
    static struct sf_list policy, state;
    char text[WEIR__RATELIMIT_FIELD_BYTES];
    HOLDS(weir__ratelimit_policy(&world->decision, text));
    HOLDS(judge_policy(text, &policy) == NULL);
    HOLDS(weir__ratelimit_state(&world->decision, world->later_us, text));
    HOLDS(judge_state(text, &state) == NULL);
    HOLDS(judge_pair(&policy, &state) == NULL);
    if (!world->names_differ)
        return;
    HOLDS(state.len == world->len);
    for (unsigned i = 0; i < state.len; i++) {
        HOLDS(strcmp(state.items[i].value.text, world->names[i]) == 0);
        int64_t left = sf_param(&state.items[i], "r")->number;
        HOLDS(left == remaining_after(world, i, 0));
        if (sf_param(&state.items[i], "t"))
            check_wait(world, i, left, sf_param(&state.items[i], "t")->number);
    }
}

static void check_older_forms(const struct world *world)
{
    static struct sf_list policy;
    char text[WEIR__RATELIMIT_FIELD_BYTES];
    struct weir__ratelimit_trio trio;
    if (weir__ratelimit_policy_draft_06(&world->decision, text))
        HOLDS(judge_policy_draft_06(text, &policy) == NULL);
    if (!weir__ratelimit_trio(&world->decision, world->later_us, &trio)) {
        HOLDS(!world->decision.allowed && weir__retry_after(&world->decision, 0) == 0);
        return;
    }
    HOLDS(world->decision.allowed || weir__retry_after(&world->decision, 0) > 0);
    int64_t seconds = weir__seconds_up(trio.reset_us);
    HOLDS(trio.remaining >= 0 && trio.remaining <= trio.limit && seconds >= 0);
    if (!world->decision.allowed) {
        HOLDS(seconds == weir__retry_after(&world->decision, world->later_us));
        return;
    }
    bool is_shown = false;
    for (unsigned i = 0; i < world->len; i++) {
        int64_t left = remaining_after(world, i, 0);
        HOLDS(left >= trio.remaining);
        bool fits = left == trio.remaining && trio.limit == world->limits[i].max &&
                    (seconds == 0 || left > 0
                         ? remaining_after(world, i, WEIR_SECONDS(seconds)) >= left
                         : would_admit(world, i, WEIR_SECONDS(seconds)));
        is_shown = is_shown || fits;
    }
    HOLDS(is_shown);
}

/* Little time passes mostly, so that budgets are used up. */
static void pass_time(struct world *world)
{
    struct rng *rng = &world->rng;
    const struct weir__limit *limit = &world->limits[rng_between(rng, 0, world->len - 1)];
    if (rng_between(rng, 0, 2) == 0)
        world->now_us += any(rng, 0, limit->window_us + 1);
}

Test(ratelimit_random, fields_are_well_formed_and_no_time_is_too_early)
{
    static struct world world;
    unsigned refused = 0, admitted = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        make_world(&world, seed);
        for (unsigned i = 0; i < REQUESTS; i++) {
            pass_time(&world);
            decide(&world);
            refused += !world.decision.allowed;
            admitted += world.decision.allowed;
            check_retry_after(&world);
            check_lists(&world);
            check_older_forms(&world);
        }
    }
    cr_assert_gt(refused, RUNS * REQUESTS / 10);
    cr_assert_gt(admitted, RUNS * REQUESTS / 10);
}
