/* The fake store: answers from a script, for tests of apps. It counts nothing and knows
 * no arithmetic; a late answer comes from a thread of its own. */
#include <weir/store.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SUBJECT_BYTES 128
#define TAIL_BYTES 512

/* An answer that comes later. */
struct late {
    struct late *next;
    pthread_t thread;
    struct weir_store_ask *ask;
    struct weir_fake_answer answer;
};

struct fake {
    pthread_mutex_t lock; /* guards all of it */
    struct weir_fake_answer *script;
    size_t script_len, script_capacity, script_next;
    unsigned asked, refunded;
    struct late *late;
    char subjects[WEIR_RULES_MAX][SUBJECT_BYTES]; /* of the last question */
    char tails[WEIR_RULES_MAX][TAIL_BYTES];
};

/* What would be left of an untouched budget. */
static int64_t left_of(const struct weir_store_item *item)
{
    return item->rule->max > item->cost ? item->rule->max - item->cost : 0;
}

static void write_answer(struct weir_store_ask *ask,
                         const struct weir_fake_answer *answer)
{
    bool refuses = answer->kind == WEIR_FAKE_REFUSE;
    ask->decision = (struct weir_decision){ .allowed = !refuses,
                                            .source = WEIR_SOURCE_FAKE,
                                            .rules_len = ask->items_len };
    for (unsigned i = 0; i < ask->items_len; i++) {
        bool own = refuses && i == answer->rule;
        ask->decision.rules[i] = (struct weir_rule_answer){
            .rule = ask->items[i].rule,
            .allowed = !own,
            .cost = ask->items[i].cost,
            .remaining =
                answer->remaining < 0 ? left_of(&ask->items[i]) : answer->remaining,
            .retry_us = own ? answer->retry_us : 0,
            .next_us = answer->retry_us,
            .full_us = answer->retry_us,
        };
        ask->receipts[i] = (struct weir_receipt){
            .charged = !refuses && ask->items[i].cost > 0,
            .cost = ask->items[i].cost,
        };
    }
}

static void *answer_late(void *arg)
{
    struct late *late = arg;
    struct timespec left = { .tv_sec = (time_t)(late->answer.delay_us / 1000000),
                             .tv_nsec = (long)(late->answer.delay_us % 1000000 * 1000) };
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    write_answer(late->ask, &late->answer);
    late->ask->result = WEIR_STORE_READY;
    late->ask->done(late->ask);
    return NULL;
}

/* Under the lock. */
static bool start_late(struct fake *fake,
                       struct weir_store_ask *ask,
                       const struct weir_fake_answer *answer)
{
    struct late *late = malloc(sizeof *late);
    if (!late)
        return false;
    *late = (struct late){ .next = fake->late, .ask = ask, .answer = *answer };
    if (pthread_create(&late->thread, NULL, answer_late, late) != 0) {
        free(late);
        return false;
    }
    fake->late = late;
    return true;
}

/* Under the lock. */
static void remember(struct fake *fake, const struct weir_store_ask *ask)
{
    fake->asked++;
    for (unsigned i = 0; i < WEIR_RULES_MAX; i++) {
        const struct weir_store_item *item = &ask->items[i];
        bool asked = i < ask->items_len;
        snprintf(fake->subjects[i],
                 SUBJECT_BYTES,
                 "%.*s",
                 asked ? (int)item->subject_len : 0,
                 asked ? item->subject : "");
        snprintf(fake->tails[i], TAIL_BYTES, "%s", asked ? item->tail : "");
    }
}

/* Under the lock. */
static struct weir_fake_answer next_answer(struct fake *fake)
{
    if (fake->script_next < fake->script_len)
        return fake->script[fake->script_next++];
    return (struct weir_fake_answer){ .kind = WEIR_FAKE_ALLOW, .remaining = -1 };
}

static enum weir_store_result fake_decide(void *self, struct weir_store_ask *ask)
{
    struct fake *fake = self;
    enum weir_store_result result = WEIR_STORE_READY;
    pthread_mutex_lock(&fake->lock);
    remember(fake, ask);
    struct weir_fake_answer answer = next_answer(fake);
    if (answer.kind == WEIR_FAKE_UNAVAILABLE)
        result = WEIR_STORE_UNAVAILABLE;
    else if (answer.kind == WEIR_FAKE_PENDING_ALLOW)
        result =
            start_late(fake, ask, &answer) ? WEIR_STORE_PENDING : WEIR_STORE_UNAVAILABLE;
    else
        write_answer(ask, &answer);
    pthread_mutex_unlock(&fake->lock);
    return result;
}

static void fake_refund(void *self, struct weir_store_ask *ask)
{
    struct fake *fake = self;
    bool took = false;
    for (unsigned i = 0; i < ask->items_len; i++) {
        took = took || ask->receipts[i].charged;
        ask->receipts[i].charged = false;
    }
    pthread_mutex_lock(&fake->lock);
    fake->refunded += took;
    pthread_mutex_unlock(&fake->lock);
}

static void fake_destroy(void *self)
{
    struct fake *fake = self;
    while (fake->late) {
        struct late *late = fake->late;
        fake->late = late->next;
        pthread_join(late->thread, NULL);
        free(late);
    }
    pthread_mutex_destroy(&fake->lock);
    free(fake->script);
    free(fake);
}

static const struct weir_store_ops fake_ops = {
    .name = "fake",
    .may_pend = true,
    .decide = fake_decide,
    .refund = fake_refund,
    .destroy = fake_destroy,
};

struct weir_store *weir_fake_create(void)
{
    struct weir_store *store = malloc(sizeof *store);
    struct fake *fake = calloc(1, sizeof *fake);
    if (!store || !fake) {
        free(store);
        free(fake);
        return NULL;
    }
    pthread_mutex_init(&fake->lock, NULL);
    *store = (struct weir_store){ .ops = &fake_ops, .self = fake };
    return store;
}

bool weir_fake_push(struct weir_store *store, const struct weir_fake_answer *answer)
{
    struct fake *fake = store->self;
    bool pushed = true;
    pthread_mutex_lock(&fake->lock);
    if (fake->script_len == fake->script_capacity) {
        size_t capacity = fake->script_capacity ? 2 * fake->script_capacity : 16;
        struct weir_fake_answer *grown =
            realloc(fake->script, capacity * sizeof *fake->script);
        pushed = grown != NULL;
        if (grown) {
            fake->script = grown;
            fake->script_capacity = capacity;
        }
    }
    if (pushed)
        fake->script[fake->script_len++] = *answer;
    pthread_mutex_unlock(&fake->lock);
    return pushed;
}

static unsigned read_count(const struct weir_store *store, bool of_refunds)
{
    struct fake *fake = store->self;
    pthread_mutex_lock(&fake->lock);
    unsigned count = of_refunds ? fake->refunded : fake->asked;
    pthread_mutex_unlock(&fake->lock);
    return count;
}

unsigned weir_fake_asked(const struct weir_store *store)
{
    return read_count(store, false);
}

unsigned weir_fake_refunded(const struct weir_store *store)
{
    return read_count(store, true);
}

const char *weir_fake_subject(const struct weir_store *store, unsigned rule)
{
    return rule < WEIR_RULES_MAX ? ((struct fake *)store->self)->subjects[rule] : "";
}

const char *weir_fake_tail(const struct weir_store *store, unsigned rule)
{
    return rule < WEIR_RULES_MAX ? ((struct fake *)store->self)->tails[rule] : "";
}
