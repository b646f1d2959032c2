/* A CGI program's output (RFC 3875 section 6) as the reply of a request: Status, headers
 * and body go where a handler's own would, through the chain. */
#ifndef WEIR_CGI_REPLY_H
#define WEIR_CGI_REPLY_H

#include "cgi_head.h"
#include "request.h"

/* A reply under way. */
struct weir__cgi_reply {
    struct weir *w;
    const char *why;    /* it can't be taken, and why; NULL: so far it can */
    bool begun;         /* the head is whole and has been taken over */
    bool local;         /* a redirect within the server, if no body comes */
    int64_t body_bytes; /* of the body so far */
    struct weir__cgi_head head;
};

/* Begins the reply of w, in its handler. */
void weir__cgi_reply_init(struct weir__cgi_reply *reply, struct weir *w);

/* Takes output, in any pieces. False: no more of it is wanted, because the client is
 * gone, memory is short, or the head is bad. May wait for the client, as weir_write(). */
bool weir__cgi_reply_write(struct weir__cgi_reply *reply, const void *bytes, size_t len);

/* Sends what there is of head and body, once the head is whole. False as above. */
bool weir__cgi_reply_flush(struct weir__cgi_reply *reply);

/* The program is done: what the handler returns. A program that wrote nothing has the
 * answer 500, one whose output is no CGI reply 502, code BackendBadAnswer; why is logged.
 * A body that is shorter than its Content-Length is not passed on as if it were whole. */
int weir__cgi_reply_end(struct weir__cgi_reply *reply);

#endif
