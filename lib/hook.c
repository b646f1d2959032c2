/* Calls one hook, and sees it through its waits and offloads to a verdict.
 *
 * Knows nothing of phases or of the order of hooks (life.c), nor how a wait ends
 * (wait.c). */
#include "hook.h"

#include "answer.h"
#include "base/log.h"
#include "wait.h"

static void *slot_of(const struct weir *w, const struct weir__stage *stage)
{
    return (char *)w->slots + stage->slot_offset;
}

/* What the rules make of a verdict. */
static enum weir_verdict
checked(struct weir *w, enum weir__hook hook, enum weir_verdict verdict)
{
    static struct weir__log_kind failed;
    if ((unsigned)verdict > WEIR_WAIT) {
        weir__breach(w, WEIR_BREACH_VERDICT);
        return WEIR_FAIL;
    }
    if (verdict == WEIR_WAIT && !w->then) {
        weir__breach(w, WEIR_BREACH_WAIT_UNASKED);
        return WEIR_FAIL;
    }
    if (verdict != WEIR_WAIT && w->then) {
        weir__breach(w, WEIR_BREACH_WAIT_UNSAID);
        w->then = NULL;
        return WEIR_FAIL;
    }
    if (verdict == WEIR_FAIL)
        weir__log_limited(&failed, WEIR_LOG_ERROR, "filter %s failed", w->running->name);
    if (verdict == WEIR_DONE && hook == WEIR__HOOK_COMMIT) {
        weir__breach(w, WEIR_BREACH_COMMIT_DONE);
        return WEIR_FAIL;
    }
    if (verdict == WEIR_DONE && w->status == 0) {
        weir__breach(w, WEIR_BREACH_DONE_UNANSWERED);
        return WEIR_FAIL;
    }
    return verdict;
}

/* One call of a hook or continuation. */
static enum weir_verdict call(struct weir *w,
                              enum weir__hook hook,
                              unsigned stage,
                              weir_step_fn *fn,
                              bool first,
                              bool may_block)
{
    const struct weir__stage *its = &w->app->stages[stage];
    w->then = NULL;
    w->running = its->filter;
    if (w->lint)
        weir__lint_enter(w, hook, stage, first);
    enum weir_verdict verdict = fn(w, its->self, slot_of(w, its));
    if (w->lint)
        weir__lint_leave(w, hook, stage, may_block, verdict);
    verdict = checked(w, hook, verdict);
    w->running = NULL;
    return verdict;
}

/* Listens in, for tests of apps. */
static void tell(struct weir *w, unsigned stage, const char *hook)
{
    if (w->transport->hook)
        w->transport->hook(w, w->app->stages[stage].filter, hook);
}

static enum weir_verdict first_call(struct weir *w, enum weir__hook hook, unsigned stage)
{
    const struct weir_filter *filter = w->app->stages[stage].filter;
    bool before = hook == WEIR__HOOK_BEFORE;
    weir_step_fn *fn = before ? filter->before : filter->commit;
    if (!fn)
        return WEIR_NEXT;
    tell(w, stage, before ? "before" : "commit");
    weir__wait_forget(w);
    return call(w, hook, stage, fn, true, false);
}

static void offload_end(struct weir *w)
{
    if (w->offloaded && w->transport->offload_end)
        w->transport->offload_end(w);
    w->offloaded = false;
}

/* The offload is counted in. False: too many, the request is answered 503. */
static bool offload_begin(struct weir *w)
{
    if (w->offloaded)
        return true;
    if (w->transport->offload_begin && !w->transport->offload_begin(w))
        return false;
    w->offloaded = true;
    return true;
}

/* A thread that may block is here: the continuation is called on it. */
static enum weir_verdict offloaded(struct weir *w, enum weir__hook hook, unsigned stage)
{
    enum weir_verdict verdict = call(w, hook, stage, w->then, false, true);
    offload_end(w);
    return verdict;
}

/* Weir itself refuses: the hook has its verdict by that. In a commit the answer is
 * replaced, and the other filters still have theirs. */
static enum weir_verdict overloaded(struct weir *w, enum weir__hook hook)
{
    w->then = NULL;
    weir__answer_overloaded(w);
    return hook == WEIR__HOOK_BEFORE ? WEIR_DONE : WEIR_NEXT;
}

/* The wait of the hook, as this thread may wait. False: parked. */
static bool waited(struct weir *w, enum weir__ride ride)
{
    if (ride != WEIR__RIDE_HANDLER)
        return !weir__wait_park(w);
    weir__wait_sit(w);
    return true;
}

enum weir_verdict weir__hook_run(struct weir *w,
                                 enum weir__hook hook,
                                 unsigned stage,
                                 enum weir__ride ride,
                                 enum weir__need *ret_need)
{
    enum weir_verdict verdict;
    if (!w->then) {
        verdict = first_call(w, hook, stage);
    } else if (w->then_may_block) {
        verdict = WEIR_WAIT;
    } else {
        weir__wait_over(w);
        verdict = call(w, hook, stage, w->then, false, false);
    }
    while (verdict == WEIR_WAIT) {
        if (w->then_may_block) {
            if (!offload_begin(w))
                return overloaded(w, hook);
            if (ride == WEIR__RIDE_TURN) {
                *ret_need = WEIR__NEED_THREAD;
                return WEIR_WAIT;
            }
            verdict = offloaded(w, hook, stage);
        } else {
            if (!waited(w, ride)) {
                *ret_need = WEIR__NEED_RESUME;
                return WEIR_WAIT;
            }
            verdict = call(w, hook, stage, w->then, false, false);
        }
    }
    return verdict;
}

void weir__hook_after(struct weir *w, unsigned stage)
{
    const struct weir__stage *its = &w->app->stages[stage];
    if (!its->filter->after)
        return;
    tell(w, stage, "after");
    w->running = its->filter;
    if (w->lint)
        weir__lint_enter(w, WEIR__HOOK_AFTER, stage, true);
    its->filter->after(w, its->self, slot_of(w, its));
    if (w->lint)
        weir__lint_leave(w, WEIR__HOOK_AFTER, stage, false, WEIR_NEXT);
    w->running = NULL;
}

void weir__hook_drop(struct weir *w)
{
    if (!w->then)
        return;
    if (w->then_may_block)
        offload_end(w);
    w->then = NULL;
}
