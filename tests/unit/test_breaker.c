/* The breaker: when it opens, who probes, when it closes. Time is an argument. */
#include "store/breaker.h"

#include <criterion/criterion.h>

#define NOW INT64_C(1000000000)
#define LONG (2 * WEIR__BREAKER_OPEN_MAX_US)

static struct weir__breaker opened(void)
{
    struct weir__breaker breaker = { 0 };
    for (int i = 0; i < WEIR__BREAKER_FAILURES; i++)
        weir__breaker_failed(&breaker, NOW);
    return breaker;
}

Test(breaker, opens_at_the_third_failure_in_a_row)
{
    struct weir__breaker breaker = { 0 };
    cr_assert_not(weir__breaker_failed(&breaker, NOW));
    cr_assert_not(weir__breaker_failed(&breaker, NOW));
    cr_assert_not(weir__breaker_is_open(&breaker));
    cr_assert(weir__breaker_failed(&breaker, NOW));
    cr_assert(weir__breaker_is_open(&breaker));
    cr_assert_not(weir__breaker_failed(&breaker, NOW), "it is open already");
}

Test(breaker, an_answer_between_them_starts_the_count_anew)
{
    struct weir__breaker breaker = { 0 };
    for (int i = 0; i < 10; i++) {
        weir__breaker_failed(&breaker, NOW);
        weir__breaker_failed(&breaker, NOW);
        weir__breaker_answered(&breaker);
    }
    cr_assert_not(weir__breaker_is_open(&breaker));
}

Test(breaker, nobody_probes_while_it_is_closed)
{
    struct weir__breaker breaker = { 0 };
    cr_assert_not(weir__breaker_take_probe(&breaker, NOW));
}

Test(breaker, one_probes_and_not_before_its_time)
{
    struct weir__breaker breaker = opened();
    int64_t shortest_us = WEIR__BREAKER_OPEN_MIN_US * 4 / 5;
    cr_assert_not(weir__breaker_take_probe(&breaker, NOW + shortest_us - 1));
    int64_t later_us = NOW + WEIR__BREAKER_OPEN_MIN_US * 6 / 5;
    cr_assert(weir__breaker_take_probe(&breaker, later_us));
    cr_assert_not(weir__breaker_take_probe(&breaker, later_us), "somebody does already");
}

Test(breaker, a_prober_that_died_is_replaced)
{
    struct weir__breaker breaker = opened();
    cr_assert(weir__breaker_take_probe(&breaker, NOW + LONG));
    cr_assert(weir__breaker_take_probe(&breaker, NOW + LONG + WEIR__BREAKER_LEASE_US));
}

Test(breaker, two_good_probes_close_it)
{
    struct weir__breaker breaker = opened();
    cr_assert(weir__breaker_take_probe(&breaker, NOW + LONG));
    cr_assert_not(weir__breaker_probe_good(&breaker, NOW + LONG));
    cr_assert(weir__breaker_is_open(&breaker));
    cr_assert(weir__breaker_probe_good(&breaker, NOW + LONG));
    cr_assert_not(weir__breaker_is_open(&breaker));
    cr_assert_not(weir__breaker_failed(&breaker, NOW + LONG), "the count starts anew");
}

Test(breaker, each_bad_probe_doubles_the_wait_up_to_a_second)
{
    struct weir__breaker breaker = opened();
    int64_t now_us = NOW, open_us = WEIR__BREAKER_OPEN_MIN_US;
    for (int i = 0; i < 10; i++) {
        now_us += LONG;
        cr_assert(weir__breaker_take_probe(&breaker, now_us));
        weir__breaker_probe_good(&breaker, now_us);
        weir__breaker_probe_bad(&breaker, now_us);
        open_us = 2 * open_us < WEIR__BREAKER_OPEN_MAX_US ? 2 * open_us
                                                          : WEIR__BREAKER_OPEN_MAX_US;
        cr_assert_not(weir__breaker_take_probe(&breaker, now_us + open_us * 4 / 5 - 1));
    }
    now_us += WEIR__BREAKER_OPEN_MAX_US * 6 / 5;
    cr_assert(weir__breaker_take_probe(&breaker, now_us), "never later than that");
    cr_assert_not(weir__breaker_probe_good(&breaker, now_us), "two in a row");
}

Test(breaker, jitter_is_a_fifth_each_way)
{
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 10000; i++) {
        int64_t us = weir__jitter_us(1000);
        least = us < least ? us : least;
        most = us > most ? us : most;
    }
    cr_assert_eq(least, 800);
    cr_assert_eq(most, 1200);
}
