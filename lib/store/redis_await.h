/* Waiting for a reply on the spot: where a question is the only one on its way, the
 * thread that has sent it waits for the reply instead of going through the poller. That
 * spares a wake, which costs more than Redis takes to answer. */
#ifndef WEIR_STORE_REDIS_AWAIT_H
#define WEIR_STORE_REDIS_AWAIT_H

#include "store/redis_flight.h"

/* Sends, at the end of a turn and under the lock, what the turn has put. True where the
 * calling thread is to call weir__redis_await() then, without the lock; until it has, the
 * poller doesn't report replies. */
bool weir__redis_await_begin(struct weir__redis_connection *connection,
                             int64_t now_us,
                             struct weir__redis_answers *answers);

/* Waits for a reply on fd, the socket of the connection's epoch, a millisecond at most,
 * and takes it. What is still missing then is the poller's to report. Takes the lock. */
void weir__redis_await(struct weir__redis_connection *connection,
                       int fd,
                       int64_t epoch,
                       struct weir__redis_answers *answers);

#endif
