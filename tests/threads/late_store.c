/* A store that answers at any moment: in time, late, while the request is abandoned, or
 * never before it is over. What it took is kept exactly by the requests that were served
 * by its answer; all else goes back. */
#include "runners.h"

#include <weir/filters/identity.h>
#include <weir/filters/ratelimit.h>

enum { ANSWERERS = 2, ROUNDS = 200 };

static struct queue to_answer = QUEUE;
static atomic_uint taken, given_back, kept, served_without;

/* ---- the store --------------------------------------------------------------------- */

static void write_answer(struct weir_store_ask *ask)
{
    ask->decision = (struct weir_decision){ .allowed = true,
                                            .source = WEIR_SOURCE_REDIS,
                                            .rules_len = 1,
                                            .rules = { { .rule = ask->items[0].rule,
                                                         .allowed = true,
                                                         .cost = ask->items[0].cost,
                                                         .remaining = 1 } } };
    ask->receipts[0].charged = true;
    atomic_fetch_add(&taken, 1);
}

static enum weir_store_result decide(void *self, struct weir_store_ask *ask)
{
    (void)self;
    switch (weir__random_below(8)) {
    case 0:
        return WEIR_STORE_UNAVAILABLE;
    case 1:
        write_answer(ask);
        return WEIR_STORE_READY;
    default:
        push(&to_answer, ask);
        return WEIR_STORE_PENDING;
    }
}

static void *answer(void *arg)
{
    struct weir_store_ask *ask;
    (void)arg;
    while ((ask = pop(&to_answer))) {
        for (uint64_t turns = weir__random_below(4); turns > 0; turns--)
            sched_yield();
        ask->result = WEIR_STORE_UNAVAILABLE;
        if (weir__random_below(8) > 0) {
            ask->result = WEIR_STORE_READY;
            write_answer(ask);
        }
        ask->done(ask);
    }
    return NULL;
}

static void refund(void *self, struct weir_store_ask *ask)
{
    (void)self;
    CHECK(ask->receipts[0].charged);
    ask->receipts[0].charged = false;
    atomic_fetch_add(&given_back, 1);
}

static const struct weir_store_ops ops = {
    .name = "late", .may_pend = true, .decide = decide, .refund = refund
};

/* ---- the app ----------------------------------------------------------------------- */

static int handler(struct weir *w)
{
    return weir_text(w, 200, "fine");
}

static const struct weir_rule rules[] = {
    WEIR_FIXED_WINDOW("any", 1000000, WEIR_HOURS(1), .on_store_error = WEIR_ALLOW),
    { 0 },
};
static const struct weir_endpoint endpoints[] = { { "GET /", handler, .limits = rules },
                                                  { 0 } };
static const struct weir_use chain[] = { WEIR_USE(identity),
                                         WEIR_USE(ratelimit, .deadline_us = 1000000),
                                         { NULL, NULL } };

/* As a transport does whose time for a request is over, once it has that back. */
static void abandon_some(struct weir *w)
{
    bool in_wait = w->phase == WEIR__PHASE_BEFORE && w->then;
    if ((in_wait || w->phase == WEIR__PHASE_BODY) && weir__random_below(4) == 0)
        weir__life_abandon(w, 504, "RequestTimeout", NULL);
}

static void count(const struct weir *w)
{
    bool by_store = w->decision && w->decision->source == WEIR_SOURCE_REDIS;
    CHECK(w->status == (w->unserved ? 504 : 200));
    if (!w->unserved)
        atomic_fetch_add(by_store ? &kept : &served_without, 1);
}

int main(void)
{
    static const struct weir__options options = { .shm_entries = 64 };
    struct weir_store store = { .ops = &ops };
    const struct weir_app declared = { WEIR_ABI, .endpoints = endpoints, .chain = chain };
    struct weir_error error = { "" };
    pthread_t answerers[ANSWERERS];

    CHECK(weir__app_create(&declared, &options, &store, &the_app, &error));
    rounds_max = ROUNDS;
    before_run = abandon_some;
    check_answer = count;
    for (unsigned i = 0; i < ANSWERERS; i++)
        CHECK(pthread_create(&answerers[i], NULL, answer, NULL) == 0);
    run_all();
    close_queue(&to_answer);
    for (unsigned i = 0; i < ANSWERERS; i++)
        pthread_join(answerers[i], NULL);

    CHECK(atomic_load(&taken) - atomic_load(&given_back) == atomic_load(&kept));
    CHECK(atomic_load(&kept) > 0 && atomic_load(&served_without) > 0);
    CHECK(atomic_load(&given_back) > 0);
    weir__app_destroy(the_app);
    return 0;
}
