/* The rules in force: what each endpoint's list, the default rules and the global rules
 * come to, checked and compiled. Made at start, then read by all threads. */
#ifndef WEIR_LIMIT_POLICY_H
#define WEIR_LIMIT_POLICY_H

#include "limit/limit.h"

struct weir__policy;

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

/* Checks all rules of declared. False with a text that names endpoint, rule and field. */
bool weir__policy_create(const struct weir_app *declared,
                         struct weir__policy **ret_policy,
                         struct weir_error *ret_error);
void weir__policy_destroy(struct weir__policy *policy); /* takes NULL */

/* What applies to the endpoint of that index in the declared table, or to unmatched
 * requests (SIZE_MAX). Never NULL. Any thread. */
const struct weir__policy_entry *weir__policy_find(const struct weir__policy *policy,
                                                   size_t endpoint_index);

#endif
