/* A decision as HTTP says it: RateLimit-Policy, RateLimit and Retry-After.
 *
 * Pure functions. The syntax is that of draft-ietf-httpapi-ratelimit-headers, numbers 08
 * to 11, whose values are structured fields (RFC 9651). */
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
 * No t where nothing was used, or where no wait helps. Any thread. */
bool weir__ratelimit_state(const struct weir_decision *decision,
                           char ret[WEIR__RATELIMIT_FIELD_BYTES]);

/* Whole seconds for Retry-After (RFC 9110 10.2.3): the longest wait of the rules that
 * refused, for this cost, rounded up, at least 1. 1 where the store was away (DENY). 0,
 * no field, where the request was allowed or no wait helps. Any thread. */
int64_t weir__retry_after(const struct weir_decision *decision);

/* Structured fields as text (RFC 9651 4.1.6 and 4.1.4), behind what ret_text holds: it
 * has room for size bytes, *len of them in use. False, and nothing changed, where the
 * value can't be one or there is no room. Any thread. */
bool weir__sf_string(
    char *ret_text, size_t size, size_t *len, const char *string, size_t string_len);
bool weir__sf_integer(char *ret_text, size_t size, size_t *len, int64_t integer);

#endif
