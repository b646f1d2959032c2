/* Alarms and the wheel they lie on, with a clock that the test moves. No thread runs. */
#include "net/loop_alarm.h"

#include <criterion/criterion.h>

#include "base/clock.h"

#define START_US INT64_C(5000000)

static struct weir__loop loop;
static int64_t now_us;
static unsigned fired;

static int64_t fake_now_us(void)
{
    return now_us;
}

static void fire(struct weir__alarm *alarm)
{
    (void)alarm;
    fired++;
}

static void start(void)
{
    struct weir_error error;
    now_us = START_US;
    fired = 0;
    weir__clock_replace(fake_now_us, NULL);
    cr_assert(weir__loop_init(&loop, 2, 1, &error), "%s", error.text);
}

static void finish(void)
{
    weir__loop_finish(&loop);
    weir__clock_replace(NULL, NULL);
}

TestSuite(loop_alarm, .init = start, .fini = finish, .timeout = 10);

/* As a turn does whose clock has rung: it looks whatever the time. */
static void run(int64_t turn_us)
{
    atomic_store(&loop.timers_next_us, 0);
    weir__loop_alarms_run(&loop, turn_us);
}

Test(loop_alarm, fires_once_when_it_is_due)
{
    struct weir__alarm alarm = { .fire = fire };
    weir__alarm_set(&loop, &alarm, START_US + 20000);
    run(now_us = START_US + 19000);
    cr_assert_eq(fired, 0);
    run(now_us = START_US + 22000);
    run(now_us = START_US + 23000);
    cr_assert_eq(fired, 1);
}

Test(loop_alarm, moved_back_it_fires_at_its_new_time_only)
{
    struct weir__alarm alarm = { .fire = fire };
    weir__alarm_set(&loop, &alarm, START_US + 20000);
    weir__alarm_set(&loop, &alarm, START_US + 40000);
    run(now_us = START_US + 30000);
    cr_assert_eq(fired, 0);
    run(now_us = START_US + 42000);
    cr_assert_eq(fired, 1);
}

Test(loop_alarm, cleared_it_does_not_fire)
{
    struct weir__alarm alarm = { .fire = fire };
    weir__alarm_set(&loop, &alarm, START_US + 20000);
    weir__alarm_clear(&alarm);
    run(now_us = START_US + 60000);
    cr_assert_eq(fired, 0);
}

/* A thread whose turn began earlier comes to the wheel after another has moved it on: an
 * alarm moved to a time between the two is due for the wheel, and not yet for the turn.
 * To put it back on the wheel and ask again went on for ever. */
Test(loop_alarm, moved_to_where_the_wheel_has_been_it_does_not_spin)
{
    struct weir__alarm alarm = { .fire = fire };
    weir__alarm_set(&loop, &alarm, START_US + 10000);
    int64_t old_turn_us = START_US + 20000;
    weir__alarm_set(&loop, &alarm, START_US + 30000);
    now_us = START_US + 50000;
    cr_assert_eq(weir__timers_expire(&loop.timers, now_us), &alarm.timer);
    cr_assert_null(weir__timers_expire(&loop.timers, now_us));
    weir__timer_set(&loop.timers, &alarm.timer, START_US + 10000);
    run(old_turn_us);
    cr_assert_eq(fired, 1);
}
