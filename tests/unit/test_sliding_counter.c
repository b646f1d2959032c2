/* The laws of a sliding counter and cases from the field; tests/model/ compares it with a
 * judge, where faults planted in it are seen to fail. */
#include "limit/limit.h"

#include <criterion/criterion.h>

#include "support/rng.h"

#define WINDOW_US WEIR_SECONDS(60)
#define K_US (WEIR_DAYS(20000)) /* where a window begins */

struct counter {
    struct weir__limit limit;
    struct weir__limit_state state;
};

static struct counter made(int64_t max, int64_t window_us)
{
    struct weir_rule rule = WEIR_SLIDING_COUNTER("c", max, window_us);
    struct counter counter = { .state = { 0, 0 } };
    struct weir_error error = { { 0 } };
    cr_assert(weir__limit_compile(&rule, &counter.limit, &error), "%s", error.text);
    return counter;
}

static struct weir_rule_answer ask(struct counter *counter, int64_t cost, int64_t now_us)
{
    struct weir_rule_answer answer = { 0 };
    weir__limit_decide(
        &counter->limit, counter->state, cost, now_us, &counter->state, &answer);
    return answer;
}

static int64_t pass(struct counter *counter, int64_t most, int64_t now_us)
{
    int64_t passed = 0;
    while (passed < most && ask(counter, 1, now_us).allowed)
        passed++;
    return passed;
}

Test(sliding_counter, admits_exactly_max_also_where_max_is_1)
{
    static const int64_t maxes[] = { 1, 2, 5 };
    for (int i = 0; i < 3; i++) {
        struct counter counter = made(maxes[i], WINDOW_US);
        for (int64_t left = maxes[i] - 1; left >= 0; left--) {
            struct weir_rule_answer answer = ask(&counter, 1, K_US);
            cr_expect(answer.allowed);
            cr_expect_eq(answer.remaining, left);
        }
        struct weir_rule_answer answer = ask(&counter, 1, K_US);
        cr_expect_not(answer.allowed);
        cr_expect_leq(answer.retry_us, 2 * WINDOW_US);
        cr_expect_not(ask(&counter, 1, K_US + answer.retry_us - 1).allowed);
        cr_expect(ask(&counter, 1, K_US + answer.retry_us).allowed);
    }
}

/* A case from the field: the window before was looked up under a wrong number, and what
 * remains ignored its part. */
Test(sliding_counter, counts_the_window_before_by_its_share_in_view)
{
    struct counter counter = made(100, WINDOW_US);
    cr_expect_eq(pass(&counter, 50, K_US + WEIR_SECONDS(59)), 50);
    int64_t now_us = K_US + WINDOW_US + WEIR_SECONDS(6);
    cr_expect_eq(pass(&counter, 9, now_us), 9);
    cr_expect_eq(ask(&counter, 1, now_us).remaining, 45);
    cr_expect_eq(pass(&counter, 100, now_us), 45);
}

Test(sliding_counter, frees_the_window_before_evenly)
{
    struct counter counter = made(60, WEIR_SECONDS(180));
    int64_t begin_us = WEIR_SECONDS(180) * 100;
    cr_expect_eq(pass(&counter, 100, begin_us + WEIR_SECONDS(1)), 60);
    struct counter fresh = counter;
    cr_expect_eq(pass(&counter, 100, begin_us + WEIR_SECONDS(180 + 36)), 12);
    cr_expect_eq(pass(&fresh, 100, begin_us + WEIR_SECONDS(180 + 144)), 48);
}

Test(sliding_counter, tells_the_wait_while_the_window_before_fades)
{
    struct counter counter = made(10, WINDOW_US);
    cr_expect_eq(pass(&counter, 10, K_US + WEIR_SECONDS(30)), 10);
    int64_t now_us = K_US + WINDOW_US + WEIR_SECONDS(6);
    cr_expect(ask(&counter, 1, now_us).allowed);
    cr_expect_eq(ask(&counter, 1, now_us).retry_us, WEIR_SECONDS(6));
}

/* The wait that nobody works out: past the end of the open window, whose units then fade.
 */
Test(sliding_counter, tells_the_wait_across_the_edge_of_its_window)
{
    struct counter counter = made(10, WINDOW_US);
    int64_t now_us = K_US + WEIR_SECONDS(20);
    cr_expect_eq(pass(&counter, 10, now_us), 10);
    struct weir_rule_answer answer = ask(&counter, 3, now_us);
    cr_expect_eq(answer.retry_us, WEIR_SECONDS(40 + 18));
    cr_expect_eq(answer.next_us, WEIR_SECONDS(40 + 6));
    cr_expect_eq(answer.full_us, WEIR_SECONDS(40 + 60));
    answer = ask(&counter, 10, now_us);
    cr_expect_eq(answer.retry_us, WEIR_SECONDS(40 + 60));
}

/* Cases from the field: a clock that steps back locked callers out. */
Test(sliding_counter, waits_no_longer_than_a_window_after_the_clock_stepped_back)
{
    struct rng rng = { 5 };
    for (int i = 0; i < 1000; i++) {
        struct counter counter = made(5, WINDOW_US);
        int64_t now_us = K_US + rng_between(&rng, 0, WINDOW_US - 1);
        pass(&counter, 5, now_us);
        now_us -= rng_between(&rng, WINDOW_US, WEIR_HOURS(1));
        struct weir_rule_answer answer = ask(&counter, 1, now_us);
        cr_assert_leq(answer.retry_us, WINDOW_US);
        cr_assert(answer.allowed || ask(&counter, 1, now_us + answer.retry_us).allowed);
    }
}

Test(sliding_counter, keeps_its_units_when_max_changes)
{
    struct counter counter = made(10, WINDOW_US);
    pass(&counter, 6, K_US);
    counter.limit = made(8, WINDOW_US).limit;
    cr_expect_eq(ask(&counter, 0, K_US).remaining, 2);
    counter.limit = made(4, WINDOW_US).limit;
    struct weir_rule_answer answer = ask(&counter, 1, K_US);
    cr_expect_not(answer.allowed);
    cr_expect_eq(answer.remaining, 0);
    cr_expect_eq(answer.retry_us, WINDOW_US + WEIR_SECONDS(30));
}

Test(sliding_counter, gives_back_to_the_window_that_was_charged)
{
    struct counter counter = made(10, WINDOW_US);
    pass(&counter, 4, K_US);
    struct weir__limit_state charged = counter.state;
    int64_t now_us = K_US + WINDOW_US + WEIR_SECONDS(30);
    pass(&counter, 1, now_us);
    counter.state = weir__limit_refund(&counter.limit, counter.state, 2, charged, now_us);
    cr_expect_eq(ask(&counter, 0, now_us).remaining, 8);
    now_us += WINDOW_US;
    counter.state = weir__limit_refund(&counter.limit, counter.state, 2, charged, now_us);
    cr_expect_eq(ask(&counter, 0, now_us).remaining, 9);
}

Test(sliding_counter, is_as_new_when_all_is_given_back)
{
    struct counter counter = made(10, WINDOW_US);
    pass(&counter, 4, K_US);
    counter.state =
        weir__limit_refund(&counter.limit, counter.state, 4, counter.state, K_US);
    cr_expect_eq(counter.state.time_us, 0);
    cr_expect_eq(counter.state.value, 0);
}

/* By its own estimate, worked out anew from every charge of a run. */
Test(sliding_counter, is_never_above_max_by_its_own_estimate)
{
    __extension__ typedef __int128 wide;
    struct rng rng = { 6 };
    for (int run = 0; run < 300; run++) {
        int64_t max = rng_between(&rng, 1, 40), window_us = rng_between(&rng, 1000, 9999);
        int64_t now_us = rng_between(&rng, 1, INT64_C(1) << 48);
        int64_t number[500], cost[500];
        struct counter counter = made(max, window_us);
        for (int i = 0; i < 500; i++) {
            wide before = 0, open = 0;
            now_us += rng_between(&rng, 0, window_us / 20);
            number[i] = now_us / window_us;
            cost[i] = rng_between(&rng, 1, max / 4 + 1);
            if (!ask(&counter, cost[i], now_us).allowed)
                cost[i] = 0;
            for (int j = 0; j <= i; j++) {
                open += number[j] == number[i] ? cost[j] : 0;
                before += number[j] == number[i] - 1 ? cost[j] : 0;
            }
            wide used = before * (window_us - now_us % window_us) + open * window_us;
            cr_assert(used <= (wide)max * window_us);
        }
    }
}
