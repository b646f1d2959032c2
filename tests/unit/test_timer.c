#include <criterion/criterion.h>

#include <stdint.h>
#include <stdlib.h>
#include <weir/weir.h>

#include "net/timer.h"

#define START_US INT64_C(123456789)

static struct weir__timers timers;

static void start(void)
{
    weir__timers_init(&timers, START_US);
}

TestSuite(timer, .init = start);

Test(timer, an_empty_wheel_has_nothing_due_and_no_next)
{
    cr_assert_null(weir__timers_expire(&timers, INT64_MAX / 2));
    cr_assert_eq(weir__timers_next_us(&timers), INT64_MAX);
}

Test(timer, fires_once_its_time_has_come_and_never_before)
{
    struct weir__timer timer = { 0 };
    int64_t at_us = START_US + WEIR_SECONDS(75) + 1;
    weir__timer_set(&timers, &timer, at_us);
    for (int64_t now_us = START_US; now_us < at_us; now_us += 999)
        cr_assert_null(weir__timers_expire(&timers, now_us));
    cr_assert_null(weir__timers_expire(&timers, at_us - 1));
    cr_assert(weir__timer_is_set(&timer));
    cr_assert_eq(weir__timers_expire(&timers, at_us + WEIR__TIMER_TICK_US), &timer);
    cr_assert_not(weir__timer_is_set(&timer));
    cr_assert_null(weir__timers_expire(&timers, at_us + WEIR__TIMER_TICK_US));
}

Test(timer, a_time_that_is_over_is_due_at_once)
{
    struct weir__timer timer = { 0 };
    weir__timer_set(&timers, &timer, START_US - 5000);
    cr_assert_leq(weir__timers_next_us(&timers), START_US);
    cr_assert_eq(weir__timers_expire(&timers, START_US), &timer);
}

Test(timer, stopped_or_moved_it_leaves_its_old_time)
{
    struct weir__timer moved = { 0 }, stopped = { 0 };
    weir__timer_set(&timers, &moved, START_US + WEIR_SECONDS(1));
    weir__timer_set(&timers, &stopped, START_US + WEIR_SECONDS(1));
    weir__timer_set(&timers, &moved, START_US + WEIR_SECONDS(9));
    weir__timer_stop(&timers, &stopped);
    weir__timer_stop(&timers, &stopped);
    cr_assert_null(weir__timers_expire(&timers, START_US + WEIR_SECONDS(8)));
    cr_assert_eq(weir__timers_expire(&timers, START_US + WEIR_SECONDS(10)), &moved);
    cr_assert_eq(weir__timers_next_us(&timers), INT64_MAX);
}

Test(timer, a_leap_over_years_finds_every_timer)
{
    struct weir__timer timer[3] = { { 0 } };
    weir__timer_set(&timers, &timer[0], START_US + 1);
    weir__timer_set(&timers, &timer[1], START_US + WEIR_DAYS(400));
    weir__timer_set(&timers, &timer[2], INT64_MAX);
    int64_t now_us = START_US + WEIR_DAYS(4000);
    cr_assert_not_null(weir__timers_expire(&timers, now_us));
    cr_assert_not_null(weir__timers_expire(&timers, now_us));
    cr_assert_null(weir__timers_expire(&timers, now_us));
    cr_assert(weir__timer_is_set(&timer[2]));
}

/* Against the plain model: a time for each timer, looked through from first to last. */
Test(timer, agrees_with_a_list_over_random_steps)
{
    enum { TIMERS = 50, STEPS = 200000 };
    static struct weir__timer timer[TIMERS];
    static int64_t at_us[TIMERS]; /* 0: not set */
    static const int64_t spans_us[] = { 3000, 200000, 5000000, 80000000, 9000000000 };
    int64_t now_us = START_US;
    srand(7);
    for (int step = 0; step < STEPS; step++) {
        int i = rand() % TIMERS;
        int64_t span_us = spans_us[rand() % 5];
        switch (rand() % 4) {
        case 0:
            weir__timer_stop(&timers, &timer[i]);
            at_us[i] = 0;
            break;
        case 1:
            now_us += (int64_t)rand() % span_us / 50;
            break;
        default:
            at_us[i] = now_us + (int64_t)rand() % span_us;
            weir__timer_set(&timers, &timer[i], at_us[i]);
        }
        int64_t next_us = weir__timers_next_us(&timers);
        for (struct weir__timer *due; (due = weir__timers_expire(&timers, now_us));) {
            int64_t *slot = &at_us[due - timer];
            cr_assert(*slot != 0 && *slot <= now_us, "early");
            cr_assert_leq(next_us, now_us, "the next time lay behind a due timer");
            *slot = 0;
        }
        for (int k = 0; k < TIMERS; k++) {
            cr_assert_eq(weir__timer_is_set(&timer[k]), at_us[k] != 0);
            cr_assert(at_us[k] == 0 || at_us[k] > now_us - WEIR__TIMER_TICK_US, "late");
        }
    }
}
