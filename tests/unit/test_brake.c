#include <criterion/criterion.h>

#include "process/brake.h"

#define MS INT64_C(1000)
#define START INT64_C(5000000000)

Test(brake, ten_restarts_are_free)
{
    struct weir__brake brake;
    weir__brake_init(&brake, 2);
    for (int i = 0; i < 10; i++) {
        cr_expect_not(weir__brake_is_on(&brake, START + i));
        cr_expect_eq(weir__brake_next_us(&brake, START + i, false), START + i);
        weir__brake_count(&brake, START + i, false);
    }
    cr_expect(weir__brake_is_on(&brake, START + 10));
}

Test(brake, then_it_is_one_a_second)
{
    struct weir__brake brake;
    int64_t now = START;
    weir__brake_init(&brake, 2);
    for (int i = 0; i < 10; i++)
        weir__brake_count(&brake, now, false);
    for (int i = 0; i < 30; i++) {
        int64_t next = weir__brake_next_us(&brake, now, false);
        cr_expect_eq(next, now + 1000 * MS, "restart %d", i);
        now = next;
        cr_expect_eq(
            weir__brake_next_us(&brake, now, false), now, "at its time it is allowed");
        weir__brake_count(&brake, now, false);
        cr_expect(weir__brake_is_on(&brake, now));
    }
}

Test(brake, ten_quiet_seconds_take_it_off)
{
    struct weir__brake brake;
    weir__brake_init(&brake, 2);
    for (int i = 0; i < 10; i++)
        weir__brake_count(&brake, START + i * 100 * MS, false);
    cr_expect(weir__brake_is_on(&brake, START + 10000 * MS - 1));
    cr_expect_not(weir__brake_is_on(&brake, START + 10000 * MS));
    cr_expect_eq(weir__brake_next_us(&brake, START + 10000 * MS, false),
                 START + 10000 * MS);
}

Test(brake, restarts_that_are_rare_never_put_it_on)
{
    struct weir__brake brake;
    weir__brake_init(&brake, 2);
    for (int i = 0; i < 1000; i++) {
        cr_expect_not(weir__brake_is_on(&brake, START + i * 1001 * MS));
        weir__brake_count(&brake, START + i * 1001 * MS, false);
    }
}

Test(brake, all_of_many_workers_may_come_back_at_once)
{
    struct weir__brake brake;
    weir__brake_init(&brake, 64);
    for (int i = 0; i < 64; i++) {
        cr_expect_eq(weir__brake_next_us(&brake, START, false), START);
        weir__brake_count(&brake, START, false);
    }
    cr_expect_eq(weir__brake_next_us(&brake, START, false), START + 1000 * MS);
}

static struct weir__brake braked(void)
{
    struct weir__brake brake;
    weir__brake_init(&brake, 2);
    for (int i = 0; i < 10; i++) {
        weir__brake_ended(&brake, 40 * MS);
        weir__brake_count(&brake, START, false);
    }
    return brake;
}

Test(brake, the_last_worker_is_replaced_at_once_and_puts_off_no_other)
{
    struct weir__brake brake = braked();
    int64_t now = START;
    for (int i = 0; i < 19; i++) {
        weir__brake_ended(&brake, 40 * MS);
        now += 50 * MS;
        cr_expect_eq(weir__brake_next_us(&brake, now, true), now, "restart %d", i);
        weir__brake_count(&brake, now, true);
        cr_expect_eq(weir__brake_next_us(&brake, now, true), now + 20 * MS);
        cr_expect_eq(weir__brake_next_us(&brake, now, false), START + 1000 * MS);
    }
}

Test(brake, who_does_not_work_is_paced_even_as_the_last_one)
{
    struct weir__brake brake = braked();
    weir__brake_ended(&brake, -1);
    weir__brake_ended(&brake, 1 * MS);
    cr_expect_eq(weir__brake_next_us(&brake, START, true), START + 20 * MS);
    weir__brake_ended(&brake, -1);
    cr_expect_eq(weir__brake_next_us(&brake, START, true), START + 1000 * MS);
    weir__brake_ended(&brake, 10 * MS);
    cr_expect_eq(weir__brake_next_us(&brake, START, true), START + 20 * MS);
}
