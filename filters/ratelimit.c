/* Refuses who is over a limit, and says so in the answer.
 *
 * Whose limits and how they are counted is the policy's and the store's; this file asks,
 * turns the answer into status, fields and body, and gives back what Weir itself then did
 * not serve. It counts nothing itself. */
#include "ratelimit.h"

#include <string.h>

#include "app.h"
#include "base/error.h"
#include "problem.h"
#include "question.h"
#include "ratelimit_fields.h"
#include "source.h"

#define DEADLINE_US WEIR_MILLISECONDS(20)
#define DEADLINE_MAX_US WEIR_SECONDS(10)

struct slot {
    struct weir__question *question; /* NULL: nothing was asked, or it was given up */
    const struct weir_decision *decision;
};

static bool start(const struct weir_app *app,
                  const void *options,
                  void **ret_self,
                  struct weir_error *ret_error)
{
    const struct weir_ratelimit *ratelimit = options;
    (void)app, (void)ret_self;
    if (ratelimit->deadline_us < 0 || ratelimit->deadline_us > DEADLINE_MAX_US)
        return weir__error(ret_error,
                           "ratelimit: deadline_us is %lld, must be 1 to %lld",
                           (long long)ratelimit->deadline_us,
                           (long long)DEADLINE_MAX_US);
    if ((unsigned)ratelimit->format > WEIR_FORMAT_BOTH)
        return weir__error(ret_error, "ratelimit: no format %d", (int)ratelimit->format);
    return true;
}

static bool is_on(enum weir_switch option, bool by_default)
{
    return option == WEIR_SWITCH_DEFAULT ? by_default : option == WEIR_ON;
}

/* No fields on a redirect: clients would wait before they follow it. */
static void set_fields(struct weir *w,
                       const struct weir_ratelimit *options,
                       const struct weir_decision *decision)
{
    char text[WEIR__RATELIMIT_FIELD_BYTES];
    bool redirect = w->status >= 300 && w->status < 400;
    if (is_on(options->ratelimit, true) && !redirect) {
        if (weir__ratelimit_policy(decision, text))
            weir_set_header(w, "RateLimit-Policy", text);
        if (weir__ratelimit_state(decision, text))
            weir_set_header(w, "RateLimit", text);
    }
    if (is_on(options->source, false))
        weir_set_header(w, "Weir-Source", weir__source_name(decision->source));
}

/* The stable word for a refusal. A rule that blocks has no cost that would fit. */
static const char *code_of(const struct weir_decision *decision)
{
    if (decision->source == WEIR_SOURCE_DENY)
        return "StoreUnavailable";
    for (unsigned i = 0; i < decision->rules_len; i++) {
        const struct weir_rule_answer *answer = &decision->rules[i];
        if (!answer->allowed && answer->never && answer->rule->max != WEIR_BLOCK)
            return "CostExceedsLimit";
    }
    return "TooManyRequests";
}

static enum weir_verdict refuse(struct weir *w,
                                const struct weir_ratelimit *options,
                                const struct weir_decision *decision)
{
    int status = decision->source == WEIR_SOURCE_DENY ? 503 : 429;
    int64_t retry_after = weir__retry_after(decision);
    const char *code = code_of(decision);
    weir_set_status(w, status);
    if (retry_after > 0 && is_on(options->retry_after, true)) {
        const char *seconds = weir_printf(w, "%lld", (long long)retry_after);
        if (seconds)
            weir_set_header(w, "Retry-After", seconds);
    }
    weir_set_header(w, "Cache-Control", "no-store");
    w->no_store = true;
    set_fields(w, options, decision);
    if (options->refusal)
        options->refusal(w, status, code, decision, retry_after);
    else if (!weir__problem_refusal(
                 w, options->format, status, code, decision, retry_after))
        return WEIR_FAIL;
    return WEIR_DONE;
}

static enum weir_verdict decided(struct weir *w,
                                 const struct weir_ratelimit *options,
                                 struct slot *slot,
                                 const struct weir_decision *decision)
{
    slot->decision = decision;
    w->decision = decision;
    return decision->allowed ? WEIR_NEXT : refuse(w, options, decision);
}

static enum weir_verdict
unavailable(struct weir *w, const struct weir_ratelimit *options, struct slot *slot);

/* A decision outlives its question, for the hooks that come after ours. */
static enum weir_verdict
answered(struct weir *w, const struct weir_ratelimit *options, struct slot *slot)
{
    if (slot->question->ask.result != WEIR_STORE_READY)
        return unavailable(w, options, slot);
    struct weir_decision *decision = &slot->question->ask.decision;
    if (slot->question->on_heap) {
        decision = weir_alloc(w, sizeof *decision);
        if (!decision)
            return WEIR_FAIL;
        *decision = slot->question->ask.decision;
    }
    return decided(w, options, slot, decision);
}

/* Nobody could say: the rules' own word holds. Where they differ, a refusal wins, and
 * nothing is charged. */
static enum weir_verdict
unavailable(struct weir *w, const struct weir_ratelimit *options, struct slot *slot)
{
    const struct weir__policy_entry *entry =
        weir__policy_find(w->app->policy, w->endpoint_index);
    struct weir_decision *decision = weir_zalloc(w, sizeof *decision);
    bool local = false;
    if (!decision)
        return WEIR_FAIL;
    decision->allowed = true;
    decision->source = WEIR_SOURCE_ALLOW;
    for (unsigned i = 0; i < entry->rules_len; i++) {
        enum weir_on_store_error policy = entry->rules[i]->limit.rule->on_store_error;
        local = local || policy == WEIR_LOCAL;
        if (policy == WEIR_DENY) {
            decision->allowed = false;
            decision->source = WEIR_SOURCE_DENY;
        }
    }
    weir__question_end(slot->question, false);
    slot->question = NULL;
    if (!decision->allowed || !local || !w->app->fallback)
        return decided(w, options, slot, decision);
    slot->question =
        weir__question_create(w, w->app->fallback, WEIR__ABOUT_LOCAL, DEADLINE_US);
    if (!slot->question)
        return WEIR_FAIL;
    if (weir__question_put(slot->question) != WEIR_STORE_READY)
        return decided(w, options, slot, decision);
    slot->question->ask.decision.source = WEIR_SOURCE_LOCAL;
    return answered(w, options, slot);
}

/* The store has answered, or its time is over. */
static enum weir_verdict woken(struct weir *w, const void *self, void *memory)
{
    struct slot *slot = memory;
    switch (weir__question_look(slot->question, weir_timed_out(w))) {
    case WEIR__QUESTION_OPEN:
        return weir_wait(w, woken, weir__question_left_us(slot->question));
    case WEIR__QUESTION_ANSWERED:
        return answered(w, self, slot);
    case WEIR__QUESTION_LOST:
        slot->question = NULL;
        break;
    }
    return unavailable(w, self, slot);
}

static int64_t deadline_of(const struct weir *w, const struct weir_ratelimit *options)
{
    int64_t default_us = (int64_t)w->app->options->redis_timeout_ms * 1000;
    if (options->deadline_us)
        return options->deadline_us;
    return default_us ? default_us : DEADLINE_US;
}

static enum weir_verdict before(struct weir *w, const void *self, void *memory)
{
    const struct weir_ratelimit *options = self;
    struct slot *slot = memory;
    int64_t deadline_us = deadline_of(w, options);
    if (w->refused)
        return decided(w, options, slot, w->refused);
    if (weir__policy_find(w->app->policy, w->endpoint_index)->rules_len == 0)
        return WEIR_NEXT;
    slot->question =
        weir__question_create(w, w->app->store, WEIR__ABOUT_ALL, deadline_us);
    if (!slot->question)
        return WEIR_FAIL;
    if (weir__question_put(slot->question) == WEIR_STORE_PENDING)
        return weir_wait(w, woken, deadline_us);
    return answered(w, options, slot);
}

static enum weir_verdict commit(struct weir *w, const void *self, void *memory)
{
    const struct slot *slot = memory;
    if (slot->decision)
        set_fields(w, self, slot->decision);
    return WEIR_NEXT;
}

static void after(struct weir *w, const void *self, void *memory)
{
    struct slot *slot = memory;
    (void)self;
    weir__question_end(slot->question, w->unserved);
    slot->question = NULL;
}

const struct weir_filter weir_filter_ratelimit = {
    .name = "ratelimit",
    .provides = "ratelimit",
    .needs = "caller",
    .options_size = sizeof(struct weir_ratelimit),
    .slot_size = sizeof(struct slot),
    .start = start,
    .before = before,
    .commit = commit,
    .after = after,
};
