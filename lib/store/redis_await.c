/* The wait for a lone reply.
 *
 * Nobody else must suffer from it: another thread sits in the poller, nothing else of the
 * turn is left to do, and the lock is free meanwhile. While a thread waits here the
 * socket is not in the poller's care, or the reply would wake a second thread for
 * nothing; that it was closed is told all the same. Other threads may send and even lose
 * the connection in that time, so all is looked at anew afterwards. */
#include "store/redis_await.h"

#include <poll.h>

#include "store/redis_link.h"

#define AWAIT_MS 1
#define AWAIT_LEFT_US 2000 /* to its deadline, or a question isn't waited for here */
/* Where Redis has let somebody wait in vain nobody else tries for a while. */
#define PAUSE_US INT64_C(100000)

static bool may_await(const struct weir__redis_connection *connection, int64_t now_us)
{
    const struct weir__redis_flight *flight = &connection->flights[connection->first];
    return connection->state == WEIR__REDIS_UP && connection->flights_len == 1 &&
           !connection->awaited && flight->purpose == WEIR__REDIS_FOR_ASK &&
           flight->ask && now_us >= connection->await_from_us &&
           flight->deadline_us - now_us > AWAIT_LEFT_US && weir__turn_may_wait();
}

bool weir__redis_await_begin(struct weir__redis_connection *connection,
                             int64_t now_us,
                             struct weir__redis_answers *answers)
{
    bool awaits = may_await(connection, now_us);
    if (awaits)
        connection->awaited = true;
    weir__redis_link_flush(connection, now_us, answers);
    return awaits && connection->fd >= 0;
}

void weir__redis_await(struct weir__redis_connection *connection,
                       int fd,
                       int64_t epoch,
                       struct weir__redis_answers *answers)
{
    struct pollfd reply = { .fd = fd, .events = POLLIN };
    int came = poll(&reply, 1, AWAIT_MS);
    weir__turn_waited();

    pthread_mutex_lock(&connection->lock);
    int64_t now_us = weir__turn_now_us();
    if (connection->fd >= 0 && connection->epoch == epoch) {
        connection->awaited = false;
        if (came == 0)
            connection->await_from_us = now_us + PAUSE_US;
        weir__redis_link_read(connection, now_us, answers);
        if (connection->fd >= 0)
            weir__redis_link_listen(connection);
        if (connection->flights_len == 0)
            weir__alarm_clear(&connection->deadline);
    }
    pthread_mutex_unlock(&connection->lock);
}
