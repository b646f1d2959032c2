/* Threads that carry requests through life.c without sockets: runners, which take them
 * from a queue, and a clock, which ends their waits at random, also long after these are
 * over. A test sets what runs in the hooks and what is checked at the end. */
#ifndef TESTS_THREADS_RUNNERS_H
#define TESTS_THREADS_RUNNERS_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "app.h"
#include "base/random.h"
#include "check.h"
#include "life.h"

enum { RUNNERS = 3, REQUESTS = 48, STALE = 64 };

/* ---- queues ------------------------------------------------------------------------ */

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    void *things[4 * REQUESTS];
    unsigned first, len;
    bool closed;
};

#define QUEUE                                                                            \
    {                                                                                    \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER,          \
        .emptied = PTHREAD_COND_INITIALIZER                                              \
    }

/* Waits for room. */
static inline void push(struct queue *queue, void *thing)
{
    const unsigned room = sizeof queue->things / sizeof queue->things[0];
    pthread_mutex_lock(&queue->mutex);
    while (queue->len == room)
        pthread_cond_wait(&queue->emptied, &queue->mutex);
    queue->things[(queue->first + queue->len++) % room] = thing;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
}

/* NULL once it is closed and empty. */
static inline void *pop(struct queue *queue)
{
    const unsigned room = sizeof queue->things / sizeof queue->things[0];
    void *thing = NULL;
    pthread_mutex_lock(&queue->mutex);
    while (queue->len == 0 && !queue->closed)
        pthread_cond_wait(&queue->filled, &queue->mutex);
    if (queue->len > 0) {
        thing = queue->things[queue->first];
        queue->first = (queue->first + 1) % room;
        queue->len--;
        pthread_cond_signal(&queue->emptied);
    }
    pthread_mutex_unlock(&queue->mutex);
    return thing;
}

static inline void close_queue(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    pthread_cond_broadcast(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
}

/* ---- requests ---------------------------------------------------------------------- */

static struct item {
    struct weir w;
    unsigned rounds;        /* requests that are over */
    atomic_bool queued;     /* a resume stands in the queue */
    atomic_bool waking;     /* a waker of the test's has it */
    atomic_int inside;      /* hooks that run */
    unsigned waits, afters; /* counted by the test's hooks */
    _Atomic uint64_t fired; /* the highest wait that the clock has ended */
    uint64_t armed;         /* the wait that may be ended by it; UINT64_MAX: none */
    struct weir__pair params[2];
} items[REQUESTS];

static inline struct item *item_of(struct weir *w)
{
    return (struct item *)((char *)w - offsetof(struct item, w));
}

static struct queue to_run = QUEUE;

/* ---- the clock --------------------------------------------------------------------- */

static struct {
    pthread_mutex_t mutex;
    struct {
        struct weir *w;
        uint64_t wait;
    } waits[STALE];
    unsigned next;
    atomic_bool stop;
} the_clock = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void arm(struct weir *w, uint64_t wait)
{
    item_of(w)->armed = wait;
    pthread_mutex_lock(&the_clock.mutex);
    unsigned place = the_clock.next++ % STALE;
    the_clock.waits[place].w = w;
    the_clock.waits[place].wait = wait;
    pthread_mutex_unlock(&the_clock.mutex);
}

static void *tick(void *arg)
{
    (void)arg;
    while (!atomic_load(&the_clock.stop)) {
        unsigned place = (unsigned)weir__random_below(STALE);
        pthread_mutex_lock(&the_clock.mutex);
        struct weir *w = the_clock.waits[place].w;
        uint64_t wait = the_clock.waits[place].wait;
        pthread_mutex_unlock(&the_clock.mutex);
        if (w) {
            if (atomic_load(&item_of(w)->fired) < wait)
                atomic_store(&item_of(w)->fired, wait); /* only this thread stores */
            weir__life_timeout(w, wait);
        }
        sched_yield();
    }
    return NULL;
}

/* ---- the transport ----------------------------------------------------------------- */

static void resume(struct weir *w)
{
    CHECK(!atomic_exchange(&item_of(w)->queued, true));
    push(&to_run, w);
}

static bool send_away(struct weir *w)
{
    w->head_sent = true;
    w->out.len = 0;
    return true;
}

static const struct weir__transport_ops transport = {
    .name = "threads",
    .send = send_away,
    .resume = resume,
    .arm = arm,
};

/* ---- runners ----------------------------------------------------------------------- */

static struct weir__app *the_app;
static unsigned rounds_max;                        /* requests of each item */
static void (*before_run)(struct weir *w);         /* may abandon it; NULL: nothing */
static void (*check_answer)(const struct weir *w); /* before its end */
static atomic_uint items_over;

static void begin(struct item *item)
{
    struct weir *w = &item->w;
    weir__life_init(w, the_app, NULL, &transport, NULL);
    item->params[0] = (struct weir__pair){ "REQUEST_METHOD", "GET", 14, 3 };
    item->params[1] = (struct weir__pair){ "REQUEST_URI", "/", 11, 1 };
    w->params = item->params;
    w->params_len = 2;
    weir__life_begin(w);
    push(&to_run, w);
}

static void end(struct item *item)
{
    check_answer(&item->w);
    weir__life_end(&item->w);
    if (++item->rounds < rounds_max)
        begin(item);
    else if (atomic_fetch_add(&items_over, 1) + 1 == REQUESTS)
        close_queue(&to_run);
}

/* Until it parks, needs a thread, or is over. */
static void carry(struct weir *w)
{
    for (;;) {
        if (before_run)
            before_run(w);
        switch (weir__life_run(w, weir__random_below(2))) {
        case WEIR__NEED_RESUME:
            return;
        case WEIR__NEED_BODY:
            break;
        case WEIR__NEED_THREAD:
            push(&to_run, w);
            return;
        case WEIR__NEED_SEND:
            end(item_of(w));
            return;
        }
    }
}

static void *run(void *arg)
{
    struct weir *w;
    (void)arg;
    while ((w = pop(&to_run))) {
        atomic_store(&item_of(w)->queued, false);
        carry(w);
    }
    return NULL;
}

/* All requests, until each item has had its rounds. */
static inline void run_all(void)
{
    pthread_t runners[RUNNERS], clock;
    for (unsigned i = 0; i < REQUESTS; i++) {
        weir__arena_init(&items[i].w.arena, 1 << 16, 4096);
        weir__buf_init(&items[i].w.out, WEIR__OUT_MAX);
        begin(&items[i]);
    }
    CHECK(pthread_create(&clock, NULL, tick, NULL) == 0);
    for (unsigned i = 0; i < RUNNERS; i++)
        CHECK(pthread_create(&runners[i], NULL, run, NULL) == 0);
    for (unsigned i = 0; i < RUNNERS; i++)
        pthread_join(runners[i], NULL);
    atomic_store(&the_clock.stop, true);
    pthread_join(clock, NULL);
    for (unsigned i = 0; i < REQUESTS; i++) {
        weir__arena_finish(&items[i].w.arena);
        weir__buf_finish(&items[i].w.out);
    }
}

#endif
