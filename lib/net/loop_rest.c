/* Rest: how many threads wait in the poller, and what happens when none does.
 *
 * Each thread that waits in the poller is woken by the next event, even if another would
 * have come for it in a few microseconds; and each wake costs more than the event. So
 * only two wait, on a busy loop one, and the others rest on a condition. When a thread
 * goes into a task and nobody is left in the poller, one is called from rest; on a busy
 * loop a guard is called instead, if the task is brief. The guard looks every two
 * milliseconds whether some thread still gets on; if none does it takes over, and calls
 * the next guard. It is relieved once the loop isn't busy any more. So a busy loop of
 * brief tasks runs in one thread for each processor, without a wake among them, and no
 * more than two or three milliseconds are lost when a brief task isn't.
 *
 * A turn may be held up by what must not block. On a busy loop one of those that rest
 * therefore looks now and then, and before it goes to the poller it leaves the watch to
 * another; once the loop isn't busy any more it goes there, so that two wait again. On
 * any other loop who begins a turn and leaves nobody in the poller calls one.
 *
 * Runs no task and tells no source. */
#include "net/loop_rest.h"

#include <time.h>

#include "base/clock.h"
#include "net/loop_queue.h"

#define WAITING_MAX 2
#define LOOK_US 2000
#define WATCH_US 20000
#define STUCK_US 1000
#define QUIET_LOOKS_MAX 3
/* Busy: the guard's looks are worth it from about so many events in so much time on. */
#define SPAN_US 4000
#define SPAN_EVENTS_BUSY 16

bool weir__loop_rest_init(struct weir__loop *loop)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    bool ok = pthread_cond_init(&loop->called, &monotonic) == 0 &&
              pthread_cond_init(&loop->guard_called, &monotonic) == 0;
    pthread_condattr_destroy(&monotonic);
    return ok;
}

void weir__loop_rest_finish(struct weir__loop *loop)
{
    pthread_cond_destroy(&loop->guard_called);
    pthread_cond_destroy(&loop->called);
}

/* ---- calls, under the mutex ------------------------------------------------------- */

static bool call(struct weir__loop *loop)
{
    if (loop->resting <= loop->calls)
        return false;
    loop->calls++;
    pthread_cond_signal(&loop->called);
    return true;
}

static bool call_guard(struct weir__loop *loop)
{
    if (!call(loop))
        return false;
    loop->guard_vacant = true;
    atomic_store(&loop->guarded, true);
    return true;
}

/* ---- busy or not ------------------------------------------------------------------- */

/* A loop that has had nothing to count for a while isn't. */
static bool is_busy(const struct weir__loop *loop, int64_t now_us)
{
    const memory_order relaxed = memory_order_relaxed;
    return atomic_load_explicit(&loop->busy, relaxed) &&
           now_us - atomic_load_explicit(&loop->span_us, relaxed) < 2 * SPAN_US;
}

/* The loop has become busy: of those that rest one is to look from now on. */
static void set_watch(struct weir__loop *loop)
{
    pthread_mutex_lock(&loop->mutex);
    if (loop->resting > 0 && !loop->watched)
        pthread_cond_signal(&loop->called);
    pthread_mutex_unlock(&loop->mutex);
}

static void call_if_nobody_waits(struct weir__loop *loop)
{
    if (atomic_load(&loop->waiting) > 0)
        return;
    pthread_mutex_lock(&loop->mutex);
    if (loop->calls == 0)
        call(loop);
    pthread_mutex_unlock(&loop->mutex);
}

void weir__loop_count(struct weir__loop *loop, unsigned events, int64_t now_us)
{
    const memory_order relaxed = memory_order_relaxed;
    bool was_busy = atomic_load_explicit(&loop->busy, relaxed), busy = was_busy;
    unsigned counted = atomic_load_explicit(&loop->span_events, relaxed) + events;
    int64_t passed_us = now_us - atomic_load_explicit(&loop->span_us, relaxed);
    if (passed_us >= SPAN_US) {
        busy = counted >= SPAN_EVENTS_BUSY && passed_us < 2 * SPAN_US;
        if (busy != was_busy)
            atomic_store_explicit(&loop->busy, busy, relaxed);
        atomic_store_explicit(&loop->span_us, now_us, relaxed);
        counted = 0;
    }
    atomic_store_explicit(&loop->span_events, counted, relaxed);
    if (busy && !was_busy)
        set_watch(loop);
    else if (!busy)
        call_if_nobody_waits(loop);
}

/* ---- who leans on others ----------------------------------------------------------- */

void weir__loop_lean(struct weir__loop *loop, bool brief)
{
    bool guarded = brief && (atomic_load(&loop->guarded) ||
                             (is_busy(loop, weir__clock_now_us()) && call_guard(loop)));
    if (!guarded && !call(loop))
        weir__loop_rouse(loop); /* who waits in the poller, if anybody does */
}

void weir__loop_call_for_many(struct weir__loop *loop)
{
    if (loop->cores == 1 || atomic_load(&loop->waiting) > 0)
        return;
    pthread_mutex_lock(&loop->mutex);
    unsigned busy =
        loop->threads - loop->resting + loop->calls - atomic_load(&loop->slow);
    if (busy < loop->cores + atomic_load(&loop->guarded))
        call(loop);
    pthread_mutex_unlock(&loop->mutex);
}

void weir__loop_call_to_wait(struct weir__loop *loop)
{
    if (is_busy(loop, weir__turn_now_us()))
        return;
    pthread_mutex_lock(&loop->mutex);
    if (loop->calls == 0)
        call(loop);
    pthread_mutex_unlock(&loop->mutex);
}

void weir__loop_rest_stop(struct weir__loop *loop)
{
    pthread_mutex_lock(&loop->mutex);
    pthread_cond_broadcast(&loop->called);
    pthread_cond_broadcast(&loop->guard_called);
    pthread_mutex_unlock(&loop->mutex);
}

/* ---- the guard -------------------------------------------------------------------- */

/* Whether some thread has begun its turn or task only just now. */
static bool gets_on(const struct weir__loop *loop)
{
    int64_t since_us = weir__clock_now_us() - STUCK_US;
    for (unsigned i = 0; i < loop->threads; i++)
        if (atomic_load_explicit(&loop->turns[i].busy_since_us, memory_order_relaxed) >
            since_us)
            return true;
    return false;
}

static bool is_needed(const struct weir__loop *loop)
{
    bool nobody = atomic_load(&loop->waiting) == 0;
    return (nobody || weir__loop_has_work(loop)) && !gets_on(loop);
}

/* Under the mutex: waits for the condition, but not for longer than that. */
static void wait_at_most(struct weir__loop *loop, pthread_cond_t *condition, long us)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += us * 1000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(condition, &loop->mutex, &until);
}

/* Under the mutex. Returns once the guard is to do something else. */
static void guard(struct weir__loop *loop)
{
    unsigned quiet = 0;
    while (!atomic_load(&loop->stopping)) {
        wait_at_most(loop, &loop->guard_called, LOOK_US);
        if (is_needed(loop)) {
            if (!call_guard(loop))
                atomic_store(&loop->guarded, false);
            return;
        }
        quiet = is_busy(loop, weir__clock_now_us()) ? 0 : quiet + 1;
        if (quiet >= QUIET_LOOKS_MAX && atomic_load(&loop->waiting) > 0) {
            atomic_store(&loop->guarded, false);
            return;
        }
    }
}

/* ---- rest ------------------------------------------------------------------------- */

/* On a busy loop one in the poller is enough: that another is woken for each event while
 * the first is at work is what is to be avoided. */
static bool join(struct weir__loop *loop)
{
    bool one = atomic_load(&loop->guarded) || is_busy(loop, weir__turn_now_us());
    unsigned most = one ? 1 : WAITING_MAX;
    if (atomic_fetch_add(&loop->waiting, 1) < most)
        return true;
    atomic_fetch_sub(&loop->waiting, 1);
    return false;
}

/* Under the mutex, by one that rested: if nobody watches a busy loop now, another is to.
 */
static void pass_watch_on(struct weir__loop *loop)
{
    if (!loop->watched && loop->resting > loop->calls + 1 &&
        is_busy(loop, weir__clock_now_us()))
        pthread_cond_signal(&loop->called);
}

/* Under the mutex: until called. */
static void rest(struct weir__loop *loop)
{
    loop->resting++;
    while (loop->calls == 0 && !atomic_load(&loop->stopping)) {
        bool busy = is_busy(loop, weir__clock_now_us());
        if (!loop->watched && !busy && atomic_load(&loop->waiting) < WAITING_MAX)
            break;
        if (loop->watched || !busy) {
            pthread_cond_wait(&loop->called, &loop->mutex);
            continue;
        }
        loop->watched = true;
        wait_at_most(loop, &loop->called, WATCH_US);
        loop->watched = false;
        if (is_needed(loop))
            break;
    }
    pass_watch_on(loop);
    loop->resting--;
    if (loop->calls > 0)
        loop->calls--;
    if (loop->guard_vacant) {
        loop->guard_vacant = false;
        guard(loop);
    }
}

void weir__loop_join_waiting(struct weir__loop *loop)
{
    if (join(loop))
        return;
    pthread_mutex_lock(&loop->mutex);
    /* Looked at under the mutex, under which tasks are queued: none is overlooked. */
    if (!join(loop)) {
        if (!weir__loop_has_work(loop))
            rest(loop);
        atomic_fetch_add(&loop->waiting, 1);
    }
    pthread_mutex_unlock(&loop->mutex);
}
