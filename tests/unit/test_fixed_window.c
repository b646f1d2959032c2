/* The judge is a model that keeps every charge of the open window and adds them up anew
 * for each question. Faults that were planted in the arithmetic and seen to fail here:
 * `<` for `<=` against the max, no clamp of the end, the end moved by every charge, a
 * refused request charged, the end counted as still inside the window. */
#include "limit/limit.h"

#include <criterion/criterion.h>

#include "support/rng.h"

static struct weir__limit made(int64_t max, int64_t window_us)
{
    struct weir_rule rule = WEIR_FIXED_WINDOW("w", max, window_us);
    struct weir__limit limit;
    struct weir_error error = { { 0 } };
    cr_assert(weir__limit_compile(&rule, &limit, &error), "%s", error.text);
    return limit;
}

/* A counter with its rule; asks and keeps the state. */
struct counter {
    struct weir__limit limit;
    struct weir__limit_state state;
};

static struct weir_rule_answer ask(struct counter *counter, int64_t cost, int64_t now_us)
{
    struct weir_rule_answer answer = { 0 };
    weir__limit_decide(
        &counter->limit, counter->state, cost, now_us, &counter->state, &answer);
    return answer;
}

Test(fixed_window, admits_exactly_max_also_where_max_is_1)
{
    static const int64_t maxes[] = { 1, 2, 5 };
    for (int i = 0; i < 3; i++) {
        struct counter counter = { made(maxes[i], WEIR_SECONDS(60)), { 0, 0 } };
        for (int64_t left = maxes[i] - 1; left >= 0; left--) {
            struct weir_rule_answer answer = ask(&counter, 1, 1000);
            cr_expect(answer.allowed);
            cr_expect_eq(answer.remaining, left);
        }
        struct weir_rule_answer answer = ask(&counter, 1, 1000);
        cr_expect_not(answer.allowed);
        cr_expect_eq(answer.remaining, 0);
        cr_expect_eq(answer.retry_us, WEIR_SECONDS(60));
        cr_expect_not(ask(&counter, 1, 1000 + WEIR_SECONDS(60) - 1).allowed);
        cr_expect(ask(&counter, 1, 1000 + WEIR_SECONDS(60)).allowed);
    }
}

Test(fixed_window, starts_with_the_first_request_and_is_not_renewed_by_others)
{
    struct counter counter = { made(6, WEIR_SECONDS(60)), { 0, 0 } };
    int64_t least = 6;
    for (int i = 0; i < 120; i++) {
        struct weir_rule_answer answer = ask(&counter, 1, 1 + i * WEIR_SECONDS(15));
        cr_expect(answer.allowed);
        least = answer.remaining < least ? answer.remaining : least;
    }
    cr_expect_eq(least, 2);
}

Test(fixed_window, charges_a_cost_whole_or_not_at_all)
{
    struct counter counter = { made(10, WEIR_SECONDS(1)), { 0, 0 } };
    cr_expect_eq(ask(&counter, 7, 1000).remaining, 3);
    struct weir_rule_answer answer = ask(&counter, 4, 2000);
    cr_expect_not(answer.allowed);
    cr_expect_eq(answer.remaining, 3);
    cr_expect_eq(answer.retry_us, WEIR_SECONDS(1) - 1000);
    cr_expect_eq(ask(&counter, 3, 3000).remaining, 0);
}

Test(fixed_window, lasts_as_long_as_two_months_say)
{
    struct counter counter = { made(2, WEIR_DAYS(60)), { 0, 0 } };
    cr_expect(ask(&counter, 1, 1).allowed);
    cr_expect(ask(&counter, 1, 1).allowed);
    cr_expect_not(ask(&counter, 1, 1).allowed);
    cr_expect_not(ask(&counter, 1, 1 + WEIR_DAYS(59)).allowed);
    cr_expect(ask(&counter, 1, 1 + WEIR_DAYS(60)).allowed);
}

Test(fixed_window, promises_at_most_one_window_after_the_clock_stepped_back)
{
    struct counter counter = { made(5, WEIR_SECONDS(60)), { 0, 0 } };
    int64_t now_us = WEIR_HOURS(2);
    for (int i = 0; i < 5; i++)
        ask(&counter, 1, now_us);
    now_us -= WEIR_HOURS(1);
    struct weir_rule_answer answer = ask(&counter, 1, now_us);
    cr_expect_not(answer.allowed);
    cr_expect_eq(answer.retry_us, WEIR_SECONDS(60));
    /* The clamp is kept: the wait doesn't start anew with each refusal. */
    cr_expect_eq(ask(&counter, 1, now_us + WEIR_SECONDS(20)).retry_us, WEIR_SECONDS(40));
    cr_expect(ask(&counter, 1, now_us + WEIR_SECONDS(60)).allowed);

    /* Forward, one request, and back again. */
    now_us += WEIR_HOURS(3);
    cr_expect(ask(&counter, 5, now_us).allowed);
    answer = ask(&counter, 1, now_us - WEIR_HOURS(1));
    cr_expect_eq(answer.retry_us, WEIR_SECONDS(60));
}

Test(fixed_window, keeps_what_is_used_when_max_changes)
{
    struct counter counter = { made(5, WEIR_SECONDS(3600)), { 0, 0 } };
    ask(&counter, 4, 1000);
    counter.limit.max = 3;
    struct weir_rule_answer answer = ask(&counter, 1, 2000);
    cr_expect_not(answer.allowed);
    cr_expect_eq(answer.remaining, 0);
    cr_expect_eq(weir__limit_level(&counter.limit, counter.state, 2000), 15);
    counter.limit.max = 6;
    cr_expect_eq(ask(&counter, 1, 2000).remaining, 1);
}

Test(fixed_window, serves_after_the_new_length_when_it_is_shortened)
{
    struct counter counter = { made(5, WEIR_SECONDS(3600)), { 0, 0 } };
    ask(&counter, 5, 1000);
    counter.limit.window_us = WEIR_SECONDS(60);
    cr_expect_eq(ask(&counter, 1, 1000).retry_us, WEIR_SECONDS(60));
    cr_expect_not(ask(&counter, 1, 1000 + WEIR_SECONDS(60) - 1).allowed);
    cr_expect(ask(&counter, 1, 1000 + WEIR_SECONDS(60)).allowed);
}

Test(fixed_window, gives_back_only_within_the_window_that_was_charged)
{
    struct counter counter = { made(5, WEIR_SECONDS(10)), { 0, 0 } };
    ask(&counter, 1, 1000);
    ask(&counter, 3, 2000);
    struct weir__limit_state charged = counter.state;
    counter.state = weir__limit_refund(&counter.limit, counter.state, 3, charged, 3000);
    cr_expect_eq(ask(&counter, 0, 3000).remaining, 4);
    counter.state = weir__limit_refund(&counter.limit, counter.state, 9, charged, 3000);
    cr_expect_eq(ask(&counter, 0, 3000).remaining, 5);
    cr_expect_eq(ask(&counter, 0, 3000).next_us, 0);

    int64_t later_us = 1000 + WEIR_SECONDS(10);
    ask(&counter, 4, later_us);
    counter.state =
        weir__limit_refund(&counter.limit, counter.state, 3, charged, later_us);
    cr_expect_eq(ask(&counter, 0, later_us).remaining, 1);
}

/* Every charge of the open window. */
struct model {
    int64_t max, window_us, opened_us;
    int64_t costs[64];
    int charges;
};

static int64_t model_used(struct model *model, int64_t now_us)
{
    if (now_us >= model->opened_us + model->window_us)
        model->charges = 0;
    int64_t used = 0;
    for (int i = 0; i < model->charges; i++)
        used += model->costs[i];
    return used;
}

static bool model_ask(struct model *model, int64_t cost, int64_t now_us)
{
    if (model_used(model, now_us) + cost > model->max)
        return false;
    if (model->charges == 0)
        model->opened_us = now_us;
    model->costs[model->charges++] = cost;
    return true;
}

Test(fixed_window, agrees_with_a_model_and_keeps_its_promise_to_the_microsecond)
{
    struct rng rng = { 1 };
    int refusals = 0;
    while (refusals < 100000) {
        struct model model = { .max = rng_between(&rng, 1, 40),
                               .window_us = rng_between(&rng, 1000, 100000) };
        struct counter counter = { made(model.max, model.window_us), { 0, 0 } };
        int64_t now_us = rng_between(&rng, 1, INT64_C(1) << 50);
        for (int i = 0; i < 200; i++, now_us += rng_between(&rng, 0, 3000)) {
            int64_t cost = rng_between(&rng, 1, model.max);
            bool expected = model_ask(&model, cost, now_us);
            struct weir_rule_answer answer = ask(&counter, cost, now_us);
            cr_assert_eq(answer.allowed, expected);
            cr_assert_eq(answer.remaining, model.max - model_used(&model, now_us));
            if (expected)
                continue;
            refusals++;
            struct counter copy = counter;
            cr_assert_not(ask(&copy, cost, now_us + answer.retry_us - 1).allowed);
            cr_assert(ask(&copy, cost, now_us + answer.retry_us).allowed);
        }
    }
}

static struct counter anchored(struct weir_rule rule)
{
    struct counter counter = { .state = { 0, 0 } };
    struct weir_error error = { { 0 } };
    cr_assert(weir__limit_compile(&rule, &counter.limit, &error), "%s", error.text);
    return counter;
}

Test(fixed_window, with_the_clock_as_anchor_ends_at_a_multiple_of_its_length)
{
    struct weir_rule rule =
        WEIR_FIXED_WINDOW("day", 3, WEIR_DAYS(1), .anchor = WEIR_ANCHOR_CLOCK);
    struct counter counter = anchored(rule);
    int64_t noon_us = WEIR_DAYS(20000) + WEIR_HOURS(12);
    cr_expect_eq(ask(&counter, 3, noon_us).full_us, WEIR_HOURS(12));
    struct weir_rule_answer answer = ask(&counter, 1, noon_us + WEIR_HOURS(11));
    cr_expect_not(answer.allowed);
    cr_expect_eq(answer.retry_us, WEIR_HOURS(1));
    cr_expect(ask(&counter, 1, WEIR_DAYS(20001)).allowed);
    cr_expect_eq(counter.state.time_us, WEIR_DAYS(20002));
}

Test(fixed_window, of_a_month_ends_with_it)
{
    struct weir_rule rule = WEIR_CALENDAR_MONTH("month", 2);
    struct counter counter = anchored(rule);
    int64_t february_us = INT64_C(1769904000000000); /* 2026-02-01 */
    cr_expect_eq(ask(&counter, 2, february_us).full_us, WEIR_DAYS(28));
    cr_expect_not(ask(&counter, 1, february_us + WEIR_DAYS(28) - 1).allowed);
    struct weir_rule_answer answer = ask(&counter, 1, february_us + WEIR_DAYS(28));
    cr_expect(answer.allowed);
    cr_expect_eq(answer.full_us, WEIR_DAYS(31));
}

/* A case from the field: after a step of the wall clock callers waited for the old time.
 */
Test(fixed_window, with_an_anchor_waits_no_longer_than_its_length_after_a_step_back)
{
    struct weir_rule rule =
        WEIR_FIXED_WINDOW("minute", 5, WEIR_MINUTES(1), .anchor = WEIR_ANCHOR_CLOCK);
    struct counter counter = anchored(rule);
    int64_t now_us = WEIR_DAYS(20000) + WEIR_SECONDS(10);
    ask(&counter, 5, now_us);
    now_us -= WEIR_HOURS(1);
    struct weir_rule_answer answer = ask(&counter, 1, now_us);
    cr_expect_not(answer.allowed);
    cr_expect_eq(answer.retry_us, WEIR_SECONDS(50));
    cr_expect(ask(&counter, 1, now_us + answer.retry_us).allowed);
}
