/* Checks one rule and works out what the arithmetic needs: after this no number can
 * overflow and no division can be by zero. What several rules must not do together is
 * policy.c's affair. */
#include "limit/limit.h"

#include <string.h>

#include "base/error.h"
#include "limit/wide.h"

#define WORD_MAX 64 /* bytes of a rule's or a bucket's name */

bool weir__limit_is_word(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    size_t len = strspn(text, allowed);
    return len >= 1 && len <= WORD_MAX && text[len] == '\0';
}

static bool check_words(const struct weir_rule *rule, struct weir_error *ret_error)
{
    if (!rule->name)
        return weir__error(ret_error, "name: missing");
    if (!weir__limit_is_word(rule->name))
        return weir__error(
            ret_error, "name: \"%.80s\" is not 1 to 64 of [A-Za-z0-9._-]", rule->name);
    if (rule->bucket && !weir__limit_is_word(rule->bucket))
        return weir__error(ret_error,
                           "bucket: \"%.80s\" is not 1 to 64 of [A-Za-z0-9._-]",
                           rule->bucket);
    return true;
}

static bool check_choices(const struct weir_rule *rule, struct weir_error *ret_error)
{
    if (rule->algorithm != WEIR_ALGORITHM_FIXED_WINDOW &&
        rule->algorithm != WEIR_ALGORITHM_TOKEN_BUCKET &&
        rule->algorithm != WEIR_ALGORITHM_SLIDING_COUNTER)
        return weir__error(
            ret_error, "algorithm: %d is none that counts", (int)rule->algorithm);
    if ((unsigned)rule->anchor > WEIR_ANCHOR_MONTH)
        return weir__error(
            ret_error, "anchor: %d is no value of enum weir_anchor", (int)rule->anchor);
    if (rule->anchor != WEIR_ANCHOR_REQUEST &&
        rule->algorithm != WEIR_ALGORITHM_FIXED_WINDOW)
        return weir__error(ret_error, "anchor: only a fixed window has one");
    if (rule->by != WEIR_BY_CALLER && rule->by != WEIR_BY_IP &&
        rule->by != WEIR_BY_EVERYBODY)
        return weir__error(
            ret_error, "by: %d is no value of enum weir_by", (int)rule->by);
    if (rule->on_store_error != WEIR_LOCAL && rule->on_store_error != WEIR_ALLOW &&
        rule->on_store_error != WEIR_DENY)
        return weir__error(ret_error,
                           "on_store_error: %d is no value of enum weir_on_store_error",
                           (int)rule->on_store_error);
    return true;
}

static bool check_units(const struct weir_rule *rule, struct weir_error *ret_error)
{
    const char *max_name =
        rule->algorithm == WEIR_ALGORITHM_TOKEN_BUCKET ? "capacity" : "max";
    if (rule->max < 0 && rule->max != WEIR_BLOCK)
        return weir__error(ret_error,
                           "%s: %lld is negative (0 or WEIR_BLOCK refuses all)",
                           max_name,
                           (long long)rule->max);
    if (rule->max > WEIR__MAX_UNITS)
        return weir__error(ret_error,
                           "%s: %lld is above %lld",
                           max_name,
                           (long long)rule->max,
                           (long long)WEIR__MAX_UNITS);
    if (rule->cost < 0)
        return weir__error(ret_error, "cost: %lld is negative", (long long)rule->cost);
    if (!rule->cost_fn && rule->max > 0 && rule->cost > rule->max)
        return weir__error(ret_error,
                           "cost: %lld is above %s %lld, no request could pass",
                           (long long)rule->cost,
                           max_name,
                           (long long)rule->max);
    return true;
}

static bool check_times(const struct weir_rule *rule, struct weir_error *ret_error)
{
    bool is_bucket = rule->algorithm == WEIR_ALGORITHM_TOKEN_BUCKET;
    if (rule->window_us < WEIR__WINDOW_MIN_US || rule->window_us > WEIR__WINDOW_MAX_US)
        return weir__error(ret_error,
                           "%s: %lld microseconds are not between a millisecond and 366 "
                           "days",
                           is_bucket ? "period" : "window",
                           (long long)rule->window_us);
    if (rule->anchor == WEIR_ANCHOR_MONTH && rule->window_us != WEIR_DAYS(31))
        return weir__error(ret_error,
                           "window: a calendar month has no length to choose, "
                           "WEIR_CALENDAR_MONTH sets it");
    if (!is_bucket && rule->refill != 0)
        return weir__error(ret_error, "refill: only a token bucket has one");
    if (rule->algorithm == WEIR_ALGORITHM_SLIDING_COUNTER &&
        (rule->max > WEIR__COUNTER_MAX || rule->max >= rule->window_us))
        return weir__error(ret_error,
                           "max: %lld is above %lld, or not below the microseconds of "
                           "the window, as a sliding counter needs it; a token bucket "
                           "has neither bound",
                           (long long)rule->max,
                           (long long)WEIR__COUNTER_MAX);
    if (!is_bucket)
        return true;
    if (rule->refill < 1 || rule->refill > WEIR__MAX_UNITS)
        return weir__error(ret_error,
                           "refill: %lld is not between 1 and %lld",
                           (long long)rule->refill,
                           (long long)WEIR__MAX_UNITS);
    if ((weir__wide)rule->max * rule->window_us >
        (weir__wide)WEIR__SPAN_MAX_US * rule->refill)
        return weir__error(ret_error,
                           "refill: at this rate the bucket takes more than 3660 days to "
                           "fill");
    return true;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bool weir__limit_compile(const struct weir_rule *rule,
                         struct weir__limit *ret,
                         struct weir_error *ret_error)
{
    if (!check_words(rule, ret_error) || !check_choices(rule, ret_error) ||
        !check_units(rule, ret_error) || !check_times(rule, ret_error))
        return false;
    struct weir__limit limit = {
        .rule = rule,
        .algorithm = rule->algorithm,
        .max = rule->max == WEIR_BLOCK ? 0 : rule->max,
        .window_us = rule->window_us,
        .anchor = rule->anchor,
    };
    if (rule->algorithm == WEIR_ALGORITHM_TOKEN_BUCKET) {
        int64_t divisor = common_divisor(rule->refill, rule->window_us);
        limit.units = rule->refill / divisor;
        limit.period_us = rule->window_us / divisor;
    }
    *ret = limit;
    return true;
}

struct weir__limit weir__limit_share(const struct weir__limit *limit, int64_t parts)
{
    struct weir__limit share = *limit;
    share.max = (limit->max + parts - 1) / parts;
    if (limit->algorithm != WEIR_ALGORITHM_TOKEN_BUCKET)
        return share;
    int64_t divisor = common_divisor(limit->units, parts);
    int64_t units = limit->units / divisor,
            period_us = limit->period_us * (parts / divisor);
    if ((weir__wide)share.max * period_us > (weir__wide)WEIR__SPAN_MAX_US * units)
        return share;
    share.units = units;
    share.period_us = period_us;
    return share;
}
