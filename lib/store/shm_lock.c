/* The advisory lock: one word a stripe, free or held, with the number of times it was
 * taken and the time of the last. Nothing in the table may depend on who holds it. */
#include "store/shm_lock.h"

#include <sched.h>

#include "store/shm_stop.h"

/* held 1 | number 23 | microseconds 40: it is the number that makes two looks differ */
#define HELD (UINT64_C(1) << 63)
#define NUMBER_ONE (UINT64_C(1) << 40)
#define TIME_MASK (NUMBER_ONE - 1)

#define AHEAD_US 1000000
#define SPINS 50       /* before the processor is given away */
#define TRIES_MAX 4000 /* an end also where the clock stands still */

uint64_t weir__shm_lock_look(const struct weir__shm_stripe *stripe)
{
    return __atomic_load_n(&stripe->lock, __ATOMIC_SEQ_CST);
}

bool weir__shm_lock_was_free(const struct weir__shm_stripe *stripe, uint64_t look)
{
    return (look & HELD) == 0 && weir__shm_lock_look(stripe) == look;
}

bool weir__shm_lock_is_held(const struct weir__shm_stripe *stripe)
{
    return (weir__shm_lock_look(stripe) & HELD) != 0;
}

void weir__shm_lock_want(struct weir__shm_hold *hold, struct weir__shm_stripe *stripe)
{
    unsigned at = hold->len;
    while (at > 0 && hold->stripes[at - 1] > stripe)
        at--;
    if (at > 0 && hold->stripes[at - 1] == stripe)
        return;
    for (unsigned i = hold->len++; i > at; i--)
        hold->stripes[i] = hold->stripes[i - 1];
    hold->stripes[at] = stripe;
}

static uint64_t taken_at(uint64_t word, int64_t now_us)
{
    return HELD | (((word | TIME_MASK) + 1) & ~HELD & ~TIME_MASK) |
           ((uint64_t)now_us & TIME_MASK);
}

/* Taken longer ago than anybody works. A time just after now is another's who read the
 * clock later than we did; one far after it is none of this clock. */
static bool is_old(uint64_t word, int64_t now_us)
{
    uint64_t age_us = ((uint64_t)now_us - word) & TIME_MASK;
    return age_us > WEIR__SHM_LOCK_US && age_us < NUMBER_ONE - AHEAD_US;
}

static void pause_for(unsigned tries)
{
    WEIR__STOP(WEIR__STOP_WAITING);
    if (tries > SPINS)
        sched_yield();
}

/* 0 where it was not to be had in time after start_us. The clock is read again only by
 * who has to wait. */
static uint64_t take(const struct weir__shm_segment *segment,
                     struct weir__shm_stripe *stripe,
                     int64_t start_us)
{
    int64_t now_us = start_us;
    for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
        uint64_t word = weir__shm_lock_look(stripe);
        if ((word & HELD) == 0 || is_old(word, now_us)) {
            uint64_t own = taken_at(word, now_us);
            if (__atomic_compare_exchange_n(
                    &stripe->lock, &word, own, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                return own;
        } else if (now_us - start_us > WEIR__SHM_LOCK_US) {
            break;
        }
        pause_for(tries);
        now_us = weir__shm_now_us(segment);
    }
    return 0;
}

void weir__shm_lock(const struct weir__shm_segment *segment, struct weir__shm_hold *hold)
{
    int64_t start_us = weir__shm_now_us(segment);
    for (unsigned i = 0; i < hold->len; i++)
        hold->words[i] = take(segment, hold->stripes[i], start_us);
}

void weir__shm_unlock(struct weir__shm_hold *hold)
{
    for (unsigned i = hold->len; i-- > 0;) {
        uint64_t word = hold->words[i];
        if (word != 0)
            __atomic_compare_exchange_n(&hold->stripes[i]->lock,
                                        &word,
                                        word & ~HELD,
                                        false,
                                        __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST);
    }
}
