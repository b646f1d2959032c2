/* The socket of a connection: made, written to, read from, and left when it is of no use.
 *
 * The lock is held in all of it, so nothing here waits or tells: whom there are answers
 * for is collected. Knows no question; what failures mean for the breaker is
 * redis_probe.c's. */
#include "store/redis_link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/redis_probe.h"

#define READ_BYTES 16384
#define OUT_KEEP_BYTES ((size_t)64 * 1024)
#define IDLE_US INT64_C(500000)
#define GREETING_US INT64_C(200000)
#define BACKOFF_MIN_US INT64_C(100000)
#define BACKOFF_MAX_US INT64_C(1000000)

static struct weir__log_kind lost_kind;

void weir__redis_link_set_deadline(struct weir__redis_connection *connection)
{
    int64_t next_us = weir__redis_next_deadline_us(connection);
    if (connection->state == WEIR__REDIS_CONNECTING ||
        connection->state == WEIR__REDIS_GREETING)
        next_us = connection->greet_until_us;
    else if (connection->flights_len > 0 && next_us == INT64_MAX)
        next_us = weir__clock_now_us() + WEIR__REDIS_SILENT_US / 2;
    if (next_us == INT64_MAX)
        weir__alarm_clear(&connection->deadline);
    else
        weir__alarm_set(connection->loop, &connection->deadline, next_us);
}

static int64_t longer(int64_t backoff_us)
{
    int64_t twice_us = 2 * backoff_us;
    return twice_us < BACKOFF_MIN_US   ? BACKOFF_MIN_US
           : twice_us > BACKOFF_MAX_US ? BACKOFF_MAX_US
                                       : twice_us;
}

static void leave(struct weir__redis_connection *connection,
                  struct weir__redis_answers *answers)
{
    if (connection->fd >= 0)
        close(connection->fd);
    connection->fd = -1;
    connection->state = WEIR__REDIS_DOWN;
    weir__redis_give_up(connection, answers);
    weir__redis_replies_destroy(connection->replies);
    connection->replies = NULL;
    weir__buf_reset(&connection->out, OUT_KEEP_BYTES);
    connection->sent = 0;
    connection->greetings = 0;
    connection->awaited = false;
    atomic_store(&connection->unsent, false);
    weir__alarm_clear(&connection->deadline);
}

void weir__redis_link_lose(struct weir__redis_connection *connection,
                           const char *why,
                           int64_t now_us,
                           struct weir__redis_answers *answers)
{
    struct weir__breaker *breaker = connection->settings->breaker;
    weir__log_limited(&lost_kind, WEIR_LOG_WARNING, "redis: not connected: %s", why);
    leave(connection, answers);
    connection->backoff_us = longer(connection->backoff_us);
    connection->retry_at_us = now_us + weir__jitter_us(connection->backoff_us);
    weir__redis_probe_failed(connection, now_us);
    weir__redis_probe_bad(connection, now_us);
    weir__alarm_set(connection->loop,
                    &connection->retry,
                    weir__breaker_is_open(breaker)
                        ? weir__breaker_look_us(breaker, now_us)
                        : connection->retry_at_us);
}

/* A server closes connections that it has had no use of for a while; that is no failure
 * of its. One that closes right after the greeting is another matter. */
static bool was_idle(const struct weir__redis_connection *connection, int64_t now_us)
{
    return connection->state == WEIR__REDIS_UP && connection->flights_len == 0 &&
           now_us - connection->heard_us >= IDLE_US &&
           !weir__breaker_is_open(connection->settings->breaker);
}

static void closed(struct weir__redis_connection *connection,
                   const char *why,
                   int64_t now_us,
                   struct weir__redis_answers *answers)
{
    if (!was_idle(connection, now_us)) {
        weir__redis_link_lose(connection, why, now_us, answers);
        return;
    }
    weir__log(WEIR_LOG_DEBUG, "redis: an idle connection was closed; a new one is made");
    leave(connection, answers);
    weir__redis_link_connect(connection, now_us, answers);
}

/* ---- sending ----------------------------------------------------------------------- */

static void want(struct weir__redis_connection *connection, unsigned what)
{
    if (connection->wanted == what)
        return;
    connection->wanted = what;
    weir__poller_change(
        &connection->loop->poller, connection->fd, what, &connection->source);
}

void weir__redis_link_listen(struct weir__redis_connection *connection)
{
    if (connection->flights_len > 0 && !connection->awaited)
        want(connection, connection->wanted | WEIR__POLL_READ);
}

void weir__redis_link_flush(struct weir__redis_connection *connection,
                            int64_t now_us,
                            struct weir__redis_answers *answers)
{
    atomic_store(&connection->unsent, false);
    if (connection->state < WEIR__REDIS_GREETING)
        return;
    while (connection->sent < connection->out.len) {
        ssize_t now = weir__redis_send(connection->fd,
                                       connection->out.bytes + connection->sent,
                                       connection->out.len - connection->sent);
        if (now < 0 && errno == EINTR)
            continue;
        if (now < 0 && errno == EAGAIN) {
            want(connection, WEIR__POLL_READ | WEIR__POLL_WRITE);
            return;
        }
        if (now < 0) {
            weir__redis_link_lose(connection, strerror(errno), now_us, answers);
            return;
        }
        connection->sent += (size_t)now;
    }
    weir__buf_reset(&connection->out, OUT_KEEP_BYTES);
    connection->sent = 0;
    want(connection, connection->awaited ? 0 : WEIR__POLL_READ);
}

/* ---- connecting -------------------------------------------------------------------- */

static void greet(struct weir__redis_connection *connection,
                  int64_t now_us,
                  struct weir__redis_answers *answers)
{
    int error = weir__redis_connect_error(connection->fd);
    if (error != 0) {
        weir__redis_link_lose(connection, strerror(error), now_us, answers);
        return;
    }
    connection->state = WEIR__REDIS_GREETING;
    if (!weir__redis_put_greeting(connection, now_us)) {
        weir__redis_link_lose(connection, "out of memory", now_us, answers);
        return;
    }
    weir__redis_link_flush(connection, now_us, answers);
}

void weir__redis_link_connect(struct weir__redis_connection *connection,
                              int64_t now_us,
                              struct weir__redis_answers *answers)
{
    connection->fd = weir__redis_connect(&connection->settings->address);
    connection->replies = weir__redis_replies_create();
    if (connection->fd < 0 || !connection->replies) {
        weir__redis_link_lose(connection, strerror(errno), now_us, answers);
        return;
    }
    connection->epoch++;
    connection->loads = 0;
    connection->heard_us = now_us;
    connection->greet_until_us = now_us + GREETING_US;
    connection->state = WEIR__REDIS_CONNECTING;
    connection->wanted = WEIR__POLL_READ | WEIR__POLL_WRITE;
    if (!weir__poller_add(&connection->loop->poller,
                          connection->fd,
                          WEIR__POLL_READ | WEIR__POLL_WRITE,
                          &connection->source))
        weir__redis_link_lose(connection, strerror(errno), now_us, answers);
    else
        weir__redis_link_set_deadline(connection);
}

/* ---- reading ----------------------------------------------------------------------- */

static void became_up(struct weir__redis_connection *connection,
                      int64_t now_us,
                      struct weir__redis_answers *answers)
{
    connection->state = WEIR__REDIS_UP;
    weir__log(WEIR_LOG_DEBUG, "redis: connected");
    if (connection->probes)
        weir__redis_probe_send(connection, now_us, answers);
}

/* False where the connection is lost. */
static bool apply(struct weir__redis_connection *connection,
                  enum weir__redis_effect effect,
                  int64_t now_us,
                  struct weir__redis_answers *answers)
{
    switch (effect) {
    case WEIR__REDIS_GOES_ON:
        break;
    case WEIR__REDIS_IS_UP:
        became_up(connection, now_us, answers);
        break;
    case WEIR__REDIS_FAILED:
        weir__redis_probe_failed(connection, now_us);
        break;
    case WEIR__REDIS_PROBED_GOOD:
        connection->backoff_us = 0;
        weir__redis_probe_good(connection, now_us, answers);
        break;
    case WEIR__REDIS_PROBED_BAD:
        weir__redis_probe_bad(connection, now_us);
        break;
    case WEIR__REDIS_IS_BROKEN:
        weir__redis_link_lose(
            connection, "what it answered is of no use", now_us, answers);
        break;
    }
    return connection->fd >= 0;
}

static void take_replies(struct weir__redis_connection *connection,
                         int64_t now_us,
                         struct weir__redis_answers *answers)
{
    struct weir__redis_reply reply;
    enum weir__redis_next next;
    while ((next = weir__redis_replies_next(connection->replies, &reply)) ==
           WEIR__REDIS_READY) {
        struct weir_store_ask *last = answers->last;
        enum weir__redis_effect effect =
            weir__redis_take(connection, &reply, now_us, answers);
        if (!apply(connection, effect, now_us, answers))
            return;
        if (answers->last != last && answers->last->result == WEIR_STORE_READY) {
            connection->backoff_us = 0;
            weir__breaker_answered(connection->settings->breaker);
        }
    }
    if (next == WEIR__REDIS_BROKEN)
        weir__redis_link_lose(connection, "what it sent is no protocol", now_us, answers);
}

/* All that has come. What replies have brought about is sent at the turn's end. */
void weir__redis_link_read(struct weir__redis_connection *connection,
                           int64_t now_us,
                           struct weir__redis_answers *answers)
{
    char bytes[READ_BYTES];
    while (connection->fd >= 0 && connection->state >= WEIR__REDIS_GREETING) {
        ssize_t got = recv(connection->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            closed(connection,
                   got == 0 ? "it has closed the connection" : strerror(errno),
                   now_us,
                   answers);
            return;
        }
        connection->heard_us = now_us;
        weir__redis_replies_feed(connection->replies, bytes, (size_t)got);
        take_replies(connection, now_us, answers);
        if (connection->fd >= 0 && (size_t)got < sizeof bytes) {
            if (connection->out.len > 0)
                weir__redis_link_flush(connection, now_us, answers);
            return;
        }
    }
}

void weir__redis_link_look(struct weir__redis_connection *connection,
                           struct weir__redis_answers *answers)
{
    int64_t now_us = weir__clock_now_us();
    if (connection->state == WEIR__REDIS_CONNECTING) {
        struct pollfd can_write = { .fd = connection->fd, .events = POLLOUT };
        if (poll(&can_write, 1, 0) > 0)
            greet(connection, now_us, answers);
    }
    weir__redis_link_read(connection, now_us, answers);
    if ((connection->wanted & WEIR__POLL_WRITE) && connection->fd >= 0)
        weir__redis_link_flush(connection, now_us, answers);
    if (connection->state == WEIR__REDIS_UP && connection->flights_len == 0)
        weir__alarm_clear(&connection->deadline);
}
