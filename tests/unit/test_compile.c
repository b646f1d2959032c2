#include "limit/limit.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct weir_rule window = WEIR_FIXED_WINDOW("minute", 100, WEIR_MINUTES(1));
static const struct weir_rule bucket = WEIR_TOKEN_BUCKET("burst", 20, 4, WEIR_SECONDS(1));

/* The rule must be refused with a text that begins with the field. */
static void refused(struct weir_rule rule, const char *field)
{
    struct weir__limit limit = { .max = -7 };
    struct weir_error error = { { 0 } };
    cr_expect_not(weir__limit_compile(&rule, &limit, &error), "%s passed", field);
    cr_expect(strncmp(error.text, field, strlen(field)) == 0 &&
                  error.text[strlen(field)] == ':',
              "\"%s\" doesn't name %s",
              error.text,
              field);
    cr_expect_eq(limit.max, -7, "the output was touched");
}

static struct weir__limit accepted(struct weir_rule rule)
{
    struct weir__limit limit = { .max = -7 };
    struct weir_error error = { { 0 } };
    cr_expect(weir__limit_compile(&rule, &limit, &error), "%s", error.text);
    return limit;
}

#define WITH(rule_, ...)                                                                 \
    do {                                                                                 \
        struct weir_rule rule = rule_;                                                   \
        __VA_ARGS__;                                                                     \
    } while (0)

Test(compile, takes_a_fixed_window_as_it_stands)
{
    struct weir__limit limit = accepted(window);
    cr_expect_eq(limit.algorithm, WEIR_ALGORITHM_FIXED_WINDOW);
    cr_expect_eq(limit.max, 100);
    cr_expect_eq(limit.window_us, 60000000);
}

Test(compile, reduces_the_rate_of_a_token_bucket)
{
    struct weir__limit limit = accepted(bucket);
    cr_expect_eq(limit.max, 20);
    cr_expect_eq(limit.units, 1);
    cr_expect_eq(limit.period_us, 250000);

    limit = accepted((struct weir_rule)WEIR_TOKEN_BUCKET("seven", 7, 7, WEIR_MINUTES(1)));
    cr_expect_eq(limit.units, 7);
    cr_expect_eq(limit.period_us, 60000000);
}

Test(compile, takes_a_max_of_0_and_the_word_block_as_refuse_all)
{
    WITH(window, rule.max = 0; cr_expect_eq(accepted(rule).max, 0));
    WITH(window, rule.max = WEIR_BLOCK; cr_expect_eq(accepted(rule).max, 0));
    WITH(bucket, rule.max = WEIR_BLOCK; cr_expect_eq(accepted(rule).max, 0));
    WITH(window, rule.max = 0; rule.cost = 5; accepted(rule));
}

/* Cases from the field: 0 as a window meant "all pass", 4294967297 became 1, 30 000 000
 * 000 became 14 % of itself, a long window overflowed to a millisecond. */
Test(compile, refuses_numbers_that_are_negative_or_too_large)
{
    WITH(window, rule.max = -1; refused(rule, "max"));
    WITH(window, rule.max = INT64_MIN + 1; refused(rule, "max"));
    WITH(window, rule.max = WEIR__MAX_UNITS + 1; refused(rule, "max"));
    WITH(window, rule.max = INT64_C(4294967297); refused(rule, "max"));
    WITH(window, rule.max = INT64_C(30000000000); refused(rule, "max"));
    WITH(bucket, rule.max = -1; refused(rule, "capacity"));
    WITH(bucket, rule.max = INT64_MAX; refused(rule, "capacity"));
    WITH(window, rule.max = WEIR__MAX_UNITS; accepted(rule));
    WITH(window, rule.window_us = 0; refused(rule, "window"));
    WITH(window, rule.window_us = -1; refused(rule, "window"));
    WITH(window, rule.window_us = WEIR__WINDOW_MIN_US - 1; refused(rule, "window"));
    WITH(window, rule.window_us = WEIR__WINDOW_MAX_US + 1; refused(rule, "window"));
    WITH(window, rule.window_us = WEIR__WINDOW_MIN_US; accepted(rule));
    WITH(window, rule.window_us = WEIR__WINDOW_MAX_US; accepted(rule));
    WITH(bucket, rule.window_us = 0; refused(rule, "period"));
    WITH(bucket, rule.refill = 0; refused(rule, "refill"));
    WITH(bucket, rule.refill = -1; refused(rule, "refill"));
    WITH(bucket, rule.refill = WEIR__MAX_UNITS + 1; refused(rule, "refill"));
    WITH(window, rule.refill = 1; refused(rule, "refill"));
}

Test(compile, refuses_a_bucket_that_takes_more_than_ten_years_to_fill)
{
    WITH(bucket, rule.refill = 1; rule.window_us = WEIR_DAYS(1); rule.max = 3660;
         accepted(rule));
    WITH(bucket, rule.refill = 1; rule.window_us = WEIR_DAYS(1); rule.max = 3661;
         refused(rule, "refill"));
    WITH(bucket, rule.refill = 1; rule.window_us = WEIR__WINDOW_MAX_US;
         rule.max = WEIR__MAX_UNITS;
         refused(rule, "refill"));
}

Test(compile, refuses_a_constant_cost_that_can_never_pass)
{
    WITH(window, rule.cost = 100; accepted(rule));
    WITH(window, rule.cost = 101; refused(rule, "cost"));
    WITH(window, rule.cost = -1; refused(rule, "cost"));
    WITH(bucket, rule.cost = 21; refused(rule, "cost"));
}

Test(compile, refuses_names_and_buckets_that_keys_can_not_hold)
{
    char longest[66];
    memset(longest, 'x', sizeof longest);
    longest[65] = '\0';
    WITH(window, rule.name = NULL; refused(rule, "name"));
    WITH(window, rule.name = ""; refused(rule, "name"));
    WITH(window, rule.name = "a:b"; refused(rule, "name"));
    WITH(window, rule.name = "a b"; refused(rule, "name"));
    WITH(window, rule.name = "{a}"; refused(rule, "name"));
    WITH(window, rule.name = "caf\xc3\xa9"; refused(rule, "name"));
    WITH(window, rule.name = longest; refused(rule, "name"));
    WITH(window, rule.name = longest + 1; accepted(rule));
    WITH(window, rule.bucket = ""; refused(rule, "bucket"));
    WITH(window, rule.bucket = "GET /a"; refused(rule, "bucket"));
    WITH(window, rule.bucket = "{a}"; refused(rule, "bucket"));
    WITH(window, rule.bucket = "auth.v2_x-1"; accepted(rule));
}

Test(compile, refuses_words_that_are_none_of_the_lists)
{
    WITH(window, rule.algorithm = WEIR_ALGORITHM_NONE; refused(rule, "algorithm"));
    WITH(window, rule.algorithm = WEIR_ALGORITHM_UNLIMITED; refused(rule, "algorithm"));
    WITH(window, rule.by = (enum weir_by)99; refused(rule, "by"));
    WITH(window, rule.on_store_error = (enum weir_on_store_error)99;
         refused(rule, "on_store_error"));
}

Test(compile, a_share_is_rounded_up_and_at_least_one)
{
    struct weir__limit limit = accepted(window);
    cr_expect_eq(weir__limit_share(&limit, 1).max, 100);
    cr_expect_eq(weir__limit_share(&limit, 2).max, 50);
    cr_expect_eq(weir__limit_share(&limit, 3).max, 34);
    cr_expect_eq(weir__limit_share(&limit, 1000).max, 1);
    limit.max = 0;
    cr_expect_eq(weir__limit_share(&limit, 3).max, 0, "a block stays one");
}

Test(compile, a_bucket_shares_its_rate_exactly)
{
    struct weir__limit limit = accepted(bucket); /* 1 in 250,000 us */
    struct weir__limit share = weir__limit_share(&limit, 3);
    cr_expect_eq(share.max, 7);
    cr_expect_eq(share.units * 3 * limit.period_us, limit.units * share.period_us);
    struct weir_rule slow = WEIR_TOKEN_BUCKET("b", 1, 1, WEIR_DAYS(366));
    limit = accepted(slow);
    share = weir__limit_share(&limit, 10000);
    cr_expect_eq(share.max, 1);
    cr_expect_eq(share.period_us, limit.period_us, "it would take too long to fill");
}

Test(compile, a_sliding_counter_holds_less_than_a_unit_a_microsecond)
{
    struct weir_rule rule = WEIR_SLIDING_COUNTER("c", 999, 1000);
    cr_expect_eq(accepted(rule).max, 999);
    rule.max = 1000;
    refused(rule, "max");
    rule = (struct weir_rule)WEIR_SLIDING_COUNTER("c", 1000000000, WEIR_DAYS(1));
    accepted(rule);
    rule.max++;
    refused(rule, "max");
    rule = (struct weir_rule)WEIR_SLIDING_COUNTER("c", 5, WEIR_DAYS(1), .refill = 1);
    refused(rule, "refill");
    rule = (struct weir_rule)WEIR_SLIDING_COUNTER("c", WEIR_BLOCK, WEIR_DAYS(1));
    cr_expect_eq(accepted(rule).max, 0);
}

Test(compile, an_anchor_is_for_fixed_windows)
{
    WITH(window, rule.anchor = WEIR_ANCHOR_CLOCK; accepted(rule));
    WITH(window, rule.anchor = (enum weir_anchor)9; refused(rule, "anchor"));
    WITH(window, rule.anchor = WEIR_ANCHOR_MONTH; refused(rule, "window"));
    WITH(bucket, rule.anchor = WEIR_ANCHOR_CLOCK; refused(rule, "anchor"));
    struct weir_rule month = WEIR_CALENDAR_MONTH("month", 3, .cost = 2);
    cr_expect_eq(accepted(month).anchor, WEIR_ANCHOR_MONTH);
}
