/* Asks the store whether the caller may, by the limits declared beside the endpoint, and
 * refuses who may not.
 *
 * A refusal is 429 with code TooManyRequests, or CostExceedsLimit where the request costs
 * more than the limit can ever admit; 503 with code StoreUnavailable where the store is
 * away and a rule says WEIR_DENY. It is never cached. Answers to requests that were let
 * through carry the RateLimit fields too; not redirects, not what nobody decided.
 *
 * Each family of fields has a switch, since clients differ in what they read. What the
 * algorithms mean by each number is in docs/fields.md. */
#ifndef WEIR_FILTERS_RATELIMIT_H
#define WEIR_FILTERS_RATELIMIT_H

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_ratelimit {
    size_t size; /* set by WEIR_USE */

    enum weir_refusal_format format; /* default WEIR_FORMAT_PROBLEM */
    weir_refusal_fn *refusal;        /* writes the body instead; NULL: format */

    enum weir_switch retry_after; /* Retry-After; default on */
    enum weir_switch ratelimit;   /* RateLimit and RateLimit-Policy, in the syntax of
                                     draft-ietf-httpapi-ratelimit-headers 08 to 11;
                                     default on */
    /* X-RateLimit-Limit, -Remaining, -Reset, of the rule with the least left; Reset is in
     * seconds since 1970; default off. */
    enum weir_switch x_ratelimit;
    /* RateLimit-Limit, -Remaining, -Reset, of the rule with the least left, Reset in
     * seconds from now; and RateLimit-Policy: all as in drafts 00 to 06. Default off. Not
     * beside .ratelimit, which has to be WEIR_OFF: both have a RateLimit-Policy. */
    enum weir_switch ratelimit_draft_06;
    enum weir_switch source; /* Weir-Source: shm, redis, local, allow, deny; default
                                off */

    /* Adds a line of Access-Control-Expose-Headers with all fields that are switched on,
     * so that scripts of other origins can read them; default off. The rest of CORS is
     * for a filter that stands before this one, so that refusals get it too. */
    enum weir_switch expose;

    /* What a refusal says of when to come again is later by 0 to so many microseconds, at
     * random, in all fields and the body alike, so that not all who were refused come at
     * the same time. 0 to an hour; 0: none. */
    int64_t jitter_us;

    int64_t deadline_us; /* how long the store may take; 0: --redis-timeout, 20 ms */
    int abi;             /* set by WEIR_USE */
};

/* Needs "caller", provides "ratelimit". */
extern WEIR_API const struct weir_filter weir_filter_ratelimit;

#ifdef __cplusplus
}
#endif

#endif
