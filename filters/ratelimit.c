/* Refuses who is over a limit, and says so in the answer.
 *
 * Whose limits and how they are counted is the policy's and the store's; this file asks,
 * turns the answer into status, fields and body, and gives back what Weir itself then did
 * not serve. It counts nothing itself. */
#include "ratelimit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/clock.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/random.h"
#include "problem.h"
#include "question.h"
#include "ratelimit_fields.h"
#include "source.h"

#define DEADLINE_US WEIR_MILLISECONDS(20)
#define DEADLINE_MAX_US WEIR_SECONDS(10)

#define JITTER_MAX_US WEIR_HOURS(1)
/* Who is refused for want of a place comes again after a second and up to so much. */
#define GUESS_JITTER_US WEIR_SECONDS(2)

struct ratelimit {
    const struct weir_ratelimit *options;
    char exposed[256]; /* Access-Control-Expose-Headers; empty: not sent */
};

struct slot {
    struct weir__question *question; /* NULL: nothing was asked, or it was given up */
    const struct weir_decision *decision;
    int64_t decided_us; /* by the wall clock; only where a field shows it */
    int64_t later_us;   /* what its refusal adds to times */
};

static bool is_on(enum weir_switch option, bool by_default)
{
    return option == WEIR_SWITCH_DEFAULT ? by_default : option == WEIR_ON;
}

/* ---- start ------------------------------------------------------------------------- */

static bool check_switches(const struct weir_ratelimit *ratelimit,
                           struct weir_error *ret_error)
{
    const struct {
        const char *name;
        enum weir_switch value;
    } switches[] = {
        { "retry_after", ratelimit->retry_after },
        { "ratelimit", ratelimit->ratelimit },
        { "x_ratelimit", ratelimit->x_ratelimit },
        { "ratelimit_draft_06", ratelimit->ratelimit_draft_06 },
        { "source", ratelimit->source },
        { "expose", ratelimit->expose },
    };
    for (unsigned i = 0; i < sizeof switches / sizeof switches[0]; i++)
        if ((unsigned)switches[i].value > WEIR_OFF)
            return weir__error(ret_error,
                               "ratelimit: %s: %d is no value of enum weir_switch",
                               switches[i].name,
                               (int)switches[i].value);
    if (is_on(ratelimit->ratelimit_draft_06, false) && is_on(ratelimit->ratelimit, true))
        return weir__error(ret_error,
                           "ratelimit: ratelimit_draft_06 is on beside ratelimit, and "
                           "RateLimit-Policy can't have both forms: ratelimit has to be "
                           "WEIR_OFF");
    return true;
}

static bool check_times(const struct weir_ratelimit *ratelimit,
                        struct weir_error *ret_error)
{
    if (ratelimit->deadline_us < 0 || ratelimit->deadline_us > DEADLINE_MAX_US)
        return weir__error(ret_error,
                           "ratelimit: deadline_us is %lld, must be 1 to %lld",
                           (long long)ratelimit->deadline_us,
                           (long long)DEADLINE_MAX_US);
    if (ratelimit->jitter_us < 0 || ratelimit->jitter_us > JITTER_MAX_US)
        return weir__error(ret_error,
                           "ratelimit: jitter_us is %lld, must be 0 to %lld",
                           (long long)ratelimit->jitter_us,
                           (long long)JITTER_MAX_US);
    return true;
}

static void expose(struct ratelimit *self, bool is_sent, const char *names)
{
    if (!is_sent)
        return;
    size_t len = strlen(self->exposed);
    snprintf(self->exposed + len,
             sizeof self->exposed - len,
             "%s%s",
             len > 0 ? ", " : "",
             names);
}

/* All names that can follow, in the order of the options. */
static void expose_all(struct ratelimit *self)
{
    const struct weir_ratelimit *options = self->options;
    bool draft_11 = is_on(options->ratelimit, true);
    bool draft_06 = is_on(options->ratelimit_draft_06, false);
    expose(self, is_on(options->retry_after, true), "Retry-After");
    expose(self, draft_11, "RateLimit");
    expose(self,
           is_on(options->x_ratelimit, false),
           "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset");
    expose(self, draft_06, "RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset");
    expose(self, draft_11 || draft_06, "RateLimit-Policy");
    expose(self, is_on(options->source, false), "Weir-Source");
}

static bool start(const struct weir_app *app,
                  const void *options,
                  void **ret_self,
                  struct weir_error *ret_error)
{
    const struct weir_ratelimit *ratelimit = options;
    (void)app;
    if ((unsigned)ratelimit->format > WEIR_FORMAT_BOTH)
        return weir__error(ret_error, "ratelimit: no format %d", (int)ratelimit->format);
    if (!check_switches(ratelimit, ret_error) || !check_times(ratelimit, ret_error))
        return false;
    struct ratelimit *self = calloc(1, sizeof *self);
    if (!self)
        return weir__error(ret_error, "ratelimit: out of memory");
    self->options = ratelimit;
    if (is_on(ratelimit->expose, false))
        expose_all(self);
    *ret_self = self;
    return true;
}

/* ---- fields ------------------------------------------------------------------------ */

static void set_number(struct weir *w, const char *name, int64_t number)
{
    char digits[WEIR__DECIMAL_BYTES];
    weir__decimal((uint64_t)number, digits);
    weir_set_header(w, name, digits);
}

static void
set_trios(struct weir *w, const struct weir_ratelimit *options, const struct slot *slot)
{
    struct weir__ratelimit_trio trio;
    if (!weir__ratelimit_trio(slot->decision, slot->later_us, &trio))
        return;
    if (is_on(options->x_ratelimit, false)) {
        set_number(w, "X-RateLimit-Limit", trio.limit);
        set_number(w, "X-RateLimit-Remaining", trio.remaining);
        set_number(
            w, "X-RateLimit-Reset", weir__seconds_up(slot->decided_us + trio.reset_us));
    }
    if (is_on(options->ratelimit_draft_06, false)) {
        set_number(w, "RateLimit-Limit", trio.limit);
        set_number(w, "RateLimit-Remaining", trio.remaining);
        set_number(w, "RateLimit-Reset", weir__seconds_up(trio.reset_us));
    }
}

/* No fields on a redirect: clients would wait before they follow it. */
static void
set_fields(struct weir *w, const struct weir_ratelimit *options, const struct slot *slot)
{
    char text[WEIR__RATELIMIT_FIELD_BYTES];
    bool draft_06 = is_on(options->ratelimit_draft_06, false);
    bool redirect = w->status >= 300 && w->status < 400;
    if (is_on(options->ratelimit, true) && !redirect) {
        if (weir__ratelimit_policy(slot->decision, text))
            weir_set_header(w, "RateLimit-Policy", text);
        if (weir__ratelimit_state(slot->decision, slot->later_us, text))
            weir_set_header(w, "RateLimit", text);
    }
    if (draft_06 && !redirect && weir__ratelimit_policy_draft_06(slot->decision, text))
        weir_set_header(w, "RateLimit-Policy", text);
    if ((draft_06 || is_on(options->x_ratelimit, false)) && !redirect)
        set_trios(w, options, slot);
    if (is_on(options->source, false))
        weir_set_header(w, "Weir-Source", weir__source_name(slot->decision->source));
}

/* ---- the answer -------------------------------------------------------------------- */

/* Both ways to refuse every request. */
static bool is_block(const struct weir_rule *rule)
{
    return rule->max == WEIR_BLOCK || rule->max == 0;
}

/* The stable word for a refusal. A rule that blocks has no cost that would fit. */
static const char *code_of(const struct weir_decision *decision)
{
    if (decision->source == WEIR_SOURCE_DENY)
        return "StoreUnavailable";
    for (unsigned i = 0; i < decision->rules_len; i++) {
        const struct weir_rule_answer *answer = &decision->rules[i];
        if (!answer->allowed && answer->never && !is_block(answer->rule))
            return "CostExceedsLimit";
    }
    return "TooManyRequests";
}

static enum weir_verdict
refuse(struct weir *w, const struct weir_ratelimit *options, const struct slot *slot)
{
    const struct weir_decision *decision = slot->decision;
    int status = decision->source == WEIR_SOURCE_DENY ? 503 : 429;
    int64_t retry_after = weir__retry_after(decision, slot->later_us);
    const char *code = code_of(decision);
    weir_set_status(w, status);
    if (retry_after > 0 && is_on(options->retry_after, true))
        set_number(w, "Retry-After", retry_after);
    weir_set_header(w, "Cache-Control", "no-store");
    w->no_store = true;
    set_fields(w, options, slot);
    if (options->refusal)
        options->refusal(w, status, code, decision, retry_after);
    else if (!weir__problem_refusal(
                 w, options->format, status, code, decision, retry_after))
        return WEIR_FAIL;
    return WEIR_DONE;
}

static int64_t draw_jitter_us(const struct weir_ratelimit *options,
                              const struct weir_decision *decision)
{
    int64_t most_us = options->jitter_us;
    if (most_us == 0 && weir__retry_is_a_guess(decision))
        most_us = GUESS_JITTER_US;
    return (int64_t)weir__random_below((uint64_t)most_us + 1);
}

static enum weir_verdict decided(struct weir *w,
                                 const struct weir_ratelimit *options,
                                 struct slot *slot,
                                 const struct weir_decision *decision)
{
    slot->decision = decision;
    w->decision = decision;
    if (is_on(options->x_ratelimit, false))
        slot->decided_us = weir__clock_wall_us();
    if (decision->allowed)
        return WEIR_NEXT;
    slot->later_us = draw_jitter_us(options, decision);
    return refuse(w, options, slot);
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
    const struct ratelimit *ratelimit = self;
    struct slot *slot = memory;
    switch (weir__question_look(slot->question, weir_timed_out(w))) {
    case WEIR__QUESTION_OPEN:
        return weir_wait(w, woken, weir__question_left_us(slot->question));
    case WEIR__QUESTION_ANSWERED:
        return answered(w, ratelimit->options, slot);
    case WEIR__QUESTION_LOST:
        slot->question = NULL;
        break;
    }
    return unavailable(w, ratelimit->options, slot);
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
    const struct weir_ratelimit *options = ((const struct ratelimit *)self)->options;
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
    const struct ratelimit *ratelimit = self;
    const struct slot *slot = memory;
    if (slot->decision)
        set_fields(w, ratelimit->options, slot);
    if (ratelimit->exposed[0] && (w->status < 300 || w->status >= 400))
        weir_add_header(w, "Access-Control-Expose-Headers", ratelimit->exposed);
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
    .stop = free,
    .before = before,
    .commit = commit,
    .after = after,
};
