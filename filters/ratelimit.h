/* Asks the store whether the caller may, by the limits declared beside the endpoint, and
 * refuses who may not.
 *
 * A refusal is 429 with code TooManyRequests, or CostExceedsLimit where the request costs
 * more than the limit can ever admit; 503 with code StoreUnavailable where the store is
 * away and a rule says WEIR_DENY. It is never cached. Answers to requests that were let
 * through carry the RateLimit fields too; not redirects, not what nobody decided. */
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
    enum weir_switch source;      /* Weir-Source: shm, redis, local, allow, deny;
                                     default off */

    int64_t deadline_us; /* how long the store may take; 0: --redis-timeout, 20 ms */
    int abi;             /* set by WEIR_USE */
};

/* Needs "caller", provides "ratelimit". */
extern WEIR_API const struct weir_filter weir_filter_ratelimit;

#ifdef __cplusplus
}
#endif

#endif
