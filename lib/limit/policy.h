/* The rules in force: what each endpoint's list, the default rules and the global rules
 * come to, checked and compiled. Made at start, then read by all threads. */
#ifndef WEIR_LIMIT_POLICY_H
#define WEIR_LIMIT_POLICY_H

#include "limit/limit.h"

struct weir__policy;

#define WEIR__POLICY_UNMATCHED SIZE_MAX /* as an endpoint's index */

/* One rule where it applies. */
struct weir__policy_rule {
    struct weir__limit limit; /* limit.rule is the declared one */
    const char *tail;         /* of its key: "GET /api/weather/:city:minute:w1" */
};

/* All rules of one endpoint, or of the requests that match none. */
struct weir__policy_entry {
    unsigned rules_len; /* 0: nothing is limited */
    const struct weir__policy_rule *rules[WEIR_RULES_MAX];
};

/* Checks all rules of declared and works out the tails of their keys, bucket, rule name
 * and algorithm's tag with colons between them. The bucket is
 *
 *   the rule's own `bucket`, where it has one
 *   else the endpoint's pattern, {city} written as :city, for the endpoint's own rules
 * and for the default rules (a literal segment that begins with a colon gets a second
 * one)
 *   "*" for the default rules on requests that match no endpoint: one for all of them
 *   "@global" for the global rules
 *
 * No two of these can be the same text: a `bucket` has none of the characters blank, '*'
 * and '@'. An endpoint's rules stand in the place of the default ones; the global ones
 * come on top; WEIR_UNLIMITED switches off all.
 *
 * False with a text that names endpoint, rule and field: a rule that
 * weir__limit_compile() refuses, two of one name or more than WEIR_RULES_MAX that meet in
 * one request, rules of one name and `bucket` whose numbers differ, WEIR_UNLIMITED among
 * other rules or as global rule. */
bool weir__policy_create(const struct weir_app *declared,
                         struct weir__policy **ret_policy,
                         struct weir_error *ret_error);

/* The policy of one list of rules outside any app, found under WEIR__POLICY_UNMATCHED;
 * bucket is for those that name none. Checks and texts as above. */
bool weir__policy_create_lone(const char *bucket,
                              const struct weir_rule *rules,
                              struct weir__policy **ret_policy,
                              struct weir_error *ret_error);

void weir__policy_destroy(struct weir__policy *policy); /* takes NULL */

/* What applies to the endpoint of that index in the declared table, or to unmatched
 * requests (WEIR__POLICY_UNMATCHED). Never NULL. Any thread. */
const struct weir__policy_entry *weir__policy_find(const struct weir__policy *policy,
                                                   size_t endpoint_index);

#endif
