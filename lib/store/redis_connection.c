/* The socket, the timers and the breaker around the commands in flight.
 *
 * Everything happens under one lock that is never held while anybody waits or is told: a
 * call collects whom it has answers for and tells them after. What a late reply took is
 * given back in its place; the stream is only left when it is broken, or silent for so
 * long that nothing can come any more. It never connects, sends or reads in a way that
 * could block, but for weir__redis_connection_start(). */
#include "store/redis_connection.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "limit/limit.h"
#include "store/redis_flight.h"
#include "store/redis_script.h"

#define READ_BYTES 16384
#define OUT_MAX_BYTES ((size_t)4 * 1024 * 1024)
#define OUT_KEEP_BYTES ((size_t)64 * 1024)
#define GREETING_US INT64_C(200000)
#define SILENT_US INT64_C(2000000)
#define BACKOFF_MIN_US INT64_C(100000)
#define BACKOFF_MAX_US INT64_C(1000000)

static struct weir__log_kind lost_kind, open_kind, closed_kind;

/* The probe has the real script charge a counter of its own: a Redis that can't write is
 * of no use, though it may answer. */
static const struct weir_rule canary_rule =
    WEIR_FIXED_WINDOW("canary", 1, WEIR_SECONDS(1));
static const struct weir__limit canary_limit = {
    .rule = &canary_rule,
    .algorithm = WEIR_ALGORITHM_FIXED_WINDOW,
    .max = INT64_C(1000000000),
    .window_us = WEIR_SECONDS(1),
};
static const struct weir_store_ask canary = {
    .items_len = 1,
    .items = { { .rule = &canary_rule,
                 .compiled = &canary_limit,
                 .subject = "all",
                 .subject_len = 3,
                 .tail = "@probe:canary:w1",
                 .cost = 1 } },
};

static void set_deadline(struct weir__redis_connection *connection)
{
    int64_t next_us = weir__redis_next_deadline_us(connection);
    if (connection->state == WEIR__REDIS_CONNECTING ||
        connection->state == WEIR__REDIS_GREETING)
        next_us = connection->greet_until_us;
    else if (connection->flights_len > 0 && next_us == INT64_MAX)
        next_us = weir__clock_now_us() + SILENT_US / 2;
    if (next_us == INT64_MAX)
        weir__alarm_clear(&connection->deadline);
    else
        weir__alarm_set(connection->loop, &connection->deadline, next_us);
}

/* ---- failures ---------------------------------------------------------------------- */

static void failed(struct weir__redis_connection *connection, int64_t now_us)
{
    if (!weir__breaker_failed(connection->settings->breaker, now_us))
        return;
    weir__log_limited(&open_kind,
                      WEIR_LOG_WARNING,
                      "redis: no answers; the rules' on_store_error holds until it gives "
                      "some again");
    weir__alarm_set(connection->loop,
                    &connection->retry,
                    weir__breaker_look_us(connection->settings->breaker, now_us));
}

static void probe_bad(struct weir__redis_connection *connection, int64_t now_us)
{
    struct weir__breaker *breaker = connection->settings->breaker;
    if (!connection->probes)
        return;
    connection->probes = false;
    weir__breaker_probe_bad(breaker, now_us);
    weir__alarm_set(
        connection->loop, &connection->retry, weir__breaker_look_us(breaker, now_us));
}

static void lose(struct weir__redis_connection *connection,
                 const char *why,
                 int64_t now_us,
                 struct weir__redis_answers *answers)
{
    weir__log_limited(&lost_kind, WEIR_LOG_WARNING, "redis: not connected: %s", why);
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
    atomic_store(&connection->unsent, false);
    weir__alarm_clear(&connection->deadline);

    int64_t twice_us = 2 * connection->backoff_us;
    connection->backoff_us = twice_us < BACKOFF_MIN_US   ? BACKOFF_MIN_US
                             : twice_us > BACKOFF_MAX_US ? BACKOFF_MAX_US
                                                         : twice_us;
    connection->retry_at_us = now_us + weir__jitter_us(connection->backoff_us);
    failed(connection, now_us);
    probe_bad(connection, now_us);
    weir__alarm_set(connection->loop,
                    &connection->retry,
                    weir__breaker_is_open(connection->settings->breaker)
                        ? weir__breaker_look_us(connection->settings->breaker, now_us)
                        : connection->retry_at_us);
}

/* ---- sending ----------------------------------------------------------------------- */

static void want_write(struct weir__redis_connection *connection, bool wanted)
{
    if (connection->wants_write == wanted)
        return;
    connection->wants_write = wanted;
    weir__poller_change(&connection->loop->poller,
                        connection->fd,
                        WEIR__POLL_READ | (wanted ? WEIR__POLL_WRITE : 0u),
                        &connection->source);
}

static void flush(struct weir__redis_connection *connection,
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
            want_write(connection, true);
            return;
        }
        if (now < 0) {
            lose(connection, strerror(errno), now_us, answers);
            return;
        }
        connection->sent += (size_t)now;
    }
    weir__buf_reset(&connection->out, OUT_KEEP_BYTES);
    connection->sent = 0;
    want_write(connection, false);
}

/* ---- connecting -------------------------------------------------------------------- */

static void greet(struct weir__redis_connection *connection,
                  int64_t now_us,
                  struct weir__redis_answers *answers)
{
    int error = weir__redis_connect_error(connection->fd);
    if (error != 0) {
        lose(connection, strerror(error), now_us, answers);
        return;
    }
    connection->state = WEIR__REDIS_GREETING;
    if (!weir__redis_put_greeting(connection, now_us)) {
        lose(connection, "out of memory", now_us, answers);
        return;
    }
    flush(connection, now_us, answers);
}

static void connect_now(struct weir__redis_connection *connection,
                        int64_t now_us,
                        struct weir__redis_answers *answers)
{
    connection->fd = weir__redis_connect(&connection->settings->address);
    connection->replies = weir__redis_replies_create();
    if (connection->fd < 0 || !connection->replies) {
        lose(connection, strerror(errno), now_us, answers);
        return;
    }
    connection->epoch++;
    connection->loads = 0;
    connection->heard_us = now_us;
    connection->greet_until_us = now_us + GREETING_US;
    connection->state = WEIR__REDIS_CONNECTING;
    connection->wants_write = true;
    if (!weir__poller_add(&connection->loop->poller,
                          connection->fd,
                          WEIR__POLL_READ | WEIR__POLL_WRITE,
                          &connection->source))
        lose(connection, strerror(errno), now_us, answers);
    else
        set_deadline(connection);
}

/* ---- the breaker's probe ----------------------------------------------------------- */

static void probe(struct weir__redis_connection *connection,
                  int64_t now_us,
                  struct weir__redis_answers *answers)
{
    int64_t deadline_us = now_us + connection->settings->timeout_us;
    connection->probe = canary;
    if (!weir__redis_put_ask(
            connection, &connection->probe, WEIR__REDIS_FOR_PROBE, deadline_us, now_us)) {
        probe_bad(connection, now_us);
        return;
    }
    weir__alarm_set(connection->loop, &connection->deadline, deadline_us);
    flush(connection, now_us, answers);
}

static void probe_good(struct weir__redis_connection *connection,
                       int64_t now_us,
                       struct weir__redis_answers *answers)
{
    if (!connection->probes)
        return;
    if (!weir__breaker_probe_good(connection->settings->breaker, now_us)) {
        probe(connection, now_us, answers);
        return;
    }
    connection->probes = false;
    weir__log_limited(&closed_kind, WEIR_LOG_INFO, "redis: it answers again");
}

/* The retry alarm: probes where the breaker is open and nobody else does, connects where
 * it is closed. */
static void retry(struct weir__redis_connection *connection,
                  int64_t now_us,
                  struct weir__redis_answers *answers)
{
    struct weir__breaker *breaker = connection->settings->breaker;
    bool down = connection->state == WEIR__REDIS_DOWN;
    if (!weir__breaker_is_open(breaker)) {
        if (down && now_us >= connection->retry_at_us)
            connect_now(connection, now_us, answers);
        else if (down)
            weir__alarm_set(
                connection->loop, &connection->retry, connection->retry_at_us);
        return;
    }
    if (!connection->probes && weir__breaker_take_probe(breaker, now_us)) {
        connection->probes = true;
        if (connection->state == WEIR__REDIS_UP)
            probe(connection, now_us, answers);
        else if (down)
            connect_now(connection, now_us, answers);
    } else if (down) {
        /* Nobody has tried since: no need to wait long once the breaker closes. */
        connection->retry_at_us = now_us;
    }
    weir__alarm_set(
        connection->loop, &connection->retry, weir__breaker_look_us(breaker, now_us));
}

/* ---- reading ----------------------------------------------------------------------- */

static void became_up(struct weir__redis_connection *connection,
                      int64_t now_us,
                      struct weir__redis_answers *answers)
{
    connection->state = WEIR__REDIS_UP;
    weir__log(WEIR_LOG_DEBUG, "redis: connected");
    if (connection->probes)
        probe(connection, now_us, answers);
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
        failed(connection, now_us);
        break;
    case WEIR__REDIS_PROBED_GOOD:
        connection->backoff_us = 0;
        probe_good(connection, now_us, answers);
        break;
    case WEIR__REDIS_PROBED_BAD:
        probe_bad(connection, now_us);
        break;
    case WEIR__REDIS_IS_BROKEN:
        lose(connection, "it sent what nobody asked for", now_us, answers);
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
        lose(connection, "what it sent is no protocol", now_us, answers);
}

/* All that has come. What replies have brought about is sent at the turn's end. */
static void read_all(struct weir__redis_connection *connection,
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
            lose(connection,
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
                flush(connection, now_us, answers);
            return;
        }
    }
}

/* ---- what the loop tells ----------------------------------------------------------- */

static void look(struct weir__redis_connection *connection,
                 struct weir__redis_answers *answers)
{
    int64_t now_us = weir__clock_now_us();
    if (connection->state == WEIR__REDIS_CONNECTING) {
        struct pollfd can_write = { .fd = connection->fd, .events = POLLOUT };
        if (poll(&can_write, 1, 0) > 0)
            greet(connection, now_us, answers);
    }
    read_all(connection, now_us, answers);
    if (connection->wants_write && connection->fd >= 0)
        flush(connection, now_us, answers);
    if (connection->state == WEIR__REDIS_UP && connection->flights_len == 0)
        weir__alarm_clear(&connection->deadline);
}

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
        look(connection, &answers);
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
        look(connection, &answers);
    int64_t now_us = weir__clock_now_us();
    bool probe_late = false;
    for (unsigned n = weir__redis_expire(connection, now_us, &answers, &probe_late);
         n > 0;
         n--)
        failed(connection, now_us);
    if (probe_late)
        probe_bad(connection, now_us);
    bool greets = connection->state == WEIR__REDIS_CONNECTING ||
                  connection->state == WEIR__REDIS_GREETING;
    if (greets && now_us >= connection->greet_until_us)
        lose(connection, "it doesn't answer the greeting", now_us, &answers);
    else if (connection->flights_len > 0 && now_us - connection->heard_us > SILENT_US &&
             now_us - connection->flights[connection->first].put_us > SILENT_US)
        lose(connection, "it is silent", now_us, &answers);
    if (connection->fd >= 0)
        set_deadline(connection);
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
    retry(connection, weir__clock_now_us(), &answers);
    if (connection->fd >= 0)
        set_deadline(connection);
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
    if (connection->fd >= 0)
        flush(connection, weir__clock_now_us(), &answers);
    pthread_mutex_unlock(&connection->lock);
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
        read_all(connection, now_us, answers);
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
        flush(connection, weir__clock_now_us(), answers);
}

/* Another process may have opened it, and have died since. */
static void look_after_breaker(struct weir__redis_connection *connection)
{
    if (atomic_load(&connection->retry.wheel_us) != 0 ||
        pthread_mutex_trylock(&connection->lock) != 0)
        return;
    weir__alarm_set(
        connection->loop,
        &connection->retry,
        weir__breaker_look_us(connection->settings->breaker, weir__clock_now_us()));
    pthread_mutex_unlock(&connection->lock);
}

enum weir_store_result
weir__redis_connection_ask(struct weir__redis_connection *connection,
                           struct weir_store_ask *ask)
{
    struct weir__redis_answers answers = { NULL, NULL };
    if (weir__breaker_is_open(connection->settings->breaker)) {
        look_after_breaker(connection);
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
    connect_now(connection, now_us, &answers);
    while (connection->fd >= 0 && connection->state != WEIR__REDIS_UP &&
           (now_us = weir__clock_now_us()) < until_us) {
        struct pollfd waited = {
            .fd = connection->fd,
            .events = connection->wants_write ? POLLIN | POLLOUT : POLLIN,
        };
        poll(&waited, 1, (int)((until_us - now_us) / 1000) + 1);
        look(connection, &answers);
    }
    pthread_mutex_unlock(&connection->lock);
    weir__redis_answers_tell(&answers);
}
