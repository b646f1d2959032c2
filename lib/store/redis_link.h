/* The socket of a connection. All of it under the connection's lock; questions that are
 * over by it are added to `answers`, to be told once the lock is free. now_us is
 * monotonic. */
#ifndef WEIR_STORE_REDIS_LINK_H
#define WEIR_STORE_REDIS_LINK_H

#include "store/redis_flight.h"

#define WEIR__REDIS_SILENT_US INT64_C(2000000) /* after it a connection is of no use */

/* Begins to connect one that is down. Where that fails at once it is lost again. */
void weir__redis_link_connect(struct weir__redis_connection *connection,
                              int64_t now_us,
                              struct weir__redis_answers *answers);

/* Leaves the socket, says why, and sets the retry alarm. */
void weir__redis_link_lose(struct weir__redis_connection *connection,
                           const char *why,
                           int64_t now_us,
                           struct weir__redis_answers *answers);

/* Sends what is there, as far as it goes. */
void weir__redis_link_flush(struct weir__redis_connection *connection,
                            int64_t now_us,
                            struct weir__redis_answers *answers);

/* Takes all that has come; what that brings about is sent. */
void weir__redis_link_read(struct weir__redis_connection *connection,
                           int64_t now_us,
                           struct weir__redis_answers *answers);

/* Has the poller report replies, where any are missing and nobody waits for them. */
void weir__redis_link_listen(struct weir__redis_connection *connection);

/* Does whatever the socket is ready for. It must not be down. */
void weir__redis_link_look(struct weir__redis_connection *connection,
                           struct weir__redis_answers *answers);

/* Sets the deadline alarm for what is the first to be over. */
void weir__redis_link_set_deadline(struct weir__redis_connection *connection);

#endif
