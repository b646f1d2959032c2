/* Serialises decisions. All numbers are the decision's; what is rounded is rounded so
 * that a client never comes too early: waits up, units down.
 *
 * It must not invent a number: what can't be said exactly as the draft asks is left out,
 * a whole field at a time. It knows no algorithm but by the table below. */
#include "ratelimit_fields.h"

#include <string.h>

#include "base/decimal.h"

#define INTEGER_MAX INT64_C(999999999999999) /* RFC 9651 3.3.1: fifteen digits */
#define SECOND_US INT64_C(1000000)

__extension__ typedef __int128 wide; /* units times microseconds need 77 bits */

/* What an algorithm's numbers mean to a client. One that isn't in the table has max units
 * in a window, all of which may have to pass before a cost does. */
enum shape {
    SHAPE_WINDOW, /* q: max; w: the window */
    SHAPE_BUCKET, /* q: capacity; w: the time to fill it */
    SHAPE_PLACES, /* q: max; neither w nor t: nobody knows when a place is left */
};
static const enum shape shapes[] = {
    [WEIR_ALGORITHM_TOKEN_BUCKET] = SHAPE_BUCKET,
};

static enum shape shape_of(const struct weir_rule *rule)
{
    size_t algorithm = (size_t)rule->algorithm;
    return algorithm < sizeof shapes / sizeof shapes[0] ? shapes[algorithm]
                                                        : SHAPE_WINDOW;
}

/* Both fields are lists of items; this is one under construction. */
struct text {
    char *bytes;
    size_t len;
    bool ok; /* nothing failed so far */
};

int64_t weir__seconds_up(int64_t us)
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

static void add(struct text *text, const char *bytes)
{
    text->ok =
        text->ok &&
        put(text->bytes, WEIR__RATELIMIT_FIELD_BYTES, &text->len, bytes, strlen(bytes));
}

/* Begins an item: what stands between it and the one before. */
static void add_joint(struct text *text)
{
    if (text->len > 0)
        add(text, ", ");
}

static void add_name(struct text *text, const char *name)
{
    add_joint(text);
    text->ok =
        text->ok &&
        weir__sf_string(
            text->bytes, WEIR__RATELIMIT_FIELD_BYTES, &text->len, name, strlen(name));
}

/* key is ";q=" and the like, or "". All numbers of all fields are 0 or more. */
static void add_number(struct text *text, const char *key, int64_t number)
{
    add(text, key);
    text->ok =
        text->ok && number >= 0 &&
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
    if (shape_of(rule) == SHAPE_PLACES)
        return 0;
    if (shape_of(rule) == SHAPE_WINDOW)
        return weir__seconds_up(rule->window_us);
    if (rule->refill <= 0 || rule->max <= 0)
        return 0;
    int64_t fill_us = refill_us(rule, rule->max);
    bool exact = (wide)fill_us * rule->refill == (wide)rule->max * rule->window_us;
    return weir__seconds_up(fill_us + !exact);
}

/* Units left as they are shown. */
static int64_t left(const struct weir_rule_answer *answer)
{
    int64_t most = quota(answer->rule);
    int64_t units = answer->remaining > 0 ? answer->remaining : 0;
    return units < most ? units : most;
}

/* Microseconds until t of this answer; 0 where there is none to give. */
static int64_t wait_us(const struct weir_rule_answer *answer, int64_t later_us)
{
    const struct weir_rule *rule = answer->rule;
    if (answer->never || shape_of(rule) == SHAPE_PLACES)
        return 0;
    if (answer->remaining > 0)
        return answer->next_us;
    if (!answer->allowed)
        return answer->retry_us + later_us;
    if (answer->cost <= 1)
        return answer->next_us;
    if (shape_of(rule) != SHAPE_BUCKET)
        return answer->full_us;
    /* Just admitted with the last units: this cost passes again once no more than
     * max - cost units are used. full_us is when none is. */
    int64_t until_us = answer->full_us - refill_us(rule, rule->max - answer->cost);
    return until_us > answer->next_us ? until_us : answer->next_us;
}

/* ---- drafts 08 to 11 --------------------------------------------------------------- */

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
        if (shape_of(rule) == SHAPE_PLACES)
            add(&text, ";qu=\"concurrent-requests\"");
        int64_t seconds = window_seconds(rule);
        if (seconds > 0)
            add_number(&text, ";w=", seconds);
    }
    if (text.ok)
        memcpy(ret, bytes, text.len + 1);
    return text.ok;
}

bool weir__ratelimit_state(const struct weir_decision *decision,
                           int64_t later_us,
                           char ret[WEIR__RATELIMIT_FIELD_BYTES])
{
    char bytes[WEIR__RATELIMIT_FIELD_BYTES] = "";
    struct text text = { .bytes = bytes, .ok = is_known(decision) };
    for (unsigned i = 0; text.ok && i < decision->rules_len; i++) {
        const struct weir_rule_answer *answer = &decision->rules[i];
        if (!is_shown(decision, i))
            continue;
        add_name(&text, answer->rule->name);
        add_number(&text, ";r=", left(answer));
        int64_t seconds = weir__seconds_up(wait_us(answer, later_us));
        if (seconds > 0)
            add_number(&text, ";t=", seconds);
    }
    if (text.ok)
        memcpy(ret, bytes, text.len + 1);
    return text.ok;
}

/* ---- drafts 00 to 06, and the fields with an X ------------------------------------- */

bool weir__ratelimit_policy_draft_06(const struct weir_decision *decision,
                                     char ret[WEIR__RATELIMIT_FIELD_BYTES])
{
    char bytes[WEIR__RATELIMIT_FIELD_BYTES] = "";
    struct text text = { .bytes = bytes, .ok = is_known(decision) };
    for (unsigned i = 0; text.ok && i < decision->rules_len; i++) {
        const struct weir_rule *rule = decision->rules[i].rule;
        int64_t seconds = window_seconds(rule);
        if (!is_shown(decision, i) || seconds == 0)
            continue;
        add_joint(&text);
        add_number(&text, "", quota(rule));
        add_number(&text, ";w=", seconds);
    }
    if (!text.ok || text.len == 0)
        return false;
    memcpy(ret, bytes, text.len + 1);
    return true;
}

/* Whether one answer is rather to be shown than another: less is left, it refused, it is
 * longer to wait for. */
static bool shows_before(const struct weir_rule_answer *one,
                         const struct weir_rule_answer *two)
{
    if (left(one) != left(two))
        return left(one) < left(two);
    if (one->allowed != two->allowed)
        return !one->allowed;
    return wait_us(one, 0) > wait_us(two, 0);
}

/* Of a rule whose wait nobody knows, a second where its places are all taken. */
static int64_t reset_us(const struct weir_rule_answer *answer)
{
    if (shape_of(answer->rule) == SHAPE_PLACES)
        return left(answer) == 0 ? SECOND_US : 0;
    return wait_us(answer, 0);
}

bool weir__ratelimit_trio(const struct weir_decision *decision,
                          int64_t later_us,
                          struct weir__ratelimit_trio *ret)
{
    int64_t retry_after = weir__retry_after(decision, later_us);
    if (!is_known(decision) || (!decision->allowed && retry_after == 0))
        return false;
    const struct weir_rule_answer *least = &decision->rules[0];
    for (unsigned i = 1; i < decision->rules_len; i++)
        if (shows_before(&decision->rules[i], least))
            least = &decision->rules[i];
    *ret = (struct weir__ratelimit_trio){
        .limit = quota(least->rule),
        .remaining = left(least),
        .reset_us = decision->allowed ? reset_us(least) : retry_after * SECOND_US,
    };
    return true;
}

/* ---- Retry-After ------------------------------------------------------------------- */

bool weir__retry_is_a_guess(const struct weir_decision *decision)
{
    for (unsigned i = 0; i < decision->rules_len; i++)
        if (!decision->rules[i].allowed &&
            shape_of(decision->rules[i].rule) == SHAPE_PLACES)
            return true;
    return false;
}

int64_t weir__retry_after(const struct weir_decision *decision, int64_t later_us)
{
    int64_t longest_us = decision->source == WEIR_SOURCE_DENY ? SECOND_US : 0;
    for (unsigned i = 0; i < decision->rules_len; i++) {
        const struct weir_rule_answer *answer = &decision->rules[i];
        if (decision->allowed || answer->allowed)
            continue;
        if (answer->never)
            return 0;
        bool is_guess = shape_of(answer->rule) == SHAPE_PLACES;
        int64_t wait_us = is_guess || answer->retry_us < 1 ? SECOND_US : answer->retry_us;
        longest_us = wait_us > longest_us ? wait_us : longest_us;
    }
    return longest_us > 0 ? weir__seconds_up(longest_us + later_us) : 0;
}
