/* Questions to a store, for tests: a rule with its compiled form, its tail and a caller.
 * Also a clock that stands still until it is told to go on. */
#ifndef TESTS_SUPPORT_ASKS_H
#define TESTS_SUPPORT_ASKS_H

#include <weir/store.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/limit.h"

struct rule_kit {
    struct weir_rule rule;
    struct weir__limit limit;
    char tail[96];
};

static inline void kit_init(struct rule_kit *ret, struct weir_rule rule)
{
    struct weir_error error = { { 0 } };
    ret->rule = rule;
    if (!weir__limit_compile(&ret->rule, &ret->limit, &error)) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    char tag[WEIR__TAG_BYTES];
    snprintf(ret->tail,
             sizeof ret->tail,
             "GET /t:%s:%s",
             rule.name,
             weir__limit_tag(&rule, tag));
}

/* One more rule in the question. */
static inline void ask_add(struct weir_store_ask *ask,
                           const struct rule_kit *kit,
                           const char *subject,
                           int64_t cost)
{
    ask->items[ask->items_len++] = (struct weir_store_item){
        .rule = &kit->rule,
        .compiled = &kit->limit,
        .subject = subject,
        .subject_len = (unsigned)strlen(subject),
        .tail = kit->tail,
        .cost = cost,
    };
}

static inline void asks_done(struct weir_store_ask *ask)
{
    sem_post(ask->arg);
}

/* Puts the question and waits for its answer, whether the store has it at once or not. */
static inline enum weir_store_result ask_wait(struct weir_store *store,
                                              struct weir_store_ask *ask)
{
    sem_t answered;
    sem_init(&answered, 0, 0);
    ask->done = asks_done;
    ask->arg = &answered;
    enum weir_store_result result = store->ops->decide(store->self, ask);
    if (result == WEIR_STORE_PENDING) {
        while (sem_wait(&answered) != 0)
            ;
        result = ask->result;
    }
    sem_destroy(&answered);
    return result;
}

/* A question of one rule, decided at once; ask may be NULL. */
static inline struct weir_rule_answer ask_one(struct weir_store *store,
                                              const struct rule_kit *kit,
                                              const char *subject,
                                              int64_t cost,
                                              struct weir_store_ask *ret_ask)
{
    struct weir_store_ask own;
    struct weir_store_ask *ask = ret_ask ? ret_ask : &own;
    memset(ask, 0, sizeof *ask);
    ask_add(ask, kit, subject, cost);
    if (ask_wait(store, ask) != WEIR_STORE_READY)
        abort();
    return ask->decision.rules[0];
}

static int64_t asks_now_us = INT64_C(1000000000);

static int64_t asks_clock(void)
{
    return asks_now_us;
}

static inline void asks_stop_clock(void)
{
    weir__clock_replace(asks_clock, NULL);
}

#endif
