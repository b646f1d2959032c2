/* The messages between the parent and a worker over their SOCK_SEQPACKET pair, each one
 * packet. Both ends are the same program, forked, so the layout is this struct's.
 *
 * Who drains a worker sends it SIGTERM; the end of the channel means that the parent is
 * gone. A type that the receiver doesn't know is left alone. */
#ifndef WEIR_PROCESS_CONTROL_H
#define WEIR_PROCESS_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

enum weir__control_type {
    WEIR__CONTROL_READY = 1, /* worker: its threads run, it accepts */
    WEIR__CONTROL_DRAINING,  /* worker: it has stopped accepting and will end, whoever
                                asked for it; the parent starts another in its place */
    WEIR__CONTROL_STATS_ASK, /* parent: wants STATS of the same number */
    WEIR__CONTROL_STATS      /* worker: the answer; with number 0 unasked, its last words
                                before it ends */
};

/* Sums since the worker's start, but for `connections`. */
struct weir__control_stats {
    uint64_t requests;    /* answered */
    uint64_t refused;     /* of them 429 */
    uint64_t failed;      /* of them 500 and above */
    uint64_t accepted;    /* connections taken */
    uint64_t connections; /* open now */
};

struct weir__control_message {
    enum weir__control_type type;
    uint64_t number; /* joins an answer to its question */
    struct weir__control_stats stats;
};

/* Sends one message; never blocks, never raises SIGPIPE. False where the other end is
 * gone or doesn't read: what was to be said is lost. Any thread. */
bool weir__control_send(int fd, const struct weir__control_message *message);

enum weir__control_result {
    WEIR__CONTROL_MESSAGE, /* *ret_message is filled in */
    WEIR__CONTROL_NOTHING, /* none waits */
    WEIR__CONTROL_CLOSED   /* the other end is gone */
};

/* Takes one message; never blocks. A packet of another size is logged and skipped. One
 * thread at a time. */
enum weir__control_result
weir__control_receive(int fd, struct weir__control_message *ret_message);

#endif
