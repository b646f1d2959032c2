/* 100,000 random operations give the same decisions, to the last number, in the
 * arithmetic alone, in shared memory, and in the scripts in a real Redis: mixes of one to
 * eight rules of every algorithm, odd rates, costs from 0 to above the max, refunds, time
 * that stands, runs, leaps, and steps back.
 *
 *   store_same [OPERATIONS] [FAULT]
 *
 * The scripts get the time as an argument here, and keys that live long enough; else they
 * are the ones that ship. With FAULT, 1 to 6, a fault is planted in them, and the program
 * must say that they differ: then its exit status is 0. */
#include "crowd.h"

#include "store/redis_command.h"
#include "store/redis_script.h"
#include "support/redis_server.h"
#include "support/shrink.h"

#define RULES 15
#define SUBJECTS 3
/* Shared memory counts time from a day before its start: that is a multiple of every
 * window, so that theirs begin where those of the others do. */
#define EPOCH_US (INT64_C(3142) * 7 * WEIR_DAYS(1) + WEIR__SHM_EPOCH_MARGIN_US)
#define SHRINK_TRIES 200

static const struct weir_rule rules[RULES] = {
    WEIR_FIXED_WINDOW("w0", 5, WEIR_SECONDS(60)),
    WEIR_TOKEN_BUCKET("b0", 20, 7, WEIR_SECONDS(60)),
    WEIR_FIXED_WINDOW("w1", 1, 1000),
    WEIR_TOKEN_BUCKET("b1", 50, 700000, WEIR_SECONDS(1)),
    WEIR_TOKEN_BUCKET("b2", 3, 1, WEIR_DAYS(1)),
    WEIR_FIXED_WINDOW("w2", 4000000000, WEIR_DAYS(366)),
    WEIR_TOKEN_BUCKET("b3", 2000000000, 999999937, WEIR_DAYS(1)),
    WEIR_TOKEN_BUCKET("b4", 1, 3, WEIR_SECONDS(1)),
    WEIR_FIXED_WINDOW("a0", 7, WEIR_SECONDS(7), .anchor = WEIR_ANCHOR_CLOCK),
    WEIR_FIXED_WINDOW("a1", 50, WEIR_DAYS(1), .anchor = WEIR_ANCHOR_CLOCK),
    WEIR_CALENDAR_MONTH("a2", 100),
    WEIR_SLIDING_COUNTER("c0", 60, WEIR_SECONDS(7)),
    WEIR_SLIDING_COUNTER("c1", 999, WEIR_MILLISECONDS(1)),
    WEIR_SLIDING_COUNTER("c2", 1000000000, WEIR_DAYS(7)),
    WEIR_SLIDING_COUNTER("c3", 1, WEIR_DAYS(1)),
};
static struct rule_kit kits[RULES];
static struct weir__limit_state states[SUBJECTS][RULES];
static const char *const subjects[SUBJECTS] = { "user:42", "ip:198.51.100.7", "all" };

/* One operation: time passes, then a question. */
struct op {
    int64_t step_us;
    int subject;
    unsigned wanted; /* rules, as bits */
    int64_t cost[RULES];
    bool give_back; /* what was put here is given back where the next one is */
    bool steps;     /* the clock may have stepped back */
};

static struct redis_client client;
static char *scripts[WEIR__REDIS_SCRIPTS];

/* ---- the scripts, with the time as an argument ---------------------------------------
 */

static char *replaced(char *text, const char *old, const char *new)
{
    char *at = strstr(text, old);
    CHECK(at, "the script has no %s", old);
    char *made = malloc(strlen(text) + strlen(new) + 1);
    CHECK(made, "memory");
    sprintf(made, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    free(text);
    return made;
}

static char *all_replaced(char *text, const char *old, const char *new)
{
    while (strstr(text, old))
        text = replaced(text, old, new);
    return text;
}

static const struct fault {
    enum weir__redis_script_id script;
    const char *old, *new;
} faults[] = {
    { WEIR__REDIS_DECIDE_ONE, "if value > p1 then", "if value >= p1 then" },
    { WEIR__REDIS_DECIDE_ONE, "time = now + p2\n", "time = time\n" },
    { WEIR__REDIS_DECIDE_SEVERAL, "time, value = time + 1, value - parts", "value = 0" },
    { WEIR__REDIS_DECIDE_SEVERAL, "if admitted == 1 then", "if true then" },
    { WEIR__REDIS_DECIDE_MIXED, "time, value = time + 1, value - p5", "value = 0" },
    { WEIR__REDIS_DECIDE_MIXED, "latest = latest - now % p2", "latest = now + p2" },
    { WEIR__REDIS_DECIDE_MIXED, "floor((5 * of + 2) / 153)", "floor(of / 31)" },
    { WEIR__REDIS_DECIDE_MIXED, "time = latest\n", "time = time\n" },
    { WEIR__REDIS_DECIDE_MIXED, "last[i] + 1 - now", "last[i] - 1000 - now" },
    { WEIR__REDIS_DECIDE_MIXED, "elseif ahead < 0 then", "elseif ahead < 9 then" },
    { WEIR__REDIS_DECIDE_MIXED, "before, units = units, 0", "before, units = 0, 0" },
    { WEIR__REDIS_DECIDE_MIXED, "> room * p2_low", ">= room * p2_low" },
    { WEIR__REDIS_DECIDE_MIXED,
      "room = p2 - gone, p1 - units - p3",
      "room = p2 - gone, p1 - units - 1" },
    { WEIR__REDIS_DECIDE_MIXED, "now - gone + 2 * p2", "now - gone + p2" },
    { WEIR__REDIS_REFUND, "window == open and own == open", "true" },
    { WEIR__REDIS_REFUND, "before = math.max(0, before - a[at + 4])", "" },
    { WEIR__REDIS_REFUND, "back, back_part = left, left_part", "" },
    { WEIR__REDIS_REFUND, "if time ~= a[at + 2] or time <= now then", "if false then" },
};

static void prepare_scripts(int fault)
{
    for (int i = 0; i < WEIR__REDIS_SCRIPTS; i++) {
        char *text = strdup(weir__redis_scripts[i].text);
        text = replaced(text, "redis.call('TIME')", "{ARGV[#ARGV - 1], ARGV[#ARGV]}");
        text =
            all_replaced(text, "'PX', math.ceil((time + 1 - now) / 1000)", "'EX', 1000");
        text = all_replaced(
            text, "'PX', math", "'EX', 1000) redis.call('SET', KEYS[i] .. ':px', math");
        if (fault > 0 && faults[fault - 1].script == (enum weir__redis_script_id)i)
            text = replaced(text, faults[fault - 1].old, faults[fault - 1].new);
        scripts[i] = text;
    }
}

/* ---- a command of ours, taken apart and sent with another script and two arguments ----
 */

/* The words of the one command in the buffer, which lie there. */
static unsigned split(const struct weir__buf *command, struct weir__redis_arg *ret_args)
{
    const char *at = strchr(command->bytes, '\n') + 1;
    unsigned len = 0;
    while (at < command->bytes + command->len) {
        size_t bytes = strtoul(at + 1, NULL, 10);
        at = strchr(at, '\n') + 1;
        ret_args[len++] = (struct weir__redis_arg){ at, bytes };
        at += bytes + 2;
    }
    return len;
}

static void call(const struct weir__buf *command,
                 enum weir__redis_script_id script,
                 int64_t wall_us,
                 struct weir__redis_reply *ret_reply)
{
    struct weir__redis_arg args[24];
    struct weir__buf out;
    char seconds[24], rest[24];
    unsigned len = split(command, args);
    snprintf(seconds, sizeof seconds, "%lld", (long long)(wall_us / 1000000));
    snprintf(rest, sizeof rest, "%lld", (long long)(wall_us % 1000000));
    args[0] = (struct weir__redis_arg){ "EVAL", 4 };
    args[1] = (struct weir__redis_arg){ scripts[script], strlen(scripts[script]) };
    args[len++] = (struct weir__redis_arg){ seconds, strlen(seconds) };
    args[len++] = (struct weir__redis_arg){ rest, strlen(rest) };
    weir__buf_init(&out, 0);
    CHECK(weir__redis_put(&out, args, len), "memory");
    redis_client_send(&client, &out);
    redis_client_take(&client, ret_reply);
    weir__buf_finish(&out);
}

/* False where the answer isn't one. */
static bool ask_redis(struct weir_store_ask *ask, uint64_t nonce, int64_t wall_us)
{
    struct weir__buf command;
    struct weir__redis_reply reply;
    weir__buf_init(&command, 0);
    CHECK(weir__redis_put_decide(&command, ask, nonce), "memory");
    call(&command, weir__redis_script_for(ask), wall_us, &reply);
    weir__buf_finish(&command);
    CHECK(reply.kind == WEIR__REDIS_STRING, "%s", reply.bytes);
    return weir__redis_read_decision(ask, nonce, &reply);
}

static bool
refund_redis(const struct weir_store_ask *ask, uint64_t nonce, int64_t wall_us)
{
    struct weir__buf command;
    struct weir__redis_reply reply;
    weir__buf_init(&command, 0);
    CHECK(weir__redis_put_refund(&command, ask, nonce), "memory");
    call(&command, WEIR__REDIS_REFUND, wall_us, &reply);
    weir__buf_finish(&command);
    CHECK(reply.kind == WEIR__REDIS_STRING, "%s", reply.bytes);
    return weir__redis_is_refunded(&reply, nonce);
}

/* ---- the arithmetic alone ------------------------------------------------------------
 */

struct question {
    struct weir_store_ask shm, redis;
    int subject;
    int at[WEIR_RULES_MAX]; /* which rule each item is */
    struct weir__limit_state charged[WEIR_RULES_MAX];
};

static void ask_arithmetic(struct question *question, struct weir_decision *ret)
{
    const struct weir_store_ask *ask = &question->redis;
    struct weir__limit_state new[WEIR_RULES_MAX], *own = states[question->subject];
    memset(ret, 0, sizeof *ret);
    ret->allowed = true;
    for (unsigned i = 0; i < ask->items_len; i++) {
        weir__limit_decide(ask->items[i].compiled,
                           own[question->at[i]],
                           ask->items[i].cost,
                           asks_now_us,
                           &new[i],
                           &ret->rules[i]);
        ret->allowed = ret->allowed && ret->rules[i].allowed;
    }
    for (unsigned i = 0; i < ask->items_len; i++) {
        question->charged[i] = new[i];
        if (ret->allowed && ask->items[i].cost > 0)
            own[question->at[i]] = new[i];
        if (!ret->allowed && ret->rules[i].allowed) {
            int64_t cost = ask->items[i].cost;
            weir__limit_decide(ask->items[i].compiled,
                               own[question->at[i]],
                               0,
                               asks_now_us,
                               &new[i],
                               &ret->rules[i]);
            ret->rules[i].cost = cost;
        }
    }
}

static void refund_arithmetic(struct question *question)
{
    for (unsigned i = 0; i < question->redis.items_len; i++) {
        struct weir__limit_state *state = &states[question->subject][question->at[i]];
        if (question->redis.items[i].cost > 0)
            *state = weir__limit_refund(question->redis.items[i].compiled,
                                        *state,
                                        question->redis.items[i].cost,
                                        question->charged[i],
                                        asks_now_us);
    }
}

/* ---- comparing -----------------------------------------------------------------------
 */

static bool same(const struct weir_rule_answer *a, const struct weir_rule_answer *b)
{
    return a->allowed == b->allowed && a->never == b->never && a->cost == b->cost &&
           a->remaining == b->remaining && a->retry_us == b->retry_us &&
           a->next_us == b->next_us && a->full_us == b->full_us;
}

static bool
same_decision(const struct weir_decision *a, const struct weir_decision *b, unsigned len)
{
    if (a->allowed != b->allowed)
        return false;
    for (unsigned i = 0; i < len; i++)
        if (!same(&a->rules[i], &b->rules[i]))
            return false;
    return true;
}

static int64_t random_cost(struct rng *rng, int64_t max)
{
    switch (rng_between(rng, 0, 9)) {
    case 0:
        return 0;
    case 1:
        return max + 1;
    case 2:
        return max;
    case 3:
        return rng_between(rng, 1, max);
    default:
        return max > 1000 ? rng_between(rng, 1, max / 3) : 1;
    }
}

static void make_question(const struct op *op, struct question *question)
{
    memset(question, 0, sizeof *question);
    question->subject = op->subject;
    for (int i = 0; i < RULES; i++) {
        if (!(op->wanted >> i & 1))
            continue;
        question->at[question->redis.items_len] = i;
        ask_add(&question->redis, &kits[i], subjects[op->subject], op->cost[i]);
        ask_add(&question->shm, &kits[i], subjects[op->subject], op->cost[i]);
    }
}

/* The lifetime that the mixed script gave a counter. */
static int64_t life_us(const char *subject, const char *tail)
{
    char key[256];
    struct weir__buf out;
    struct weir__redis_reply reply;
    int len = snprintf(key, sizeof key, "rate_limit:{%s}:%s:px", subject, tail);
    struct weir__redis_arg args[] = { { "GET", 3 }, { key, (size_t)len } };
    weir__buf_init(&out, 0);
    CHECK(weir__redis_put(&out, args, 2), "memory");
    redis_client_send(&client, &out);
    redis_client_take(&client, &reply);
    weir__buf_finish(&out);
    return reply.kind == WEIR__REDIS_STRING ? strtoll(reply.bytes, NULL, 10) * 1000 : 0;
}

/* It lives until it is worth nothing, and at most two milliseconds more. */
static bool lives_long_enough(const struct question *question)
{
    for (unsigned i = 0; i < question->redis.items_len; i++) {
        const struct weir_store_item *item = &question->redis.items[i];
        int64_t full_us = question->redis.decision.rules[i].full_us;
        if (!question->redis.receipts[i].charged)
            continue;
        int64_t life = life_us(item->subject, item->tail);
        if (life < full_us || life > full_us + 2000)
            return false;
    }
    return true;
}

/* Gives back what the one before took that was put here: others came between. */
static bool give_back_later(struct weir_store *store,
                            struct question *waiting,
                            const struct question *question,
                            uint64_t nonce)
{
    struct question last = *waiting;
    *waiting = *question;
    for (unsigned i = 0; i < last.redis.items_len; i++) {
        if (!last.redis.receipts[i].charged)
            continue;
        refund_arithmetic(&last);
        store->ops->refund(store->self, &last.shm);
        return refund_redis(&last.redis, nonce, asks_now_us);
    }
    return true;
}

/* The wall clock of the script is the test's clock, with another origin. Times in the
 * arithmetic are then the same but for that. False: something differs. */
static bool one_operation(const struct op *op,
                          struct weir_store *store,
                          struct question *waiting,
                          uint64_t nonce)
{
    struct question question;
    struct weir_decision wanted;
    make_question(op, &question);
    unsigned len = question.redis.items_len;
    ask_arithmetic(&question, &wanted);
    if (!ask_redis(&question.redis, nonce, asks_now_us) ||
        !same_decision(&question.redis.decision, &wanted, len))
        return false;
    store->ops->decide(store->self, &question.shm);
    if (!op->steps && !same_decision(&question.shm.decision, &wanted, len))
        return false;
    if (nonce % 8 == 0 &&
        weir__redis_script_for(&question.redis) == WEIR__REDIS_DECIDE_MIXED &&
        !lives_long_enough(&question))
        return false;
    return !wanted.allowed || !op->give_back ||
           give_back_later(store, waiting, &question, nonce);
}

/* The number of the operation that differs; len where none does. */
static size_t first_difference(const struct op *ops, size_t len)
{
    struct question waiting = { .subject = 0 };
    size_t at = 0;
    redis_client_ask(&client, "FLUSHALL");
    memset(states, 0, sizeof states);
    asks_now_us = EPOCH_US;
    struct weir_store *store = crowd_store(4096);
    for (; at < len; at++) {
        asks_now_us += ops[at].step_us;
        if (!one_operation(&ops[at], store, &waiting, at))
            break;
    }
    weir_store_destroy(store);
    return at;
}

static bool fails(const void *ops, size_t len, void *arg)
{
    (void)arg;
    return first_difference(ops, len) < len;
}

/* ---- random operations ---------------------------------------------------------------
 */

/* No shared memory sees its clock step back, and it keeps the clamp that a refusal then
 * makes where Redis doesn't; so the steps come last, without it. Leaps are few: its times
 * span 35 years. */
static int64_t random_step_us(struct rng *rng, bool steps)
{
    static const int64_t most_us[] = { 0, 3, 2000, WEIR_SECONDS(9), WEIR_HOURS(9) };
    int64_t step_us = rng_between(rng, 0, most_us[rng_between(rng, 0, 4)]);
    if (rng_between(rng, 0, 1999) == 0)
        step_us += WEIR_DAYS(rng_between(rng, 1, 200));
    if (steps && rng_between(rng, 0, 2) == 0)
        step_us -= rng_between(rng, 1, WEIR_MINUTES(3));
    return step_us;
}

/* Half of the questions are of one rule, the others of up to eight. */
static struct op random_op(struct rng *rng, bool steps)
{
    bool lone = rng_between(rng, 0, 1) == 0;
    struct op op = { .step_us = random_step_us(rng, steps), .steps = steps };
    op.subject = (int)rng_between(rng, 0, SUBJECTS - 1);
    op.give_back = rng_between(rng, 0, 2) == 0;
    for (int64_t n = lone ? 1 : rng_between(rng, 2, WEIR_RULES_MAX); n > 0; n--) {
        int i = (int)rng_between(rng, 0, rng_between(rng, 0, 1) ? 7 : RULES - 1);
        op.wanted |= 1U << i;
        op.cost[i] = random_cost(rng, rules[i].max);
        if (!lone && op.cost[i] > rules[i].max && rng_between(rng, 0, 9) != 0)
            op.cost[i] = 1;
    }
    return op;
}

static void print_ops(const struct op *ops, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        printf("  +%lld us, %s%s:",
               (long long)ops[i].step_us,
               subjects[ops[i].subject],
               ops[i].give_back ? ", given back later" : "");
        for (int rule = 0; rule < RULES; rule++)
            if (ops[i].wanted >> rule & 1)
                printf(" %s %lld", rules[rule].name, (long long)ops[i].cost[rule]);
        printf("\n");
    }
}

static void report(struct op *ops, size_t at)
{
    size_t len = shrink(ops, at + 1, sizeof *ops, SHRINK_TRIES, fails, NULL);
    printf("operation %zu differs; %zu are enough:\n", at + 1, len);
    print_ops(ops, len);
}

int main(int argc, char **argv)
{
    struct redis_server server;
    size_t operations = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
    int fault = argc > 2 ? atoi(argv[2]) : 0;
    struct rng rng = { argc > 3 ? strtoull(argv[3], NULL, 10) : 20261130 };
    uint64_t seed = rng.state;
    CHECK(fault >= 0 && fault <= (int)(sizeof faults / sizeof *faults), "no such fault");
    struct op *ops = calloc(operations, sizeof *ops);
    CHECK(ops, "memory");
    for (size_t i = 0; i < operations; i++)
        ops[i] = random_op(&rng, i > operations / 2);
    weir__clock_replace(asks_clock, asks_clock);
    for (int i = 0; i < RULES; i++)
        kit_init(&kits[i], rules[i]);
    redis_server_start(&server);
    redis_client_open(&client, server.socket);
    prepare_scripts(fault);
    size_t at = first_difference(ops, operations);
    if (fault == 0 && at < operations)
        report(ops, at);
    redis_client_close(&client);
    redis_server_finish(&server);
    free(ops);
    if (fault > 0) {
        CHECK(at < operations, "fault %d was not noticed", fault);
        printf("fault %d noticed in operation %zu\n", fault, at + 1);
        return 0;
    }
    CHECK(at == operations, "seed %llu", (unsigned long long)seed);
    printf("arithmetic, shared memory, Redis: %zu operations, 0 differences, seed %llu\n",
           operations,
           (unsigned long long)seed);
    return 0;
}
