/* The web server's half of FastCGI, for tests: plays bytes, keeps connections, drips,
 * stops, aborts. Blocking, with a time to wait for everything, so that no test hangs. */
#ifndef TESTS_SUPPORT_FCGI_CLIENT_H
#define TESTS_SUPPORT_FCGI_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/fcgi.h"

struct fcgi_client {
    int fd; /* -1: not connected */
    struct weir__fcgi_reader reader;
    struct weir__buf unparsed;
};

/* What came back for one request, up to its END_REQUEST, the close, or the time. */
struct fcgi_reply {
    struct weir__buf out; /* STDOUT */
    bool stdout_ended;    /* by an empty record */
    bool ended;           /* END_REQUEST has come */
    bool closed;          /* the connection was, before END_REQUEST */
    struct weir__fcgi_end end;
    struct weir__buf management; /* contents of records with id 0, header included */
    int status;                  /* 0: none */
    const char *body;            /* NUL-ended */
    size_t body_len;
    int64_t took_us;
};

struct fcgi_param {
    const char *name, *value;
};

/* A request to be sent. Zero means: id 1, RESPONDER, no KEEP_CONN, GET, no body. */
struct fcgi_request {
    uint16_t id;
    enum weir__fcgi_role role;
    bool keep_conn;
    const char *method, *uri;
    const char *body;
    size_t body_len;
    size_t declared_len;             /* CONTENT_LENGTH, where it isn't body_len */
    bool no_stdin;                   /* not even the end of it */
    const struct fcgi_param *params; /* more of them, ended by one without name */
};

/* To a unix socket; or to that port of 127.0.0.1 where path is "tcp:PORT". False with
 * errno. */
bool fcgi_connect(struct fcgi_client *client, const char *path);
void fcgi_close(struct fcgi_client *client);

/* Appends the request's records. */
void fcgi_put_request(struct weir__buf *buf, const struct fcgi_request *request);

/* Sends all bytes, or until the peer is gone or timeout_ms are over: false then. */
bool fcgi_send(struct fcgi_client *client, const void *bytes, size_t len, int timeout_ms);
bool fcgi_send_request(struct fcgi_client *client, const struct fcgi_request *request);

/* Reads one reply into ret_reply, which is to be finished. True: END_REQUEST has come. */
bool fcgi_read_reply(struct fcgi_client *client,
                     uint16_t id,
                     int timeout_ms,
                     struct fcgi_reply *ret_reply);
void fcgi_reply_finish(struct fcgi_reply *reply);

/* Connects, sends, reads, closes: the status, 0 where there was no whole reply. */
int fcgi_status(const char *path, const struct fcgi_request *request, int timeout_ms);

/* Whether the connection is closed within the time, without another byte from it. */
bool fcgi_is_closed(struct fcgi_client *client, int timeout_ms);

/* The value of a header of the reply, in ret_value; false where absent. */
bool fcgi_header(const struct fcgi_reply *reply,
                 const char *name,
                 char *ret_value,
                 size_t size);

int64_t fcgi_now_us(void);

#endif
