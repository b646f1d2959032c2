/* The shared-memory store: decides the rules of a request over the shared table.
 *
 * Each counter is read, decided on and written back by one compare-and-swap; the clock is
 * read after the counter, so that no process that was stopped in between can bring an old
 * time to a newer state. A refusal writes too: it marks the counter as one that must
 * stay, and proves that what it was based on was true. Windows with an anchor go by the
 * wall clock, all others by the monotonic one. Where counters are is
 * shm_table.c's, what the numbers mean lib/limit's affair. Nothing here may block or
 * allocate. */
#include "store/shm.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "store/shm_lock.h"
#include "store/shm_stop.h"
#include "store/shm_table.h"

struct shm {
    struct weir__shm_segment segment;
};

/* One rule of an ask while it is being decided. */
struct turn {
    const struct weir__limit *limit;
    int64_t cost;
    int64_t base_us; /* of the counter's times: 0, or the segment's on the wall clock */
    struct weir__shm_place place;
    struct weir__word *at; /* the counter; NULL where it has none and needs none */
    struct weir__word before, after;
    struct weir_rule_answer answer;
    uint64_t lock_look; /* at the counter's lock, before the counter was read */
};

/* ---- times ------------------------------------------------------------------------- */

static int64_t base_us(const struct weir__shm_segment *segment,
                       const struct weir__limit *limit)
{
    return limit->anchor == WEIR_ANCHOR_REQUEST ? 0 : segment->header->wall_epoch_us;
}

/* The time by the rule's own clock, where now_us is the monotonic one. */
static int64_t own_us(const struct weir__shm_segment *segment,
                      const struct weir__limit *limit,
                      int64_t now_us)
{
    return limit->anchor == WEIR_ANCHOR_REQUEST ? now_us : weir__shm_wall_us(segment);
}

static struct weir__limit_state state_of(struct weir__word word, int64_t base)
{
    struct weir__limit_state state = weir__word_state(word);
    state.time_us += state.time_us > 0 ? base : 0;
    return state;
}

static struct weir__word
word_of(uint64_t tag, struct weir__limit_state state, int64_t base, unsigned level)
{
    state.time_us -= state.time_us > 0 ? base : 0;
    return weir__word_make(tag, state, level);
}

static struct turn turn_of(const struct weir__shm_segment *segment,
                           const struct weir_store_item *item)
{
    return (struct turn){
        .limit = item->compiled,
        .cost = item->cost > 0 ? item->cost : 0,
        .base_us = base_us(segment, item->compiled),
        .place = weir__shm_place(segment, item->subject, item->subject_len, item->tail),
    };
}

/* ---- one rule ---------------------------------------------------------------------- */

/* Finds the counter and reads it: at, before. */
static void read_counter(struct turn *turn)
{
    struct weir__limit_state unused = { 0, 0 };
    do {
        turn->lock_look = weir__shm_lock_look(turn->place.stripe);
        turn->at = weir__shm_find(&turn->place);
        turn->before = turn->at ? weir__word_guess(turn->at)
                                : weir__word_make(turn->place.tag, unused, 0);
    } while (weir__word_tag(turn->before.hi) != turn->place.tag);
}

/* Decides on what was read: after, answer. now_us must have been read later. */
static void
decide(const struct weir__shm_segment *segment, struct turn *turn, int64_t now_us)
{
    struct weir__limit_state state;
    now_us = own_us(segment, turn->limit, now_us);
    weir__limit_decide(turn->limit,
                       state_of(turn->before, turn->base_us),
                       turn->cost,
                       now_us,
                       &state,
                       &turn->answer);
    /* A cost above the max says nothing of how much its caller has used. */
    unsigned level = turn->answer.allowed || turn->answer.never
                         ? weir__limit_level(turn->limit, state, now_us)
                         : WEIR__LEVEL_REFUSED;
    turn->after = word_of(turn->place.tag, state, turn->base_us, level);
}

/* Writes what was decided, where there is something to write and a counter to hold it.
 * False after a lost race: what was decided is not true any more. */
static bool write_counter(struct turn *turn)
{
    if (!turn->at || (turn->answer.allowed && turn->cost == 0))
        return true;
    WEIR__STOP(WEIR__STOP_DECIDED);
    if (!weir__word_swap(turn->at, turn->before, turn->after))
        return false;
    WEIR__STOP(WEIR__STOP_CHARGED);
    return true;
}

/* Decides one rule and charges it where it admits. A refusal is true: it was written. */
static void
charge(const struct weir__shm_segment *segment, struct turn *turn, const char *tail)
{
    for (;;) {
        read_counter(turn);
        int64_t now_us = weir__shm_now_us(segment);
        decide(segment, turn, now_us);
        bool needs_counter = turn->answer.allowed && turn->cost > 0;
        if (turn->at || !needs_counter) {
            if (write_counter(turn))
                return;
            continue;
        }
        /* Where its own bucket is full of callers who are being refused, a newcomer
         * shares one counter with all others of its rule to whom that happens. */
        if (!weir__shm_insert(&turn->place, now_us))
            turn->place = weir__shm_overflow_place(segment, tail);
    }
}

/* Takes back a charge; charged is the state right after it. Nothing where the counter has
 * been evicted since. */
static void give_back(const struct weir__shm_segment *segment,
                      const struct weir__shm_place *place,
                      const struct weir__limit *limit,
                      int64_t cost,
                      struct weir__limit_state charged)
{
    int64_t base = base_us(segment, limit);
    for (;;) {
        struct weir__word *at = weir__shm_find(place);
        if (!at)
            return;
        struct weir__word before = weir__word_guess(at);
        if (weir__word_tag(before.hi) != place->tag)
            continue;
        int64_t now_us = own_us(segment, limit, weir__shm_now_us(segment));
        struct weir__limit_state state =
            weir__limit_refund(limit, state_of(before, base), cost, charged, now_us);
        struct weir__word after =
            word_of(place->tag, state, base, weir__limit_level(limit, state, now_us));
        if (weir__word_swap(at, before, after))
            return;
    }
}

/* ---- the rules of a request -------------------------------------------------------- */

/* In the order of the counters' addresses: requests that share some of their rules then
 * charge those in the same order, and the one that comes first to the first of them comes
 * first to all. */
static void sort_by_address(const struct turn *turns, unsigned len, unsigned *ret_order)
{
    for (unsigned i = 0; i < len; i++) {
        unsigned at = i;
        const struct weir__shm_place *own = &turns[i].place;
        for (; at > 0; at--) {
            const struct weir__shm_place *other = &turns[ret_order[at - 1]].place;
            if (other->bucket < own->bucket ||
                (other->bucket == own->bucket && other->tag <= own->tag))
                break;
            ret_order[at] = ret_order[at - 1];
        }
        ret_order[at] = i;
    }
}

static void undo(const struct weir__shm_segment *segment, struct turn *turn)
{
    if (turn->cost == 0)
        return;
    if (weir__word_swap(turn->at, turn->after, turn->before))
        return; /* nobody came between: as if it had never been */
    give_back(segment,
              &turn->place,
              turn->limit,
              turn->cost,
              state_of(turn->after, turn->base_us));
}

/* Decides all rules without charging. A refusal is true: it was written. */
static bool
check_all(const struct weir__shm_segment *segment, struct turn *turns, unsigned len)
{
    bool allowed = true;
    for (unsigned i = 0; i < len; i++)
        read_counter(&turns[i]);
    int64_t now_us = weir__shm_now_us(segment);
    for (unsigned i = 0; i < len; i++) {
        decide(segment, &turns[i], now_us);
        while (!turns[i].answer.allowed && !write_counter(&turns[i])) {
            read_counter(&turns[i]);
            decide(segment, &turns[i], weir__shm_now_us(segment));
        }
        allowed = allowed && turns[i].answer.allowed;
    }
    return allowed;
}

/* Charges all, or none and returns false. What check_all() decided is written as it is
 * where no counter has changed since. */
static bool charge_all(const struct weir__shm_segment *segment,
                       const struct weir_store_ask *ask,
                       struct turn *turns)
{
    unsigned order[WEIR_RULES_MAX];
    sort_by_address(turns, ask->items_len, order);
    for (unsigned i = 0; i < ask->items_len; i++) {
        struct turn *turn = &turns[order[i]];
        if (!turn->at || !write_counter(turn))
            charge(segment, turn, ask->items[order[i]].tail);
        if (turn->answer.allowed) {
            WEIR__STOP(WEIR__STOP_BETWEEN);
            continue;
        }
        while (i-- > 0) {
            undo(segment, &turns[order[i]]);
            WEIR__STOP(WEIR__STOP_UNDOING);
        }
        return false;
    }
    return true;
}

/* In a refused request a rule that would have admitted says what it has left, uncharged.
 */
static void tell_uncharged(const struct weir__shm_segment *segment, struct turn *turn)
{
    struct turn asking = *turn;
    asking.cost = 0;
    read_counter(&asking);
    decide(segment, &asking, weir__shm_now_us(segment));
    turn->answer = asking.answer;
    turn->answer.allowed = true;
    turn->answer.never = false;
    turn->answer.retry_us = 0;
    turn->answer.cost = turn->cost;
}

/* Whether a refusal may rest on a charge that another request is about to undo. */
static bool is_doubtful(const struct turn *turn)
{
    return !turn->answer.allowed && !turn->answer.never &&
           !weir__shm_lock_was_free(turn->place.stripe, turn->lock_look);
}

/* An admission takes no lock; a refusal only if somebody held it meanwhile. */
static bool
decide_lone(const struct weir__shm_segment *segment, struct turn *turn, const char *tail)
{
    charge(segment, turn, tail);
    if (is_doubtful(turn)) {
        struct weir__shm_hold hold = { .len = 0 };
        weir__shm_lock_want(&hold, turn->place.stripe);
        weir__shm_lock(segment, &hold);
        charge(segment, turn, tail);
        weir__shm_unlock(&hold);
    }
    return turn->answer.allowed;
}

static bool decide_several(const struct weir__shm_segment *segment,
                           const struct weir_store_ask *ask,
                           struct turn *turns)
{
    bool allowed = check_all(segment, turns, ask->items_len), doubtful = false;
    for (unsigned i = 0; i < ask->items_len; i++)
        doubtful = doubtful || is_doubtful(&turns[i]);
    if (allowed || doubtful) {
        struct weir__shm_hold hold = { .len = 0 };
        for (unsigned i = 0; i < ask->items_len; i++)
            weir__shm_lock_want(&hold, turns[i].place.stripe);
        weir__shm_lock(segment, &hold);
        WEIR__STOP(WEIR__STOP_LOCKED);
        allowed = (allowed || check_all(segment, turns, ask->items_len)) &&
                  charge_all(segment, ask, turns);
        WEIR__STOP(WEIR__STOP_ALL_CHARGED);
        weir__shm_unlock(&hold);
        WEIR__STOP(WEIR__STOP_UNLOCKED);
    }
    for (unsigned i = 0; i < ask->items_len && !allowed; i++)
        if (turns[i].answer.allowed)
            tell_uncharged(segment, &turns[i]);
    return allowed;
}

static enum weir_store_result shm_decide(void *self, struct weir_store_ask *ask)
{
    const struct weir__shm_segment *segment = &((struct shm *)self)->segment;
    struct turn turns[WEIR_RULES_MAX];
    for (unsigned i = 0; i < ask->items_len; i++)
        turns[i] = turn_of(segment, &ask->items[i]);

    bool allowed = ask->items_len == 1
                       ? decide_lone(segment, &turns[0], ask->items[0].tail)
                       : decide_several(segment, ask, turns);

    ask->decision.allowed = allowed;
    ask->decision.source = WEIR_SOURCE_SHM;
    ask->decision.rules_len = ask->items_len;
    for (unsigned i = 0; i < ask->items_len; i++) {
        struct weir__limit_state charged = state_of(turns[i].after, turns[i].base_us);
        ask->decision.rules[i] = turns[i].answer;
        ask->decision.rules[i].rule = ask->items[i].rule;
        ask->receipts[i] = (struct weir_receipt){
            .charged = allowed && turns[i].cost > 0,
            .cost = turns[i].cost,
            .mark = { charged.time_us, charged.value, turns[i].place.overflow },
        };
    }
    return WEIR_STORE_READY;
}

static void shm_refund(void *self, struct weir_store_ask *ask)
{
    const struct weir__shm_segment *segment = &((struct shm *)self)->segment;
    for (unsigned i = 0; i < ask->items_len; i++) {
        const struct weir_store_item *item = &ask->items[i];
        struct weir_receipt *receipt = &ask->receipts[i];
        if (!receipt->charged)
            continue;
        struct weir__shm_place place =
            receipt->mark[2]
                ? weir__shm_overflow_place(segment, item->tail)
                : weir__shm_place(segment, item->subject, item->subject_len, item->tail);
        struct weir__limit_state charged = { receipt->mark[0], receipt->mark[1] };
        give_back(segment, &place, item->compiled, receipt->cost, charged);
        receipt->charged = false;
    }
}

/* ---- its life ---------------------------------------------------------------------- */

static bool
shm_worker_start(void *self, struct weir_worker *worker, struct weir_error *ret_error)
{
    (void)worker;
    (void)ret_error;
    weir__shm_segment_touch(&((struct shm *)self)->segment);
    return true;
}

static void shm_destroy(void *self)
{
    weir__shm_segment_destroy(&((struct shm *)self)->segment);
    free(self);
}

static const struct weir_store_ops shm_ops = {
    .name = "shm",
    .worker_start = shm_worker_start,
    .decide = shm_decide,
    .refund = shm_refund,
    .destroy = shm_destroy,
};

/* From a path, NULL for anonymous memory, or, where it is one, from a descriptor. */
static struct weir_store *create(const struct weir_shm_options *options,
                                 const char *path,
                                 int fd,
                                 struct weir_error *ret_error)
{
    struct weir_store *store = malloc(sizeof *store);
    struct shm *shm = malloc(sizeof *shm);
    if (!store || !shm) {
        weir__error(ret_error, "shared memory: out of memory");
        goto free_both;
    }
    size_t entries = options ? options->entries : 0;
    bool made = fd >= 0
                    ? weir__shm_segment_adopt(entries, fd, &shm->segment, ret_error)
                    : weir__shm_segment_create(entries, path, &shm->segment, ret_error);
    if (!made)
        goto free_both;
    *store = (struct weir_store){ .ops = &shm_ops, .self = shm };
    return store;

free_both:
    free(shm);
    free(store);
    return NULL;
}

struct weir_store *weir__shm_create_at(const struct weir_shm_options *options,
                                       const char *path,
                                       struct weir_error *ret_error)
{
    return create(options, path, -1, ret_error);
}

struct weir_store *weir__shm_create_from(const struct weir_shm_options *options,
                                         int fd,
                                         struct weir_error *ret_error)
{
    struct weir_error why = { "" };
    struct weir_store *store = fd >= 0 ? create(options, NULL, fd, &why) : NULL;
    if (store)
        return store;
    store = create(options, NULL, -1, ret_error);
    if (fd >= 0) { /* only now: the new memory's descriptor is to have another number */
        weir__log(WEIR_LOG_WARNING, "the counters begin anew: %s", why.text);
        close(fd);
    }
    return store;
}

struct weir_store *weir_shm_create(const struct weir_shm_options *options,
                                   struct weir_error *ret_error)
{
    return create(options, NULL, -1, ret_error);
}

const struct weir__shm_segment *weir__shm_segment_of(const struct weir_store *store)
{
    return &((const struct shm *)store->self)->segment;
}
