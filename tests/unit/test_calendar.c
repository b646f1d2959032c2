#include "limit/calendar.h"

#include <criterion/criterion.h>
#include <time.h>

#include "support/rng.h"

/* The C library's answer. */
static int64_t expected_us(int64_t now_us)
{
    time_t seconds = (time_t)(now_us / 1000000);
    struct tm date;
    gmtime_r(&seconds, &date);
    struct tm next = { .tm_year = date.tm_year, .tm_mon = date.tm_mon + 1, .tm_mday = 1 };
    return (int64_t)timegm(&next) * 1000000;
}

Test(calendar, a_month_ends_with_its_last_microsecond)
{
    int64_t march_us = INT64_C(1772323200000000); /* 2026-03-01 */
    int64_t april_us = INT64_C(1775001600000000);
    cr_expect_eq(weir__month_end_us(march_us - 1), march_us);
    cr_expect_eq(weir__month_end_us(march_us), april_us);
    cr_expect_eq(weir__month_end_us(april_us - 1), april_us);
    cr_expect_eq(weir__month_end_us(0), INT64_C(31) * 86400000000);
}

Test(calendar, agrees_with_the_c_library_on_every_day_of_300_years)
{
    for (int64_t day = 0; day < 300 * 366; day++) {
        int64_t now_us = day * INT64_C(86400000000) + 1;
        cr_assert_eq(
            weir__month_end_us(now_us), expected_us(now_us), "day %ld", (long)day);
    }
}

Test(calendar, agrees_with_the_c_library_at_any_moment)
{
    struct rng rng = { 7 };
    for (int i = 0; i < 100000; i++) {
        int64_t now_us = rng_between(&rng, 0, INT64_C(1) << 53);
        cr_assert_eq(weir__month_end_us(now_us), expected_us(now_us));
    }
}
