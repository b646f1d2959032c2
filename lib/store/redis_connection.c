/* One connection as the store sees it: questions, what the loop tells, its life.
 *
 * Everything happens under one lock that is never held while anybody waits or is told: a
 * call collects whom it has answers for and tells them after. What a late reply took is
 * given back in its place; the stream is only left when it is broken, or silent for so
 * long that nothing can come any more. It never connects, sends or reads in a way that
 * could block, but for weir__redis_connection_start(). */
#include "store/redis_connection.h"

#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "store/redis_await.h"
#include "store/redis_flight.h"
#include "store/redis_link.h"
#include "store/redis_probe.h"
#include "store/redis_script.h"

#define OUT_MAX_BYTES ((size_t)4 * 1024 * 1024)

/* ---- what the loop tells ----------------------------------------------------------- */

static void ready(struct weir__source *source, unsigned what)
{
    struct weir__redis_connection *connection =
        (struct weir__redis_connection *)((char *)source -
                                          offsetof(struct weir__redis_connection,
                                                   source));
    struct weir__redis_answers answers = { NULL, NULL };
    (void)what;
    pthread_mutex_lock(&connection->lock);
    if (connection->fd >= 0)
        weir__redis_link_look(connection, &answers);
    pthread_mutex_unlock(&connection->lock);
    weir__redis_answers_tell(&answers);
}

/* First what has come all the same: where this process was late, Redis is not. */
static void deadline(struct weir__alarm *alarm)
{
    struct weir__redis_connection *connection =
        (struct weir__redis_connection *)((char *)alarm -
                                          offsetof(struct weir__redis_connection,
                                                   deadline));
    struct weir__redis_answers answers = { NULL, NULL };
    pthread_mutex_lock(&connection->lock);
    if (connection->fd >= 0)
        weir__redis_link_look(connection, &answers);
    int64_t now_us = weir__clock_now_us();
    bool probe_late = false;
    for (unsigned n = weir__redis_expire(connection, now_us, &answers, &probe_late);
         n > 0;
         n--)
        weir__redis_probe_failed(connection, now_us);
    if (probe_late)
        weir__redis_probe_bad(connection, now_us);
    bool greets = connection->state == WEIR__REDIS_CONNECTING ||
                  connection->state == WEIR__REDIS_GREETING;
    if (greets && now_us >= connection->greet_until_us)
        weir__redis_link_lose(
            connection, "it doesn't answer the greeting", now_us, &answers);
    else if (connection->flights_len > 0 &&
             now_us - connection->heard_us > WEIR__REDIS_SILENT_US &&
             now_us - connection->flights[connection->first].put_us >
                 WEIR__REDIS_SILENT_US)
        weir__redis_link_lose(connection, "it is silent", now_us, &answers);
    if (connection->fd >= 0)
        weir__redis_link_set_deadline(connection);
    pthread_mutex_unlock(&connection->lock);
    weir__redis_answers_tell(&answers);
}

static void retry_fired(struct weir__alarm *alarm)
{
    struct weir__redis_connection *connection =
        (struct weir__redis_connection *)((char *)alarm -
                                          offsetof(struct weir__redis_connection, retry));
    struct weir__redis_answers answers = { NULL, NULL };
    pthread_mutex_lock(&connection->lock);
    weir__redis_probe_retry(connection, weir__clock_now_us(), &answers);
    if (connection->fd >= 0)
        weir__redis_link_set_deadline(connection);
    pthread_mutex_unlock(&connection->lock);
    weir__redis_answers_tell(&answers);
}

static void turn_ended(void *arg)
{
    struct weir__redis_connection *connection = arg;
    struct weir__redis_answers answers = { NULL, NULL };
    if (!atomic_load_explicit(&connection->unsent, memory_order_relaxed))
        return;
    pthread_mutex_lock(&connection->lock);
    int fd = connection->fd;
    int64_t epoch = connection->epoch;
    bool awaits =
        fd >= 0 && weir__redis_await_begin(connection, weir__clock_now_us(), &answers);
    pthread_mutex_unlock(&connection->lock);
    if (awaits)
        weir__redis_await(connection, fd, epoch, &answers);
    weir__redis_answers_tell(&answers);
}

/* ---- questions --------------------------------------------------------------------- */

/* Nothing has come for a while although something should have. */
static bool is_silent(const struct weir__redis_connection *connection, int64_t now_us)
{
    if (connection->flights_len == 0)
        return false;
    int64_t since_us = connection->flights[connection->first].put_us;
    if (connection->heard_us > since_us)
        since_us = connection->heard_us;
    return now_us - since_us > connection->settings->silence_us;
}

static bool put(struct weir__redis_connection *connection,
                struct weir_store_ask *ask,
                struct weir__redis_answers *answers)
{
    int64_t now_us = weir__clock_now_us();
    if (connection->state != WEIR__REDIS_UP)
        return false;
    if (is_silent(connection, now_us)) {
        weir__redis_link_read(connection, now_us, answers);
        if (connection->state != WEIR__REDIS_UP || is_silent(connection, now_us))
            return false;
    }
    int64_t deadline_us = now_us + connection->settings->timeout_us;
    if (ask->deadline_us > 0 && ask->deadline_us < deadline_us)
        deadline_us = ask->deadline_us;
    if (!weir__redis_put_ask(connection, ask, WEIR__REDIS_FOR_ASK, deadline_us, now_us))
        return false;
    if (!weir__alarm_is_due(&connection->deadline, deadline_us))
        weir__alarm_set(connection->loop, &connection->deadline, deadline_us);
    return true;
}

/* In a turn of this loop its end sends it, with what else the turn brings. */
static void send_soon(struct weir__redis_connection *connection,
                      struct weir__redis_answers *answers)
{
    if (weir__turn_is_open())
        atomic_store(&connection->unsent, true);
    else
        weir__redis_link_flush(connection, weir__clock_now_us(), answers);
}

enum weir_store_result
weir__redis_connection_ask(struct weir__redis_connection *connection,
                           struct weir_store_ask *ask)
{
    struct weir__redis_answers answers = { NULL, NULL };
    if (weir__breaker_is_open(connection->settings->breaker)) {
        weir__redis_probe_look(connection);
        return WEIR_STORE_UNAVAILABLE;
    }
    pthread_mutex_lock(&connection->lock);
    bool pending = put(connection, ask, &answers);
    if (pending)
        send_soon(connection, &answers);
    pthread_mutex_unlock(&connection->lock);
    weir__redis_answers_tell(&answers);
    return pending ? WEIR_STORE_PENDING : WEIR_STORE_UNAVAILABLE;
}

void weir__redis_connection_refund(struct weir__redis_connection *connection,
                                   const struct weir_store_ask *ask)
{
    struct weir__redis_answers answers = { NULL, NULL };
    pthread_mutex_lock(&connection->lock);
    if (connection->state == WEIR__REDIS_UP) {
        weir__redis_put_back(connection, ask, weir__clock_now_us());
        send_soon(connection, &answers);
    }
    pthread_mutex_unlock(&connection->lock);
    weir__redis_answers_tell(&answers);
}

/* ---- its life ---------------------------------------------------------------------- */

bool weir__redis_connection_init(struct weir__redis_connection *connection,
                                 const struct weir__redis_settings *settings,
                                 struct weir__loop *loop)
{
    memset(connection, 0, sizeof *connection);
    connection->settings = settings;
    connection->loop = loop;
    connection->source.ready = ready;
    connection->deadline.fire = deadline;
    connection->retry.fire = retry_fired;
    connection->fd = -1;
    weir__random_bytes(&connection->nonce, sizeof connection->nonce);
    connection->nonce %= WEIR__REDIS_NONCE_MAX;
    weir__buf_init(&connection->out, OUT_MAX_BYTES);
    connection->flights = calloc(WEIR__REDIS_FLIGHTS_MAX, sizeof *connection->flights);
    if (!connection->flights || !weir__loop_turn_end(loop, turn_ended, connection)) {
        free(connection->flights);
        return false;
    }
    pthread_mutex_init(&connection->lock, NULL);
    return true;
}

void weir__redis_connection_finish(struct weir__redis_connection *connection)
{
    struct weir__redis_answers answers = { NULL, NULL };
    weir__redis_give_up(connection, &answers);
    if (connection->fd >= 0)
        close(connection->fd);
    weir__redis_replies_destroy(connection->replies);
    weir__buf_finish(&connection->out);
    free(connection->flights);
    pthread_mutex_destroy(&connection->lock);
    weir__redis_answers_tell(&answers);
}

void weir__redis_connection_disown(struct weir__redis_connection *connection)
{
    connection->flights_len = 0;
}

void weir__redis_connection_start(struct weir__redis_connection *connection,
                                  int64_t wait_us)
{
    struct weir__redis_answers answers = { NULL, NULL };
    int64_t now_us = weir__clock_now_us(), until_us = now_us + wait_us;
    pthread_mutex_lock(&connection->lock);
    weir__redis_link_connect(connection, now_us, &answers);
    while (connection->fd >= 0 && connection->state != WEIR__REDIS_UP &&
           (now_us = weir__clock_now_us()) < until_us) {
        struct pollfd waited = {
            .fd = connection->fd,
            .events = connection->wanted & WEIR__POLL_WRITE ? POLLIN | POLLOUT : POLLIN,
        };
        poll(&waited, 1, (int)((until_us - now_us) / 1000) + 1);
        weir__redis_link_look(connection, &answers);
    }
    pthread_mutex_unlock(&connection->lock);
    weir__redis_answers_tell(&answers);
}
