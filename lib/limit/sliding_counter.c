/* Sliding counter: the arithmetic alone.
 *
 * Time is cut into windows of one length that begin at its multiples. Two counts are
 * kept, of the window before and of the one that is open; the estimate is the open one's
 * units and of the one before as large a share as of it is still in view, an exact
 * fraction. A request passes where the estimate and its cost are no more than max.
 *
 * The units of the window before are fewer than the microseconds of a window, so that the
 * state holds them in its time; see limit.h. Whole numbers of up to 77 bits throughout.
 */
#include "limit/limit.h"

#include <assert.h>

#include "limit/wide.h"

/* The two windows as they are at one moment. */
struct view {
    int64_t left_us;       /* of the open window, 1 to its length */
    int64_t before, units; /* of the window before, of the open one */
};

/* More than any max of a rule with this window: only a damaged state holds more. */
static int64_t most_units(const struct weir__limit *limit)
{
    int64_t length_us = limit->window_us;
    return length_us <= WEIR__COUNTER_MAX ? length_us - 1 : WEIR__COUNTER_MAX;
}

/* What the state means at now_us. Units of a window that has not begun are a clock that
 * stepped back: they are taken as the window before's, so that nobody waits longer than
 * one window for them. */
static struct view
look(const struct weir__limit *limit, struct weir__limit_state state, int64_t now_us)
{
    int64_t length_us = limit->window_us, gone_us = now_us % length_us;
    struct view view = { .left_us = length_us - gone_us };
    if (state.time_us == 0)
        return view;
    int64_t most = most_units(limit), before = state.time_us % length_us;
    int64_t begin_us = state.time_us - before - 2 * length_us;
    int64_t ahead_us = begin_us - (now_us - gone_us);
    int64_t units = state.value < most ? state.value : most;
    before = before < most ? before : most;
    if (ahead_us == 0) {
        view.before = before;
        view.units = units;
    } else if (ahead_us == -length_us) {
        view.before = units;
    } else if (ahead_us > 0) {
        view.before = before > units ? before : units;
    }
    return view;
}

static struct weir__limit_state
state_of(const struct weir__limit *limit, const struct view *view, int64_t now_us)
{
    if (view->before == 0 && view->units == 0)
        return (struct weir__limit_state){ 0, 0 };
    int64_t end_us = now_us + view->left_us;
    return (struct weir__limit_state){ end_us + limit->window_us + view->before,
                                       view->units };
}

/* The estimate, in units times the window's length. */
static weir__wide estimate(const struct weir__limit *limit, const struct view *view)
{
    return (weir__wide)view->before * view->left_us +
           (weir__wide)view->units * limit->window_us;
}

/* What is left of a window of so many units, in its last microseconds, when they count
 * for no more than most: the first such moment, as the time until its successor's end. */
static int64_t fades_us(const struct weir__limit *limit, int64_t units, int64_t most)
{
    if (units <= most)
        return limit->window_us;
    assert(units > 0);
    return weir__wide_divide((weir__wide)most * limit->window_us, units);
}

/* How long until cost units pass, 1 to max: in the open window, while the one before
 * fades, or in the next one, while the open one does. */
static int64_t
wait_us(const struct weir__limit *limit, const struct view *view, int64_t cost)
{
    int64_t most = limit->max - cost - view->units, length_us = limit->window_us;
    if (most >= 0) {
        int64_t left_us = fades_us(limit, view->before, most);
        return left_us < view->left_us ? view->left_us - left_us : 0;
    }
    return view->left_us + length_us - fades_us(limit, view->units, limit->max - cost);
}

static int64_t full_us(const struct weir__limit *limit, const struct view *view)
{
    if (view->units > 0)
        return view->left_us + limit->window_us;
    return view->before > 0 ? view->left_us : 0;
}

static int64_t remaining(const struct weir__limit *limit, const struct view *view)
{
    weir__wide left = (weir__wide)limit->max * limit->window_us - estimate(limit, view);
    return left > 0 ? weir__wide_divide(left, limit->window_us) : 0;
}

void weir__sliding_counter_decide(const struct weir__limit *limit,
                                  struct weir__limit_state state,
                                  int64_t cost,
                                  int64_t now_us,
                                  struct weir__limit_state *ret_state,
                                  struct weir_rule_answer *ret_answer)
{
    struct view view = look(limit, state, now_us);
    int64_t asked = cost > 0 ? cost : 1;
    bool allowed = asked <= limit->max &&
                   estimate(limit, &view) + (weir__wide)asked * limit->window_us <=
                       (weir__wide)limit->max * limit->window_us;
    if (allowed && cost > 0)
        view.units += cost;

    bool used = view.before > 0 || view.units > 0;
    int64_t left = remaining(limit, &view);
    ret_answer->allowed = allowed;
    ret_answer->never = false;
    ret_answer->cost = cost;
    ret_answer->remaining = left;
    ret_answer->retry_us =
        allowed || asked > limit->max ? 0 : wait_us(limit, &view, asked);
    ret_answer->next_us = used && left < limit->max ? wait_us(limit, &view, left + 1) : 0;
    ret_answer->full_us = full_us(limit, &view);
    *ret_state = state_of(limit, &view, now_us);
}

/* The units leave the window in which they were charged, while it counts. */
struct weir__limit_state weir__sliding_counter_refund(const struct weir__limit *limit,
                                                      struct weir__limit_state state,
                                                      int64_t cost,
                                                      struct weir__limit_state charged,
                                                      int64_t now_us)
{
    int64_t length_us = limit->window_us;
    int64_t window = charged.time_us / length_us, own = state.time_us / length_us;
    int64_t open = now_us / length_us + 2;
    if (own > open || window > open)
        return state;
    struct view view = look(limit, state, now_us);
    int64_t *units = window == open       ? &view.units
                     : window == open - 1 ? &view.before
                                          : NULL;
    if (!units)
        return state;
    *units = cost < *units ? *units - cost : 0;
    return state_of(limit, &view, now_us);
}

unsigned weir__sliding_counter_level(const struct weir__limit *limit,
                                     struct weir__limit_state state,
                                     int64_t now_us)
{
    struct view view = look(limit, state, now_us);
    weir__wide used = estimate(limit, &view);
    weir__wide budget = (weir__wide)limit->max * limit->window_us;
    if (used + limit->window_us > budget)
        return 15;
    return weir__wide_fifteenths(used, budget);
}
