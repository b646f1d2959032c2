/* The advisory lock of requests with several rules. It keeps nothing whole, the table is
 * that without it; it only keeps a charge that may yet be undone from being seen by
 * another request, which would be refused for it falsely.
 *
 * A lock belongs to a stripe, and so to the counters of every 256th bucket. Who wants it
 * waits at most half a millisecond, then goes on without; a lock that was taken longer
 * ago belongs to a process that was killed or stopped, and is taken over. */
#ifndef WEIR_STORE_SHM_LOCK_H
#define WEIR_STORE_SHM_LOCK_H

#include "store/shm_segment.h"

#define WEIR__SHM_LOCK_US 500

/* What a lock said when it was looked at: compared with a later look, it tells whether
 * anybody held it in between. Any process and thread. */
uint64_t weir__shm_lock_look(const struct weir__shm_stripe *stripe);
bool weir__shm_lock_was_free(const struct weir__shm_stripe *stripe, uint64_t look);
bool weir__shm_lock_is_held(const struct weir__shm_stripe *stripe);

/* The locks that one request holds. */
struct weir__shm_hold {
    unsigned len;
    struct weir__shm_stripe *stripes[WEIR_RULES_MAX];
    uint64_t words[WEIR_RULES_MAX]; /* as we wrote them */
};

/* Adds the lock of stripe to those that hold is to take; each once, in order of address,
 * so that no two requests wait for each other. hold must begin as all zero. */
void weir__shm_lock_want(struct weir__shm_hold *hold, struct weir__shm_stripe *stripe);

/* Takes them, or as many as are to be had in time. */
void weir__shm_lock(const struct weir__shm_segment *segment, struct weir__shm_hold *hold);

/* Gives back those that are still ours. */
void weir__shm_unlock(struct weir__shm_hold *hold);

#endif
