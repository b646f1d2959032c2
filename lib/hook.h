/* Calls the hooks of a chain, with their waits and offloads. */
#ifndef WEIR_HOOK_H
#define WEIR_HOOK_H

#include "life.h"
#include "lint_watch.h"

/* What the calling thread may do for a request. */
enum weir__ride {
    WEIR__RIDE_TURN,    /* must not block: others wait for this thread */
    WEIR__RIDE_THREAD,  /* may run handlers and offloads, but gives a parked request up */
    WEIR__RIDE_HANDLER, /* inside a handler: sits in waits too */
};

/* Calls `before` or `commit` of the stage with that index, or goes on with it where
 * w->then is set, until it gives a verdict that isn't WAIT. Every breach of the verdict's
 * rules is FAIL. WAIT: *ret_need says what the transport must do; where that is
 * NEED_RESUME the request must not be touched any more. */
enum weir_verdict weir__hook_run(struct weir *w,
                                 enum weir__hook hook,
                                 unsigned stage,
                                 enum weir__ride ride,
                                 enum weir__need *ret_need);

/* Calls `after` of the stage. */
void weir__hook_after(struct weir *w, unsigned stage);

/* Drops the continuation of a hook that will not be called any more. */
void weir__hook_drop(struct weir *w);

#endif
