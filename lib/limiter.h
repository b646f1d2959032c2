/* Limits outside of any request: installed as weir/limiter.h, for jobs and sockets of an
 * app's own and for programs that use nothing else of the library.
 *
 *     struct weir_store *store = weir_shm_create(NULL, &error);
 *     struct weir_limiter *mails = weir_limiter_create(
 *         &(struct weir_limiter_options){
 *             .store = store,
 *             .bucket = "mails",
 *             .limits = WEIR_LIMITS(WEIR_TOKEN_BUCKET("burst", 10, 1, WEIR_SECONDS(1)))
 * }, &error); if (weir_limit_decide(mails, &(struct weir_limit_query){ .caller = &who },
 * &decision)) send_mail(...);
 */
#ifndef WEIR_LIMITER_H
#define WEIR_LIMITER_H

#include <weir/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_limiter;

struct weir_limiter_options {
    struct weir_store *store; /* required; the caller's, outlives the limiter */
    const char *bucket;       /* required, 1 to 64 of [A-Za-z0-9._-]: whose budget the
                                 rules are that name no bucket of their own. Rules of
                                 an endpoint with this .bucket and name share it */
    const struct weir_rule *limits; /* required: WEIR_LIMITS, 1 to WEIR_RULES_MAX of them;
                                       outlives the limiter. No cost_fn */
    int64_t timeout_us;             /* how long a store may take to answer; 0: 20,000 */
};

/* Checks the rules and makes them ready. NULL with a text that names rule and field where
 * one is a mistake. The caller destroys it. Any thread. */
WEIR_API struct weir_limiter *
weir_limiter_create(const struct weir_limiter_options *options,
                    struct weir_error *ret_error);

/* Takes NULL. No decision may be running in another thread. */
WEIR_API void weir_limiter_destroy(struct weir_limiter *limiter);

struct weir_limit_query {
    const struct weir_caller *caller; /* whom WEIR_BY_CALLER rules count; NULL: nobody in
                                         particular, one budget for all such queries */
    const char *ip; /* whom WEIR_BY_IP rules count, as canonical text; NULL: as above */
    int64_t cost;   /* units, for every rule; 0: each rule's own */
    bool peek;      /* asks whether one unit would pass, and charges nothing */
};

/* Decides all rules at once, all or nothing, and returns ret_decision->allowed. Waits for
 * the store no longer than the timeout. Where it gives no answer by then, the rules'
 * on_store_error says what holds: any WEIR_DENY refuses (source WEIR_SOURCE_DENY), else
 * it is allowed (WEIR_SOURCE_ALLOW; a store that can count on its own meanwhile does so
 * itself), and rules_len is 0; an answer that comes later is given back. Any thread of
 * any process that has the limiter, several at once. */
WEIR_API bool weir_limit_decide(struct weir_limiter *limiter,
                                const struct weir_limit_query *query,
                                struct weir_decision *ret_decision);

#ifdef __cplusplus
}
#endif

#endif
