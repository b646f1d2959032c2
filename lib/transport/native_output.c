/* The way out: an answer as STDOUT records, sent from where it lies, head and body;
 * control records in between. A small answer is one system call, END_REQUEST included.
 *
 * Sends only whole records behind each other: what is begun is ended or the connection
 * closed. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "problem.h"
#include "transport/native_impl.h"

static struct weir__native_frames frames_of(const struct weir__native_request *request,
                                            bool end)
{
    const struct weir *w = &request->w;
    return (struct weir__native_frames){
        .request_id = request->id,
        .head = w->head_text,
        .head_len = w->head_sent ? 0 : w->head_len,
        .body = w->out.bytes,
        .body_len = w->out.len,
        .end = end,
    };
}

/* ---- the whole answer, or the rest of it ------------------------------------------ */

static void count_answer(struct weir__native *native, int status)
{
    struct weir__native_counts *mine = &native->counts[weir__turn_index()];
    atomic_fetch_add_explicit(&mine->requests, 1, memory_order_relaxed);
    if (status == 429)
        atomic_fetch_add_explicit(&mine->refused, 1, memory_order_relaxed);
    if (status >= 500)
        atomic_fetch_add_explicit(&mine->failed, 1, memory_order_relaxed);
}

static void finish_reply(struct weir__native_connection *connection)
{
    struct weir__native_request *request = connection->request;
    bool stdin_done =
        request->stdin_done || (request->w.authorizer && request->keep_conn);
    connection->request = NULL;
    count_answer(connection->native, request->w.status);
    weir__native_answered(connection, request->keep_conn, stdin_done, request->id);
    weir__life_end(&request->w);
    weir__native_request_put(request);
}

/* It has so long from now on for the next part of the answer, but no longer than the
 * request may take in all. */
static void renew_write_deadline(struct weir__native_connection *connection)
{
    int64_t due_us =
        weir__turn_now_us() + (int64_t)connection->native->options->write_ms * 1000;
    if (due_us > connection->total_us)
        due_us = connection->total_us;
    connection->request->renewed_bytes = connection->request->frames.sent_bytes;
    weir__alarm_set(connection->native->loop, &connection->alarm, due_us);
}

void weir__native_reply(struct weir__native_connection *connection)
{
    struct weir__native_request *request = connection->request;
    if (request->w.torn || atomic_load(&request->cut)) {
        /* What has left can't be taken back: the front is to see that it broke off. */
        weir__native_lose(connection);
        return;
    }
    request->frames = frames_of(request, true);
    switch (weir__native_frames_send(connection->fd, &request->frames)) {
    case WEIR__NATIVE_SENT:
        finish_reply(connection);
        break;
    case WEIR__NATIVE_NO_ROOM:
        connection->phase = WEIR__NATIVE_REPLY;
        renew_write_deadline(connection);
        weir__native_request_count(request);
        break;
    case WEIR__NATIVE_FAILED:
        weir__native_lose(connection);
        break;
    }
}

void weir__native_reply_on(struct weir__native_connection *connection)
{
    struct weir__native_request *request = connection->request;
    switch (weir__native_frames_send(connection->fd, &request->frames)) {
    case WEIR__NATIVE_SENT:
        finish_reply(connection);
        weir__native_control_on(connection);
        break;
    case WEIR__NATIVE_NO_ROOM:
        /* Only who takes a good part gets time for the next: drops don't count. */
        if (request->frames.sent_bytes - request->renewed_bytes >= WEIR__OUT_HIGH_WATER)
            renew_write_deadline(connection);
        break;
    case WEIR__NATIVE_FAILED:
        weir__native_lose(connection);
        break;
    }
}

void weir__native_answer_timeout(struct weir__native_connection *connection,
                                 uint16_t id,
                                 bool head,
                                 bool keep_conn,
                                 bool stdin_done)
{
    const struct weir__problem problem = { .status = 504, .code = "RequestTimeout" };
    struct weir__buf text, body;
    weir__buf_init(&text, 0);
    weir__buf_init(&body, 0);
    bool ok = weir__problem_body(&problem, WEIR_FORMAT_PROBLEM, &body) &&
              weir__buf_printf(&text,
                               "Status: 504 %s\r\n"
                               "Content-Type: %s\r\n"
                               "Content-Length: %zu\r\n"
                               "Cache-Control: no-store\r\n\r\n",
                               weir__status_phrase(504),
                               weir__problem_media_type(WEIR_FORMAT_PROBLEM),
                               body.len);
    struct weir__native_frames frames = {
        .request_id = id,
        .head = text.bytes,
        .head_len = text.len,
        .body = body.bytes,
        .body_len = head ? 0 : body.len,
        .end = true,
    };
    if (ok && weir__native_frames_send(connection->fd, &frames) == WEIR__NATIVE_SENT) {
        count_answer(connection->native, 504);
        weir__native_answered(connection, keep_conn, stdin_done, id);
    } else {
        weir__native_lose(connection);
    }
    weir__buf_finish(&text);
    weir__buf_finish(&body);
}

/* ---- control records -------------------------------------------------------------- */

void weir__native_control_on(struct weir__native_connection *connection)
{
    struct weir__native_request *request = connection->request;
    if (connection->owed_len == 0 || connection->phase == WEIR__NATIVE_REPLY ||
        connection->phase == WEIR__NATIVE_FREE ||
        connection->phase == WEIR__NATIVE_DOOMED)
        return;
    /* The thread of a request that is away may be sending, in the middle of a record. */
    if (connection->away) {
        pthread_mutex_lock(&request->mutex);
        if (request->sending) {
            request->look_when_sent = true;
            pthread_mutex_unlock(&request->mutex);
            return;
        }
    }
    ssize_t sent;
    do
        sent = send(connection->fd,
                    connection->owed,
                    connection->owed_len,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (connection->away)
        pthread_mutex_unlock(&request->mutex);
    if (sent == (ssize_t)connection->owed_len)
        connection->owed_len = 0;
    else
        weir__native_lose(connection); /* asks, and doesn't read the answers */
}

void weir__native_control(struct weir__native_connection *connection,
                          const unsigned char *record,
                          size_t len)
{
    if (len > sizeof connection->owed - connection->owed_len) {
        weir__native_lose(connection);
        return;
    }
    memcpy(connection->owed + connection->owed_len, record, len);
    connection->owed_len += (unsigned)len;
    weir__native_control_on(connection);
}

/* ---- from a handler's thread ------------------------------------------------------ */

/* Waits for room. False: the time is over, or it is not wanted any more. */
static bool
wait_for_room(const struct weir__native_request *request, int fd, int64_t deadline_us)
{
    int64_t left_us = deadline_us - weir__clock_now_us();
    if (left_us <= 0)
        return false;
    struct pollfd room = { .fd = fd, .events = POLLOUT };
    int ready = poll(&room, 1, (int)(left_us / 1000 + 1));
    return (ready > 0 || (ready < 0 && errno == EINTR)) && !atomic_load(&request->cut);
}

static bool send_waiting(struct weir__native_request *request, int fd)
{
    int64_t deadline_us =
        weir__clock_now_us() + (int64_t)request->native->options->write_ms * 1000;
    request->frames = frames_of(request, false);
    for (;;) {
        switch (weir__native_frames_send(fd, &request->frames)) {
        case WEIR__NATIVE_SENT:
            return true;
        case WEIR__NATIVE_NO_ROOM:
            if (!wait_for_room(request, fd, deadline_us))
                return false;
            break;
        case WEIR__NATIVE_FAILED:
            return false;
        }
    }
}

/* Makes the descriptor this thread's, unless the connection has parted; -1 then. */
static int begin_sending(struct weir__native_request *request)
{
    int fd = -1;
    pthread_mutex_lock(&request->mutex);
    if (!request->orphan && !atomic_load(&request->cut)) {
        request->sending = true;
        fd = request->connection->fd;
    }
    pthread_mutex_unlock(&request->mutex);
    return fd;
}

static void end_sending(struct weir__native_request *request)
{
    pthread_mutex_lock(&request->mutex);
    struct weir__native_connection *connection = request->connection;
    request->sending = false;
    bool owner =
        request->look_when_sent && weir__native_post(connection, WEIR__NATIVE_LOOK);
    request->look_when_sent = false;
    pthread_mutex_unlock(&request->mutex);
    if (owner)
        weir__loop_soon(request->native->loop, &connection->task);
}

bool weir__native_send(struct weir *w)
{
    struct weir__native_request *request = weir__native_request_of(w);
    int fd = begin_sending(request);
    if (fd < 0)
        return false;
    bool sent = send_waiting(request, fd);
    if (sent) {
        w->head_sent = true;
        w->out.len = 0;
    } else {
        /* Perhaps in the middle of a record: nothing more may follow it. */
        atomic_store(&request->cut, true);
        atomic_store(&w->gone, true);
    }
    end_sending(request);
    return sent;
}
