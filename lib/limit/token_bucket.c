/* Token bucket by the generic cell rate algorithm in virtual scheduling (ITU-T I.371,
 * annex A): the arithmetic alone, exact for every rate.
 *
 * A bucket's only state is its theoretical arrival time, the moment at which it is full
 * again. With n units a period of p microseconds (reduced), one unit is p/n microseconds,
 * so that all times are counted here in 1/n of a microsecond and stay whole. They need 96
 * bits at most. Nothing rounds but an answer's times, up, and its units, down. */
#include "limit/limit.h"
#include "limit/wide.h"

typedef weir__wide fine_time; /* 1/n microseconds */

static fine_time fine(const struct weir__limit *limit, int64_t us)
{
    return (fine_time)us * limit->units;
}

/* Whole microseconds, rounded up; 0 for what is over. */
static int64_t ceil_us(const struct weir__limit *limit, fine_time span)
{
    return span <= 0 ? 0 : weir__wide_divide(span + limit->units - 1, limit->units);
}

/* How long an empty bucket takes to fill. */
static fine_time capacity(const struct weir__limit *limit)
{
    return (fine_time)limit->max * limit->period_us;
}

/* The time until the bucket is full: what is missing in it, as time. No charge can have
 * put it further ahead than the capacity: more is a clock that stepped back or a rule
 * that changed. A fraction of another rate that this one can't hold counts as a whole
 * microsecond, so that no promise comes early. */
static fine_time
debt(const struct weir__limit *limit, struct weir__limit_state state, int64_t now_us)
{
    int64_t fraction = state.value < limit->units ? state.value : limit->units;
    if (state.time_us < now_us)
        return 0;
    fine_time until_full = fine(limit, state.time_us - now_us) + fraction;
    return until_full < capacity(limit) ? until_full : capacity(limit);
}

static struct weir__limit_state
with_debt(const struct weir__limit *limit, fine_time until_full, int64_t now_us)
{
    if (until_full <= 0)
        return (struct weir__limit_state){ 0, 0 };
    int64_t whole_us = weir__wide_divide(until_full, limit->units);
    return (struct weir__limit_state){
        .time_us = now_us + whole_us,
        .value = (int64_t)(until_full - fine(limit, whole_us)),
    };
}

void weir__token_bucket_decide(const struct weir__limit *limit,
                               struct weir__limit_state state,
                               int64_t cost,
                               int64_t now_us,
                               struct weir__limit_state *ret_state,
                               struct weir_rule_answer *ret_answer)
{
    fine_time missing = debt(limit, state, now_us);
    fine_time asked = (fine_time)(cost > 0 ? cost : 1) * limit->period_us;
    fine_time too_much = missing + asked - capacity(limit);
    bool allowed = too_much <= 0;
    if (allowed && cost > 0)
        missing += asked;

    fine_time there = capacity(limit) - missing;
    int64_t remaining = weir__wide_divide(there, limit->period_us);
    fine_time next = (fine_time)(remaining + 1) * limit->period_us;
    ret_answer->allowed = allowed;
    ret_answer->never = false;
    ret_answer->cost = cost;
    ret_answer->remaining = remaining;
    ret_answer->retry_us = ceil_us(limit, allowed ? 0 : too_much);
    ret_answer->next_us = missing > 0 ? ceil_us(limit, next - there) : 0;
    *ret_state = with_debt(limit, missing, now_us);
    ret_answer->full_us =
        missing > 0 ? ret_state->time_us - now_us + (ret_state->value > 0) : 0;
}

/* Time drains the oldest charge first, so that what is left of this one lies between now
 * and the arrival time that it was given. To give back more could hand out units twice:
 * once by time and once here. */
struct weir__limit_state weir__token_bucket_refund(const struct weir__limit *limit,
                                                   struct weir__limit_state state,
                                                   int64_t cost,
                                                   struct weir__limit_state charged,
                                                   int64_t now_us)
{
    fine_time missing = debt(limit, state, now_us);
    fine_time undrained = debt(limit, charged, now_us);
    fine_time back = (fine_time)cost * limit->period_us;
    return with_debt(limit, missing - (back < undrained ? back : undrained), now_us);
}

unsigned weir__token_bucket_level(const struct weir__limit *limit,
                                  struct weir__limit_state state,
                                  int64_t now_us)
{
    fine_time missing = debt(limit, state, now_us);
    if (missing + limit->period_us > capacity(limit))
        return 15;
    return weir__wide_fifteenths(missing, capacity(limit));
}
