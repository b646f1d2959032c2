/* What the files of the record engine share. Private to native*.c.
 *
 * A connection is an actor. Whatever happens to it (an event, an alarm, a request that
 * comes back) is a bit in its mail; who puts the first bit in owns the connection, works
 * the mail off and lets go when there is none left. So one thread at a time touches it,
 * nobody waits for a lock, and nothing gets lost.
 *
 * While a request runs where it may block, waits in a queue or is parked, it is away: the
 * connection has an owner or not, and goes on reading. If the connection has to end the
 * request first (client gone, abort, time over) the two are parted: the request becomes
 * an orphan, is run to its end without a connection, and the connection is free for
 * others. That is decided under the request's mutex. */
#ifndef WEIR_TRANSPORT_NATIVE_IMPL_H
#define WEIR_TRANSPORT_NATIVE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "life.h"
#include "net/fcgi.h"
#include "net/loop.h"
#include "transport/native.h"
#include "transport/native_frames.h"
#include "transport/offloads.h"

/* ---- requests --------------------------------------------------------------------- */

#define WEIR__NATIVE_ARENA_BLOCK ((size_t)16 * 1024)
/* What is taken of a body before the chain has admitted its request. */
#define WEIR__NATIVE_EARLY_BODY ((size_t)64 * 1024)

struct weir__native_request {
    struct weir w; /* first: the one is found by the other */
    struct weir__native *native;
    struct weir__native_request *next; /* in the pool */
    struct weir__native_request *next_of_all;

    /* The connection's owner's, while it isn't away. */
    uint16_t id;
    bool keep_conn;
    bool params_done; /* the empty PARAMS has come */
    bool begun;       /* life.c has it */
    struct weir__fcgi_pairs pairs;
    struct weir__buf body;
    bool stdin_done;     /* the empty STDIN has come */
    bool admitted;       /* life.c wants the body */
    bool body_too_large; /* and what came of it is dropped */
    struct weir__native_frames frames;
    size_t renewed_bytes; /* of the frames, when the write deadline was last renewed */
    size_t counted_bytes; /* of the worker's budget */

    /* While it is away. */
    struct weir__task block;   /* runs it where it may block */
    _Atomic uint32_t *pace_us; /* of what it does there */
    struct weir__task soon;    /* runs an orphan on */
    struct weir__alarm alarm;  /* of its wait */
    _Atomic uint64_t wait;
    atomic_bool cut; /* what it sends is not wanted any more */
    pthread_mutex_t mutex;
    struct weir__native_connection *connection; /* valid unless it is an orphan */
    bool orphan;
    bool sending;         /* its thread uses the connection's descriptor */
    bool look_when_sent;  /* the connection's owner waits for the end of that */
    enum weir__need need; /* what it came back with */
};

static inline struct weir__native_request *weir__native_request_of(struct weir *w)
{
    return (struct weir__native_request *)w;
}

/* ---- connections ------------------------------------------------------------------ */

enum weir__native_mail {
    WEIR__NATIVE_OWNED = 1,
    WEIR__NATIVE_OPEN = 2,    /* accepted_fd is a new connection */
    WEIR__NATIVE_READ = 4,    /* there may be something to read */
    WEIR__NATIVE_WRITE = 8,   /* there may be room */
    WEIR__NATIVE_SHUT = 16,   /* the peer may have shut its side, or be away */
    WEIR__NATIVE_BACK = 32,   /* the request came back, with request->need */
    WEIR__NATIVE_RESUME = 64, /* the parked request may go on */
    WEIR__NATIVE_TIME = 128,  /* the alarm */
    WEIR__NATIVE_LOOK = 256   /* something else has changed: drain, budget, sending */
};

enum weir__native_phase {
    WEIR__NATIVE_FREE,    /* in the pool */
    WEIR__NATIVE_IDLE,    /* no request */
    WEIR__NATIVE_HEAD,    /* parameters are coming */
    WEIR__NATIVE_REQUEST, /* life.c has the request; its body may be coming */
    WEIR__NATIVE_REPLY,   /* the answer waits for room */
    WEIR__NATIVE_REST,    /* answered; a kept connection whose old STDIN goes on */
    WEIR__NATIVE_LINGER,  /* answered and half-closed: reads on to the end */
    WEIR__NATIVE_DOOMED   /* shut down; closed once its request's thread lets go */
};

struct weir__native_connection {
    struct weir__source source; /* first */
    struct weir__task task;     /* its owner is to work in a turn */
    struct weir__alarm alarm;
    atomic_uint mail;
    struct weir__native *native;
    struct weir__native_connection *next, *next_starving;
    atomic_bool starving; /* isn't read, since the budget is used up */

    int accepted_fd;    /* for the owner: see OPEN */
    bool accepted_unix; /* the same */
    int fd;
    bool unix_socket;
    bool watched;    /* the poller knows it */
    bool want_write; /* for room, too */
    bool readable;   /* not everything has been read */
    bool shut;       /* the peer has shut its side: there is an end to be read */
    bool ended;      /* and it has been read */
    bool served;     /* it has had a request, so that it may stay idle for longer */
    bool away;       /* the request is */
    bool overdue;    /* its total time is over: it is abandoned when it comes back */
    bool pooled;
    enum weir__native_phase phase;
    struct weir__fcgi_reader reader;
    struct weir__fcgi_query query;
    struct weir__native_request *request;
    enum weir__need need; /* the request's, unless it is away; RESUME: to be run */
    uint16_t rest_id;     /* the request whose STDIN goes on */
    size_t linger_bytes;  /* to be read at most */
    int64_t head_us;      /* when the first byte of a request came; 0: none yet */
    int64_t total_us;     /* the request's end of time */
    int64_t idle_until_us;
    unsigned char owed[256]; /* control records that couldn't leave yet */
    unsigned owed_len;
};

/* ---- the engine ------------------------------------------------------------------- */

struct weir__native_listener {
    struct weir__source source; /* first */
    struct weir__task again;    /* accepts one more */
    struct weir__alarm resume;  /* after a shortage of descriptors */
    struct weir__native *native;
    int fd;
    bool unix_socket;
    atomic_bool again_queued;
    atomic_bool last_look; /* draining: counted as open until `again` has found nothing */
    bool listed;           /* in the poller; under listen_mutex */
};

/* Of one thread, so that counting costs nothing. */
struct weir__native_counts {
    _Alignas(64) _Atomic uint64_t requests;
    _Atomic uint64_t refused, failed, accepted;
    struct weir__native_request *spare; /* the last one that it ended */
};

struct weir__native {
    struct weir__native_config config;
    const struct weir__options *options;
    struct weir__loop *loop;
    struct weir__offloads offloads;
    struct weir__native_counts *counts; /* one a thread */
    _Atomic uint32_t *paces_us;         /* native_pace.c */

    struct weir__native_listener listeners[WEIR__LISTEN_MAX];
    unsigned listeners_len;
    pthread_mutex_t listen_mutex;
    int spare_fd; /* given up to accept and close where there is no other */

    atomic_size_t buffered_bytes;
    atomic_uint open; /* connections */
    atomic_uint kept; /* all there were that are kept */
    atomic_bool draining;
    atomic_bool full; /* no more is accepted */
    atomic_uint starving_len;

    pthread_mutex_t pool_mutex;
    struct weir__native_connection **connections; /* all there ever were */
    unsigned connections_len;
    struct weir__native_connection *free_connections, *starving;
    struct weir__native_request *free_requests, *requests;
};

/* ---- native_pool.c ---------------------------------------------------------------- */

/* A connection from the pool, which the caller has counted as open; NULL when there are
 * too many, or short of memory. Put back it is counted out. */
struct weir__native_connection *weir__native_connection_take(struct weir__native *native);
void weir__native_connection_put(struct weir__native_connection *connection);

/* Made for the pool; weir__native_request_take() is what others call. */
struct weir__native_request *weir__native_request_create(struct weir__native *native);

/* A request from the pool with nothing in it, counted against the budget. */
struct weir__native_request *weir__native_request_take(struct weir__native *native);
void weir__native_request_put(struct weir__native_request *request);

/* Brings what is counted against the budget up to date. */
void weir__native_request_count(struct weir__native_request *request);

/* Whether more may be read. */
bool weir__native_has_budget(const struct weir__native *native);
/* The connection is read again once there is budget. */
void weir__native_starve(struct weir__native_connection *connection);

void weir__native_pool_finish(struct weir__native *native);

/* ---- native_accept.c -------------------------------------------------------------- */

bool weir__native_listen(struct weir__native *native, struct weir_error *ret_error);
void weir__native_unlisten(struct weir__native *native);
/* A connection was closed: more may be accepted. */
void weir__native_relisten(struct weir__native *native);
/* A connection is to stay open behind its first request: others' turn to accept. */
void weir__native_kept_one(struct weir__native *native);
/* Counts a connection out, tells the end of a drain, accepts again where it was full. */
void weir__native_closed_one(struct weir__native *native);

/* ---- native_connection.c ---------------------------------------------------------- */

/* Puts bits into the mail. True: the caller owns the connection now, and either calls
 * weir__native_go_on() in a turn or queues its task. */
bool weir__native_post(struct weir__native_connection *connection, unsigned mail);
void weir__native_go_on(struct weir__native_connection *connection);

/* Has the poller watch it, for room too if want_write. False: it can't, close it. */
bool weir__native_watch(struct weir__native_connection *connection, bool want_write);

/* Closes; the request must be parted from it. */
void weir__native_close(struct weir__native_connection *connection);

/* The answer has left whole, or there is none: on to the next request, the rest of the
 * STDIN, lingering, or the close. */
void weir__native_answered(struct weir__native_connection *connection,
                           bool keep_conn,
                           bool stdin_done,
                           uint16_t id);

/* The peer is away or has broken the protocol: parts from the request and closes. */
void weir__native_lose(struct weir__native_connection *connection);

/* ---- native_input.c --------------------------------------------------------------- */

/* Reads what there is, as far as it may be read, and handles it. */
void weir__native_take_input(struct weir__native_connection *connection);

/* ---- native_request.c ------------------------------------------------------------- */

extern const struct weir__transport_ops weir__native_ops;

/* Readies a request for its parameters. */
void weir__native_request_begin(struct weir__native_request *request,
                                struct weir__native_connection *connection,
                                uint16_t id,
                                const struct weir__fcgi_begin *begin);

/* All parameters are there: begins, and runs. */
void weir__native_begin(struct weir__native_connection *connection);

/* Goes on with a request that isn't away, as far as connection->need goes. */
void weir__native_drive(struct weir__native_connection *connection);

/* The total time of a request is over. */
void weir__native_overdue(struct weir__native_connection *connection);

/* Ends the ties of connection and request, whose answer is not wanted any more; the
 * request is run to its end. False: its thread is sending on the connection just now, and
 * posts LOOK when it is done. */
bool weir__native_part(struct weir__native_connection *connection);

/* ---- native_pace.c ---------------------------------------------------------------- */

bool weir__native_pace_init(struct weir__native *native);

/* Before a request goes where it may block: whether it is expected to be brief there. */
void weir__native_pace_expect(struct weir__native_request *request);

/* And how long it took, in microseconds. */
void weir__native_pace_note(struct weir__native_request *request, int64_t took_us);

/* ---- native_output.c -------------------------------------------------------------- */

/* The request's answer is due: sends it, or begins to. */
void weir__native_reply(struct weir__native_connection *connection);
/* There is room again. */
void weir__native_reply_on(struct weir__native_connection *connection);

/* Sends a control record, or keeps it for the end of what is being sent. Loses the
 * connection where the peer doesn't read. */
void weir__native_control(struct weir__native_connection *connection,
                          const unsigned char *record,
                          size_t len);
void weir__native_control_on(struct weir__native_connection *connection);

/* Answers 504 in place of a request that has been parted from the connection. */
void weir__native_answer_timeout(struct weir__native_connection *connection,
                                 uint16_t id,
                                 bool head,
                                 bool keep_conn,
                                 bool stdin_done);

/* ops->send: see life.h. */
bool weir__native_send(struct weir *w);

#endif
