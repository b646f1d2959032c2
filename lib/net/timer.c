/* The wheel. A timer's tick and the present tick differ first in some group of six bits,
 * counted from the top: that group is its level, the group's value its slot. So every
 * occupied slot lies ahead of the present one on its level, nothing ever wraps, and a
 * slot that is reached is emptied onto the levels below.
 *
 * Knows neither clock nor threads. */
#include "net/timer.h"

#include <stddef.h>

#define SLOT_BITS 6
#define TICK_MAX ((INT64_C(1) << (SLOT_BITS * WEIR__TIMER_LEVELS)) - 1)

static void list_init(struct weir__timer *head)
{
    head->prev = head->next = head;
}

static bool list_empty(const struct weir__timer *head)
{
    return head->next == head;
}

static void list_append(struct weir__timer *head, struct weir__timer *timer)
{
    timer->prev = head->prev;
    timer->next = head;
    head->prev->next = timer;
    head->prev = timer;
}

static void list_remove(struct weir__timer *timer)
{
    timer->prev->next = timer->next;
    timer->next->prev = timer->prev;
    timer->prev = timer->next = NULL;
}

void weir__timers_init(struct weir__timers *timers, int64_t now_us)
{
    timers->tick = now_us / WEIR__TIMER_TICK_US;
    list_init(&timers->due);
    for (unsigned level = 0; level < WEIR__TIMER_LEVELS; level++) {
        timers->used[level] = 0;
        for (unsigned slot = 0; slot < WEIR__TIMER_SLOTS; slot++)
            list_init(&timers->slots[level][slot]);
    }
}

/* Rounded up, so that no timer is early. */
static int64_t tick_of(int64_t at_us)
{
    if (at_us <= 0)
        return 0;
    int64_t tick = (at_us - 1) / WEIR__TIMER_TICK_US + 1;
    return tick < TICK_MAX ? tick : TICK_MAX;
}

static unsigned slot_of(int64_t tick, unsigned level)
{
    return (unsigned)(tick >> (SLOT_BITS * level)) & (WEIR__TIMER_SLOTS - 1);
}

static void insert(struct weir__timers *timers, struct weir__timer *timer)
{
    int64_t tick = tick_of(timer->at_us);
    if (tick <= timers->tick) {
        list_append(&timers->due, timer);
        return;
    }
    unsigned top_bit = 63 - (unsigned)__builtin_clzll((uint64_t)(tick ^ timers->tick));
    unsigned level = top_bit / SLOT_BITS;
    unsigned slot = slot_of(tick, level);
    timers->used[level] |= UINT64_C(1) << slot;
    list_append(&timers->slots[level][slot], timer);
}

/* Takes it out of its list, and clears the bit of a slot that it leaves empty. */
static void withdraw(struct weir__timers *timers, struct weir__timer *timer)
{
    struct weir__timer *head = timer->next;
    bool alone = timer->prev == head;
    list_remove(timer);
    if (!alone || head == &timers->due)
        return;
    /* The neighbour on both sides is the head of the list: a slot of the table. */
    size_t index = (size_t)(head - &timers->slots[0][0]);
    timers->used[index / WEIR__TIMER_SLOTS] &=
        ~(UINT64_C(1) << (index % WEIR__TIMER_SLOTS));
}

void weir__timer_set(struct weir__timers *timers,
                     struct weir__timer *timer,
                     int64_t at_us)
{
    if (weir__timer_is_set(timer))
        withdraw(timers, timer);
    timer->at_us = at_us;
    insert(timers, timer);
}

void weir__timer_stop(struct weir__timers *timers, struct weir__timer *timer)
{
    if (weir__timer_is_set(timer))
        withdraw(timers, timer);
}

bool weir__timer_is_set(const struct weir__timer *timer)
{
    return timer->next != NULL;
}

/* The occupied slot that comes next: its first tick, its level. -1 where there is none.
 * Lower levels come first, since they lie within the present slot of the higher ones. */
static int64_t next_slot(const struct weir__timers *timers, unsigned *ret_level)
{
    for (unsigned level = 0; level < WEIR__TIMER_LEVELS; level++) {
        if (timers->used[level] == 0)
            continue;
        unsigned slot = (unsigned)__builtin_ctzll(timers->used[level]);
        int64_t span = INT64_C(1) << (SLOT_BITS * (level + 1));
        *ret_level = level;
        return (timers->tick & ~(span - 1)) | (int64_t)slot << (SLOT_BITS * level);
    }
    return -1;
}

/* Goes on to the first tick of an occupied slot and empties it downwards. */
static void reach(struct weir__timers *timers, int64_t tick, unsigned level)
{
    struct weir__timer *head = &timers->slots[level][slot_of(tick, level)];
    timers->tick = tick;
    timers->used[level] &= ~(UINT64_C(1) << slot_of(tick, level));
    while (!list_empty(head)) {
        struct weir__timer *timer = head->next;
        list_remove(timer);
        insert(timers, timer);
    }
}

struct weir__timer *weir__timers_expire(struct weir__timers *timers, int64_t now_us)
{
    int64_t now_tick = now_us / WEIR__TIMER_TICK_US;
    while (list_empty(&timers->due)) {
        unsigned level;
        int64_t tick = next_slot(timers, &level);
        if (tick < 0 || tick > now_tick) {
            if (now_tick > timers->tick)
                timers->tick = now_tick;
            return NULL;
        }
        reach(timers, tick, level);
    }
    struct weir__timer *timer = timers->due.next;
    list_remove(timer);
    return timer;
}

int64_t weir__timers_next_us(const struct weir__timers *timers)
{
    if (!list_empty(&timers->due))
        return timers->tick * WEIR__TIMER_TICK_US;
    unsigned level;
    int64_t tick = next_slot(timers, &level);
    return tick < 0 ? INT64_MAX : tick * WEIR__TIMER_TICK_US;
}
