#include "store/shm_lock.h"

#include <criterion/criterion.h>

#include "support/asks.h"

static struct weir__shm_segment segment;

static void setup(void)
{
    asks_stop_clock();
    cr_assert(weir__shm_segment_create(15, NULL, &segment, NULL));
}

static void teardown(void)
{
    weir__shm_segment_destroy(&segment);
}

TestSuite(shm_lock, .init = setup, .fini = teardown);

static struct weir__shm_hold locked(unsigned stripe)
{
    struct weir__shm_hold hold = { .len = 0 };
    weir__shm_lock_want(&hold, &segment.stripes[stripe]);
    weir__shm_lock(&segment, &hold);
    return hold;
}

Test(shm_lock, takes_each_stripe_once_in_order_of_address)
{
    static const unsigned wanted[] = { 7, 3, 200, 3, 7, 0, 9, 9 };
    static const unsigned expected[] = { 0, 3, 7, 9, 200 };
    struct weir__shm_hold hold = { .len = 0 };
    for (int i = 0; i < 8; i++)
        weir__shm_lock_want(&hold, &segment.stripes[wanted[i]]);
    cr_assert_eq(hold.len, 5);
    for (int i = 0; i < 5; i++)
        cr_expect_eq(hold.stripes[i], &segment.stripes[expected[i]]);
    weir__shm_lock(&segment, &hold);
    for (int i = 0; i < 5; i++)
        cr_expect(weir__shm_lock_is_held(&segment.stripes[expected[i]]));
    weir__shm_unlock(&hold);
    for (int i = 0; i < 5; i++)
        cr_expect_not(weir__shm_lock_is_held(&segment.stripes[expected[i]]));
}

Test(shm_lock, tells_whether_anybody_held_it_between_two_looks)
{
    struct weir__shm_stripe *stripe = &segment.stripes[5];
    uint64_t look = weir__shm_lock_look(stripe);
    cr_expect(weir__shm_lock_was_free(stripe, look));
    struct weir__shm_hold hold = locked(5);
    cr_expect_not(weir__shm_lock_was_free(stripe, look));
    cr_expect_not(weir__shm_lock_was_free(stripe, weir__shm_lock_look(stripe)));
    weir__shm_unlock(&hold);
    cr_expect_not(weir__shm_lock_was_free(stripe, look));
    cr_expect(weir__shm_lock_was_free(stripe, weir__shm_lock_look(stripe)));
}

Test(shm_lock, goes_on_without_a_lock_that_somebody_holds)
{
    struct weir__shm_hold first = locked(5), second = locked(5);
    cr_expect_neq(first.words[0], 0);
    cr_expect_eq(second.words[0], 0);
    weir__shm_unlock(&second);
    cr_expect(weir__shm_lock_is_held(&segment.stripes[5]), "not ours to give back");
    weir__shm_unlock(&first);
}

Test(shm_lock, takes_over_a_lock_that_is_old)
{
    struct weir__shm_hold dead = locked(5);
    asks_now_us += WEIR__SHM_LOCK_US + 1;
    struct weir__shm_hold heir = locked(5);
    cr_expect_neq(heir.words[0], 0);
    weir__shm_unlock(&dead);
    cr_expect(weir__shm_lock_is_held(&segment.stripes[5]), "the heir has it");
    weir__shm_unlock(&heir);
    cr_expect_not(weir__shm_lock_is_held(&segment.stripes[5]));
}

/* Another process took it after we had read our clock: it is young, not of another age.
 */
Test(shm_lock, takes_over_no_lock_from_a_moment_ahead)
{
    struct weir__shm_hold first = locked(5);
    asks_now_us -= 5;
    cr_expect_eq(locked(5).words[0], 0);
    asks_now_us -= WEIR_SECONDS(2);
    cr_expect_neq(locked(5).words[0], 0);
    weir__shm_unlock(&first);
    cr_expect(weir__shm_lock_is_held(&segment.stripes[5]));
}

/* The bits of number and time wrap without touching each other. */
Test(shm_lock, works_whatever_number_and_time_stand_in_it)
{
    segment.stripes[5].lock = UINT64_MAX >> 1;
    struct weir__shm_hold hold = locked(5);
    cr_expect_neq(hold.words[0], 0);
    cr_expect(weir__shm_lock_is_held(&segment.stripes[5]));
    weir__shm_unlock(&hold);
    cr_expect_not(weir__shm_lock_is_held(&segment.stripes[5]));
    segment.stripes[5].lock = UINT64_MAX;
    asks_now_us += WEIR__SHM_LOCK_US + 2;
    hold = locked(5);
    cr_expect_neq(hold.words[0], 0, "a lock of another time is old");
    weir__shm_unlock(&hold);
}
