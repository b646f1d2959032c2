/* Watches whether filters and handlers keep the rules of the chain.
 *
 * A breach is a bug in somebody's code: it is counted and logged (at most once a second
 * for each kind), never a crash unless the lint filter was told to abort. What is found
 * without cost is reported always; the rest only for requests that lint is attached to.
 */
#include "lint_watch.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"

#define CANARY_BYTE 0xc5

static const char *const texts[WEIR_BREACHES] = {
    [WEIR_BREACH_DONE_UNANSWERED] = "said DONE without setting a status",
    [WEIR_BREACH_NEXT_ANSWERED] = "said NEXT after it had begun an answer",
    [WEIR_BREACH_VERDICT] = "said something that is no verdict",
    [WEIR_BREACH_COMMIT_DONE] = "said DONE in its commit",
    [WEIR_BREACH_WAIT_UNASKED] = "said WAIT without weir_wait() or weir_offload()",
    [WEIR_BREACH_WAIT_UNSAID] =
        "called weir_wait() or weir_offload() and didn't return it",
    [WEIR_BREACH_WAIT_ENDLESS] = "called weir_wait() without a time or a continuation",
    [WEIR_BREACH_WAIT_OUTSIDE] = "called weir_wait() or weir_offload() outside a hook",
    [WEIR_BREACH_STATUS] = "gave a status outside 200 to 599",
    [WEIR_BREACH_HEADER] = "set a header that is malformed or Weir's own",
    [WEIR_BREACH_LATE] = "changed an answer that was complete",
    [WEIR_BREACH_BODY] = "gave a body to a status that has none",
    [WEIR_BREACH_LENGTH] = "answered with a Content-Length that is not the body's",
    [WEIR_BREACH_SLOT] = "wrote past the end of its slot",
    [WEIR_BREACH_CONCURRENT] = "ran while another hook of the same request did",
    [WEIR_BREACH_ORDER] = "ran out of order, or twice",
    [WEIR_BREACH_BLOCKED] = "kept its thread too long without weir_offload()",
};

static atomic_ulong counts[WEIR_BREACHES];
static struct weir__log_kind kinds[WEIR_BREACHES];

const char *weir_breach_text(enum weir_breach breach)
{
    return (unsigned)breach < WEIR_BREACHES ? texts[breach] : "broke no known rule";
}

unsigned long weir_breach_count(enum weir_breach breach)
{
    return (unsigned)breach < WEIR_BREACHES ? atomic_load(&counts[breach]) : 0;
}

void weir__breach(struct weir *w, enum weir_breach breach)
{
    const char *filter = w->running ? w->running->name : NULL;
    atomic_fetch_add(&counts[breach], 1);
    if (filter)
        weir__log_limited(
            &kinds[breach], WEIR_LOG_ERROR, "filter %s %s", filter, texts[breach]);
    else
        weir__log_limited(&kinds[breach],
                          WEIR_LOG_ERROR,
                          "handler of %s %s",
                          w->endpoint ? w->endpoint->pattern : "no endpoint",
                          texts[breach]);
    const struct weir__lint_config *config = w->lint ? w->lint->config : NULL;
    if (config && config->report)
        config->report(config->arg, filter, breach);
    if (config && config->abort)
        abort();
}

static unsigned char *canary(const struct weir *w, unsigned stage)
{
    const struct weir__stage *its = &w->app->stages[stage];
    return (unsigned char *)w->slots + its->slot_offset + its->filter->slot_size;
}

void weir__lint_attach(struct weir *w,
                       struct weir__lint *state,
                       const struct weir__lint_config *config)
{
    state->config = config;
    state->since_us = weir__clock_now_us();
    /* The hook that attaches is running, and is left like any other. */
    atomic_store(&state->inside, 1);
    for (unsigned i = 0; i < w->app->stages_len; i++)
        memset(canary(w, i), CANARY_BYTE, WEIR__CANARY_BYTES);
    w->lint = state;
}

/* commit and after run from the last filter entered to the first, each once. */
static bool in_order(unsigned *last, unsigned entered, unsigned place)
{
    bool fits = place <= entered && (*last == 0 || place < *last);
    *last = place;
    return fits;
}

void weir__lint_enter(struct weir *w, enum weir__hook hook, unsigned stage, bool first)
{
    struct weir__lint *lint = w->lint;
    if (atomic_fetch_add(&lint->inside, 1) > 0)
        weir__breach(w, WEIR_BREACH_CONCURRENT);
    unsigned place = stage + 1;
    if (first && hook == WEIR__HOOK_COMMIT &&
        !in_order(&lint->last_commit, w->entered, place))
        weir__breach(w, WEIR_BREACH_ORDER);
    if (first && hook == WEIR__HOOK_AFTER &&
        !in_order(&lint->last_after, w->entered, place))
        weir__breach(w, WEIR_BREACH_ORDER);
    lint->status = w->status;
    lint->out_bytes = w->out.len;
    lint->since_us = weir__clock_now_us();
}

static bool canary_whole(const struct weir *w, unsigned stage)
{
    const unsigned char *bytes = canary(w, stage);
    for (unsigned i = 0; i < WEIR__CANARY_BYTES; i++)
        if (bytes[i] != CANARY_BYTE)
            return false;
    return true;
}

void weir__lint_leave(struct weir *w,
                      enum weir__hook hook,
                      unsigned stage,
                      bool may_block,
                      enum weir_verdict verdict)
{
    struct weir__lint *lint = w->lint;
    if (!may_block && weir__clock_now_us() - lint->since_us > lint->config->block_us)
        weir__breach(w, WEIR_BREACH_BLOCKED);
    if (!canary_whole(w, stage)) {
        weir__breach(w, WEIR_BREACH_SLOT);
        memset(canary(w, stage), CANARY_BYTE, WEIR__CANARY_BYTES);
    }
    if (hook == WEIR__HOOK_BEFORE && verdict == WEIR_NEXT &&
        (w->status != lint->status || w->out.len != lint->out_bytes))
        weir__breach(w, WEIR_BREACH_NEXT_ANSWERED);
    atomic_fetch_sub(&lint->inside, 1);
}

/* The number of the head's Content-Length line; -1 where there is none. */
static long long declared_length(const char *head, size_t len)
{
    static const char name[] = "\nContent-Length: ";
    const size_t name_len = sizeof name - 1;
    for (size_t i = 0; i + name_len < len; i++)
        if (strncasecmp(head + i, name, name_len) == 0)
            return strtoll(head + i + name_len, NULL, 10);
    return -1;
}

void weir__lint_answer(struct weir *w)
{
    if (w->head && w->out.len == 0)
        return; /* the length is that of the body which a GET has */
    long long declared = declared_length(w->head_text, w->head_len);
    if (declared >= 0 && (unsigned long long)declared != w->sent_bytes + w->out.len)
        weir__breach(w, WEIR_BREACH_LENGTH);
}
