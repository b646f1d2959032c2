/* What a connection does about the breaker: tells it of failures, and while it is open
 * probes, one process at a time, off the path of requests.
 *
 * Must not decide anything: it keeps the retry alarm and the right to probe. */
#include "store/redis_probe.h"

#include "base/clock.h"
#include "base/log.h"
#include "limit/limit.h"
#include "store/redis_link.h"

static struct weir__log_kind open_kind, closed_kind;

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

void weir__redis_probe_failed(struct weir__redis_connection *connection, int64_t now_us)
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

void weir__redis_probe_bad(struct weir__redis_connection *connection, int64_t now_us)
{
    struct weir__breaker *breaker = connection->settings->breaker;
    if (!connection->probes)
        return;
    connection->probes = false;
    weir__breaker_probe_bad(breaker, now_us);
    weir__alarm_set(
        connection->loop, &connection->retry, weir__breaker_look_us(breaker, now_us));
}

void weir__redis_probe_send(struct weir__redis_connection *connection,
                            int64_t now_us,
                            struct weir__redis_answers *answers)
{
    int64_t deadline_us = now_us + connection->settings->timeout_us;
    connection->probe = canary;
    if (!weir__redis_put_ask(
            connection, &connection->probe, WEIR__REDIS_FOR_PROBE, deadline_us, now_us)) {
        weir__redis_probe_bad(connection, now_us);
        return;
    }
    weir__alarm_set(connection->loop, &connection->deadline, deadline_us);
    weir__redis_link_flush(connection, now_us, answers);
}

void weir__redis_probe_good(struct weir__redis_connection *connection,
                            int64_t now_us,
                            struct weir__redis_answers *answers)
{
    if (!connection->probes)
        return;
    if (!weir__breaker_probe_good(connection->settings->breaker, now_us)) {
        weir__redis_probe_send(connection, now_us, answers);
        return;
    }
    connection->probes = false;
    weir__log_limited(&closed_kind, WEIR_LOG_INFO, "redis: it answers again");
}

void weir__redis_probe_retry(struct weir__redis_connection *connection,
                             int64_t now_us,
                             struct weir__redis_answers *answers)
{
    struct weir__breaker *breaker = connection->settings->breaker;
    bool down = connection->state == WEIR__REDIS_DOWN;
    if (!weir__breaker_is_open(breaker)) {
        if (down && now_us >= connection->retry_at_us)
            weir__redis_link_connect(connection, now_us, answers);
        else if (down)
            weir__alarm_set(
                connection->loop, &connection->retry, connection->retry_at_us);
        return;
    }
    if (!connection->probes && weir__breaker_take_probe(breaker, now_us)) {
        connection->probes = true;
        if (connection->state == WEIR__REDIS_UP)
            weir__redis_probe_send(connection, now_us, answers);
        else if (down)
            weir__redis_link_connect(connection, now_us, answers);
    } else if (down) {
        /* Nobody has tried since: no need to wait long once the breaker closes. */
        connection->retry_at_us = now_us;
    }
    weir__alarm_set(
        connection->loop, &connection->retry, weir__breaker_look_us(breaker, now_us));
}

void weir__redis_probe_look(struct weir__redis_connection *connection)
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
