/* The shared-memory store with threads in place of processes, for ThreadSanitizer: lone
 * rules and several, strangers that push each other out, refunds, and a walk at the end.
 * The sums are checked too: no rule over its max, no charge lost. */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "store/shm.h"
#include "store/shm_table.h"
#include "support/asks.h"
#include "support/rng.h"

#define THREADS 4
#define REQUESTS 20000
#define RULES 3

static struct rule_kit kits[RULES], flood;
static const char *const subjects[RULES] = { "user:42", "ip:198.51.100.7", "all" };
static const unsigned wanted[] = { 1, 2, 4, 3, 6, 7 };
static struct weir_store *store;
static atomic_long charged[RULES];

static void count(const struct weir_store_ask *ask, unsigned rules, long units)
{
    (void)ask;
    for (int i = 0; i < RULES; i++)
        if (rules >> i & 1)
            atomic_fetch_add(&charged[i], units);
}

static void one_request(struct rng *rng)
{
    struct weir_store_ask ask = { .items_len = 0 };
    unsigned rules = wanted[rng_between(rng, 0, 5)];
    for (int i = 0; i < RULES; i++)
        if (rules >> i & 1)
            ask_add(&ask, &kits[i], subjects[i], 1);
    store->ops->decide(store->self, &ask);
    if (!ask.decision.allowed)
        return;
    if (rng_between(rng, 0, 3) == 0)
        store->ops->refund(store->self, &ask);
    else
        count(&ask, rules, 1);
}

static void *work(void *arg)
{
    struct rng rng = { (uint64_t)(uintptr_t)arg };
    for (int i = 0; i < REQUESTS; i++) {
        char subject[32];
        snprintf(
            subject, sizeof subject, "ip:%u", (unsigned)rng_between(&rng, 0, 100000));
        one_request(&rng);
        ask_one(store, &flood, subject, 1, NULL);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct weir__shm_census census;
    kit_init(&kits[0], (struct weir_rule)WEIR_FIXED_WINDOW("d", 9000, WEIR_DAYS(1)));
    kit_init(&kits[1], (struct weir_rule)WEIR_TOKEN_BUCKET("f", 3660, 1, WEIR_DAYS(1)));
    kit_init(&kits[2], (struct weir_rule)WEIR_FIXED_WINDOW("e", 7000, WEIR_DAYS(2)));
    kit_init(&flood, (struct weir_rule)WEIR_FIXED_WINDOW("x", 1000, WEIR_MINUTES(10)));
    store = weir_shm_create(&(struct weir_shm_options){ .entries = 300 }, NULL);
    CHECK(store);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(weir__shm_verify(weir__shm_segment_of(store), &census, NULL));
    CHECK(census.intents == 0 && census.locks == 0);
    for (int i = 0; i < RULES; i++) {
        struct weir_rule_answer answer = ask_one(store, &kits[i], subjects[i], 0, NULL);
        CHECK(kits[i].rule.max - answer.remaining == atomic_load(&charged[i]));
    }
    weir_store_destroy(store);
    return 0;
}
