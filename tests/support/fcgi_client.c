/* The raw client. It checks nothing: what a reply must be is the test's to say. */
#include "support/fcgi_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int64_t fcgi_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool connect_to(struct fcgi_client *client, const void *address, socklen_t len)
{
    const struct sockaddr *to = address;
    *client = (struct fcgi_client){ .fd = socket(
                                        to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    if (client->fd < 0)
        return false;
    if (connect(client->fd, to, len) == 0)
        return true;
    int error = errno;
    fcgi_close(client);
    errno = error;
    return false;
}

bool fcgi_connect(struct fcgi_client *client, const char *path)
{
    struct sockaddr_un local = { .sun_family = AF_UNIX };
    struct sockaddr_in port = { .sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (strncmp(path, "tcp:", 4) == 0) {
        port.sin_port = htons((uint16_t)atoi(path + 4));
        return connect_to(client, &port, sizeof port);
    }
    snprintf(local.sun_path, sizeof local.sun_path, "%s", path);
    return connect_to(client, &local, sizeof local);
}

void fcgi_close(struct fcgi_client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    weir__buf_finish(&client->unparsed);
}

/* ---- requests --------------------------------------------------------------------- */

static struct weir__pair pair(const char *name, const char *value)
{
    return (struct weir__pair){ .name = name,
                                .value = value,
                                .name_len = (unsigned)strlen(name),
                                .value_len = (unsigned)strlen(value) };
}

void fcgi_put_request(struct weir__buf *buf, const struct fcgi_request *request)
{
    struct weir__pair pairs[300];
    unsigned len = 0;
    unsigned char begin[16];
    char length[24];
    uint16_t id = request->id ? request->id : 1;
    enum weir__fcgi_role role = request->role ? request->role : WEIR__FCGI_RESPONDER;
    const char *method = request->method ? request->method : "GET";
    size_t declared = request->declared_len ? request->declared_len : request->body_len;
    pairs[len++] = pair("REQUEST_METHOD", method);
    pairs[len++] = pair("REQUEST_URI", request->uri ? request->uri : "/");
    pairs[len++] = pair("REMOTE_ADDR", "198.51.100.7");
    if (declared > 0) {
        snprintf(length, sizeof length, "%zu", declared);
        pairs[len++] = pair("CONTENT_LENGTH", length);
    }
    for (const struct fcgi_param *more = request->params; more && more->name; more++)
        pairs[len++] = pair(more->name, more->value);
    weir__fcgi_put_begin(begin, id, role, request->keep_conn);
    bool ok = weir__buf_append(buf, begin, sizeof begin) &&
              weir__fcgi_append_params(buf, id, pairs, len);
    if (!request->no_stdin) {
        unsigned char end[WEIR__FCGI_HEADER_BYTES];
        weir__fcgi_put_header(end, WEIR__FCGI_STDIN, id, 0);
        ok = ok &&
             weir__fcgi_append_stream(
                 buf, WEIR__FCGI_STDIN, id, request->body, request->body_len) &&
             weir__buf_append(buf, end, sizeof end);
    }
    if (!ok)
        abort();
}

bool fcgi_send(struct fcgi_client *client, const void *bytes, size_t len, int timeout_ms)
{
    const char *from = bytes;
    int64_t until_us = fcgi_now_us() + (int64_t)timeout_ms * 1000;
    while (len > 0) {
        ssize_t sent = send(client->fd, from, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            from += sent;
            len -= (size_t)sent;
            continue;
        }
        int64_t left_us = until_us - fcgi_now_us();
        struct pollfd room = { .fd = client->fd, .events = POLLOUT };
        if (errno != EAGAIN || left_us <= 0 ||
            poll(&room, 1, (int)(left_us / 1000 + 1)) < 0)
            return false;
    }
    return true;
}

bool fcgi_send_request(struct fcgi_client *client, const struct fcgi_request *request)
{
    struct weir__buf buf;
    weir__buf_init(&buf, 0);
    fcgi_put_request(&buf, request);
    bool ok = fcgi_send(client, buf.bytes, buf.len, 5000);
    weir__buf_finish(&buf);
    return ok;
}

/* ---- replies ---------------------------------------------------------------------- */

static void append(struct weir__buf *buf, const void *bytes, size_t len)
{
    if (!weir__buf_append(buf, bytes, len))
        abort();
}

static void
take_piece(struct fcgi_reply *reply, uint16_t id, const struct weir__fcgi_piece *piece)
{
    if (piece->header.request_id == 0) {
        unsigned char header[WEIR__FCGI_HEADER_BYTES] = {
            1,
            piece->header.type,
            0,
            0,
            (unsigned char)(piece->header.content_len >> 8),
            (unsigned char)piece->header.content_len
        };
        append(&reply->management, header, sizeof header);
        append(&reply->management, piece->bytes, piece->len);
    } else if (piece->header.request_id != id) {
        return;
    } else if (piece->header.type == WEIR__FCGI_STDOUT) {
        append(&reply->out, piece->bytes, piece->len);
        reply->stdout_ended = piece->header.content_len == 0;
    } else if (piece->header.type == WEIR__FCGI_END_REQUEST) {
        reply->end = weir__fcgi_end_decode(piece);
        reply->ended = true;
    }
}

/* What has been read; stops behind END_REQUEST. */
static void parse(struct fcgi_client *client, uint16_t id, struct fcgi_reply *reply)
{
    size_t used_all = 0;
    while (!reply->ended && used_all < client->unparsed.len) {
        struct weir__fcgi_piece piece;
        size_t used;
        enum weir__fcgi_step step = weir__fcgi_read(&client->reader,
                                                    client->unparsed.bytes + used_all,
                                                    client->unparsed.len - used_all,
                                                    &used,
                                                    &piece);
        used_all += used;
        if (step == WEIR__FCGI_BAD)
            abort(); /* an engine of ours never sends such */
        if (step == WEIR__FCGI_PIECE)
            take_piece(reply, id, &piece);
    }
    weir__buf_consume(&client->unparsed, used_all);
}

static void find_body(struct fcgi_reply *reply)
{
    append(&reply->out, "", 1);
    reply->out.len--;
    char *split = strstr(reply->out.bytes, "\r\n\r\n");
    reply->body = split ? split + 4 : reply->out.bytes + reply->out.len;
    reply->body_len = reply->out.len - (size_t)(reply->body - reply->out.bytes);
    if (split && strncmp(reply->out.bytes, "Status: ", 8) == 0)
        reply->status = atoi(reply->out.bytes + 8);
}

bool fcgi_read_reply(struct fcgi_client *client,
                     uint16_t id,
                     int timeout_ms,
                     struct fcgi_reply *ret_reply)
{
    int64_t begin_us = fcgi_now_us(), until_us = begin_us + (int64_t)timeout_ms * 1000;
    *ret_reply = (struct fcgi_reply){ 0 };
    parse(client, id, ret_reply);
    while (!ret_reply->ended && !ret_reply->closed) {
        int64_t left_us = until_us - fcgi_now_us();
        struct pollfd in = { .fd = client->fd, .events = POLLIN };
        if (left_us <= 0 || poll(&in, 1, (int)(left_us / 1000 + 1)) <= 0)
            break;
        if (!weir__buf_reserve(&client->unparsed, 65536))
            abort();
        ssize_t len =
            recv(client->fd, client->unparsed.bytes + client->unparsed.len, 65536, 0);
        if (len > 0)
            client->unparsed.len += (size_t)len;
        else
            ret_reply->closed = true;
        parse(client, id, ret_reply);
    }
    ret_reply->took_us = fcgi_now_us() - begin_us;
    find_body(ret_reply);
    return ret_reply->ended;
}

void fcgi_reply_finish(struct fcgi_reply *reply)
{
    weir__buf_finish(&reply->out);
    weir__buf_finish(&reply->management);
}

int fcgi_status(const char *path, const struct fcgi_request *request, int timeout_ms)
{
    struct fcgi_client client;
    struct fcgi_reply reply;
    if (!fcgi_connect(&client, path))
        return 0;
    int status = 0;
    if (fcgi_send_request(&client, request)) {
        uint16_t id = request->id ? request->id : 1;
        if (fcgi_read_reply(&client, id, timeout_ms, &reply))
            status = reply.status;
        fcgi_reply_finish(&reply);
    }
    fcgi_close(&client);
    return status;
}

bool fcgi_is_closed(struct fcgi_client *client, int timeout_ms)
{
    struct pollfd in = { .fd = client->fd, .events = POLLIN };
    char byte;
    return client->unparsed.len == 0 && poll(&in, 1, timeout_ms) == 1 &&
           recv(client->fd, &byte, 1, 0) <= 0;
}

bool fcgi_header(const struct fcgi_reply *reply,
                 const char *name,
                 char *ret_value,
                 size_t size)
{
    size_t len = strlen(name);
    for (const char *line = reply->out.bytes; line && line < reply->body;) {
        if (strncasecmp(line, name, len) == 0 && strncmp(line + len, ": ", 2) == 0) {
            const char *value = line + len + 2;
            snprintf(ret_value, size, "%.*s", (int)strcspn(value, "\r"), value);
            return true;
        }
        line = strstr(line, "\r\n");
        line = line ? line + 2 : NULL;
    }
    return false;
}
