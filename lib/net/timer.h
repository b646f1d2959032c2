/* Deadlines: a hierarchical timer wheel (Varghese and Lauck, 1987, scheme 7).
 *
 * Setting, moving and stopping a timer cost the same few instructions however many there
 * are, and need no memory: the timer lies in its owner's struct. Time is an argument. Not
 * for several threads at a time. */
#ifndef WEIR_NET_TIMER_H
#define WEIR_NET_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR__TIMER_TICK_US 1000 /* a timer is at most one tick late, never early */
#define WEIR__TIMER_LEVELS 7     /* of 64 slots each: 139 years of ticks */
#define WEIR__TIMER_SLOTS 64

/* One deadline. All zero is a timer that isn't set. */
struct weir__timer {
    struct weir__timer *prev, *next; /* NULL: not set */
    int64_t at_us;
};

struct weir__timers {
    int64_t tick; /* every tick up to this one has been handled */
    struct weir__timer due;
    struct weir__timer slots[WEIR__TIMER_LEVELS][WEIR__TIMER_SLOTS];
    uint64_t used[WEIR__TIMER_LEVELS]; /* a bit for each slot that holds a timer */
};

/* An empty wheel. now_us is 0 or more, of the clock that all other times are of. */
void weir__timers_init(struct weir__timers *timers, int64_t now_us);

/* Sets a timer, or moves it. */
void weir__timer_set(struct weir__timers *timers,
                     struct weir__timer *timer,
                     int64_t at_us);

/* Takes it out; nothing where it isn't set. */
void weir__timer_stop(struct weir__timers *timers, struct weir__timer *timer);

bool weir__timer_is_set(const struct weir__timer *timer);

/* Takes out one timer whose time has come, NULL when there is none left. Which of several
 * comes first is open. */
struct weir__timer *weir__timers_expire(struct weir__timers *timers, int64_t now_us);

/* When to call expire again: never later than the earliest timer (rounded up to a tick),
 * but perhaps earlier. INT64_MAX where no timer is set. */
int64_t weir__timers_next_us(const struct weir__timers *timers);

#endif
