/* One connection to Redis in one process, driven by a loop: questions go in from any
 * thread, what a turn brings leaves in one write, answers are told apart by their order
 * and checked by their nonce. */
#ifndef WEIR_STORE_REDIS_CONNECTION_H
#define WEIR_STORE_REDIS_CONNECTION_H

#include <pthread.h>

#include <weir/store.h>
#include "base/buf.h"
#include "net/loop.h"
#include "store/breaker.h"
#include "store/redis_reply.h"
#include "store/redis_socket.h"

#define WEIR__REDIS_FLIGHTS_MAX 4096U /* a power of two */

/* What all connections of a store have in common. Not changed while any lives. */
struct weir__redis_settings {
    struct weir__redis_address address;
    const char *password; /* NULL: none */
    unsigned database;
    int64_t timeout_us; /* of a decision */
    int64_t silence_us; /* after so much, new questions aren't even asked */
    struct weir__breaker *breaker;
};

enum weir__redis_state {
    WEIR__REDIS_DOWN,
    WEIR__REDIS_CONNECTING,
    WEIR__REDIS_GREETING, /* AUTH, SELECT and the scripts are on their way */
    WEIR__REDIS_UP
};

struct weir__redis_flight; /* a command without its reply */

struct weir__redis_connection {
    const struct weir__redis_settings *settings;
    struct weir__loop *loop;
    struct weir__source source;
    struct weir__alarm deadline, retry;
    pthread_mutex_t lock; /* guards all that follows */
    enum weir__redis_state state;
    int fd;
    unsigned wanted;       /* of enum weir__poll, as the poller has it */
    bool probes;           /* it has the breaker's probe */
    bool awaited;          /* a thread waits for the reply on the spot */
    int64_t await_from_us; /* none does so before */
    uint64_t nonce;
    int64_t epoch;      /* grows with each connection */
    unsigned loads;     /* how often the scripts were sent on this one */
    unsigned greetings; /* replies that are missing until it is up */
    int64_t heard_us, greet_until_us, retry_at_us, backoff_us;
    struct weir__buf out;
    size_t sent; /* of out */
    atomic_bool unsent;
    struct weir__redis_replies *replies;
    struct weir__redis_flight *flights; /* a ring */
    unsigned first, flights_len;
    struct weir_store_ask probe; /* while one is on its way */
};

/* Of settings and a loop whose threads don't run yet; nothing is connected. False when
 * memory is short or the loop has no place. */
bool weir__redis_connection_init(struct weir__redis_connection *connection,
                                 const struct weir__redis_settings *settings,
                                 struct weir__loop *loop);
/* After the loop's threads have ended. What is still unanswered is told so. */
void weir__redis_connection_finish(struct weir__redis_connection *connection);

/* In a child that was forked from who had it: forgets the questions, which are the
 * other process's. weir__redis_connection_finish() is still to be called. */
void weir__redis_connection_disown(struct weir__redis_connection *connection);

/* Connects, and waits up to wait_us until it is up; where it isn't then, it goes on in
 * the loop. Before the loop's threads run. */
void weir__redis_connection_start(struct weir__redis_connection *connection,
                                  int64_t wait_us);

/* PENDING or UNAVAILABLE; the same contract as in store.h. Any thread. */
enum weir_store_result
weir__redis_connection_ask(struct weir__redis_connection *connection,
                           struct weir_store_ask *ask);

/* Sends off what the ask's receipts say was charged on this connection, to be given back.
 * Any thread. */
void weir__redis_connection_refund(struct weir__redis_connection *connection,
                                   const struct weir_store_ask *ask);

#endif
