/* From bytes to records to what they mean at this moment: parameters, body, management
 * records, aborts. The framing is always followed to the byte, so that a body is never
 * taken for the next record.
 *
 * Runs no hook while it parses: what is in hand is parsed first, then the request goes
 * on. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/native_impl.h"

/* So much of one record left to come is read straight into the body. */
#define BODY_DIRECT_BYTES ((size_t)4096)

/* ---- management records (4.1, 4.2) ------------------------------------------------ */

/* What this app takes: each connection carries one request. */
static void answer_values(struct weir__native_connection *connection)
{
    const struct weir__options *options = connection->native->options;
    unsigned char record[WEIR__FCGI_VALUES_BYTES];
    unsigned max = options->max_connections * options->workers;
    size_t len = weir__fcgi_put_values(record, &connection->query, max, max);
    connection->query = (struct weir__fcgi_query){ 0 };
    weir__native_control(connection, record, len);
}

static void take_management(struct weir__native_connection *connection,
                            const struct weir__fcgi_piece *piece)
{
    unsigned char record[16];
    switch (piece->header.type) {
    case WEIR__FCGI_GET_VALUES:
        weir__fcgi_query_take(&connection->query, piece->bytes, piece->len);
        if (piece->last)
            answer_values(connection);
        break;
    case WEIR__FCGI_GET_VALUES_RESULT:
    case WEIR__FCGI_UNKNOWN_TYPE:
        break; /* an answer of ours to its sender would be answered in turn */
    default:
        if (!piece->last)
            break;
        weir__fcgi_put_unknown_type(record, piece->header.type);
        weir__native_control(connection, record, sizeof record);
    }
}

/* ---- BEGIN_REQUEST, ABORT_REQUEST (5.1, 5.4) -------------------------------------- */

static void refuse_to_begin(struct weir__native_connection *connection,
                            uint16_t id,
                            enum weir__fcgi_status status)
{
    unsigned char record[16];
    weir__fcgi_put_end(record, id, 0, status);
    weir__native_control(connection, record, sizeof record);
}

static void begin_request(struct weir__native_connection *connection,
                          const struct weir__fcgi_piece *piece)
{
    uint16_t id = piece->header.request_id;
    struct weir__fcgi_begin begin = weir__fcgi_begin_decode(piece);
    if (begin.role != WEIR__FCGI_RESPONDER && begin.role != WEIR__FCGI_AUTHORIZER) {
        refuse_to_begin(connection, id, WEIR__FCGI_UNKNOWN_ROLE);
        if (connection->phase != WEIR__NATIVE_FREE)
            weir__native_answered(connection, begin.keep_conn, false, id);
        return;
    }
    struct weir__native_request *request = weir__native_request_take(connection->native);
    if (!request) {
        weir__native_lose(connection);
        return;
    }
    if (connection->head_us == 0)
        connection->head_us = weir__turn_now_us();
    weir__native_request_begin(request, connection, id, &begin);
    connection->request = request;
    connection->phase = WEIR__NATIVE_HEAD;
    if (begin.keep_conn && !connection->served)
        weir__native_kept_one(connection->native);
}

static void take_begin(struct weir__native_connection *connection,
                       const struct weir__fcgi_piece *piece)
{
    if (!connection->request)
        begin_request(connection, piece); /* also where the old one's STDIN went on */
    else if (connection->request->id != piece->header.request_id)
        refuse_to_begin(connection, piece->header.request_id, WEIR__FCGI_CANT_MPX_CONN);
    else
        weir__native_lose(connection);
}

/* The answer to an abort is the end at once, whatever became of the request. */
static void take_abort(struct weir__native_connection *connection)
{
    struct weir__native_request *request = connection->request;
    bool keep_conn = request->keep_conn;
    bool stdin_done = request->stdin_done || keep_conn; /* no more of it will come */
    uint16_t id = request->id;
    if (connection->phase == WEIR__NATIVE_REPLY)
        return; /* it leaves as it is, END_REQUEST included */
    if (!weir__native_part(connection)) {
        weir__native_lose(connection);
        return;
    }
    unsigned char record[16];
    weir__fcgi_put_end(record, id, 0, WEIR__FCGI_REQUEST_COMPLETE);
    connection->phase = WEIR__NATIVE_IDLE;
    weir__native_control(connection, record, sizeof record);
    if (connection->phase != WEIR__NATIVE_FREE)
        weir__native_answered(connection, keep_conn, stdin_done, id);
}

/* ---- PARAMS, STDIN (5.2, 5.3) ----------------------------------------------------- */

static void take_params(struct weir__native_connection *connection,
                        const struct weir__fcgi_piece *piece)
{
    struct weir__native_request *request = connection->request;
    if (connection->phase != WEIR__NATIVE_HEAD || request->params_done) {
        if (connection->phase != WEIR__NATIVE_REPLY)
            weir__native_lose(connection);
        return;
    }
    request->params_done = piece->header.content_len == 0;
    weir__fcgi_pairs_take(&request->pairs, piece->bytes, piece->len);
}

static void take_body(struct weir__native_request *request,
                      const struct weir__fcgi_piece *piece)
{
    struct weir__buf *body = &request->body;
    if (request->body_too_large)
        return;
    /* What was read straight into the body lies where it belongs already. */
    if (body->bytes && (const char *)piece->bytes == body->bytes + body->len)
        body->len += piece->len;
    else if (!weir__buf_append(body, piece->bytes, piece->len))
        request->body_too_large = true;
    if (body->len > request->native->options->max_body_bytes)
        request->body_too_large = true;
    if (request->body_too_large)
        weir__buf_reset(body, 0);
}

static void take_stdin(struct weir__native_connection *connection,
                       const struct weir__fcgi_piece *piece)
{
    struct weir__native_request *request = connection->request;
    bool end = piece->header.content_len == 0;
    if (connection->phase == WEIR__NATIVE_HEAD && !request->params_done)
        weir__native_lose(connection);
    else if (end)
        request->stdin_done = true;
    else if (connection->phase != WEIR__NATIVE_REPLY && !request->stdin_done &&
             !request->w.authorizer)
        take_body(request, piece);
}

/* ---- records ---------------------------------------------------------------------- */

/* Records of requests that aren't active are passed over (3.3). */
static void take_piece(struct weir__native_connection *connection,
                       const struct weir__fcgi_piece *piece)
{
    uint16_t id = piece->header.request_id;
    unsigned char type = piece->header.type;
    bool active = connection->request && connection->request->id == id;
    if (id == 0)
        take_management(connection, piece);
    else if (type == WEIR__FCGI_BEGIN_REQUEST)
        take_begin(connection, piece);
    else if (active && type == WEIR__FCGI_ABORT_REQUEST)
        take_abort(connection);
    else if (active && type == WEIR__FCGI_PARAMS)
        take_params(connection, piece);
    else if (active && type == WEIR__FCGI_STDIN)
        take_stdin(connection, piece);
    else if (connection->phase == WEIR__NATIVE_REST && id == connection->rest_id &&
             type == WEIR__FCGI_STDIN && piece->header.content_len == 0)
        weir__native_answered(connection, true, true, id);
}

static bool takes_records(const struct weir__native_connection *connection)
{
    return connection->phase != WEIR__NATIVE_FREE &&
           connection->phase != WEIR__NATIVE_DOOMED &&
           connection->phase != WEIR__NATIVE_LINGER;
}

static void
parse(struct weir__native_connection *connection, const unsigned char *bytes, size_t len)
{
    while (len > 0 && takes_records(connection)) {
        struct weir__fcgi_piece piece;
        size_t used;
        enum weir__fcgi_step step =
            weir__fcgi_read(&connection->reader, bytes, len, &used, &piece);
        bytes += used;
        len -= used;
        if (step == WEIR__FCGI_BAD)
            weir__native_lose(connection);
        else if (step == WEIR__FCGI_PIECE)
            take_piece(connection, &piece);
    }
}

/* ---- reading ---------------------------------------------------------------------- */

/* A body that nobody has asked for yet is read to a point; then its sender waits. */
static bool may_read_body(const struct weir__native_request *request)
{
    return request->stdin_done || request->admitted ||
           (!request->body_too_large && request->body.len < WEIR__NATIVE_EARLY_BODY);
}

static bool may_read(struct weir__native_connection *connection)
{
    switch (connection->phase) {
    case WEIR__NATIVE_FREE:
    case WEIR__NATIVE_DOOMED:
        return false;
    case WEIR__NATIVE_REPLY:
    case WEIR__NATIVE_REST:
    case WEIR__NATIVE_LINGER:
        return true; /* nothing of it is kept */
    case WEIR__NATIVE_REQUEST:
        if (!may_read_body(connection->request))
            return false;
        break;
    case WEIR__NATIVE_IDLE:
    case WEIR__NATIVE_HEAD:
        break;
    }
    if (weir__native_has_budget(connection->native))
        return true;
    weir__native_starve(connection);
    return false;
}

/* Where the next bytes go: into the body itself, if a good part of a record of it is to
 * come. */
static unsigned char *room_for_input(struct weir__native_connection *connection,
                                     size_t *ret_bytes)
{
    struct weir__native_request *request = connection->request;
    const struct weir__fcgi_reader *reader = &connection->reader;
    if (connection->phase == WEIR__NATIVE_REQUEST && request->admitted &&
        !request->stdin_done && !request->body_too_large && reader->in_record &&
        reader->header.type == WEIR__FCGI_STDIN &&
        reader->header.request_id == request->id &&
        reader->content_left >= BODY_DIRECT_BYTES &&
        weir__buf_reserve(&request->body, reader->content_left)) {
        *ret_bytes = reader->content_left;
        return (unsigned char *)request->body.bytes + request->body.len;
    }
    *ret_bytes = WEIR__LOOP_SCRATCH_BYTES;
    return weir__turn_scratch();
}

/* The peer has shut its side. An answer may still be wanted. */
static void at_end(struct weir__native_connection *connection)
{
    connection->readable = false;
    connection->ended = true;
    bool wanted =
        (connection->phase == WEIR__NATIVE_REQUEST &&
         (connection->request->stdin_done || connection->request->w.authorizer)) ||
        connection->phase == WEIR__NATIVE_REPLY;
    if (!wanted)
        weir__native_lose(connection);
}

/* Caps on what is read only to be dropped. */
static void count_dropped(struct weir__native_connection *connection, size_t bytes)
{
    if (connection->phase != WEIR__NATIVE_REST &&
        connection->phase != WEIR__NATIVE_LINGER)
        return;
    if (bytes >= connection->linger_bytes)
        weir__native_close(connection);
    else
        connection->linger_bytes -= bytes;
}

/* What the bytes have brought about. */
static void go_on_with_request(struct weir__native_connection *connection)
{
    struct weir__native_request *request = connection->request;
    if (connection->phase == WEIR__NATIVE_HEAD && request->params_done)
        weir__native_begin(connection);
    else if (connection->phase == WEIR__NATIVE_REQUEST && !connection->away &&
             (request->stdin_done || request->body_too_large))
        weir__native_drive(connection);
    if (connection->request && !connection->away)
        weir__native_request_count(connection->request);
    if (connection->phase != WEIR__NATIVE_IDLE)
        return;
    if (weir__fcgi_between_records(&connection->reader))
        connection->head_us = 0;
    else if (connection->head_us == 0)
        connection->head_us = weir__turn_now_us();
}

void weir__native_take_input(struct weir__native_connection *connection)
{
    while (connection->readable && may_read(connection)) {
        size_t room;
        unsigned char *bytes = room_for_input(connection, &room);
        ssize_t len = recv(connection->fd, bytes, room, 0);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            connection->readable = false;
        } else if (len < 0) {
            weir__native_lose(connection);
        } else if (len == 0) {
            at_end(connection);
        } else {
            /* Edge-triggered: less than there was room for means that all is read. A peer
             * that has shut its side is read to the end. */
            if ((size_t)len < room && !connection->shut)
                connection->readable = false;
            count_dropped(connection, (size_t)len);
            parse(connection, bytes, (size_t)len);
            go_on_with_request(connection);
        }
    }
}
