/* A transport without a peer: one request from memory, its answer into memory, all on the
 * calling thread. weir/test.h is made of it; tests of the chain use it bare. */
#ifndef WEIR_TRANSPORT_MEM_H
#define WEIR_TRANSPORT_MEM_H

#include "life.h"

/* One exchange. The caller fills in the first part and zeroes the rest. */
struct weir__mem {
    const struct weir__app *app; /* its options hold the bounds */
    struct weir_worker *worker;  /* may be NULL */
    struct weir__pair *params;   /* valid until run() has returned */
    unsigned params_len;
    const void *body;
    size_t body_len;
    size_t piece_bytes; /* of the body that come at a time; 0: all */
    bool authorizer;
    bool gone;               /* the client is gone once the request has been read */
    size_t gone_after_bytes; /* or has taken so many bytes of head and body; 0: not */
    bool no_offload;         /* too many are in flight, always */

    /* The request waits, on the calling thread: on return it must have been woken, or
     * another thread must be about to do it, or weir__mem_time_out() was called. */
    void (*waiting)(struct weir *w, void *arg);
    void *arg;

    /* What comes out; weir__mem_finish() frees it. */
    struct weir__buf head, out, hooks; /* hooks: "before:a commit:a ..." */
    int status;                        /* 0: no head has left */
    unsigned flushes, waits;
    bool complete; /* ended in order */
    bool short_of_memory;
};

/* Runs the request to its end. */
void weir__mem_run(struct weir__mem *mem);

/* Inside waiting(): ends the wait as if its time were over. */
void weir__mem_time_out(struct weir *w);

/* Whether the wait has ended, or after at most us microseconds of the system's clock. */
bool weir__mem_wait(struct weir *w, int64_t us);

void weir__mem_finish(struct weir__mem *mem);

#endif
