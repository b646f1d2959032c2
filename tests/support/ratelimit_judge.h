/* What the rate limit fields of an answer have to be, beside structured fields: drafts 08
 * to 11 of draft-ietf-httpapi-ratelimit-headers, at their strictest, and 00 to 06. Each
 * function returns what is wrong, NULL where nothing is. */
#ifndef TESTS_SUPPORT_RATELIMIT_JUDGE_H
#define TESTS_SUPPORT_RATELIMIT_JUDGE_H

#include <stddef.h>
#include <string.h>

#include "support/structured.h"

static inline bool judge_is_integer(const struct sf_value *value, int64_t least)
{
    return value && value->type == SF_INTEGER && value->number >= least;
}

static inline bool judge_has_twin(const struct sf_list *list, unsigned index)
{
    for (unsigned i = 0; i < index; i++)
        if (strcmp(list->items[i].value.text, list->items[index].value.text) == 0)
            return true;
    return false;
}

static inline bool judge_is_unit(const struct sf_value *value)
{
    return value->type == SF_STRING && (strcmp(value->text, "requests") == 0 ||
                                        strcmp(value->text, "content-bytes") == 0 ||
                                        strcmp(value->text, "concurrent-requests") == 0);
}

static inline const char *judge_policy_item(const struct sf_item *item)
{
    unsigned known = 1;
    if (item->value.type != SF_STRING)
        return "a policy's name is no String";
    if (!judge_is_integer(sf_param(item, "q"), 0))
        return "q is missing, or no Integer of 0 or more";
    if (sf_param(item, "w")) {
        known++;
        if (!judge_is_integer(sf_param(item, "w"), 1))
            return "w is no Integer of 1 or more";
    }
    if (sf_param(item, "qu")) {
        known++;
        if (!judge_is_unit(sf_param(item, "qu")))
            return "qu is no known unit";
    }
    return item->params_len == known ? NULL : "a policy has other parameters";
}

static inline const char *judge_state_item(const struct sf_item *item)
{
    unsigned known = 1;
    if (item->value.type != SF_STRING)
        return "a policy's name is no String";
    if (!judge_is_integer(sf_param(item, "r"), 0))
        return "r is missing, or no Integer of 0 or more";
    if (sf_param(item, "t")) {
        known++;
        if (!judge_is_integer(sf_param(item, "t"), 0))
            return "t is no Integer of 0 or more";
    }
    return item->params_len == known ? NULL : "a state has other parameters";
}

static inline const char *judge_policy_draft_06_item(const struct sf_item *item)
{
    if (item->value.type != SF_INTEGER || item->value.number < 0)
        return "a quota is no Integer of 0 or more";
    if (item->params_len != 1 || !judge_is_integer(sf_param(item, "w"), 1))
        return "w is not alone, or no Integer of 1 or more";
    return NULL;
}

static inline const char *judge_list(const char *text,
                                     const char *(*judge_item)(const struct sf_item *),
                                     struct sf_list *ret)
{
    if (!sf_parse_list(text, strlen(text), ret))
        return "no List of structured fields";
    if (ret->len == 0)
        return "an empty List";
    for (unsigned i = 0; i < ret->len; i++) {
        const char *fault = judge_item(&ret->items[i]);
        if (!fault && ret->items[i].value.type == SF_STRING && judge_has_twin(ret, i))
            fault = "one name stands twice";
        if (fault)
            return fault;
    }
    return NULL;
}

/* RateLimit-Policy of drafts 08 to 11. */
static inline const char *judge_policy(const char *text, struct sf_list *ret)
{
    return judge_list(text, judge_policy_item, ret);
}

/* RateLimit of drafts 08 to 11. */
static inline const char *judge_state(const char *text, struct sf_list *ret)
{
    return judge_list(text, judge_state_item, ret);
}

/* RateLimit-Policy of drafts 00 to 06. */
static inline const char *judge_policy_draft_06(const char *text, struct sf_list *ret)
{
    return judge_list(text, judge_policy_draft_06_item, ret);
}

/* Both fields of one answer: each state has its policy, in the same order, r is within q.
 */
static inline const char *judge_pair(const struct sf_list *policy,
                                     const struct sf_list *state)
{
    if (policy->len != state->len)
        return "RateLimit and RateLimit-Policy have not the same rules";
    for (unsigned i = 0; i < state->len; i++) {
        if (strcmp(policy->items[i].value.text, state->items[i].value.text) != 0)
            return "a state without its policy";
        if (sf_param(&state->items[i], "r")->number >
            sf_param(&policy->items[i], "q")->number)
            return "r is above q";
    }
    return NULL;
}

#endif
