#include "base/clock.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <time.h>

static int64_t fixed_now(void)
{
    return 42;
}

static int64_t fixed_wall(void)
{
    return 43;
}

Test(clock, can_be_replaced_and_put_back)
{
    weir__clock_replace(fixed_now, fixed_wall);
    cr_assert_eq(weir__clock_now_us(), 42);
    cr_assert_eq(weir__clock_wall_us(), 43);
    weir__clock_replace(NULL, NULL);
    cr_assert_gt(weir__clock_now_us(), 42);
    cr_assert_gt(weir__clock_wall_us(), 1600000000 * INT64_C(1000000));
}

Test(clock, counts_microseconds_and_never_goes_back)
{
    struct timespec system;
    int64_t first = weir__clock_now_us();
    clock_gettime(CLOCK_MONOTONIC, &system);
    int64_t second = weir__clock_now_us();
    int64_t between = (int64_t)system.tv_sec * 1000000 + system.tv_nsec / 1000;
    cr_assert_leq(first, between);
    cr_assert_leq(between, second);
}
