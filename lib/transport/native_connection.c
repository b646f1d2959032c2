/* The connection as an actor: its mail, its phases, its deadlines, its end.
 *
 * Knows no records (native_input.c) and no hooks (native_request.c). */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/native_impl.h"

/* A request that takes longer than this has its connection watched, so that it learns of
 * a client that went away. Most are over before, and spare the system call. */
#define WATCH_AFTER_US 5000

static int64_t after_ms(int64_t from_us, unsigned ms)
{
    return from_us + (int64_t)ms * 1000;
}

static void set_alarm(struct weir__native_connection *connection, int64_t due_us)
{
    weir__alarm_set(connection->native->loop, &connection->alarm, due_us);
}

/* ---- mail ------------------------------------------------------------------------- */

bool weir__native_post(struct weir__native_connection *connection, unsigned mail)
{
    unsigned before = atomic_fetch_or(&connection->mail, mail | WEIR__NATIVE_OWNED);
    return !(before & WEIR__NATIVE_OWNED);
}

/* What a connection has for the first record of a request, which is 16 bytes and comes
 * whole from whoever means it. */
static unsigned silent_ms(const struct weir__native_connection *connection)
{
    const struct weir__options *options = connection->native->options;
    return connection->unix_socket ? options->silent_unix_ms : options->silent_ms;
}

/* The connection was accepted. The request has mostly come with it: it is read before the
 * poller hears of it. */
static void open_up(struct weir__native_connection *connection)
{
    connection->fd = connection->accepted_fd;
    connection->unix_socket = connection->accepted_unix;
    connection->pooled = connection->watched = connection->want_write = false;
    connection->shut = false;
    connection->ended = connection->served = connection->away = connection->overdue =
        false;
    connection->readable = true;
    connection->phase = WEIR__NATIVE_IDLE;
    connection->reader = (struct weir__fcgi_reader){ 0 };
    connection->request = NULL;
    connection->head_us = 0;
    connection->owed_len = 0;
    connection->idle_until_us = after_ms(weir__turn_now_us(), silent_ms(connection));
}

/* Without a request: a new connection has a time for its first record, whether a part of
 * it has come or not; a kept one may idle, and has that time from the first byte on. */
static int64_t idle_due_us(const struct weir__native_connection *connection)
{
    if (!connection->head_us)
        return connection->idle_until_us;
    int64_t head_due_us =
        after_ms(connection->head_us, connection->native->options->head_ms);
    int64_t due_us = connection->served
                         ? after_ms(connection->head_us, silent_ms(connection))
                         : connection->idle_until_us;
    return due_us < head_due_us ? due_us : head_due_us;
}

/* Looks at the descriptor: an event may be of its former life. False: the peer is away. A
 * peer that has only shut its side still reads the answer; over TCP the two look alike,
 * so that one which has its answer still to come is taken to have given up. */
static bool look_at_peer(struct weir__native_connection *connection)
{
    struct pollfd look = { .fd = connection->fd, .events = POLLRDHUP };
    if (poll(&look, 1, 0) <= 0)
        return true;
    if (look.revents & (POLLHUP | POLLERR))
        return false;
    if (connection->phase == WEIR__NATIVE_REQUEST && !connection->unix_socket)
        return false;
    connection->shut = connection->readable = true;
    return true;
}

static void time_is_over(struct weir__native_connection *connection)
{
    int64_t now_us = weir__turn_now_us();
    if (!weir__alarm_is_due(&connection->alarm, now_us))
        return;
    switch (connection->phase) {
    case WEIR__NATIVE_REQUEST:
        if (now_us >= connection->total_us)
            weir__native_overdue(connection);
        else if (!weir__native_watch(connection, false))
            weir__native_lose(connection);
        else
            set_alarm(connection, connection->total_us);
        break;
    case WEIR__NATIVE_IDLE:
    case WEIR__NATIVE_HEAD:
    case WEIR__NATIVE_REPLY:
    case WEIR__NATIVE_REST:
    case WEIR__NATIVE_LINGER:
        weir__native_lose(connection);
        break;
    case WEIR__NATIVE_FREE:
    case WEIR__NATIVE_DOOMED:
        break;
    }
}

static void work_off(struct weir__native_connection *connection, unsigned mail)
{
    if (mail & WEIR__NATIVE_OPEN)
        open_up(connection);
    if (connection->phase == WEIR__NATIVE_FREE)
        return;
    if (mail & (WEIR__NATIVE_BACK | WEIR__NATIVE_RESUME)) {
        assert(connection->request || !(mail & WEIR__NATIVE_BACK));
        connection->away = false;
        connection->need =
            mail & WEIR__NATIVE_BACK ? connection->request->need : WEIR__NEED_RESUME;
    }
    if (connection->phase == WEIR__NATIVE_DOOMED) {
        if (weir__native_part(connection))
            weir__native_close(connection);
        return;
    }
    if (mail & WEIR__NATIVE_READ)
        connection->readable = true;
    if (mail & WEIR__NATIVE_SHUT && !look_at_peer(connection))
        weir__native_lose(connection);
    else if (mail & (WEIR__NATIVE_BACK | WEIR__NATIVE_RESUME))
        weir__native_drive(connection);
    if (mail & WEIR__NATIVE_WRITE && connection->phase == WEIR__NATIVE_REPLY)
        weir__native_reply_on(connection);
    if (mail & WEIR__NATIVE_TIME)
        time_is_over(connection);
}

/* After all that: reads on, sends what is owed, and sees to the deadline and the poller.
 */
static void settle(struct weir__native_connection *connection, unsigned mail)
{
    bool leaving = atomic_load(&connection->native->draining) && mail & WEIR__NATIVE_LOOK;
    if (leaving)
        connection->readable = true;
    if (connection->owed_len > 0)
        weir__native_control_on(connection);
    weir__native_take_input(connection);
    if (leaving && connection->phase == WEIR__NATIVE_IDLE && connection->served)
        weir__native_close(connection);
    switch (connection->phase) {
    case WEIR__NATIVE_FREE:
    case WEIR__NATIVE_DOOMED:
        return;
    case WEIR__NATIVE_REQUEST:
        set_alarm(connection,
                  connection->away && !connection->watched &&
                          weir__turn_now_us() + WATCH_AFTER_US < connection->total_us
                      ? weir__turn_now_us() + WATCH_AFTER_US
                      : connection->total_us);
        if (connection->away)
            return;
        break;
    case WEIR__NATIVE_IDLE:
        set_alarm(connection, idle_due_us(connection));
        break;
    case WEIR__NATIVE_HEAD:
        set_alarm(connection,
                  after_ms(connection->head_us, connection->native->options->head_ms));
        break;
    case WEIR__NATIVE_REPLY:
    case WEIR__NATIVE_REST:
    case WEIR__NATIVE_LINGER:
        break; /* set where the phase began */
    }
    if (!weir__native_watch(connection, connection->phase == WEIR__NATIVE_REPLY))
        weir__native_lose(connection);
}

void weir__native_go_on(struct weir__native_connection *connection)
{
    for (;;) {
        unsigned mail = atomic_exchange(&connection->mail, WEIR__NATIVE_OWNED);
        work_off(connection, mail);
        settle(connection, mail);
        if (connection->phase == WEIR__NATIVE_FREE && !connection->pooled) {
            connection->pooled = true;
            weir__native_connection_put(connection);
        }
        unsigned none = WEIR__NATIVE_OWNED;
        if (atomic_compare_exchange_strong(&connection->mail, &none, 0))
            return;
    }
}

/* ---- the poller ------------------------------------------------------------------- */

bool weir__native_watch(struct weir__native_connection *connection, bool want_write)
{
    struct weir__poller *poller = &connection->native->loop->poller;
    unsigned what = want_write ? WEIR__POLL_READ | WEIR__POLL_WRITE : WEIR__POLL_READ;
    bool ok = true;
    if (!connection->watched)
        ok = weir__poller_add(poller, connection->fd, what, connection);
    else if (connection->want_write != want_write)
        ok = weir__poller_change(poller, connection->fd, what, connection);
    connection->watched = ok;
    connection->want_write = want_write;
    return ok;
}

/* ---- its end ---------------------------------------------------------------------- */

void weir__native_close(struct weir__native_connection *connection)
{
    close(connection->fd);
    connection->fd = -1;
    connection->phase = WEIR__NATIVE_FREE;
    weir__alarm_clear(&connection->alarm);
}

void weir__native_lose(struct weir__native_connection *connection)
{
    if (!connection->request || weir__native_part(connection)) {
        weir__native_close(connection);
        return;
    }
    /* A thread uses the descriptor: it is shut down, so that this ends, and closed then.
     */
    connection->phase = WEIR__NATIVE_DOOMED;
    weir__alarm_clear(&connection->alarm);
    shutdown(connection->fd, SHUT_RDWR);
}

static void linger(struct weir__native_connection *connection,
                   enum weir__native_phase phase)
{
    const struct weir__options *options = connection->native->options;
    connection->phase = phase;
    connection->linger_bytes = options->linger_bytes;
    set_alarm(connection, after_ms(weir__turn_now_us(), options->linger_ms));
}

void weir__native_answered(struct weir__native_connection *connection,
                           bool keep_conn,
                           bool stdin_done,
                           uint16_t id)
{
    const struct weir__options *options = connection->native->options;
    connection->served = true;
    connection->head_us = 0;
    connection->overdue = false;
    if (connection->ended ||
        (stdin_done && (!keep_conn || atomic_load(&connection->native->draining)))) {
        weir__native_close(connection);
    } else if (!keep_conn || atomic_load(&connection->native->draining)) {
        /* The peer stops sending once it sees the end of the answer; closed at once, the
         * answer could be lost with what it has sent meanwhile. */
        shutdown(connection->fd, SHUT_WR);
        linger(connection, WEIR__NATIVE_LINGER);
    } else if (!stdin_done) {
        connection->rest_id = id;
        linger(connection, WEIR__NATIVE_REST);
    } else {
        connection->phase = WEIR__NATIVE_IDLE;
        connection->idle_until_us = after_ms(weir__turn_now_us(), options->idle_ms);
    }
}
