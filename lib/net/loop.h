/* A few threads around one poller: what happens goes to one of them, and that one carries
 * it all the way.
 *
 * A thread takes what is ready in turns. In a turn nothing may block: sources are told
 * and tasks of weir__loop_soon() run. Then come the turn-end functions (a store sends
 * what the turn has asked of it in one write), and last, one after the other, the tasks
 * of weir__loop_block(), which may block. The thread runs the first of those itself; the
 * others lie in a shared queue, where any thread takes them. At most threads - 1 may be
 * in such a task, so that one thread is always left for turns.
 *
 * Waking a thread costs more than most requests do. So few threads wait in the poller,
 * the others rest, and a task that says of itself that it is brief is run without another
 * thread being roused in its place. Should it block all the same, a guard notices within
 * a few milliseconds: see loop_rest.c. */
#ifndef WEIR_NET_LOOP_H
#define WEIR_NET_LOOP_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/weir.h>
#include "net/poller.h"
#include "net/timer.h"

#define WEIR__LOOP_TURN_ENDS_MAX 8
#define WEIR__LOOP_SCRATCH_BYTES ((size_t)64 * 1024)

/* Something with a descriptor. ready() is called in a turn, perhaps late, perhaps by two
 * threads at the same time: see poller.h. The struct must stay valid until the loop is
 * finished. */
struct weir__source {
    void (*ready)(struct weir__source *source, unsigned what);
};

/* Something to do once. Lies in its owner's struct; in one queue at a time. */
struct weir__task {
    struct weir__task *prev, *next;
    bool shared; /* lies in a queue that all threads see; under its mutex */
    bool brief;  /* has mostly been over within microseconds: a hint for block() */
    void (*run)(struct weir__task *task);
};

struct weir__tasks {
    struct weir__task *first, *last;
};

/* A deadline that is mostly moved or taken back before it comes: both are then a store to
 * memory. All zero but `fire` is an alarm that isn't set. The struct must stay valid
 * until the loop is finished. */
struct weir__alarm {
    void (*fire)(struct weir__alarm *alarm); /* in a turn */
    _Atomic int64_t due_us;                  /* 0: not set */
    _Atomic int64_t wheel_us;                /* where the wheel has it; 0: nowhere */
    struct weir__timer timer;
};

/* What one thread is at. */
struct weir__turn {
    struct weir__loop *loop;
    unsigned index;
    bool open;                /* in a turn: nothing may block */
    bool gated, slow;         /* in a task that may block; in one that isn't brief */
    struct weir__tasks soon;  /* of this turn */
    struct weir__tasks block; /* for its end */
    unsigned char *scratch;
    int64_t now_us; /* when the turn or the present task began */
    _Alignas(64) _Atomic int64_t busy_since_us; /* the same for a watchdog; 0: it waits */
};

struct weir__turn_end {
    void (*fn)(void *arg);
    void *arg;
};

struct weir__loop {
    struct weir__poller poller;
    unsigned threads;
    struct weir__turn *turns; /* one a thread */
    struct weir__turn_end turn_ends[WEIR__LOOP_TURN_ENDS_MAX];
    unsigned turn_ends_len;

    struct weir__source wake; /* an eventfd: one thread is to look at the queues */
    int wake_fd;
    atomic_bool wake_sent;
    atomic_bool stopping;
    atomic_uint waiting; /* threads that are in the poller or about to be */

    pthread_mutex_t mutex; /* guards the queues */
    struct weir__tasks soon, block;
    atomic_uint soon_len, block_len;
    atomic_uint blocked; /* threads in a task of `block` */
    atomic_uint slow;    /* of them, in one that isn't brief */

    /* Threads that rest, under the mutex: loop_rest.c. */
    unsigned cores; /* so many threads may well be busy at once */
    pthread_cond_t called, guard_called;
    unsigned resting, calls;
    bool guard_vacant;   /* the next one that is called is to be the guard */
    bool watched;        /* one that rests looks from time to time */
    atomic_bool guarded; /* there is a guard, or is about to be */

    /* How much there is to do; no lock, since a count may be lost. */
    _Atomic int64_t span_us; /* when the present span of counting began */
    atomic_uint span_events; /* in it */
    atomic_bool busy;        /* the span before had many */

    pthread_mutex_t timers_mutex;
    struct weir__timers timers;
    struct weir__source clock; /* a timerfd: timers are due */
    int clock_fd;
    int64_t clock_us; /* when it rings; INT64_MAX: never */
    _Atomic int64_t timers_next_us;
};

/* For so many threads, at least 2, of which `cores` may well be busy at the same time
 * (processors for each loop of the machine, at least 1). Starts none. False with a
 * text. */
bool weir__loop_init(struct weir__loop *loop,
                     unsigned threads,
                     unsigned cores,
                     struct weir_error *ret_error);
/* After all threads have returned. */
void weir__loop_finish(struct weir__loop *loop);

/* Makes the calling thread the loop's index-th (from 0), and another again. */
void weir__loop_enter(struct weir__loop *loop, unsigned index);
void weir__loop_leave(void);

/* Runs turns in the calling thread, which has entered, until weir__loop_stop(). */
void weir__loop_run(struct weir__loop *loop);

/* Lets the threads return once their present tasks are done. What is queued then stays
 * undone. Any thread. */
void weir__loop_stop(struct weir__loop *loop);

/* Calls fn at the end of each turn, and after each task that may have blocked. Before the
 * threads run. False: there are WEIR__LOOP_TURN_ENDS_MAX already. */
bool weir__loop_turn_end(struct weir__loop *loop, void (*fn)(void *arg), void *arg);

/* The task must not block. Runs in this turn, after the caller has returned; from outside
 * a turn, on another thread. Any thread, but not for a task that is queued already. */
void weir__loop_soon(struct weir__loop *loop, struct weir__task *task);

/* The task may block: see above. Any thread. */
void weir__loop_block(struct weir__loop *loop, struct weir__task *task);

/* Takes back a task of weir__loop_block() from the shared queue. False: it isn't there,
 * it runs or is about to. Any thread. */
bool weir__loop_unblock(struct weir__loop *loop, struct weir__task *task);

/* Fires the alarm at due_us (monotonic, above 0) unless it is set anew or cleared first.
 * Any thread, one at a time for one alarm. An alarm that is moved while it comes due may
 * fire all the same: fire() looks whether it is meant. */
void weir__alarm_set(struct weir__loop *loop, struct weir__alarm *alarm, int64_t due_us);
void weir__alarm_clear(struct weir__alarm *alarm);
/* Whether its time is over. */
bool weir__alarm_is_due(const struct weir__alarm *alarm, int64_t now_us);

/* In a loop's thread: the time when the present turn or task began, in microseconds of
 * the monotonic clock, without asking for it again. Elsewhere the time. */
int64_t weir__turn_now_us(void);

/* In a turn: WEIR__LOOP_SCRATCH_BYTES that the caller may use until it returns. */
unsigned char *weir__turn_scratch(void);

/* In a task that may block, once it will not block any more: the rest of it is a turn,
 * whose end comes when the task returns. */
void weir__turn_reopen(void);

/* True in a loop's thread within a turn: what is called now must not block. */
bool weir__turn_is_open(void);

/* At the end of a turn: whether the thread may wait a little without anybody else having
 * to, since nothing else of the turn is left to do and another thread is in the poller.
 * And once it has waited: takes the time of the turn anew. */
bool weir__turn_may_wait(void);
void weir__turn_waited(void);

/* The calling thread's index in its loop, -1 outside. */
int weir__turn_index(void);

#endif
