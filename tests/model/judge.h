/* The judge of the arithmetic: each algorithm by its definition, in exact fractions of
 * 128 bits, with nothing of lib/limit in it but the rule.
 *
 * All that it knows is judge_fits(): would so many units pass at that time, if nobody
 * came in between? Remaining units and every wait follow from that by bisection, where
 * the code under test works them out by formulas. */
#ifndef TESTS_MODEL_JUDGE_H
#define TESTS_MODEL_JUDGE_H

#include <weir/weir.h>
#include <time.h>

__extension__ typedef __int128 judge_wide;

/* What is known of one counter.
 *
 * fixed window: used units until end_us.
 * token bucket: used units, in 1/period of one, were missing at at_us.
 * sliding counter: used units in window number `at_us`, `before` in the one before. */
struct judge {
    struct weir_rule rule;
    int64_t end_us, at_us;
    judge_wide used, before;
};

static inline judge_wide judge_cap(const struct judge *judge)
{
    return (judge_wide)judge->rule.max * judge->rule.window_us;
}

/* What is missing in the bucket: none while it was full, never more than it holds. */
static inline judge_wide
judge_missing(const struct judge *judge, int64_t at_us, judge_wide used, int64_t now_us)
{
    judge_wide missing = used - (judge_wide)(now_us - at_us) * judge->rule.refill;
    if (used == 0 || missing < 0)
        return 0;
    return missing < judge_cap(judge) ? missing : judge_cap(judge);
}

/* Where a window ends that begins at now_us. */
static inline int64_t judge_latest_us(const struct judge *judge, int64_t now_us)
{
    int64_t window_us = judge->rule.window_us;
    time_t seconds = (time_t)(now_us / 1000000);
    struct tm date;
    switch (judge->rule.anchor) {
    case WEIR_ANCHOR_CLOCK:
        return (now_us / window_us + 1) * window_us;
    case WEIR_ANCHOR_MONTH:
        gmtime_r(&seconds, &date);
        date = (struct tm){ .tm_year = date.tm_year,
                            .tm_mon = date.tm_mon + 1,
                            .tm_mday = 1 };
        return (int64_t)timegm(&date) * 1000000;
    case WEIR_ANCHOR_REQUEST:
        break;
    }
    return now_us + window_us;
}

/* Where the window that is open at now_us ends; 0 where none is. */
static inline int64_t judge_end_us(const struct judge *judge, int64_t now_us)
{
    int64_t latest_us = judge_latest_us(judge, now_us);
    if (judge->end_us <= now_us)
        return 0;
    return judge->end_us < latest_us ? judge->end_us : latest_us;
}

/* The two windows as they are at now_us. What was counted in windows that have not begun,
 * since the clock stepped back, counts as the window before. */
static inline struct judge judge_windows(const struct judge *judge, int64_t now_us)
{
    struct judge seen = *judge;
    int64_t number = now_us / judge->rule.window_us, gone = number - judge->at_us;
    seen.at_us = number;
    if (gone != 0)
        seen.used = 0;
    if (gone == 1)
        seen.before = judge->used;
    else if (gone > 1)
        seen.before = 0;
    else if (gone < 0 && judge->used > judge->before)
        seen.before = judge->used;
    return seen;
}

static inline bool
judge_counter_fits(const struct judge *judge, int64_t units, int64_t now_us)
{
    struct judge seen = judge_windows(judge, now_us);
    int64_t length_us = judge->rule.window_us;
    judge_wide old = seen.before * (length_us - now_us % length_us);
    return old + (seen.used + units) * length_us <= judge_cap(judge);
}

/* Whether so many units would pass at now_us. */
static inline bool judge_fits(const struct judge *judge, int64_t units, int64_t now_us)
{
    if (units == 0)
        return true;
    if (judge->rule.algorithm == WEIR_ALGORITHM_TOKEN_BUCKET)
        return judge_missing(judge, judge->at_us, judge->used, now_us) +
                   (judge_wide)units * judge->rule.window_us <=
               judge_cap(judge);
    if (judge->rule.algorithm == WEIR_ALGORITHM_SLIDING_COUNTER)
        return judge_counter_fits(judge, units, now_us);
    judge_wide used = judge_end_us(judge, now_us) ? judge->used : 0;
    return used + units <= judge->rule.max;
}

static inline void judge_charge(struct judge *judge, int64_t units, int64_t now_us)
{
    if (judge->rule.algorithm == WEIR_ALGORITHM_TOKEN_BUCKET) {
        judge->used = judge_missing(judge, judge->at_us, judge->used, now_us) +
                      (judge_wide)units * judge->rule.window_us;
        judge->at_us = now_us;
        return;
    }
    if (judge->rule.algorithm == WEIR_ALGORITHM_SLIDING_COUNTER) {
        *judge = judge_windows(judge, now_us);
        judge->used += units;
        return;
    }
    int64_t end_us = judge_end_us(judge, now_us);
    judge->used = (end_us ? judge->used : 0) + units;
    judge->end_us = end_us ? end_us : judge_latest_us(judge, now_us);
}

/* charged is the judge right after that charge. A bucket gets back what of it time has
 * not drained; a window its units, while it is the one that was charged. */
static inline void judge_refund(struct judge *judge,
                                int64_t units,
                                const struct judge *charged,
                                int64_t now_us)
{
    if (judge->rule.algorithm == WEIR_ALGORITHM_TOKEN_BUCKET) {
        judge_wide missing = judge_missing(judge, judge->at_us, judge->used, now_us);
        judge_wide left = judge_missing(judge, charged->at_us, charged->used, now_us);
        judge_wide back = (judge_wide)units * judge->rule.window_us;
        back = back < left ? back : left;
        judge->used = missing > back ? missing - back : 0;
        judge->at_us = now_us;
        return;
    }
    if (judge->rule.algorithm == WEIR_ALGORITHM_SLIDING_COUNTER) {
        struct judge seen = judge_windows(judge, now_us);
        judge_wide *count = charged->at_us == seen.at_us       ? &seen.used
                            : charged->at_us == seen.at_us - 1 ? &seen.before
                                                               : NULL;
        if (!count || judge->at_us > seen.at_us)
            return;
        *count = *count > units ? *count - units : 0;
        *judge = seen;
        return;
    }
    if (judge->end_us == charged->end_us && now_us < judge->end_us)
        judge->used = judge->used > units ? judge->used - units : 0;
}

/* The first moment from now_us on at which so many units fit, as a wait. */
static inline int64_t
judge_wait_us(const struct judge *judge, int64_t units, int64_t now_us)
{
    int64_t low = 0, high = WEIR_DAYS(4000);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (judge_fits(judge, units, now_us + middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static inline int64_t judge_remaining(const struct judge *judge, int64_t now_us)
{
    int64_t low = 0, high = judge->rule.max;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (judge_fits(judge, middle, now_us))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* What is known of the counter at now_us, where the clock may have stepped back since it
 * was charged: from here on time goes forward. */
static inline struct judge judge_at(const struct judge *judge, int64_t now_us)
{
    struct judge seen = *judge;
    if (judge->rule.algorithm == WEIR_ALGORITHM_SLIDING_COUNTER)
        return judge_windows(judge, now_us);
    seen.end_us = judge_end_us(judge, now_us);
    seen.at_us = now_us;
    if (judge->rule.algorithm == WEIR_ALGORITHM_TOKEN_BUCKET)
        seen.used = judge_missing(judge, judge->at_us, judge->used, now_us);
    return seen;
}

/* The whole answer to cost units; charges them where they pass. */
static inline struct weir_rule_answer
judge_ask(struct judge *judge, int64_t cost, int64_t now_us)
{
    int64_t asked = cost > 0 ? cost : 1;
    struct weir_rule_answer answer = { .cost = cost, .never = asked > judge->rule.max };
    struct judge seen = judge_at(judge, now_us);
    answer.allowed = !answer.never && judge_fits(&seen, asked, now_us);
    if (!answer.allowed && !answer.never)
        answer.retry_us = judge_wait_us(&seen, asked, now_us);
    if (answer.allowed && cost > 0) {
        judge_charge(&seen, cost, now_us);
        *judge = seen;
    }
    answer.remaining = judge_remaining(&seen, now_us);
    if (answer.remaining < judge->rule.max) {
        answer.next_us = judge_wait_us(&seen, answer.remaining + 1, now_us);
        answer.full_us = judge_wait_us(&seen, judge->rule.max, now_us);
    }
    return answer;
}

#endif
