/* Alarms: deadlines on the loop's timer wheel that are moved lazily.
 *
 * An alarm's place in the wheel is never later than its time, but often earlier: when the
 * wheel comes to it, it is put where it belongs by then, or dropped. So an alarm that is
 * moved back or cleared for each request costs one store, and the lock is taken only
 * where a deadline comes nearer than the wheel has it. A timerfd in the poller rings for
 * the wheel's next slot; a thread that turns anyway looks by itself. */
#include "net/loop_alarm.h"

#include <stddef.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"

/* Under the lock: makes the clock ring in time for the wheel's next slot. */
static void set_clock(struct weir__loop *loop)
{
    int64_t next_us = weir__timers_next_us(&loop->timers);
    atomic_store(&loop->timers_next_us, next_us);
    if (next_us >= loop->clock_us)
        return;
    int64_t left_us = next_us - weir__clock_now_us();
    if (left_us < 1)
        left_us = 1;
    struct itimerspec once = { .it_value = { .tv_sec = left_us / 1000000,
                                             .tv_nsec = left_us % 1000000 * 1000 } };
    if (timerfd_settime(loop->clock_fd, 0, &once, NULL) == 0)
        loop->clock_us = next_us;
}

/* The clock has rung. This turn's end looks at the wheel, whatever the time, and sets the
 * clock anew. */
static void rang(struct weir__source *source, unsigned what)
{
    (void)what;
    struct weir__loop *loop =
        (struct weir__loop *)((char *)source - offsetof(struct weir__loop, clock));
    pthread_mutex_lock(&loop->timers_mutex);
    loop->clock_us = INT64_MAX;
    atomic_store(&loop->timers_next_us, 0);
    pthread_mutex_unlock(&loop->timers_mutex);
}

bool weir__loop_alarms_init(struct weir__loop *loop)
{
    weir__timers_init(&loop->timers, weir__clock_now_us());
    atomic_store(&loop->timers_next_us, INT64_MAX);
    loop->clock_us = INT64_MAX;
    loop->clock.ready = rang;
    loop->clock_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return loop->clock_fd >= 0 &&
           weir__poller_add(&loop->poller, loop->clock_fd, WEIR__POLL_READ, &loop->clock);
}

void weir__loop_alarms_finish(struct weir__loop *loop)
{
    if (loop->clock_fd >= 0)
        close(loop->clock_fd);
}

/* Under the lock. */
static void place(struct weir__loop *loop, struct weir__alarm *alarm, int64_t at_us)
{
    weir__timer_set(&loop->timers, &alarm->timer, at_us);
    atomic_store(&alarm->wheel_us, at_us);
}

void weir__alarm_set(struct weir__loop *loop, struct weir__alarm *alarm, int64_t due_us)
{
    atomic_store(&alarm->due_us, due_us);
    int64_t wheel_us = atomic_load(&alarm->wheel_us);
    if (wheel_us != 0 && wheel_us <= due_us)
        return;
    pthread_mutex_lock(&loop->timers_mutex);
    wheel_us = atomic_load(&alarm->wheel_us);
    if (wheel_us == 0 || wheel_us > due_us) {
        place(loop, alarm, due_us);
        set_clock(loop);
    }
    pthread_mutex_unlock(&loop->timers_mutex);
}

void weir__alarm_clear(struct weir__alarm *alarm)
{
    atomic_store(&alarm->due_us, 0);
}

bool weir__alarm_is_due(const struct weir__alarm *alarm, int64_t now_us)
{
    int64_t due_us = atomic_load(&alarm->due_us);
    return due_us != 0 && due_us <= now_us;
}

/* Under the lock: an alarm that the wheel has come to. True: it is really due. Where its
 * time has been moved it goes back to the wheel; who moves it in the same moment sees
 * either that the wheel doesn't have it, or has his time seen here. */
static bool reached(struct weir__loop *loop, struct weir__alarm *alarm, int64_t now_us)
{
    atomic_store(&alarm->wheel_us, 0);
    int64_t due_us = atomic_load(&alarm->due_us);
    if (due_us == 0)
        return false;
    if (due_us <= now_us)
        return true;
    place(loop, alarm, due_us);
    return false;
}

static struct weir__alarm *next_due(struct weir__loop *loop, int64_t now_us)
{
    struct weir__alarm *due = NULL;
    pthread_mutex_lock(&loop->timers_mutex);
    while (!due) {
        struct weir__timer *timer = weir__timers_expire(&loop->timers, now_us);
        if (!timer)
            break;
        struct weir__alarm *alarm =
            (struct weir__alarm *)((char *)timer - offsetof(struct weir__alarm, timer));
        /* The wheel may have gone on past now_us, in a thread whose turn began later. An
         * alarm that was moved to a time between the two would come again and again. */
        if (reached(loop, alarm, now_us))
            due = alarm;
        else
            now_us = weir__clock_now_us();
    }
    if (!due)
        set_clock(loop);
    pthread_mutex_unlock(&loop->timers_mutex);
    return due;
}

void weir__loop_alarms_run(struct weir__loop *loop, int64_t now_us)
{
    if (now_us < atomic_load(&loop->timers_next_us))
        return;
    for (struct weir__alarm *alarm; (alarm = next_due(loop, now_us));)
        alarm->fire(alarm);
}
