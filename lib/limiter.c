/* Decisions outside of any request: one question to a store, waited for.
 *
 * A question that isn't answered in time still belongs to the store, which writes into it
 * later; so each lives on the heap and is freed by whoever comes last, the one that asked
 * or the answer. No request, chain or transport is known here. */
#include <weir/limiter.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "limit/policy.h"
#include "limit/subject.h"

#define TIMEOUT_US_DEFAULT 20000

struct weir_limiter {
    atomic_uint owners; /* the caller, and each question in flight */
    struct weir_store *store;
    struct weir__policy *policy;
    int64_t timeout_us;
};

/* One decision on its way. */
struct question {
    struct weir_limiter *limiter;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool is_answered, is_abandoned; /* under lock */
    char subjects[WEIR_RULES_MAX][WEIR__SUBJECT_BYTES];
    struct weir_store_ask ask;
};

static const struct weir__policy_entry *rules_of(const struct weir_limiter *limiter)
{
    return weir__policy_find(limiter->policy, WEIR__POLICY_UNMATCHED);
}

static void release(struct weir_limiter *limiter)
{
    if (atomic_fetch_sub(&limiter->owners, 1) > 1)
        return;
    weir__policy_destroy(limiter->policy);
    free(limiter);
}

/* ---- its life ---------------------------------------------------------------------- */

static bool check_options(const struct weir_limiter_options *options,
                          struct weir_error *ret_error)
{
    if (!options->store)
        return weir__error(ret_error, "limiter: store: missing");
    if (!options->bucket || !weir__limit_is_word(options->bucket))
        return weir__error(ret_error, "limiter: bucket: not 1 to 64 of [A-Za-z0-9._-]");
    if (options->timeout_us < 0)
        return weir__error(ret_error, "limiter: timeout_us: negative");
    return true;
}

static bool check_rules(const struct weir_limiter *limiter, struct weir_error *ret_error)
{
    const struct weir__policy_entry *entry = rules_of(limiter);
    if (entry->rules_len == 0)
        return weir__error(ret_error, "limiter: limits: missing");
    for (unsigned i = 0; i < entry->rules_len; i++)
        if (entry->rules[i]->limit.rule->cost_fn)
            return weir__error(ret_error,
                               "limiter: limits[%u] \"%s\": cost_fn: there is no request",
                               i,
                               entry->rules[i]->limit.rule->name);
    return true;
}

struct weir_limiter *weir_limiter_create(const struct weir_limiter_options *options,
                                         struct weir_error *ret_error)
{
    if (!check_options(options, ret_error))
        return NULL;
    struct weir_limiter *limiter = malloc(sizeof *limiter);
    if (!limiter) {
        weir__error(ret_error, "limiter: out of memory");
        return NULL;
    }
    *limiter = (struct weir_limiter){
        .store = options->store,
        .timeout_us = options->timeout_us ? options->timeout_us : TIMEOUT_US_DEFAULT,
    };
    atomic_init(&limiter->owners, 1);
    if (!weir__policy_create_lone(
            options->bucket, options->limits, &limiter->policy, ret_error) ||
        !check_rules(limiter, ret_error)) {
        release(limiter);
        return NULL;
    }
    return limiter;
}

void weir_limiter_destroy(struct weir_limiter *limiter)
{
    if (limiter)
        release(limiter);
}

/* ---- one question ------------------------------------------------------------------ */

static void question_free(struct question *question)
{
    struct weir_limiter *limiter = question->limiter;
    pthread_cond_destroy(&question->answered);
    pthread_mutex_destroy(&question->lock);
    free(question);
    release(limiter);
}

/* From the store, on any thread. */
static void done(struct weir_store_ask *ask)
{
    struct question *question = ask->arg;
    pthread_mutex_lock(&question->lock);
    question->is_answered = true;
    bool is_abandoned = question->is_abandoned;
    pthread_cond_signal(&question->answered);
    pthread_mutex_unlock(&question->lock);
    if (!is_abandoned)
        return;
    struct weir_store *store = question->limiter->store;
    if (ask->result == WEIR_STORE_READY && ask->decision.allowed && store->ops->refund)
        store->ops->refund(store->self, ask);
    question_free(question);
}

static int64_t cost_of(const struct weir_rule *rule, const struct weir_limit_query *query)
{
    if (query->peek)
        return 0;
    if (query->cost > 0)
        return query->cost;
    return rule->cost > 0 ? rule->cost : 1;
}

static struct question *question_create(struct weir_limiter *limiter,
                                        const struct weir_limit_query *query)
{
    static const struct weir_caller nobody = { .type = WEIR_CALLER_NONE };
    const struct weir_caller *caller = query->caller ? query->caller : &nobody;
    const struct weir__policy_entry *entry = rules_of(limiter);
    struct question *question = calloc(1, sizeof *question);
    if (!question)
        return NULL;
    atomic_fetch_add(&limiter->owners, 1);
    question->limiter = limiter;
    pthread_mutex_init(&question->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&question->answered, &monotonic);
    pthread_condattr_destroy(&monotonic);

    struct weir_store_ask *ask = &question->ask;
    for (unsigned i = 0; i < entry->rules_len; i++) {
        const struct weir_rule *rule = entry->rules[i]->limit.rule;
        size_t len = weir__subject(rule->by, caller, query->ip, question->subjects[i]);
        ask->items[i] = (struct weir_store_item){
            .rule = rule,
            .compiled = &entry->rules[i]->limit,
            .subject = question->subjects[i],
            .subject_len = (unsigned)len,
            .tail = entry->rules[i]->tail,
            .cost = cost_of(rule, query),
        };
    }
    ask->items_len = entry->rules_len;
    ask->deadline_us = weir__clock_now_us() + limiter->timeout_us;
    ask->done = done;
    ask->arg = question;
    return question;
}

/* True where the answer came in time; else the question is the store's from here on. */
static bool wait_for_answer(struct question *question)
{
    int64_t deadline_us = question->ask.deadline_us;
    struct timespec until = { .tv_sec = (time_t)(deadline_us / 1000000),
                              .tv_nsec = (long)(deadline_us % 1000000 * 1000) };
    pthread_mutex_lock(&question->lock);
    int error = 0;
    while (!question->is_answered && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&question->answered, &question->lock, &until);
    bool in_time = question->is_answered;
    question->is_abandoned = !in_time;
    pthread_mutex_unlock(&question->lock);
    return in_time;
}

/* True with the store's decision. */
static bool ask_store(struct weir_limiter *limiter,
                      const struct weir_limit_query *query,
                      struct weir_decision *ret_decision)
{
    struct weir_store *store = limiter->store;
    struct question *question = question_create(limiter, query);
    if (!question)
        return false;
    enum weir_store_result result = store->ops->decide(store->self, &question->ask);
    if (result == WEIR_STORE_PENDING) {
        if (!wait_for_answer(question))
            return false;
        result = question->ask.result;
    }
    if (result == WEIR_STORE_READY)
        *ret_decision = question->ask.decision;
    question_free(question);
    return result == WEIR_STORE_READY;
}

bool weir_limit_decide(struct weir_limiter *limiter,
                       const struct weir_limit_query *query,
                       struct weir_decision *ret_decision)
{
    if (ask_store(limiter, query, ret_decision))
        return ret_decision->allowed;
    const struct weir__policy_entry *entry = rules_of(limiter);
    bool deny = false;
    for (unsigned i = 0; i < entry->rules_len; i++)
        deny = deny || entry->rules[i]->limit.rule->on_store_error == WEIR_DENY;
    *ret_decision = (struct weir_decision){
        .allowed = !deny,
        .source = deny ? WEIR_SOURCE_DENY : WEIR_SOURCE_ALLOW,
    };
    return !deny;
}
