/* Finds out who calls. First hit wins: the session's user, REMOTE_USER where that is
 * switched on, the remote address.
 *
 * Only what was verified is an identity: a cookie is one once the app's callback has
 * confirmed it. Who has no address (a unix peer, REMOTE_ADDR missing or garbage) and no
 * session is of type "none": all such callers share one budget, so that a missing
 * address is never a way around a limit. */
#ifndef WEIR_FILTERS_IDENTITY_H
#define WEIR_FILTERS_IDENTITY_H

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Looks the session up and fills *ret_caller (weir_caller_user() does) with a user or a
 * key. False: no session. It may block, it runs on a thread that may; how many run at
 * once for one remote address is bounded. */
typedef bool weir_session_user_fn(struct weir *w, struct weir_caller *ret_caller);

struct weir_identity {
    size_t size; /* set by WEIR_USE */

    /* NULL: no sessions. Not called where a limit of the address (WEIR_BY_IP) refuses in
     * any case; that refusal's Retry-After then knows nothing of the caller's own
     * limits. */
    weir_session_user_fn *session_user;
    const char *session_cookie; /* session_user is called only for requests that
                                   have this cookie: others cost no change of
                                   thread. NULL: for all */

    bool remote_user;     /* takes REMOTE_USER as verified by the web server, as a type of
                             its own. Only where the server does verify: nginx passes the
                             name of any Authorization header there */
    unsigned ipv6_prefix; /* an IPv6 address is counted by so many bits, 32 to 128;
                             0: 64 */
    int abi;              /* set by WEIR_USE */
};

/* Provides "caller". */
extern WEIR_API const struct weir_filter weir_filter_identity;

#ifdef __cplusplus
}
#endif

#endif
