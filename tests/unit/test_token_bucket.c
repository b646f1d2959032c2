/* The judge is a bucket of tokens in exact fractions: what is in it, counted in 1/period
 * of a unit, grows by `units` each microsecond. The code under test counts time instead.
 * Faults that were planted in the arithmetic and seen to fail here: `<` for `<=` against
 * the capacity, a wait rounded down, the fraction dropped from the state, no clamp to the
 * capacity, the interval rounded to whole microseconds, a refused request charged, a
 * refund of the whole cost whatever time has given back. */
#include "limit/limit.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>

#include "support/rng.h"

__extension__ typedef __int128 wide;

struct counter {
    struct weir__limit limit;
    struct weir__limit_state state;
};

static struct counter made(int64_t capacity, int64_t refill, int64_t period_us)
{
    struct weir_rule rule = WEIR_TOKEN_BUCKET("b", capacity, refill, period_us);
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

static void refund(struct counter *counter,
                   int64_t cost,
                   struct weir__limit_state charged,
                   int64_t now_us)
{
    counter->state =
        weir__limit_refund(&counter->limit, counter->state, cost, charged, now_us);
}

Test(token_bucket, admits_the_capacity_at_once_then_one_an_interval)
{
    static const int64_t capacities[] = { 1, 2, 5 };
    for (int i = 0; i < 3; i++) {
        int64_t capacity = capacities[i];
        struct counter counter = made(capacity, capacity, WEIR_SECONDS(60));
        for (int64_t left = capacity - 1; left >= 0; left--) {
            struct weir_rule_answer answer = ask(&counter, 1, 1000);
            cr_expect(answer.allowed);
            cr_expect_eq(answer.remaining, left);
        }
        struct weir_rule_answer answer = ask(&counter, 1, 1000);
        cr_expect_not(answer.allowed);
        cr_expect_eq(answer.retry_us, WEIR_SECONDS(60) / capacity);
    }
}

Test(token_bucket, refills_while_idle)
{
    struct counter counter = made(10, 1, WEIR_SECONDS(1));
    ask(&counter, 10, 1000);
    cr_expect_eq(ask(&counter, 0, 1000 + WEIR_SECONDS(3)).remaining, 3);
    cr_expect_eq(ask(&counter, 0, 1000 + WEIR_SECONDS(10)).remaining, 10);
    cr_expect_eq(ask(&counter, 0, 1000 + WEIR_SECONDS(1000)).remaining, 10);
}

/* A case from the field: the state of fast buckets lived 0 s and nothing was limited. */
Test(token_bucket, limits_fast_and_small_buckets_too)
{
    struct counter counter = made(1, 3, WEIR_SECONDS(1));
    cr_expect(ask(&counter, 1, 1000).allowed);
    cr_expect_not(ask(&counter, 1, 1000).allowed);

    counter = made(1000, 1000, WEIR_SECONDS(60));
    for (int i = 0; i < 1000; i++)
        cr_expect(ask(&counter, 1, 1000).allowed);
    cr_expect_not(ask(&counter, 1, 1000).allowed);

    counter = made(5, 5000, WEIR_SECONDS(1));
    for (int i = 0; i < 5; i++)
        cr_expect(ask(&counter, 1, 1000).allowed);
    struct weir_rule_answer answer = ask(&counter, 1, 1000);
    cr_expect_not(answer.allowed);
    cr_expect_eq(answer.retry_us, 200);
}

Test(token_bucket, waits_the_whole_day_for_one_a_day)
{
    struct counter counter = made(1, 1, WEIR_DAYS(60));
    cr_expect(ask(&counter, 1, 1).allowed);
    cr_expect_not(ask(&counter, 1, WEIR_DAYS(59)).allowed);
    cr_expect_not(ask(&counter, 1, WEIR_DAYS(60)).allowed);
    cr_expect(ask(&counter, 1, WEIR_DAYS(60) + 1).allowed);
}

Test(token_bucket, promises_at_most_its_own_refill_after_the_clock_stepped_back)
{
    struct counter counter = made(10, 1, WEIR_SECONDS(1));
    int64_t now_us = WEIR_HOURS(2);
    for (int i = 0; i < 3; i++)
        ask(&counter, 1, now_us);
    struct weir_rule_answer answer = ask(&counter, 1, now_us - WEIR_SECONDS(11));
    cr_expect_not(answer.allowed);
    cr_expect_eq(answer.retry_us, WEIR_SECONDS(1));
    cr_expect_eq(answer.full_us, WEIR_SECONDS(10));
    cr_expect(ask(&counter, 1, now_us - WEIR_SECONDS(10)).allowed);
}

Test(token_bucket, keeps_the_time_to_full_when_the_rate_changes)
{
    struct counter counter = made(10, 1, WEIR_SECONDS(1));
    ask(&counter, 4, 1000);
    counter.limit = made(10, 2, WEIR_SECONDS(1)).limit;
    struct weir_rule_answer answer = ask(&counter, 0, 1000);
    cr_expect_eq(answer.full_us, WEIR_SECONDS(4));
    cr_expect_eq(answer.remaining, 2);
    counter.limit = made(10, 10, WEIR_SECONDS(1)).limit;
    cr_expect_eq(ask(&counter, 0, 1000).full_us, WEIR_SECONDS(1));
}

Test(token_bucket, keeps_what_is_used_when_the_capacity_changes)
{
    struct counter counter = made(10, 1, WEIR_SECONDS(1));
    ask(&counter, 4, 1000);
    counter.limit = made(6, 1, WEIR_SECONDS(1)).limit;
    cr_expect_eq(ask(&counter, 0, 1000).remaining, 2);
    counter.limit = made(20, 1, WEIR_SECONDS(1)).limit;
    cr_expect_eq(ask(&counter, 0, 1000).remaining, 16);
}

Test(token_bucket, reads_a_fraction_of_another_rate_as_no_less_than_it_was)
{
    struct counter counter = made(7, 7, WEIR_MINUTES(1));
    ask(&counter, 1, 1000);
    counter.state.value = 6;
    int64_t before_us = counter.state.time_us;
    counter.limit = made(7, 3, WEIR_MINUTES(1)).limit;
    cr_expect_eq(ask(&counter, 0, 1000).full_us, before_us - 1000 + 1);
}

Test(token_bucket, gives_back_a_charge_whole_while_it_is_fresh)
{
    struct counter counter = made(7, 7, WEIR_MINUTES(1));
    ask(&counter, 3, 1000);
    struct weir__limit_state before = counter.state;
    ask(&counter, 2, 1000);
    refund(&counter, 2, counter.state, 1000);
    cr_expect_eq(counter.state.time_us, before.time_us);
    cr_expect_eq(counter.state.value, before.value);
}

Test(token_bucket, gives_back_nothing_that_time_has_given_back)
{
    struct counter counter = made(10, 1, WEIR_SECONDS(1));
    ask(&counter, 10, 1000);
    struct weir__limit_state first = counter.state;
    int64_t now_us = 1000 + WEIR_SECONDS(9);
    ask(&counter, 9, now_us);
    refund(&counter, 10, first, now_us);
    cr_expect_eq(ask(&counter, 0, now_us).full_us, WEIR_SECONDS(9));
    refund(&counter, 10, first, now_us + WEIR_SECONDS(1));
    cr_expect_eq(ask(&counter, 0, now_us + WEIR_SECONDS(1)).full_us, WEIR_SECONDS(8));
}

/* The model: tokens as they are told in textbooks. */
struct model {
    int64_t capacity, refill, period_us, at_us;
    wide inside; /* in 1/period of a unit */
};

static struct model model_made(int64_t capacity, int64_t refill, int64_t period_us)
{
    return (struct model){ .capacity = capacity,
                           .refill = refill,
                           .period_us = period_us,
                           .inside = (wide)capacity * period_us };
}

static bool model_ask(struct model *model, int64_t cost, int64_t now_us)
{
    wide full = (wide)model->capacity * model->period_us;
    model->inside += (wide)(now_us - model->at_us) * model->refill;
    model->inside = model->inside < full ? model->inside : full;
    model->at_us = now_us;
    if (model->inside < (wide)cost * model->period_us)
        return false;
    model->inside -= (wide)cost * model->period_us;
    return true;
}

static int64_t model_wait(const struct model *model, wide wanted)
{
    wide missing = wanted - model->inside;
    return missing <= 0 ? 0 : (int64_t)((missing + model->refill - 1) / model->refill);
}

static void check_answer(const struct model *model,
                         int64_t cost,
                         bool expected,
                         const struct weir_rule_answer *answer)
{
    int64_t whole = (int64_t)(model->inside / model->period_us);
    wide full = (wide)model->capacity * model->period_us;
    cr_assert_eq(answer->allowed, expected);
    cr_assert_eq(answer->remaining, whole);
    cr_assert_eq(answer->full_us, model_wait(model, full));
    cr_assert_eq(answer->retry_us,
                 expected ? 0 : model_wait(model, (wide)cost * model->period_us));
    cr_assert_eq(answer->next_us,
                 model->inside == full
                     ? 0
                     : model_wait(model, (wide)(whole + 1) * model->period_us));
}

/* Rates whose interval is no whole number of microseconds, or less than one. */
static const struct {
    int64_t refill, period_us;
} rates[] = {
    { 7, WEIR_MINUTES(1) },
    { 700000, WEIR_SECONDS(1) },
    { 1, WEIR_DAYS(1) },
    { 3, WEIR_SECONDS(1) },
    { 999, WEIR_SECONDS(1) },
    { 1000003, WEIR_HOURS(1) },
    { 999999937, WEIR_DAYS(1) },
    { 4, WEIR_SECONDS(1) },
    { 3999999979, WEIR_DAYS(366) },
    { 3999999979, WEIR_MILLISECONDS(1) },
    { 1, WEIR_DAYS(366) },
};

Test(token_bucket, agrees_with_a_model_in_exact_fractions_for_every_rate)
{
    struct rng rng = { 2 };
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        int64_t refill = rates[r].refill, period_us = rates[r].period_us;
        wide most = (wide)WEIR__SPAN_MAX_US * refill / period_us;
        for (int run = 0; run < 20; run++) {
            int64_t capacity = rng_between(&rng, 1, most < 50 ? (int64_t)most : 50);
            struct counter counter = made(capacity, refill, period_us);
            struct model model = model_made(capacity, refill, period_us);
            int64_t step_us = 2 * (period_us / refill) + 1;
            int64_t now_us = rng_between(&rng, 1, INT64_C(1) << 48);
            model.at_us = now_us;
            for (int i = 0; i < 5000; i++, now_us += rng_between(&rng, 0, step_us)) {
                int64_t cost = rng_between(&rng, 1, i % 4 ? 1 : capacity);
                bool expected = model_ask(&model, cost, now_us);
                struct weir_rule_answer answer = ask(&counter, cost, now_us);
                check_answer(&model, cost, expected, &answer);
            }
        }
    }
}

Test(token_bucket, keeps_its_promise_to_the_microsecond)
{
    struct rng rng = { 3 };
    for (int refusals = 0; refusals < 100000;) {
        int64_t refill = rng_between(&rng, 1, 2000);
        int64_t period_us = rng_between(&rng, 1000, 3000000);
        int64_t capacity = rng_between(&rng, 1, 20);
        struct counter counter = made(capacity, refill, period_us);
        int64_t now_us = rng_between(&rng, 1, INT64_C(1) << 48);
        for (int i = 0; i < 100; i++) {
            int64_t cost = rng_between(&rng, 1, capacity);
            struct weir_rule_answer answer = ask(&counter, cost, now_us);
            now_us += rng_between(&rng, 0, period_us / refill);
            if (answer.allowed)
                continue;
            refusals++;
            struct counter copy = counter;
            answer = ask(&copy, cost, now_us);
            if (answer.allowed)
                continue;
            cr_assert_not(ask(&copy, cost, now_us + answer.retry_us - 1).allowed);
            cr_assert(ask(&copy, cost, now_us + answer.retry_us).allowed);
        }
    }
}

/* With the charge taken and given back, no run may find more in the bucket than with the
 * charge never made. */
Test(token_bucket, never_gives_back_more_than_the_charge_took)
{
    struct rng rng = { 4 };
    for (int run = 0; run < 20000; run++) {
        int64_t capacity = rng_between(&rng, 1, 20);
        struct counter with = made(capacity, 7, 1000), without = with;
        int64_t now_us = 1000, charged_cost = rng_between(&rng, 1, capacity);
        ask(&with, charged_cost, now_us);
        struct weir__limit_state charged = with.state;
        for (int64_t i = rng_between(&rng, 0, 6); i > 0; i--) {
            now_us += rng_between(&rng, 0, 400);
            int64_t cost = rng_between(&rng, 1, capacity);
            if (ask(&with, cost, now_us).allowed)
                cr_assert(ask(&without, cost, now_us).allowed);
        }
        now_us += rng_between(&rng, 0, 400);
        refund(&with, charged_cost, charged, now_us);
        cr_assert_geq(ask(&with, 0, now_us).full_us, ask(&without, 0, now_us).full_us);
    }
}

static int64_t number(const json_t *row, const char *member)
{
    const json_t *value = json_object_get(row, member);
    return json_is_string(value) ? atoll(json_string_value(value))
                                 : (int64_t)json_integer_value(value);
}

/* tests/data/limit/gcra.json: reference runs in exact rationals. They begin at 0, which
 * our clocks never say, so that all are moved by one day. */
Test(token_bucket, passes_the_reference_vectors)
{
    json_error_t error;
    json_t *file = json_load_file(TEST_DATA "/limit/gcra.json", 0, &error);
    cr_assert_not_null(file, "%s", error.text);
    size_t i, j;
    json_t *vector, *row;
    json_array_foreach(json_object_get(file, "vectors"), i, vector)
    {
        const char *name = json_string_value(json_object_get(vector, "name"));
        struct counter counter = made(
            number(vector, "burst"), number(vector, "q"), number(vector, "window_us"));
        json_array_foreach(json_object_get(vector, "rows"), j, row)
        {
            int64_t cost = number(row, "cost"), now_us = number(row, "now_us");
            struct weir_rule_answer answer = ask(&counter, cost, WEIR_DAYS(1) + now_us);
            /* Of cost 0 these vectors say that it always passes, we say whether one more
             * would: both are in use. */
            if (cost > 0)
                cr_expect_eq(answer.allowed,
                             json_is_true(json_object_get(row, "allowed")),
                             "%s, row %zu",
                             name,
                             j);
            cr_expect_eq(answer.remaining, number(row, "remaining"), "%s %zu", name, j);
            if (cost > 0)
                cr_expect_eq(
                    answer.retry_us, number(row, "retry_after_us"), "%s %zu", name, j);
            cr_expect_eq(
                answer.full_us, number(row, "reset_after_us"), "%s %zu", name, j);
        }
    }
    json_decref(file);
}
