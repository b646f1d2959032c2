/* A connection's request on its way through life.c: what it needs, where it runs, what
 * becomes of it when its connection is lost or its time is over.
 *
 * Reads and writes no records. */
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "transport/native_impl.h"

/* ---- running ---------------------------------------------------------------------- */

/* Runs what must not block. A parked request may be taken up by another thread before
 * this returns: it isn't touched then. */
static void run(struct weir__native_connection *connection)
{
    connection->away = true;
    enum weir__need need = weir__life_run(&connection->request->w, false);
    if (need == WEIR__NEED_RESUME)
        return;
    connection->away = false;
    connection->need = need;
}

/* The body is whole, or will not be. */
static bool body_is_settled(const struct weir__native_request *request)
{
    return request->stdin_done || request->body_too_large ||
           request->w.content_length > (int64_t)request->native->options->max_body_bytes;
}

/* Gives life.c the body, or a refusal in its place. A length that isn't the body's own
 * would leave the app with half an upload (FastCGI 6.2, RFC 3875 4.2). */
static void hand_over_body(struct weir__native_request *request)
{
    struct weir *w = &request->w;
    if (!request->stdin_done || request->body_too_large) {
        weir__life_abandon(w, 413, "PayloadTooLarge", NULL);
        return;
    }
    if (w->content_length >= 0 && (uint64_t)w->content_length != request->body.len) {
        weir__life_abandon(
            w, 400, "BadRequest", "The body's length is not its Content-Length.");
        return;
    }
    w->body = "";
    w->body_len = request->body.len;
    if (w->body_len == 0)
        return;
    request->body.bytes[w->body_len] = '\0'; /* there is a byte for it: buf.h */
    w->body = request->body.bytes;
}

static void give_up(struct weir__native_request *request)
{
    weir__life_abandon(&request->w, 504, "RequestTimeout", NULL);
}

void weir__native_drive(struct weir__native_connection *connection)
{
    struct weir__native_request *request = connection->request;
    for (;;) {
        if (connection->overdue && connection->need != WEIR__NEED_SEND) {
            give_up(request);
            connection->need = WEIR__NEED_RESUME;
            connection->overdue = false;
        }
        switch (connection->need) {
        case WEIR__NEED_RESUME:
            weir__alarm_clear(&request->alarm);
            break;
        case WEIR__NEED_BODY:
            request->admitted = true;
            if (!body_is_settled(request))
                return;
            hand_over_body(request);
            break;
        case WEIR__NEED_THREAD:
            connection->away = true;
            weir__native_pace_expect(request);
            weir__loop_block(connection->native->loop, &request->block);
            return;
        case WEIR__NEED_SEND:
            weir__native_reply(connection);
            return;
        }
        run(connection);
        if (connection->away)
            return;
    }
}

void weir__native_begin(struct weir__native_connection *connection)
{
    struct weir__native_request *request = connection->request;
    struct weir *w = &request->w;
    enum weir__fcgi_pairs_result result = weir__fcgi_pairs_end(&request->pairs);
    w->params = request->pairs.pairs;
    w->params_len = request->pairs.pairs_len;
    connection->phase = WEIR__NATIVE_REQUEST;
    connection->total_us =
        w->start_us + (int64_t)connection->native->options->total_ms * 1000;
    request->begun = true;
    switch (result) {
    case WEIR__FCGI_PAIRS_OK:
        weir__life_begin(w);
        break;
    case WEIR__FCGI_PAIRS_BAD:
        weir__life_abandon(w, 400, "BadRequest", "The parameters are malformed.");
        break;
    case WEIR__FCGI_PAIRS_TOO_LARGE:
        weir__life_abandon(w, 431, "HeadersTooLarge", NULL);
        break;
    case WEIR__FCGI_PAIRS_NO_MEMORY:
        weir__life_abandon(w, 500, "InternalError", NULL);
        break;
    }
    connection->need = WEIR__NEED_RESUME;
    weir__native_drive(connection);
}

/* ---- orphans ---------------------------------------------------------------------- */

/* A request without a connection is run to its end, with that need to begin with. */
static void run_orphan(struct weir__native_request *request, enum weir__need need)
{
    struct weir *w = &request->w;
    for (;;) {
        bool answered = atomic_load(&w->dropped);
        switch (need) {
        case WEIR__NEED_RESUME:
            weir__alarm_clear(&request->alarm);
            break;
        case WEIR__NEED_BODY:
            if (answered)
                give_up(request);
            break;
        case WEIR__NEED_THREAD:
            if (!answered) {
                weir__native_pace_expect(request);
                weir__loop_block(request->native->loop, &request->block);
                return;
            }
            give_up(request);
            break;
        case WEIR__NEED_SEND:
            weir__life_end(w);
            weir__native_request_put(request);
            return;
        }
        need = weir__life_run(w, false);
        if (need == WEIR__NEED_RESUME)
            return;
    }
}

static void orphan_goes_on(struct weir__task *task)
{
    run_orphan(
        (struct weir__native_request *)((char *)task -
                                        offsetof(struct weir__native_request, soon)),
        WEIR__NEED_RESUME);
}

/* Takes the request off a connection from which it is away. True: it is an orphan now.
 * False: it has come back in this moment, and is the connection's. */
static bool let_go(struct weir__native_connection *connection)
{
    const unsigned back = WEIR__NATIVE_BACK | WEIR__NATIVE_RESUME;
    struct weir__native_request *request = connection->request;
    unsigned mail = atomic_fetch_and(&connection->mail, ~back);
    request->orphan = !(mail & back);
    if (request->orphan)
        return true;
    connection->away = false;
    connection->need = mail & WEIR__NATIVE_BACK ? request->need : WEIR__NEED_RESUME;
    return false;
}

bool weir__native_part(struct weir__native_connection *connection)
{
    struct weir__native_request *request = connection->request;
    if (!request->begun) {
        connection->request = NULL;
        weir__native_request_put(request);
        return true;
    }
    atomic_store(&request->w.gone, true);
    pthread_mutex_lock(&request->mutex);
    if (connection->away && request->sending) {
        atomic_store(&request->cut, true);
        request->look_when_sent = true;
        pthread_mutex_unlock(&request->mutex);
        return false;
    }
    bool away = connection->away && let_go(connection);
    request->orphan = true;
    pthread_mutex_unlock(&request->mutex);
    connection->request = NULL;
    connection->away = false;
    if (!away)
        run_orphan(request, connection->need);
    return true;
}

/* ---- away ------------------------------------------------------------------------- */

/* The request was run where it may block, and needs something else now. */
static void come_back(struct weir__native_request *request, enum weir__need need)
{
    pthread_mutex_lock(&request->mutex);
    bool orphan = request->orphan;
    struct weir__native_connection *connection = request->connection;
    request->need = need;
    bool owner = !orphan && weir__native_post(connection, WEIR__NATIVE_BACK);
    pthread_mutex_unlock(&request->mutex);
    if (orphan)
        run_orphan(request, need);
    else if (owner)
        weir__native_go_on(connection);
}

static void run_where_it_may_block(struct weir__task *task)
{
    struct weir__native_request *request =
        (struct weir__native_request *)((char *)task -
                                        offsetof(struct weir__native_request, block));
    int64_t begin_us = weir__turn_now_us();
    enum weir__need need = weir__life_run(&request->w, true);
    weir__turn_reopen();
    if (need == WEIR__NEED_RESUME)
        return; /* somebody else's by now */
    weir__native_pace_note(request, weir__turn_now_us() - begin_us);
    come_back(request, need);
}

/* ops->resume. */
static void resume(struct weir *w)
{
    struct weir__native_request *request = weir__native_request_of(w);
    pthread_mutex_lock(&request->mutex);
    bool orphan = request->orphan;
    struct weir__native_connection *connection = request->connection;
    bool owner = !orphan && weir__native_post(connection, WEIR__NATIVE_RESUME);
    pthread_mutex_unlock(&request->mutex);
    if (orphan)
        weir__loop_soon(request->native->loop, &request->soon);
    else if (owner)
        weir__loop_soon(request->native->loop, &connection->task);
}

/* ops->arm. The number is stored before the time, and read before it in wait_is_over().
 */
static void arm(struct weir *w, uint64_t wait)
{
    struct weir__native_request *request = weir__native_request_of(w);
    atomic_store(&request->wait, wait);
    weir__alarm_set(request->native->loop,
                    &request->alarm,
                    w->wait_until_us > 0 ? w->wait_until_us : 1);
}

static void wait_is_over(struct weir__alarm *alarm)
{
    struct weir__native_request *request =
        (struct weir__native_request *)((char *)alarm -
                                        offsetof(struct weir__native_request, alarm));
    uint64_t wait = atomic_load(&request->wait);
    if (weir__alarm_is_due(alarm, weir__turn_now_us()))
        weir__life_timeout(&request->w, wait);
}

static bool offload_begin(struct weir *w)
{
    return weir__offloads_begin(&weir__native_request_of(w)->native->offloads,
                                &w->remote);
}

static void offload_end(struct weir *w)
{
    weir__offloads_end(&weir__native_request_of(w)->native->offloads, &w->remote);
}

const struct weir__transport_ops weir__native_ops = {
    .name = "native",
    .send = weir__native_send,
    .resume = resume,
    .arm = arm,
    .offload_begin = offload_begin,
    .offload_end = offload_end,
};

/* ---- its time is over ------------------------------------------------------------- */

/* The request is in a thread that may block: the answer is given in its place, if nothing
 * has left, and what it still makes is dropped. */
static void answer_over(struct weir__native_connection *connection)
{
    struct weir__native_request *request = connection->request;
    bool keep_conn = request->keep_conn, head = request->w.head;
    bool stdin_done = request->stdin_done || (request->w.authorizer && keep_conn);
    uint16_t id = request->id;
    pthread_mutex_lock(&request->mutex);
    bool came_back = false;
    bool free_to = !request->sending && !request->w.head_sent;
    if (free_to) {
        came_back = !let_go(connection);
        if (!came_back)
            atomic_store(&request->w.dropped, true);
    }
    pthread_mutex_unlock(&request->mutex);
    if (!free_to) {
        weir__native_lose(connection);
    } else if (came_back) {
        connection->overdue = true;
        weir__native_drive(connection);
    } else {
        connection->request = NULL;
        connection->away = false;
        weir__native_answer_timeout(connection, id, head, keep_conn, stdin_done);
    }
}

void weir__native_overdue(struct weir__native_connection *connection)
{
    struct weir__native_request *request = connection->request;
    /* For the refusal's own hooks and bytes; then it is lost. */
    connection->total_us =
        weir__turn_now_us() + (int64_t)connection->native->options->write_ms * 1000;
    bool queued =
        connection->away && weir__loop_unblock(connection->native->loop, &request->block);
    if (queued || !connection->away) {
        connection->away = false;
        connection->need = WEIR__NEED_RESUME;
        give_up(request);
        weir__native_drive(connection);
        return;
    }
    /* Where it is parked this brings it back, into the mail. */
    weir_wake(&request->w);
    if (atomic_load(&connection->mail) & (WEIR__NATIVE_BACK | WEIR__NATIVE_RESUME))
        connection->overdue = true;
    else
        answer_over(connection);
}

/* ---- the struct ------------------------------------------------------------------- */

struct weir__native_request *weir__native_request_create(struct weir__native *native)
{
    struct weir__native_request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->native = native;
    request->block.run = run_where_it_may_block;
    request->soon.run = orphan_goes_on;
    request->alarm.fire = wait_is_over;
    pthread_mutex_init(&request->mutex, NULL);
    weir__buf_init(&request->body, 0);
    weir__buf_init(&request->w.out, WEIR__OUT_MAX);
    weir__arena_init(
        &request->w.arena, native->options->max_request_bytes, WEIR__NATIVE_ARENA_BLOCK);
    pthread_mutex_lock(&native->pool_mutex);
    request->next_of_all = native->requests;
    native->requests = request;
    pthread_mutex_unlock(&native->pool_mutex);
    return request;
}

void weir__native_request_begin(struct weir__native_request *request,
                                struct weir__native_connection *connection,
                                uint16_t id,
                                const struct weir__fcgi_begin *begin)
{
    struct weir__native *native = request->native;
    weir__life_init(&request->w,
                    native->config.app,
                    native->config.worker,
                    &weir__native_ops,
                    request);
    request->w.start_us = connection->head_us;
    request->w.authorizer = begin->role == WEIR__FCGI_AUTHORIZER;
    request->id = id;
    request->keep_conn = begin->keep_conn;
    request->connection = connection;
}
