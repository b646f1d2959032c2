/* Requests that are woken, timed out, offloaded and committed on any thread at any
 * moment: each wait ends once, hooks of one request never run together, `after` runs
 * once, and no time-out of the past ends a wait of today. */
#include "runners.h"

enum { WAKERS = 2, ROUNDS = 300 };

static struct queue to_wake = QUEUE;
static atomic_uint timed_out, woken;

static void *wake(void *arg)
{
    struct weir *w;
    (void)arg;
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

/* A wait that one of the wakers ends, or the clock. */
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
    CHECK(item_of(w)->afters++ == item_of(w)->rounds);
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

static void check(const struct weir *w)
{
    CHECK(w->status == 200);
    CHECK(w->sent_bytes == 11);
}

int main(void)
{
    static const struct weir__options options = { .shm_entries = 64 };
    const struct weir_app declared = { WEIR_ABI, .endpoints = endpoints, .chain = chain };
    struct weir_error error = { "" };
    pthread_t wakers[WAKERS];

    CHECK(weir__app_create(&declared, &options, NULL, &the_app, &error));
    rounds_max = ROUNDS;
    check_answer = check;
    for (unsigned i = 0; i < WAKERS; i++)
        CHECK(pthread_create(&wakers[i], NULL, wake, NULL) == 0);
    run_all();
    close_queue(&to_wake);
    for (unsigned i = 0; i < WAKERS; i++)
        pthread_join(wakers[i], NULL);

    unsigned waits = 0;
    for (unsigned i = 0; i < REQUESTS; i++) {
        waits += items[i].waits;
        CHECK(items[i].afters == ROUNDS);
    }
    CHECK(waits == atomic_load(&woken) + atomic_load(&timed_out));
    CHECK(atomic_load(&timed_out) > 0 && atomic_load(&woken) > 0);
    weir__app_destroy(the_app);
    return 0;
}
