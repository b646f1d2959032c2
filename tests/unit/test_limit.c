/* What all algorithms share: costs that never pass, tags, keeping the promise of a wait.
 * The laws of each one are in its own test. */
#include "limit/limit.h"

#include <criterion/criterion.h>
#include <string.h>

static struct weir__limit made(struct weir_rule rule)
{
    struct weir__limit limit;
    struct weir_error error = { { 0 } };
    cr_assert(weir__limit_compile(&rule, &limit, &error), "%s", error.text);
    return limit;
}

#define EACH(name_, max_)                                                                \
    const struct weir__limit each[3] = {                                                 \
        made((struct weir_rule)WEIR_FIXED_WINDOW(name_, max_, WEIR_SECONDS(10))),        \
        made((struct weir_rule)WEIR_TOKEN_BUCKET(name_, max_, 1, WEIR_SECONDS(1))),      \
        made((struct weir_rule)WEIR_SLIDING_COUNTER(name_, max_, WEIR_SECONDS(10))),     \
    }

Test(limit, says_never_where_the_cost_is_above_the_max)
{
    EACH("x", 10);
    for (int i = 0; i < 3; i++) {
        struct weir__limit_state state = { 0, 0 }, after = { 1, 1 };
        struct weir_rule_answer answer;
        weir__limit_decide(&each[i], state, 11, 1000, &after, &answer);
        cr_expect_not(answer.allowed);
        cr_expect(answer.never);
        cr_expect_eq(answer.cost, 11);
        cr_expect_eq(answer.remaining, 10);
        cr_expect_eq(answer.retry_us, 0);
        cr_expect_eq(answer.full_us, 0);
        cr_expect_eq(after.time_us, 0);
        cr_expect_eq(after.value, 0);
        weir__limit_decide(&each[i], state, INT64_MAX, 1000, &after, &answer);
        cr_expect(answer.never);
    }
}

Test(limit, refuses_all_where_blocked)
{
    EACH("x", WEIR_BLOCK);
    for (int i = 0; i < 3; i++)
        for (int64_t cost = 0; cost <= 1; cost++) {
            struct weir__limit_state state = { 0, 0 }, after;
            struct weir_rule_answer answer;
            weir__limit_decide(&each[i], state, cost, 1000, &after, &answer);
            cr_expect_not(answer.allowed);
            cr_expect(answer.never);
            cr_expect_eq(answer.remaining, 0);
            cr_expect_eq(weir__limit_level(&each[i], state, 1000), 15);
        }
}

Test(limit, asks_without_charging_where_the_cost_is_0)
{
    EACH("x", 2);
    for (int i = 0; i < 3; i++) {
        struct weir__limit_state state = { 0, 0 }, after;
        struct weir_rule_answer answer;
        weir__limit_decide(&each[i], state, 0, 1000, &after, &answer);
        cr_expect(answer.allowed);
        cr_expect_eq(answer.remaining, 2);
        cr_expect_eq(answer.next_us, 0);
        weir__limit_decide(&each[i], state, 2, 1000, &state, &answer);
        cr_expect(answer.allowed);
        weir__limit_decide(&each[i], state, 0, 1000, &after, &answer);
        cr_expect_not(answer.allowed);
        cr_expect_not(answer.never);
        cr_expect_gt(answer.retry_us, 0);
        cr_expect_eq(after.time_us, state.time_us);
        cr_expect_eq(after.value, state.value);
    }
}

Test(limit, levels_are_fifteenths_of_the_budget_and_15_is_refused)
{
    EACH("x", 30);
    for (int i = 0; i < 3; i++) {
        struct weir__limit_state state = { 0, 0 };
        struct weir_rule_answer answer;
        cr_expect_eq(weir__limit_level(&each[i], state, 1000), 0);
        for (unsigned used = 1; used <= 30; used++) {
            weir__limit_decide(&each[i], state, 1, 1000, &state, &answer);
            unsigned expected = used == 30 ? 15 : used / 2;
            cr_expect_eq(weir__limit_level(&each[i], state, 1000), expected);
        }
    }
}

static const char *tag(enum weir_algorithm algorithm, enum weir_anchor anchor)
{
    static char text[WEIR__TAG_BYTES];
    struct weir_rule rule = { .algorithm = algorithm, .anchor = anchor };
    return weir__limit_tag(&rule, text);
}

static const char *counter_tag(int64_t window_us)
{
    static char text[WEIR__TAG_BYTES];
    struct weir_rule rule = WEIR_SLIDING_COUNTER("c", 1, window_us);
    return weir__limit_tag(&rule, text);
}

Test(limit, tags_differ_between_algorithms_and_clocks)
{
    cr_expect_str_eq(tag(WEIR_ALGORITHM_FIXED_WINDOW, WEIR_ANCHOR_REQUEST), "w1");
    cr_expect_str_eq(tag(WEIR_ALGORITHM_FIXED_WINDOW, WEIR_ANCHOR_CLOCK), "a1");
    cr_expect_str_eq(tag(WEIR_ALGORITHM_FIXED_WINDOW, WEIR_ANCHOR_MONTH), "a1");
    cr_expect_str_eq(tag(WEIR_ALGORITHM_TOKEN_BUCKET, WEIR_ANCHOR_REQUEST), "b1");
    cr_expect_str_eq(counter_tag(60000000), "c1-60s");
    cr_expect_str_eq(counter_tag(1500000), "c1-1500ms");
    cr_expect_str_eq(counter_tag(1001), "c1-1001us");
    cr_expect_str_eq(tag(WEIR_ALGORITHM_NONE, WEIR_ANCHOR_REQUEST), "");
}
