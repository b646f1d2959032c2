/* The turns of a loop's threads: wait, tell the sources, run what is soon, end the turn,
 * then what may block. The queues are loop_queue.c's, the alarms loop_alarm.c's.
 *
 * Knows nothing of connections or requests. */
#include "net/loop.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "net/loop_alarm.h"
#include "net/loop_queue.h"
#include "net/loop_rest.h"

/* One wait takes at most so many events, so that a busy thread leaves some to others. */
#define EVENTS_A_TURN 16
/* From so many on there may be work for another thread. */
#define EVENTS_MANY 8

static _Thread_local struct weir__turn *here;

/* The thread that was roused looks at the queues in its turn, as it always does. */
static void roused(struct weir__source *source, unsigned what)
{
    (void)what;
    struct weir__loop *loop =
        (struct weir__loop *)((char *)source - offsetof(struct weir__loop, wake));
    atomic_store(&loop->wake_sent, false);
}

static bool make_turns(struct weir__loop *loop)
{
    loop->turns = aligned_alloc(64, loop->threads * sizeof *loop->turns);
    if (!loop->turns)
        return false;
    memset(loop->turns, 0, loop->threads * sizeof *loop->turns);
    for (unsigned i = 0; i < loop->threads; i++) {
        struct weir__turn *turn = &loop->turns[i];
        turn->loop = loop;
        turn->index = i;
        turn->scratch = malloc(WEIR__LOOP_SCRATCH_BYTES);
        if (!turn->scratch)
            return false;
    }
    return true;
}

bool weir__loop_init(struct weir__loop *loop,
                     unsigned threads,
                     unsigned cores,
                     struct weir_error *ret_error)
{
    assert(threads >= 2 && cores >= 1);
    memset(loop, 0, sizeof *loop);
    loop->threads = threads;
    loop->cores = cores;
    loop->poller.fd = loop->clock_fd = -1;
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    loop->wake.ready = roused;
    pthread_mutex_init(&loop->mutex, NULL);
    pthread_mutex_init(&loop->timers_mutex, NULL);
    if (loop->wake_fd < 0 || !weir__loop_rest_init(loop) ||
        !weir__poller_init(&loop->poller) ||
        !weir__poller_add(&loop->poller, loop->wake_fd, WEIR__POLL_READ, &loop->wake) ||
        !weir__loop_alarms_init(loop) || !make_turns(loop)) {
        weir__error(ret_error, "event loop: %s", strerror(errno));
        weir__loop_finish(loop);
        return false;
    }
    return true;
}

void weir__loop_finish(struct weir__loop *loop)
{
    for (unsigned i = 0; loop->turns && i < loop->threads; i++)
        free(loop->turns[i].scratch);
    free(loop->turns);
    loop->turns = NULL;
    weir__loop_alarms_finish(loop);
    weir__poller_finish(&loop->poller);
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    weir__loop_rest_finish(loop);
    pthread_mutex_destroy(&loop->timers_mutex);
    pthread_mutex_destroy(&loop->mutex);
}

bool weir__loop_turn_end(struct weir__loop *loop, void (*fn)(void *arg), void *arg)
{
    if (loop->turn_ends_len == WEIR__LOOP_TURN_ENDS_MAX)
        return false;
    loop->turn_ends[loop->turn_ends_len++] =
        (struct weir__turn_end){ .fn = fn, .arg = arg };
    return true;
}

static void begin_work(struct weir__turn *turn)
{
    turn->now_us = weir__clock_now_us();
    atomic_store_explicit(&turn->busy_since_us, turn->now_us, memory_order_relaxed);
}

static void open_turn(struct weir__turn *turn)
{
    turn->open = true;
    begin_work(turn);
}

static void run_soon(struct weir__turn *turn)
{
    for (;;) {
        if (!turn->soon.first)
            turn->soon = weir__loop_take_soon(turn->loop);
        struct weir__task *task = weir__tasks_take(&turn->soon);
        if (!task)
            return;
        task->run(task);
    }
}

/* Runs everything that the turn has brought about and that must not block. Turn-end
 * functions may bring about more. */
static void end_turn(struct weir__turn *turn)
{
    do {
        run_soon(turn);
        weir__loop_alarms_run(turn->loop, turn->now_us);
        run_soon(turn);
        for (unsigned i = 0; i < turn->loop->turn_ends_len; i++)
            turn->loop->turn_ends[i].fn(turn->loop->turn_ends[i].arg);
    } while (turn->soon.first);
    turn->open = false;
}

/* Runs tasks that may block for as long as there are some: first those of this turn. What
 * each leaves to do at once is a turn of its own. */
static void run_block(struct weir__turn *turn)
{
    struct weir__loop *loop = turn->loop;
    for (struct weir__task *task; (task = weir__loop_take_block(loop, turn));) {
        begin_work(turn);
        task->run(task);
        if (!turn->open)
            open_turn(turn);
        end_turn(turn);
        if (atomic_load(&loop->stopping))
            return;
    }
}

static unsigned wait_for_events(struct weir__turn *turn,
                                struct weir__poll_event *ret_events)
{
    struct weir__loop *loop = turn->loop;
    atomic_store_explicit(&turn->busy_since_us, 0, memory_order_relaxed);
    weir__loop_join_waiting(loop);
    bool look = weir__loop_has_work(loop) || atomic_load(&loop->stopping);
    unsigned count =
        weir__poller_wait(&loop->poller, ret_events, EVENTS_A_TURN, look ? 0 : -1);
    atomic_fetch_sub(&loop->waiting, 1);
    if (count >= EVENTS_MANY)
        weir__loop_call_for_many(loop);
    return count;
}

void weir__loop_enter(struct weir__loop *loop, unsigned index)
{
    here = &loop->turns[index];
}

void weir__loop_leave(void)
{
    here = NULL;
}

void weir__loop_run(struct weir__loop *loop)
{
    struct weir__poll_event events[EVENTS_A_TURN];
    struct weir__turn *turn = here;
    while (!atomic_load(&loop->stopping)) {
        unsigned count = wait_for_events(turn, events);
        open_turn(turn);
        weir__loop_count(loop, count, turn->now_us);
        for (unsigned i = 0; i < count; i++) {
            struct weir__source *source = events[i].arg;
            source->ready(source, events[i].what);
        }
        end_turn(turn);
        run_block(turn);
    }
    weir__loop_rouse(loop); /* the next one, so that it sees the stop as well */
}

void weir__loop_stop(struct weir__loop *loop)
{
    atomic_store(&loop->stopping, true);
    weir__loop_rest_stop(loop);
    weir__loop_rouse(loop);
}

void weir__loop_soon(struct weir__loop *loop, struct weir__task *task)
{
    if (here && here->loop == loop && here->open) {
        weir__tasks_append(&here->soon, task);
        return;
    }
    struct weir__tasks one = { 0 };
    weir__tasks_append(&one, task);
    weir__loop_push_soon(loop, &one);
}

void weir__loop_block(struct weir__loop *loop, struct weir__task *task)
{
    if (here && here->loop == loop && here->open) {
        weir__tasks_append(&here->block, task);
        return;
    }
    struct weir__tasks one = { 0 };
    weir__tasks_append(&one, task);
    weir__loop_push_block(loop, &one);
}

int64_t weir__turn_now_us(void)
{
    return here ? here->now_us : weir__clock_now_us();
}

unsigned char *weir__turn_scratch(void)
{
    return here->scratch;
}

void weir__turn_reopen(void)
{
    open_turn(here);
}

bool weir__turn_is_open(void)
{
    return here && here->open;
}

bool weir__turn_may_wait(void)
{
    if (!here || !here->open || here->soon.first || here->block.first ||
        weir__loop_has_work(here->loop))
        return false;
    if (atomic_load(&here->loop->waiting) > 0)
        return true;
    weir__loop_call_to_wait(here->loop);
    return false;
}

void weir__turn_waited(void)
{
    begin_work(here);
}

int weir__turn_index(void)
{
    return here ? (int)here->index : -1;
}
