/* The advisory lock: one word a stripe, free or held, with the number of times it was
 * taken and the time of the last. Nothing in the table may depend on who holds it. */
#include "store/shm_lock.h"

#include <sched.h>

#include "store/shm_stop.h"

/* held 1 | number 23 | microseconds 40: it is the number that makes two looks differ */
#define HELD (UINT64_C(1) << 63)
#define NUMBER_ONE (UINT64_C(1) << 40)
#define TIME_MASK (NUMBER_ONE - 1)

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

static int64_t age_us(uint64_t word, int64_t now_us)
{
    return (int64_t)(((uint64_t)now_us - word) & TIME_MASK);
}

static void pause_for(unsigned tries)
{
    WEIR__STOP(WEIR__STOP_WAITING);
    if (tries > SPINS)
        sched_yield();
}

/* 0 where it was not to be had until deadline_us. */
static uint64_t take(const struct weir__shm_segment *segment,
                     struct weir__shm_stripe *stripe,
                     int64_t deadline_us)
{
    for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
        int64_t now_us = weir__shm_now_us(segment);
        uint64_t word = weir__shm_lock_look(stripe);
        if ((word & HELD) == 0 || age_us(word, now_us) > WEIR__SHM_LOCK_US) {
            uint64_t own = taken_at(word, now_us);
            if (__atomic_compare_exchange_n(
                    &stripe->lock, &word, own, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                return own;
        } else if (now_us > deadline_us) {
            break;
        }
        pause_for(tries);
    }
    return 0;
}

void weir__shm_lock(const struct weir__shm_segment *segment, struct weir__shm_hold *hold)
{
    int64_t deadline_us = weir__shm_now_us(segment) + WEIR__SHM_LOCK_US;
    for (unsigned i = 0; i < hold->len; i++)
        hold->words[i] = take(segment, hold->stripes[i], deadline_us);
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
