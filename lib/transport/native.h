/* The record engine: FastCGI from sockets of ours, no byte of it through anybody else's
 * code. It accepts, reads records, lets life.c run the requests, and writes the answers,
 * all in the threads of one loop. Every size and time is bounded by the options. */
#ifndef WEIR_TRANSPORT_NATIVE_H
#define WEIR_TRANSPORT_NATIVE_H

#include "app.h"
#include "net/loop.h"
#include "worker.h"

struct weir__native;

struct weir__native_config {
    const struct weir__app *app; /* its options hold the bounds */
    struct weir_worker *worker;  /* with its loop */
    const int *listen_fds;       /* non-blocking; stay the caller's */
    const bool *listen_unix;     /* which of them are unix sockets */
    unsigned listen_len;
    void (*drained)(void *arg); /* no connection is left after a drain; any thread, NULL:
                                   nobody wants to know */
    void *arg;
};

/* Makes the engine; it accepts once the loop's threads run. False with a text. The
 * config's arrays and app must outlive it. Before the threads. */
bool weir__native_create(const struct weir__native_config *config,
                         struct weir__native **ret_native,
                         struct weir_error *ret_error);

/* Stops accepting, closes what idles, and every other connection after its answer. Any
 * thread, once. */
void weir__native_drain(struct weir__native *native);

/* Sums since the start, but for `connections`: those that are open. */
struct weir__native_stats {
    uint64_t requests; /* answered */
    uint64_t refused;  /* of them 429 */
    uint64_t failed;   /* of them 500 and above */
    uint64_t accepted; /* connections */
    uint64_t connections;
};

/* Any thread. */
void weir__native_stats(const struct weir__native *native,
                        struct weir__native_stats *ret_stats);

/* Closes what is open and frees everything; after the loop's threads have returned,
 * before the loop is finished. Takes NULL. */
void weir__native_destroy(struct weir__native *native);

#endif
