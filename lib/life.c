/* Moves one request through its life: an index and a verdict, no recursion.
 *
 * Decides the order of hooks and what stands for an answer when something goes wrong. It
 * knows nothing of sockets, never waits itself (hook.c, wait.c), and once a request is
 * parked or needs a transport it leaves it alone. */
#include "life.h"

#include <stddef.h>
#include <string.h>

#include "answer.h"
#include "fcgx.h"
#include "hook.h"
#include "line.h"
#include "lint_watch.h"
#include "response.h"
#include "router.h"
#include "wait.h"

#define OUT_KEEP_BYTES ((size_t)16 * 1024)
#define STATUS_GONE 499 /* the client closed the request: only hooks and logs see it */

void weir__life_init(struct weir *w,
                     const struct weir__app *app,
                     struct weir_worker *worker,
                     const struct weir__transport_ops *transport,
                     void *connection)
{
    /* The atomic fields stand behind all others, since a late time-out of the handle's
     * last request may still look at them; out and the arena keep their memory. */
    struct weir__arena arena = w->arena;
    struct weir__buf out = w->out;
    memset(w, 0, offsetof(struct weir, wait_word));
    w->arena = arena;
    w->out = out;
    weir__arena_reset(&w->arena);
    weir__buf_reset(&w->out, OUT_KEEP_BYTES);
    weir__wait_init(w);
    atomic_store(&w->gone, false);
    atomic_store(&w->dropped, false);
    w->app = app;
    w->worker = worker;
    w->transport = transport;
    w->connection = connection;
    w->method = w->path = w->query = w->body = "";
    w->content_length = w->body_length = -1;
    w->endpoint_index = WEIR__ENDPOINT_UNMATCHED;
}

/* An answer of Weir's own that still goes through the chain. */
static void route_to(struct weir *w, weir_handler_fn *handler)
{
    w->handler = handler;
    w->nonblocking = true;
    w->alone = false;
}

static void route(struct weir *w)
{
    size_t endpoint;
    switch (weir__router_find(w->app->router,
                              w->method,
                              w->path,
                              &w->arena,
                              &endpoint,
                              w->captures,
                              &w->captures_len,
                              &w->allow)) {
    case WEIR__ROUTE_FOUND:
        w->endpoint_index = endpoint;
        w->endpoint = &w->app->declared->endpoints[endpoint];
        w->handler = w->endpoint->fcgx ? weir__fcgx_handle : w->endpoint->handler;
        w->alone = w->endpoint->fcgx && !w->endpoint->parallel;
        w->nonblocking = w->endpoint->nonblocking;
        break;
    case WEIR__ROUTE_NO_PATH:
        route_to(w, weir__answer_not_found);
        break;
    case WEIR__ROUTE_NO_METHOD:
        route_to(w,
                 strcmp(w->method, "OPTIONS") == 0 ? weir__answer_options
                                                   : weir__answer_not_allowed);
        break;
    }
    /* An authorizer stands before somebody else's paths: it says no only where a filter
     * did, and the body belongs to the app behind it. */
    if (w->authorizer)
        route_to(w, weir__answer_authorized);
}

void weir__life_begin(struct weir *w)
{
    w->phase = WEIR__PHASE_BEFORE;
    const char *detail = NULL;
    if (weir__request_parse(w, &detail)) {
        route(w);
    } else {
        w->refusal = (struct weir__refusal){ 400, "BadRequest", detail };
        route_to(w, weir__answer_refusal);
    }
    w->slots = weir__arena_zalloc(&w->arena, w->app->slots_bytes);
    if (!w->slots)
        weir__life_abandon(w, 431, "HeadersTooLarge", NULL);
}

static void to_commit(struct weir *w)
{
    w->phase = WEIR__PHASE_COMMIT;
    w->stage = w->entered;
}

/* What stands in out now is the rest of the body. */
static void to_send(struct weir *w)
{
    if (w->head || weir__status_is_bodiless(w->status))
        w->out.len = 0;
    w->sent_bytes += w->out.len;
    w->phase = WEIR__PHASE_SEND;
}

/* Answers what abandon() left, in place of all that was begun. */
static void take_refusal(struct weir *w)
{
    w->abandoned = false;
    bool in_hook = w->then != NULL;
    weir__hook_drop(w);
    weir__wait_over(w);
    weir__line_leave(w);
    if (w->head_text) {
        w->torn = true;
        to_send(w);
        return;
    }
    weir__answer_refusal(w);
    if (w->phase != WEIR__PHASE_COMMIT)
        to_commit(w);
    else if (in_hook)
        w->stage--; /* the hook that waited has had its call */
}

void weir__life_abandon(struct weir *w, int status, const char *code, const char *detail)
{
    if (w->phase >= WEIR__PHASE_SEND)
        return;
    w->refusal = (struct weir__refusal){ status, code, detail };
    w->abandoned = true;
    /* A 400 is the client's own doing: were it given back, a malformed request would be a
     * free one. */
    w->unserved = !w->served && status != 400;
}

/* The hooks on the way in. False: parked, or a thread is needed. */
static bool run_before(struct weir *w, enum weir__ride ride, enum weir__need *ret_need)
{
    for (; w->stage < w->app->stages_len; w->stage++) {
        w->entered = w->stage + 1;
        enum weir_verdict verdict =
            weir__hook_run(w, WEIR__HOOK_BEFORE, w->stage, ride, ret_need);
        if (verdict == WEIR_WAIT)
            return false;
        if (verdict == WEIR_FAIL)
            weir__answer_internal_error(w);
        if (verdict != WEIR_NEXT) {
            to_commit(w);
            return true;
        }
    }
    w->phase = WEIR__PHASE_HANDLER;
    if (!w->endpoint || w->authorizer)
        return true;
    w->phase = WEIR__PHASE_BODY;
    *ret_need = WEIR__NEED_BODY;
    return false;
}

/* What a handler's number means before anything has left. */
static void take_status(struct weir *w, int status)
{
    if (status == 0)
        status = w->status ? w->status : 200;
    if (status < 200 || status > 599) {
        weir__breach(w, WEIR_BREACH_STATUS);
        weir__answer_internal_error(w);
    } else {
        w->status = status;
    }
    to_commit(w);
}

/* The handler has returned after its head left: too late for another status. */
static void take_late_status(struct weir *w, int status)
{
    to_send(w);
    if (w->sealed || status == 0 || status == w->status)
        return;
    weir__breach(w, WEIR_BREACH_LATE);
    w->torn = status >= 500;
}

/* False: a thread is needed, or it is parked until its turn comes. */
static bool run_handler(struct weir *w, enum weir__ride ride, enum weir__need *ret_need)
{
    if (atomic_load(&w->gone)) {
        weir__line_leave(w);
        weir__response_reset(w);
        w->status = STATUS_GONE;
        to_commit(w);
        return true;
    }
    if (w->alone && !weir__line_enter(w)) {
        *ret_need = WEIR__NEED_RESUME;
        return false;
    }
    if (!w->nonblocking && ride == WEIR__RIDE_TURN) {
        *ret_need = WEIR__NEED_THREAD;
        return false;
    }
    w->phase = WEIR__PHASE_HANDLER;
    w->served = w->endpoint != NULL;
    w->in_handler = true;
    int status = w->handler(w);
    w->in_handler = false;
    weir__line_leave(w);
    if (atomic_load(&w->dropped)) {
        weir__response_reset(w);
        w->status = 504;
        to_send(w);
    } else if (w->head_text) {
        take_late_status(w, status);
    } else {
        take_status(w, status);
    }
    return true;
}

/* The hooks before the first byte, from the last filter entered to the first. False:
 * parked, or a thread is needed. */
static bool run_commit(struct weir *w, enum weir__ride ride, enum weir__need *ret_need)
{
    for (; w->stage > 0; w->stage--) {
        enum weir_verdict verdict =
            weir__hook_run(w, WEIR__HOOK_COMMIT, w->stage - 1, ride, ret_need);
        if (verdict == WEIR_WAIT)
            return false;
        if (verdict == WEIR_FAIL)
            weir__answer_internal_error(w);
    }
    return true;
}

/* The answer is whole: its head is built. */
static void finish_answer(struct weir *w)
{
    if (weir__status_is_bodiless(w->status) && w->out.len > 0) {
        weir__breach(w, WEIR_BREACH_BODY);
        w->out.len = 0;
    }
    if (w->no_store)
        weir_set_header(w, "Cache-Control", "no-store");
    if (!weir__response_build_head(w, true))
        weir__answer_last_resort(w);
    if (w->lint)
        weir__lint_answer(w);
}

enum weir__need weir__life_run(struct weir *w, bool may_block)
{
    enum weir__ride ride = may_block ? WEIR__RIDE_THREAD : WEIR__RIDE_TURN;
    enum weir__need need = WEIR__NEED_SEND;
    for (;;) {
        if (w->abandoned)
            take_refusal(w);
        switch (w->phase) {
        case WEIR__PHASE_BEFORE:
            if (!run_before(w, ride, &need))
                return need;
            break;
        case WEIR__PHASE_BODY:
            w->phase = WEIR__PHASE_HANDLER;
            break;
        case WEIR__PHASE_HANDLER:
            if (!run_handler(w, ride, &need))
                return need;
            break;
        case WEIR__PHASE_COMMIT:
            if (!run_commit(w, ride, &need))
                return need;
            finish_answer(w);
            to_send(w);
            break;
        case WEIR__PHASE_READ: /* only run once it is begun or abandoned */
        case WEIR__PHASE_SEND:
        case WEIR__PHASE_OVER:
            return WEIR__NEED_SEND;
        }
    }
}

bool weir__life_commit_now(struct weir *w)
{
    if (w->head_text)
        return !w->sealed;
    if (atomic_load(&w->gone) || atomic_load(&w->dropped))
        return false;
    enum weir__need need;
    if (w->status == 0)
        w->status = 200;
    w->in_handler = false; /* a hook's output doesn't leave by itself */
    to_commit(w);
    run_commit(w, WEIR__RIDE_HANDLER, &need);
    /* A hook that failed or an overload has put another answer in place of the
     * handler's, and that one is whole. */
    w->sealed = w->replaced;
    if (w->sealed) {
        finish_answer(w);
    } else if (!weir__response_build_head(w, false)) {
        weir__answer_last_resort(w);
        w->sealed = true;
    }
    w->phase = WEIR__PHASE_HANDLER;
    w->in_handler = true;
    return !w->sealed;
}

void weir__life_end(struct weir *w)
{
    if (w->phase == WEIR__PHASE_OVER)
        return;
    weir__hook_drop(w);
    weir__line_leave(w);
    weir__wait_over(w);
    for (unsigned stage = w->entered; stage > 0; stage--)
        weir__hook_after(w, stage - 1);
    w->phase = WEIR__PHASE_OVER;
    weir__request_finish(w);
}
