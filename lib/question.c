/* Puts the rules of a request to a store and takes the answer, or gives it up.
 *
 * A store that answers later owns the question until it has: one that comes after its
 * deadline finds no request any more, so the question lives on the heap then and the
 * answer itself clears it away, giving back what it took. Nothing here decides what an
 * answer means (filters/ratelimit.c). */
#include "question.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

#define POOL_MAX 1024

/* How far a question is that is answered later. The one who takes it out of OPEN has it:
 * the answer (WAKING, then ANSWERED), or the request that waits no longer (ABANDONED). */
enum { OPEN, WAKING, ANSWERED, ABANDONED };

/* Units that the request costs under the rule. */
static int64_t cost_of(struct weir *w, const struct weir_rule *rule)
{
    static struct weir__log_kind kind;
    if (!rule->cost_fn)
        return rule->cost ? rule->cost : 1;
    int64_t cost = rule->cost_fn(w);
    if (cost >= 0)
        return cost;
    weir__log_limited(&kind,
                      WEIR_LOG_ERROR,
                      "rule %s: its cost function gave %lld; 1 is taken",
                      rule->name,
                      (long long)cost);
    return 1;
}

/* Of several instances each admits its share. A request that costs more than that takes
 * all of it: to say that no wait will help would not be true. */
static bool take_share(struct weir *w, struct weir_store_item *item)
{
    const struct weir__limit *limit = item->compiled;
    unsigned instances = w->app->options->instances;
    if (instances <= 1)
        return true;
    struct weir__limit *share = weir_alloc(w, sizeof *share);
    if (!share)
        return false;
    *share = weir__limit_share(limit, instances);
    if (item->cost > share->max && item->cost <= limit->max)
        item->cost = share->max;
    item->compiled = share;
    return true;
}

/* The rules that count alike share a subject's text. False when memory is short. */
static bool add(struct weir__question *question,
                const struct weir__policy_rule *rule,
                enum weir__question_about about)
{
    struct weir *w = question->w;
    const struct weir_rule *declared = rule->limit.rule;
    struct weir_store_item *item = &question->ask.items[question->ask.items_len++];
    char *subject = question->subjects[declared->by];
    unsigned len = 0;
    for (struct weir_store_item *other = question->ask.items; other < item; other++)
        if (other->subject == subject)
            len = other->subject_len;
    if (len == 0)
        len = (unsigned)weir__subject(declared->by, &w->caller, w->address_key, subject);
    *item = (struct weir_store_item){
        .rule = declared,
        .compiled = &rule->limit,
        .subject = subject,
        .subject_len = len,
        .tail = rule->tail,
        .cost = about == WEIR__ABOUT_ADDRESS ? 0 : cost_of(w, declared),
    };
    return about != WEIR__ABOUT_LOCAL || take_share(w, item);
}

static void refund(struct weir__question *question)
{
    struct weir_store *store = question->store;
    if (question->ask.result != WEIR_STORE_READY || !store->ops->refund)
        return;
    for (unsigned i = 0; i < question->ask.items_len; i++) {
        if (question->ask.receipts[i].charged) {
            store->ops->refund(store->self, &question->ask);
            return;
        }
    }
}

/* ---- memory of questions that may outlive their request ------------------------------
 */

/* Those that are over are kept for the next, up to a number that a busy process may have
 * on their way; one process's, any thread. */
static struct {
    pthread_mutex_t mutex;
    struct weir_store_ask *first;
    unsigned len;
} pool = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static struct weir__question *take_from_pool(void)
{
    pthread_mutex_lock(&pool.mutex);
    struct weir_store_ask *ask = pool.first;
    if (ask) {
        pool.first = ask->next;
        pool.len--;
    }
    pthread_mutex_unlock(&pool.mutex);
    return ask ? (struct weir__question *)((char *)ask -
                                           offsetof(struct weir__question, ask))
               : malloc(sizeof(struct weir__question));
}

static void destroy(struct weir__question *question)
{
    if (!question->on_heap)
        return;
    pthread_mutex_lock(&pool.mutex);
    bool keep = pool.len < POOL_MAX;
    if (keep) {
        question->ask.next = pool.first;
        pool.first = &question->ask;
        pool.len++;
    }
    pthread_mutex_unlock(&pool.mutex);
    if (!keep)
        free(question);
}

/* ---- its life ------------------------------------------------------------------------
 */

/* Only called where decide() said PENDING, once. Any thread. */
static void done(struct weir_store_ask *ask)
{
    struct weir__question *question = ask->arg;
    int open = OPEN;
    if (atomic_compare_exchange_strong(&question->state, &open, WAKING)) {
        weir_wake(question->w);
        atomic_store(&question->state, ANSWERED);
        return;
    }
    refund(question);
    destroy(question);
}

static bool is_about(const struct weir_rule *rule, enum weir__question_about about)
{
    switch (about) {
    case WEIR__ABOUT_LOCAL:
        return rule->on_store_error == WEIR_LOCAL;
    case WEIR__ABOUT_ADDRESS:
        /* A look tells the wait for one unit, which is early for a request of more. */
        return rule->by == WEIR_BY_IP && !rule->cost_fn && rule->cost <= 1;
    case WEIR__ABOUT_ALL:
        break;
    }
    return true;
}

struct weir__question *weir__question_create(struct weir *w,
                                             struct weir_store *store,
                                             enum weir__question_about about,
                                             int64_t deadline_us)
{
    const struct weir__policy_entry *entry =
        weir__policy_find(w->app->policy, w->endpoint_index);
    bool on_heap = store->ops->may_pend;
    struct weir__question *question =
        on_heap ? take_from_pool() : weir_alloc(w, sizeof *question);
    if (!question)
        return NULL;
    question->store = store;
    question->w = w;
    question->on_heap = on_heap;
    atomic_init(&question->state, OPEN);
    question->ask.items_len = 0;
    question->ask.deadline_us = weir__clock_now_us() + deadline_us;
    question->ask.done = done;
    question->ask.arg = question;
    question->ask.result = WEIR_STORE_UNAVAILABLE;
    question->ask.decision.rules_len = 0;
    for (unsigned i = 0; i < entry->rules_len; i++) {
        question->ask.receipts[i].charged = false;
        if (is_about(entry->rules[i]->limit.rule, about) &&
            !add(question, entry->rules[i], about)) {
            destroy(question);
            return NULL;
        }
    }
    return question;
}

enum weir_store_result weir__question_put(struct weir__question *question)
{
    struct weir_store *store = question->store;
    enum weir_store_result result = store->ops->decide(store->self, &question->ask);
    /* A pending question may have been answered already: it must not be written to. */
    if (result != WEIR_STORE_PENDING) {
        question->ask.result = result;
        atomic_store(&question->state, ANSWERED);
    }
    return result;
}

/* Takes the question back from its store. False: it is the store's from here on. An
 * answer that is just waking the request has a few instructions left, and both must be
 * there while it does. */
static bool take_back(struct weir__question *question)
{
    int state = OPEN;
    if (atomic_compare_exchange_strong(&question->state, &state, ABANDONED))
        return false;
    while (atomic_load(&question->state) == WAKING)
        sched_yield();
    return true;
}

enum weir__question_state weir__question_look(struct weir__question *question,
                                              bool timed_out)
{
    if (!timed_out && atomic_load(&question->state) == OPEN)
        return WEIR__QUESTION_OPEN;
    return take_back(question) ? WEIR__QUESTION_ANSWERED : WEIR__QUESTION_LOST;
}

int64_t weir__question_left_us(const struct weir__question *question)
{
    int64_t left_us = question->ask.deadline_us - weir__clock_now_us();
    return left_us > 0 ? left_us : 1;
}

void weir__question_end(struct weir__question *question, bool give_back)
{
    if (!question || !take_back(question))
        return;
    if (give_back)
        refund(question);
    destroy(question);
}
