/* Places in the shared-memory store at which a test stops or kills a process. Nothing of
 * this is compiled into the library: only a test that builds the store's files itself,
 * with WEIR_TEST_STOP_POINTS, gets the calls. */
#ifndef WEIR_STORE_SHM_STOP_H
#define WEIR_STORE_SHM_STOP_H

enum weir__shm_stop {
    WEIR__STOP_MISSED,      /* scanned the bucket, the tag isn't there */
    WEIR__STOP_EVICTED,     /* made a hole, named it nowhere */
    WEIR__STOP_INTENT,      /* the insertion is announced, the hole not filled */
    WEIR__STOP_FILLED,      /* filled, the announcement still stands */
    WEIR__STOP_INSERTED,    /* the entry is there, nothing is charged */
    WEIR__STOP_DECIDED,     /* knows what to write, hasn't */
    WEIR__STOP_CHARGED,     /* has written, hasn't answered */
    WEIR__STOP_LOCKED,      /* holds the lock, nothing is charged */
    WEIR__STOP_BETWEEN,     /* some of several rules are charged */
    WEIR__STOP_ALL_CHARGED, /* all are, the lock still held */
    WEIR__STOP_UNDOING,     /* another rule refused, not all is given back */
    WEIR__STOP_UNLOCKED,
    WEIR__STOP_WAITING, /* somebody else holds the lock */
    WEIR__STOPS
};

#ifdef WEIR_TEST_STOP_POINTS
extern void (*weir__shm_stop_fn)(enum weir__shm_stop stop);
#define WEIR__STOP(stop_)                                                                \
    do {                                                                                 \
        if (weir__shm_stop_fn)                                                           \
            weir__shm_stop_fn(stop_);                                                    \
    } while (0)
#else
#define WEIR__STOP(stop_) ((void)0)
#endif

#endif
