/* Serialises decisions. All numbers are the decision's; what is rounded is rounded so
 * that a client never comes too early: waits up, units down.
 *
 * It must not invent a number: what can't be said exactly as the draft asks is left out,
 * a whole field at a time. */
#include "ratelimit_fields.h"

#include <string.h>

#include "base/decimal.h"

#define INTEGER_MAX INT64_C(999999999999999) /* RFC 9651 3.3.1: fifteen digits */
#define SECOND_US INT64_C(1000000)

__extension__ typedef __int128 wide; /* units times microseconds need 77 bits */

/* Both fields are lists of items; this is one under construction. */
struct text {
    char *bytes;
    size_t len;
    bool ok; /* nothing failed so far */
};

static int64_t seconds_up(int64_t us)
{
    return us / SECOND_US + (us % SECOND_US > 0);
}

static bool put(char *ret_text, size_t size, size_t *len, const char *bytes, size_t count)
{
    if (size - *len <= count)
        return false;
    memcpy(ret_text + *len, bytes, count);
    *len += count;
    ret_text[*len] = '\0';
    return true;
}

bool weir__sf_string(
    char *ret_text, size_t size, size_t *len, const char *string, size_t string_len)
{
    size_t begin = *len;
    bool ok = put(ret_text, size, len, "\"", 1);
    for (size_t i = 0; ok && i < string_len; i++) {
        unsigned char byte = (unsigned char)string[i];
        ok = byte >= 0x20 && byte <= 0x7e;
        if (byte == '"' || byte == '\\')
            ok = ok && put(ret_text, size, len, "\\", 1);
        ok = ok && put(ret_text, size, len, string + i, 1);
    }
    ok = ok && put(ret_text, size, len, "\"", 1);
    if (!ok) {
        *len = begin;
        ret_text[begin] = '\0';
    }
    return ok;
}

bool weir__sf_integer(char *ret_text, size_t size, size_t *len, int64_t integer)
{
    if (integer < -INTEGER_MAX || integer > INTEGER_MAX)
        return false;
    char digits[1 + WEIR__DECIMAL_BYTES] = "-";
    bool minus = integer < 0;
    size_t count = weir__decimal((uint64_t)(minus ? -integer : integer), digits + minus);
    return put(ret_text, size, len, digits, minus + count);
}

static void add_name(struct text *text, const char *name)
{
    if (text->len > 0)
        text->ok = text->ok &&
                   put(text->bytes, WEIR__RATELIMIT_FIELD_BYTES, &text->len, ", ", 2);
    text->ok =
        text->ok &&
        weir__sf_string(
            text->bytes, WEIR__RATELIMIT_FIELD_BYTES, &text->len, name, strlen(name));
}

/* key is ";q=" and the like. All numbers of both fields are 0 or more. */
static void add_number(struct text *text, const char *key, int64_t number)
{
    text->ok =
        text->ok && number >= 0 &&
        put(text->bytes, WEIR__RATELIMIT_FIELD_BYTES, &text->len, key, strlen(key)) &&
        weir__sf_integer(text->bytes, WEIR__RATELIMIT_FIELD_BYTES, &text->len, number);
}

/* Whether one answer says more to a client than another of the same name. */
static bool tighter(const struct weir_rule_answer *one,
                    const struct weir_rule_answer *two)
{
    if (one->allowed != two->allowed)
        return !one->allowed;
    return one->remaining < two->remaining;
}

/* A name may stand once in a field; global and endpoint rules may share one. */
static bool is_shown(const struct weir_decision *decision, unsigned index)
{
    const struct weir_rule_answer *answer = &decision->rules[index];
    for (unsigned i = 0; i < decision->rules_len; i++) {
        const struct weir_rule_answer *other = &decision->rules[i];
        if (i == index || strcmp(other->rule->name, answer->rule->name) != 0)
            continue;
        if (tighter(other, answer) || (i < index && !tighter(answer, other)))
            return false;
    }
    return true;
}

/* Nobody counted where the store was away: any number would be made up. */
static bool is_known(const struct weir_decision *decision)
{
    return decision->rules_len > 0 && decision->source != WEIR_SOURCE_NONE &&
           decision->source != WEIR_SOURCE_ALLOW && decision->source != WEIR_SOURCE_DENY;
}

static int64_t quota(const struct weir_rule *rule)
{
    return rule->max == WEIR_BLOCK ? 0 : rule->max;
}

/* units of a token bucket as the microseconds in which they come back, rounded down. */
static int64_t refill_us(const struct weir_rule *rule, int64_t units)
{
    return (int64_t)((wide)units * rule->window_us / rule->refill);
}

/* 0 where the rule has no window to speak of: WEIR_BLOCK needs none. */
static int64_t window_seconds(const struct weir_rule *rule)
{
    if (rule->algorithm != WEIR_ALGORITHM_TOKEN_BUCKET)
        return seconds_up(rule->window_us);
    if (rule->refill <= 0 || rule->max <= 0)
        return 0;
    int64_t fill_us = refill_us(rule, rule->max);
    bool exact = (wide)fill_us * rule->refill == (wide)rule->max * rule->window_us;
    return seconds_up(fill_us + !exact);
}

/* Microseconds until t of this answer; 0 where there is none to give. */
static int64_t wait_us(const struct weir_rule_answer *answer)
{
    const struct weir_rule *rule = answer->rule;
    if (answer->never || answer->remaining > 0)
        return answer->never ? 0 : answer->next_us;
    if (!answer->allowed)
        return answer->retry_us;
    if (rule->algorithm != WEIR_ALGORITHM_TOKEN_BUCKET || answer->cost <= 1)
        return answer->next_us;
    /* Just admitted with the last units: this cost passes again once no more than
     * max - cost units are used. full_us is when none is. */
    int64_t until_us = answer->full_us - refill_us(rule, rule->max - answer->cost);
    return until_us > answer->next_us ? until_us : answer->next_us;
}

bool weir__ratelimit_policy(const struct weir_decision *decision,
                            char ret[WEIR__RATELIMIT_FIELD_BYTES])
{
    char bytes[WEIR__RATELIMIT_FIELD_BYTES] = "";
    struct text text = { .bytes = bytes, .ok = is_known(decision) };
    for (unsigned i = 0; text.ok && i < decision->rules_len; i++) {
        const struct weir_rule *rule = decision->rules[i].rule;
        if (!is_shown(decision, i))
            continue;
        add_name(&text, rule->name);
        add_number(&text, ";q=", quota(rule));
        int64_t seconds = window_seconds(rule);
        if (seconds > 0)
            add_number(&text, ";w=", seconds);
    }
    if (text.ok)
        memcpy(ret, bytes, text.len + 1);
    return text.ok;
}

bool weir__ratelimit_state(const struct weir_decision *decision,
                           char ret[WEIR__RATELIMIT_FIELD_BYTES])
{
    char bytes[WEIR__RATELIMIT_FIELD_BYTES] = "";
    struct text text = { .bytes = bytes, .ok = is_known(decision) };
    for (unsigned i = 0; text.ok && i < decision->rules_len; i++) {
        const struct weir_rule_answer *answer = &decision->rules[i];
        if (!is_shown(decision, i))
            continue;
        int64_t most = quota(answer->rule);
        int64_t left = answer->remaining > 0 ? answer->remaining : 0;
        add_name(&text, answer->rule->name);
        add_number(&text, ";r=", left < most ? left : most);
        int64_t seconds = seconds_up(wait_us(answer));
        if (seconds > 0)
            add_number(&text, ";t=", seconds);
    }
    if (text.ok)
        memcpy(ret, bytes, text.len + 1);
    return text.ok;
}

int64_t weir__retry_after(const struct weir_decision *decision)
{
    int64_t seconds = decision->source == WEIR_SOURCE_DENY ? 1 : 0;
    for (unsigned i = 0; i < decision->rules_len; i++) {
        const struct weir_rule_answer *answer = &decision->rules[i];
        if (decision->allowed || answer->allowed)
            continue;
        if (answer->never)
            return 0;
        int64_t wait = seconds_up(answer->retry_us);
        wait = wait > 1 ? wait : 1;
        seconds = wait > seconds ? wait : seconds;
    }
    return seconds;
}
