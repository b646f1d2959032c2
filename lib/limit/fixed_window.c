/* Fixed window: the arithmetic alone.
 *
 * The first charge opens a window; its units count until it ends, all at once. It ends
 * one length after that charge or, with an anchor, where the clock or the calendar says.
 * Time is an argument and the state is a value: nothing here knows where counters live.
 */
#include "limit/calendar.h"
#include "limit/limit.h"
#include "limit/wide.h"

/* Where a window ends that a charge at now_us opens. */
static int64_t end_us(const struct weir__limit *limit, int64_t now_us)
{
    switch (limit->anchor) {
    case WEIR_ANCHOR_CLOCK:
        return now_us - now_us % limit->window_us + limit->window_us;
    case WEIR_ANCHOR_MONTH:
        return weir__month_end_us(now_us);
    case WEIR_ANCHOR_REQUEST:
        break;
    }
    return now_us + limit->window_us;
}

/* The window that is open at now_us, or all zero. No charge can have put an end further
 * ahead than one that opens now has it, so a later one is a clock that stepped back or a
 * rule that got shorter: without the clamp its caller would wait for the old length. */
static struct weir__limit_state open_window(const struct weir__limit *limit,
                                            struct weir__limit_state state,
                                            int64_t now_us)
{
    if (state.time_us <= now_us)
        return (struct weir__limit_state){ 0, 0 };
    int64_t latest_us = end_us(limit, now_us);
    if (state.time_us > latest_us)
        state.time_us = latest_us;
    return state;
}

void weir__fixed_window_decide(const struct weir__limit *limit,
                               struct weir__limit_state state,
                               int64_t cost,
                               int64_t now_us,
                               struct weir__limit_state *ret_state,
                               struct weir_rule_answer *ret_answer)
{
    struct weir__limit_state window = open_window(limit, state, now_us);
    bool allowed = window.value + (cost > 0 ? cost : 1) <= limit->max;
    if (allowed && cost > 0) {
        if (window.time_us == 0)
            window.time_us = end_us(limit, now_us);
        window.value += cost;
    }

    /* A max that was lowered while the window is open can leave more used than it is. */
    int64_t left = window.value < limit->max ? limit->max - window.value : 0;
    int64_t until_end_us = window.value > 0 ? window.time_us - now_us : 0;
    ret_answer->allowed = allowed;
    ret_answer->never = false;
    ret_answer->cost = cost;
    ret_answer->remaining = left;
    ret_answer->retry_us = allowed ? 0 : until_end_us;
    ret_answer->next_us = until_end_us;
    ret_answer->full_us = until_end_us;
    *ret_state = window;
}

struct weir__limit_state weir__fixed_window_refund(const struct weir__limit *limit,
                                                   struct weir__limit_state state,
                                                   int64_t cost,
                                                   struct weir__limit_state charged,
                                                   int64_t now_us)
{
    (void)limit;
    if (state.time_us != charged.time_us || state.time_us <= now_us)
        return state;
    state.value = cost < state.value ? state.value - cost : 0;
    return state;
}

unsigned weir__fixed_window_level(const struct weir__limit *limit,
                                  struct weir__limit_state state,
                                  int64_t now_us)
{
    int64_t used = open_window(limit, state, now_us).value;
    return used >= limit->max ? 15 : weir__wide_fifteenths(used, limit->max);
}
