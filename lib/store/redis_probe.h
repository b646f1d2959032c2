/* A connection's part in the breaker. All of it under the connection's lock but for
 * weir__redis_probe_look(). */
#ifndef WEIR_STORE_REDIS_PROBE_H
#define WEIR_STORE_REDIS_PROBE_H

#include "store/redis_flight.h"

/* A question had no answer, or the connection is lost. */
void weir__redis_probe_failed(struct weir__redis_connection *connection, int64_t now_us);

/* Sends the probe that this connection has taken on. */
void weir__redis_probe_send(struct weir__redis_connection *connection,
                            int64_t now_us,
                            struct weir__redis_answers *answers);

/* How it went. Nothing where this connection has none. */
void weir__redis_probe_good(struct weir__redis_connection *connection,
                            int64_t now_us,
                            struct weir__redis_answers *answers);
void weir__redis_probe_bad(struct weir__redis_connection *connection, int64_t now_us);

/* The retry alarm: probes where the breaker is open and nobody else does, connects where
 * it is closed. */
void weir__redis_probe_retry(struct weir__redis_connection *connection,
                             int64_t now_us,
                             struct weir__redis_answers *answers);

/* Sees to it that the retry alarm is set while the breaker is open: another process may
 * have opened it, and have died since. Takes the lock, if it is free. */
void weir__redis_probe_look(struct weir__redis_connection *connection);

#endif
