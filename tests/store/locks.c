/* A request of two rules has charged the first and will be refused by the second. Whoever
 * asks for the first alone, or for it and a third, must wait for the charge to be undone:
 * it was never made. The clock stands still, so that no lock grows old.
 *
 *   store_locks
 *
 * Faults that were planted in the store and seen to fail here: no lock, a lone refusal
 * that doesn't look at it, a look at it only after the counter was read. */
#include <pthread.h>

#include "crowd.h"

#define RUNS 50

static struct rule_kit kits[3];
static const char *const subjects[3] = { "user:42", "ip:198.51.100.7", "all" };
static struct weir_store *store;
static atomic_int charged_rule; /* -1 until the first is charged */
static atomic_bool other_waits, other_done, first_done;
static bool other_passed, third_too, late;
static _Thread_local bool is_first;

static struct weir_store_ask asked_for(unsigned wanted, int64_t cost)
{
    struct weir_store_ask ask = { .items_len = 0 };
    for (int i = 0; i < 3; i++)
        if (wanted >> i & 1)
            ask_add(&ask, &kits[i], subjects[i], cost);
    store->ops->decide(store->self, &ask);
    return ask;
}

/* Looks without asking, which would wait for the lock. */
static bool is_charged(int rule)
{
    struct weir__shm_place place = weir__shm_place(weir__shm_segment_of(store),
                                                   subjects[rule],
                                                   strlen(subjects[rule]),
                                                   kits[rule].tail);
    struct weir__word *at = weir__shm_find(&place);
    return at && weir__word_state(weir__word_read(at)).value > 0;
}

static void wait_for(atomic_bool *flag, atomic_bool *or_flag)
{
    while (!atomic_load(flag) && !atomic_load(or_flag))
        sched_yield();
}

static void *other(void *unused)
{
    (void)unused;
    while (atomic_load(&charged_rule) < 0)
        sched_yield();
    unsigned wanted = 1U << atomic_load(&charged_rule) | (third_too ? 4U : 0);
    other_passed = asked_for(wanted, 1).decision.allowed;
    atomic_store(&other_done, true);
    return NULL;
}

/* The first request stops with one rule charged, takes the other rule's only unit away
 * and goes on when the other request waits, or is over. The other's first wait lasts
 * until the first request is done. */
static void on_point(enum weir__shm_stop point)
{
    if (!is_first && point == (late ? WEIR__STOP_CHARGED : WEIR__STOP_WAITING)) {
        atomic_store(&other_waits, true);
        wait_for(&first_done, &first_done);
    }
    if (!is_first || point != WEIR__STOP_BETWEEN)
        return;
    int charged = is_charged(0) ? 0 : 1;
    weir__shm_stop_fn = NULL;
    CHECK(asked_for(2U >> charged, 1).decision.allowed, "the other rule is free");
    weir__shm_stop_fn = on_point;
    atomic_store(&charged_rule, charged);
    wait_for(&other_waits, &other_done);
}

static void run(void)
{
    pthread_t thread;
    store = crowd_store(1000);
    atomic_store(&charged_rule, -1);
    atomic_store(&other_waits, false);
    atomic_store(&other_done, false);
    atomic_store(&first_done, false);
    CHECK(pthread_create(&thread, NULL, other, NULL) == 0, "thread");
    is_first = true;
    struct weir_store_ask first = asked_for(3, 1);
    atomic_store(&first_done, true);
    pthread_join(thread, NULL);
    CHECK(!first.decision.allowed, "both rules passed");
    CHECK(other_passed,
          "%s was refused for a charge that was never made",
          third_too ? "a pair" : "a lone rule");
    crowd_verify(store);
    weir_store_destroy(store);
}

int main(void)
{
    crowd_limit_seconds(60);
    asks_stop_clock();
    for (int i = 0; i < 3; i++)
        kit_init(&kits[i], (struct weir_rule)WEIR_FIXED_WINDOW("d", 1, WEIR_DAYS(1)));
    weir__shm_stop_fn = on_point;
    for (int i = 0; i < RUNS; i++) {
        third_too = i % 3 == 1;
        late = i % 3 == 2;
        run();
    }
    printf("%d times nobody was refused for a charge that was undone\n", RUNS);
    return 0;
}
