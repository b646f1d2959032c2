/* A decision as HTTP says it: Retry-After, RateLimit-Policy and RateLimit in either of
 * their forms, and the numbers of the older trios of fields.
 *
 * Pure functions. Their syntax is that of draft-ietf-httpapi-ratelimit-headers, whose
 * values are structured fields (RFC 9651): numbers 08 to 11, or 00 to 06 where a name
 * ends in draft_06. What the algorithms mean by each number: docs/fields.md.
 *
 * later_us is jitter, 0 or more: what a refusal says of times is so much later, in every
 * field alike. */
#ifndef WEIR_RATELIMIT_FIELDS_H
#define WEIR_RATELIMIT_FIELDS_H

#include <weir/weir.h>

/* Room for either field with as many rules as may meet, and its NUL. */
#define WEIR__RATELIMIT_FIELD_BYTES 1024

/* Writes the value of RateLimit-Policy: `"minute";q=100;w=60, ...`. q is the max (0 for
 * WEIR_BLOCK); w the window in whole seconds, rounded up, for a token bucket the time in
 * which it fills. Of rules with one name only the tightest stands. False, and nothing
 * written, where the field is to be left out: no rule, a store that could not be read
 * (ALLOW, DENY), or a value that structured fields can't hold. Any thread. */
bool weir__ratelimit_policy(const struct weir_decision *decision,
                            char ret[WEIR__RATELIMIT_FIELD_BYTES]);

/* The same for RateLimit: `"minute";r=99;t=12, ...`. r is whole units left, 0 to q; t
 * whole seconds, rounded up: until r grows, or for r=0 until this cost would be admitted.
 * No t where nothing was used, where no wait helps, and where nobody can know. Any
 * thread. */
bool weir__ratelimit_state(const struct weir_decision *decision,
                           int64_t later_us,
                           char ret[WEIR__RATELIMIT_FIELD_BYTES]);

/* RateLimit-Policy of the drafts up to 06: `100;w=60, ...`, without those rules that have
 * no window, which it can't do without. False as above, and where no rule is left. Any
 * thread. */
bool weir__ratelimit_policy_draft_06(const struct weir_decision *decision,
                                     char ret[WEIR__RATELIMIT_FIELD_BYTES]);

/* What a trio says of one rule, that with the least left. */
struct weir__ratelimit_trio {
    int64_t limit;     /* units */
    int64_t remaining; /* units */
    int64_t reset_us;  /* from the decision on. On a refusal that of Retry-After, since
                          clients come again by it; else as t above, 0 where nothing was
                          used */
};

/* False, and nothing written, where the trio is to be left out: as above, and on a
 * refusal that no wait can help, which a trio has no way to say. Any thread. */
bool weir__ratelimit_trio(const struct weir_decision *decision,
                          int64_t later_us,
                          struct weir__ratelimit_trio *ret);

/* Whole seconds for Retry-After (RFC 9110 10.2.3): the longest wait of the rules that
 * refused, for this cost, rounded up, at least 1. 1 where the store was away (DENY). 0,
 * no field, where the request was allowed or no wait helps. Any thread. */
int64_t weir__retry_after(const struct weir_decision *decision, int64_t later_us);

/* Whether a rule refused whose wait nobody can know, so that a jitter is needed in any
 * case: all who are refused would come again at the same time. Any thread. */
bool weir__retry_is_a_guess(const struct weir_decision *decision);

/* Whole seconds, rounded up. Any thread. */
int64_t weir__seconds_up(int64_t us);

/* Structured fields as text (RFC 9651 4.1.6 and 4.1.4), behind what ret_text holds: it
 * has room for size bytes, *len of them in use. False, and nothing changed, where the
 * value can't be one or there is no room. Any thread. */
bool weir__sf_string(
    char *ret_text, size_t size, size_t *len, const char *string, size_t string_len);
bool weir__sf_integer(char *ret_text, size_t size, size_t *len, int64_t integer);

#endif
