/* Commands on their way: a ring in the order in which they were sent, which is the order
 * of the replies. All of it under the connection's lock. */
#ifndef WEIR_STORE_REDIS_FLIGHT_H
#define WEIR_STORE_REDIS_FLIGHT_H

#include "store/redis_connection.h"

enum weir__redis_purpose {
    WEIR__REDIS_FOR_GREETING, /* AUTH, SELECT: +OK or the connection is of no use */
    WEIR__REDIS_FOR_LOAD,     /* a script: the SHA-1 that we have for it, or likewise */
    WEIR__REDIS_FOR_ASK,
    WEIR__REDIS_FOR_REFUND,
    WEIR__REDIS_FOR_PROBE
};

struct weir__redis_flight {
    enum weir__redis_purpose purpose;
    unsigned script;  /* FOR_LOAD: which, of enum weir__redis_script_id */
    unsigned loads;   /* the connection's, when this was sent */
    unsigned replays; /* how often the script was unknown */
    uint64_t nonce;
    int64_t put_us, deadline_us; /* the latter where there is an ask */
    struct weir_store_ask *ask;  /* NULL once it is too late for it */
    struct weir_store_ask *late; /* ours then: a copy, to undo what it takes */
};

/* Questions whose done() is to be called once the lock is free, in their order. */
struct weir__redis_answers {
    struct weir_store_ask *first, *last;
};
void weir__redis_answers_tell(struct weir__redis_answers *answers);

/* What a reply means for the connection. */
enum weir__redis_effect {
    WEIR__REDIS_GOES_ON,
    WEIR__REDIS_IS_UP,       /* the greeting is over */
    WEIR__REDIS_FAILED,      /* this command only */
    WEIR__REDIS_PROBED_GOOD, /* the probe was answered, or not well */
    WEIR__REDIS_PROBED_BAD,
    WEIR__REDIS_IS_BROKEN /* nothing on it can be trusted any more */
};

/* Appends a flight; NULL where there are too many. */
struct weir__redis_flight *weir__redis_push(struct weir__redis_connection *connection,
                                            enum weir__redis_purpose purpose,
                                            int64_t now_us);

/* Puts the question, which is to be given up at deadline_us. Its flight, or NULL where
 * there is no room. */
struct weir__redis_flight *weir__redis_put_ask(struct weir__redis_connection *connection,
                                               struct weir_store_ask *ask,
                                               enum weir__redis_purpose purpose,
                                               int64_t deadline_us,
                                               int64_t now_us);

/* Puts what every connection begins with. */
bool weir__redis_put_greeting(struct weir__redis_connection *connection, int64_t now_us);

/* A refund of what the receipts say, if any was charged on this connection. */
void weir__redis_put_back(struct weir__redis_connection *connection,
                          const struct weir_store_ask *ask,
                          int64_t now_us);

/* The reply to the first flight, which is over then. */
enum weir__redis_effect weir__redis_take(struct weir__redis_connection *connection,
                                         const struct weir__redis_reply *reply,
                                         int64_t now_us,
                                         struct weir__redis_answers *answers);

/* Gives up the questions whose time is over; their places stay. Returns how many, and
 * whether the probe is among them. */
unsigned weir__redis_expire(struct weir__redis_connection *connection,
                            int64_t now_us,
                            struct weir__redis_answers *answers,
                            bool *ret_probe);

/* The next deadline of a question, INT64_MAX where there is none. */
int64_t weir__redis_next_deadline_us(const struct weir__redis_connection *connection);

/* Gives up all: the connection is away. */
void weir__redis_give_up(struct weir__redis_connection *connection,
                         struct weir__redis_answers *answers);

#endif
