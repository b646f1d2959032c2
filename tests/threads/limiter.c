/* Many threads on one limiter, over a store that answers late, on both sides of the time
 * that they wait: every answer that came too late is given back once, the others never.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include <weir/limiter.h>

#include "check.h"

#define THREADS 4
#define QUESTIONS 50
#define TIMEOUT_US 2000

static struct weir_limiter *limiter;
static atomic_uint answered, given_up;

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < QUESTIONS; i++) {
        struct weir_decision decision;
        CHECK(weir_limit_decide(limiter, &(struct weir_limit_query){ 0 }, &decision));
        atomic_fetch_add(decision.source == WEIR_SOURCE_FAKE ? &answered : &given_up, 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct weir_store *fake = weir_fake_create();
    CHECK(fake);
    for (int i = 0; i < THREADS * QUESTIONS; i++) {
        struct weir_fake_answer answer = { .kind = WEIR_FAKE_PENDING_ALLOW,
                                           .delay_us = i % 5 * TIMEOUT_US / 2 };
        CHECK(weir_fake_push(fake, &answer));
    }
    limiter = weir_limiter_create(
        &(struct weir_limiter_options){
            .store = fake,
            .bucket = "jobs",
            .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("m", 5, WEIR_MINUTES(1))),
            .timeout_us = TIMEOUT_US },
        NULL);
    CHECK(limiter);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    weir_limiter_destroy(limiter);
    while (weir_fake_refunded(fake) < atomic_load(&given_up))
        usleep(1000);
    CHECK(atomic_load(&answered) + atomic_load(&given_up) == THREADS * QUESTIONS);
    weir_store_destroy(fake);
    return 0;
}
