/* Requests that are woken, timed out, offloaded and committed on any thread at any
 * moment: each wait ends once, hooks of one request never run together, `after` runs
 * once. Runners carry requests, wakers wake them, a clock thread times them out, also
 * long after the wait is over. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/random.h"
#include "check.h"
#include "life.h"

enum { RUNNERS = 3, WAKERS = 2, REQUESTS = 48, ROUNDS = 300, STALE = 64 };

/* ---- a queue of requests ----------------------------------------------------------- */

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    struct weir *items[4 * REQUESTS];
    unsigned first, len;
    bool closed;
};

#define QUEUE                                                                            \
    {                                                                                    \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, { NULL }, 0, 0, false       \
    }

static struct queue to_run = QUEUE, to_wake = QUEUE;

static void push(struct queue *queue, struct weir *w)
{
    pthread_mutex_lock(&queue->mutex);
    unsigned room = sizeof queue->items / sizeof *queue->items;
    CHECK(queue->len < room);
    queue->items[(queue->first + queue->len++) % room] = w;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
}

/* NULL once it is closed and empty. */
static struct weir *pop(struct queue *queue)
{
    struct weir *w = NULL;
    pthread_mutex_lock(&queue->mutex);
    while (queue->len == 0 && !queue->closed)
        pthread_cond_wait(&queue->filled, &queue->mutex);
    if (queue->len > 0) {
        w = queue->items[queue->first];
        queue->first = (queue->first + 1) % (sizeof queue->items / sizeof *queue->items);
        queue->len--;
    }
    pthread_mutex_unlock(&queue->mutex);
    return w;
}

static void close_queue(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    pthread_cond_broadcast(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
}

/* ---- what is known of each request from outside ------------------------------------ */

static struct item {
    struct weir w;
    atomic_bool queued;     /* a resume stands in the queue */
    atomic_int inside;      /* hooks running */
    atomic_bool waking;     /* a waker has it */
    _Atomic uint64_t fired; /* the highest wait that the clock thread ended */
    uint64_t armed;         /* the wait that may be ended by it; UINT64_MAX: none */
    unsigned rounds, waits, afters;
    struct weir__pair params[2];
} items[REQUESTS];

static struct item *item_of(struct weir *w)
{
    return (struct item *)((char *)w - offsetof(struct item, w));
}

static atomic_uint over, timed_out, woken;

/* ---- waits of the past, which the clock thread ends again and again ---------------- */

static struct {
    pthread_mutex_t mutex;
    struct {
        struct weir *w;
        uint64_t wait;
    } waits[STALE];
    unsigned next;
} clock_list = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void arm(struct weir *w, uint64_t wait)
{
    item_of(w)->armed = wait;
    pthread_mutex_lock(&clock_list.mutex);
    unsigned place = clock_list.next++ % STALE;
    clock_list.waits[place].w = w;
    clock_list.waits[place].wait = wait;
    pthread_mutex_unlock(&clock_list.mutex);
}

static atomic_bool stop_clock;

static void *tick(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop_clock)) {
        unsigned place = (unsigned)weir__random_below(STALE);
        pthread_mutex_lock(&clock_list.mutex);
        struct weir *w = clock_list.waits[place].w;
        uint64_t wait = clock_list.waits[place].wait;
        pthread_mutex_unlock(&clock_list.mutex);
        if (w) {
            if (atomic_load(&item_of(w)->fired) < wait)
                atomic_store(&item_of(w)->fired, wait); /* only this thread stores */
            weir__life_timeout(w, wait);
        }
        sched_yield();
    }
    return NULL;
}

static void *wake(void *arg)
{
    (void)arg;
    struct weir *w;
    while ((w = pop(&to_wake))) {
        if (weir__random_below(2))
            sched_yield();
        weir_wake(w);
        if (weir__random_below(2))
            weir_wake(w);
        atomic_store(&item_of(w)->waking, false);
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

/* ---- the filter -------------------------------------------------------------------- */

static void enter(struct weir *w)
{
    CHECK(atomic_fetch_add(&item_of(w)->inside, 1) == 0);
}

static void leave(struct weir *w)
{
    CHECK(atomic_fetch_sub(&item_of(w)->inside, 1) == 1);
}

static enum weir_verdict continued(struct weir *w, const void *self, void *slot);

/* A wait that one of the wakers ends, or its time. */
static enum weir_verdict wait_once(struct weir *w)
{
    struct item *item = item_of(w);
    item->waits++;
    item->armed = UINT64_MAX;
    atomic_store(&item->waking, true);
    push(&to_wake, w);
    if (weir__random_below(2))
        sched_yield();
    return weir_wait(w, continued, WEIR_SECONDS(30));
}

static enum weir_verdict continued(struct weir *w, const void *self, void *slot)
{
    struct item *item = item_of(w);
    (void)self, (void)slot;
    enter(w);
    atomic_fetch_add(weir_timed_out(w) ? &timed_out : &woken, 1);
    CHECK(!weir_timed_out(w) || atomic_load(&item->fired) >= item->armed);
    /* A filter's waker must be done with the request before that moves on. */
    while (atomic_load(&item->waking))
        sched_yield();
    enum weir_verdict verdict = weir__random_below(3) == 0 ? wait_once(w) : WEIR_NEXT;
    leave(w);
    return verdict;
}

static enum weir_verdict offloaded(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    enter(w);
    enum weir_verdict verdict = weir__random_below(2) ? wait_once(w) : WEIR_NEXT;
    leave(w);
    return verdict;
}

static enum weir_verdict hook(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    enter(w);
    enum weir_verdict verdict = WEIR_NEXT;
    switch (weir__random_below(4)) {
    case 0:
        verdict = weir_offload(w, offloaded);
        break;
    case 1:
        break;
    default:
        verdict = wait_once(w);
    }
    leave(w);
    return verdict;
}

static void after(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    enter(w);
    CHECK(!atomic_load(&item_of(w)->waking));
    item_of(w)->afters++;
    leave(w);
}

static const struct weir_filter filters[] = {
    { .name = "outer", .before = hook, .commit = hook, .after = after },
    { .name = "inner", .before = hook, .commit = hook },
};
static const struct weir_use chain[] = { { &filters[0], NULL },
                                         { &filters[1], NULL },
                                         { NULL, NULL } };

/* Half of them commit inside the handler, where the thread sits in the hooks' waits. */
static int handler(struct weir *w)
{
    weir_write(w, "first", 5);
    if (weir__random_below(2))
        weir_flush(w);
    weir_write(w, "second", 6);
    return 200;
}

static const struct weir_endpoint endpoints[] = { { "GET /", handler }, { 0 } };

/* ---- runners ----------------------------------------------------------------------- */

static struct weir__app *app;

static void begin(struct item *item)
{
    struct weir *w = &item->w;
    weir__life_init(w, app, NULL, &transport, NULL);
    item->params[0] = (struct weir__pair){ "REQUEST_METHOD", "GET", 14, 3 };
    item->params[1] = (struct weir__pair){ "REQUEST_URI", "/", 11, 1 };
    w->params = item->params;
    w->params_len = 2;
    weir__life_begin(w);
    push(&to_run, w);
}

static void end(struct item *item)
{
    CHECK(item->w.status == 200);
    CHECK(item->w.sent_bytes == 11);
    weir__life_end(&item->w);
    CHECK(item->afters == ++item->rounds);
    if (item->rounds < ROUNDS)
        begin(item);
    else if (atomic_fetch_add(&over, 1) + 1 == REQUESTS)
        close_queue(&to_run);
}

/* Until it parks, needs a thread, or is over. */
static void carry(struct weir *w)
{
    for (;;) {
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
    (void)arg;
    struct weir *w;
    while ((w = pop(&to_run))) {
        atomic_store(&item_of(w)->queued, false);
        carry(w);
    }
    return NULL;
}

int main(void)
{
    static const struct weir__options options = { .shm_entries = 64 };
    const struct weir_app declared = { WEIR_ABI, .endpoints = endpoints, .chain = chain };
    struct weir_error error = { "" };
    pthread_t runners[RUNNERS], wakers[WAKERS], clock;

    CHECK(weir__app_create(&declared, &options, NULL, &app, &error));
    for (unsigned i = 0; i < REQUESTS; i++) {
        weir__arena_init(&items[i].w.arena, 1 << 16, 4096);
        weir__buf_init(&items[i].w.out, WEIR__OUT_MAX);
        begin(&items[i]);
    }
    CHECK(pthread_create(&clock, NULL, tick, NULL) == 0);
    for (unsigned i = 0; i < WAKERS; i++)
        CHECK(pthread_create(&wakers[i], NULL, wake, NULL) == 0);
    for (unsigned i = 0; i < RUNNERS; i++)
        CHECK(pthread_create(&runners[i], NULL, run, NULL) == 0);
    for (unsigned i = 0; i < RUNNERS; i++)
        pthread_join(runners[i], NULL);
    close_queue(&to_wake);
    for (unsigned i = 0; i < WAKERS; i++)
        pthread_join(wakers[i], NULL);
    atomic_store(&stop_clock, true);
    pthread_join(clock, NULL);

    unsigned waits = 0;
    for (unsigned i = 0; i < REQUESTS; i++) {
        waits += items[i].waits;
        weir__arena_finish(&items[i].w.arena);
        weir__buf_finish(&items[i].w.out);
    }
    CHECK(waits == atomic_load(&woken) + atomic_load(&timed_out));
    CHECK(atomic_load(&timed_out) > 0 && atomic_load(&woken) > 0);
    weir__app_destroy(app);
    return 0;
}
