/* The one handle of a request in flight and its response, as the library sees it.
 *
 * Transports fill the parameters and the body, life.c moves it through its phases,
 * request.c and response.c are the app's calls on it. One thread owns it at any moment,
 * except for the fields marked atomic. */
#ifndef WEIR_REQUEST_H
#define WEIR_REQUEST_H

#include <stdatomic.h>

#include <weir/weir.h>
#include "app.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/pair.h"
#include "net/addr.h"

#define WEIR__CAPTURES_MAX 16
#define WEIR__ENDPOINT_UNMATCHED SIZE_MAX /* 404, 405, 400: rules of unknown paths */

/* Bounds of `out`: a blocking handler's body leaves once it has grown to the first; what
 * can't leave in pieces (another hook's, a non-blocking handler's) ends at the second.
 * Transports init `out` with it. */
#define WEIR__OUT_HIGH_WATER ((size_t)256 * 1024)
#define WEIR__OUT_MAX ((size_t)4 * 1024 * 1024)

/* What {name} matched: a piece of the normalised path, until weir_path() has replaced it
 * by its decoded text, which ends with a NUL. */
struct weir__capture {
    const char *name, *text;
    unsigned name_len, text_len;
    bool decoded;
};

/* Where a request is. */
enum weir__phase {
    WEIR__PHASE_READ,    /* parameters are coming */
    WEIR__PHASE_BEFORE,  /* hooks on the way in */
    WEIR__PHASE_BODY,    /* the body is being collected */
    WEIR__PHASE_HANDLER, /* the handler runs or waits for a thread */
    WEIR__PHASE_COMMIT,  /* hooks before the first byte */
    WEIR__PHASE_SEND,    /* the answer leaves */
    WEIR__PHASE_OVER     /* after hooks have run */
};

/* An answer of Weir's own in place of the app's. */
struct weir__refusal {
    int status;
    const char *code, *detail; /* detail may be NULL */
};

struct weir__transport_ops;
struct weir__lint;    /* lint_watch.h */
struct weir__blocked; /* wait.h */

struct weir {
    const struct weir__app *app;
    struct weir_worker *worker; /* NULL outside a worker */
    const struct weir__transport_ops *transport;
    void *connection; /* the transport's */
    struct weir__arena arena;
    int64_t start_us; /* monotonic, when the first byte of it came */

    /* What came in. */
    struct weir__pair *params; /* in arrival order; HTTP_ names may repeat */
    unsigned params_len;
    bool authorizer;        /* role AUTHORIZER: no handler, no body */
    bool head;              /* a HEAD request: no body leaves */
    const char *method;     /* never NULL after begin */
    const char *path;       /* normalised */
    const char *query;      /* raw query string, "" where there is none */
    int64_t content_length; /* -1 where none was declared */
    const char *body;       /* collected, NUL-ended */
    size_t body_len;
    void *body_json; /* json_t of weir_body_string, freed at the end */
    struct weir__addr remote;
    char remote_text[64]; /* "" where there is no address */

    /* Where it goes. */
    const struct weir_endpoint *endpoint; /* NULL: unmatched */
    size_t endpoint_index;                /* or WEIR__ENDPOINT_UNMATCHED */
    weir_handler_fn *handler;             /* the endpoint's, or one of ours */
    struct weir__capture captures[WEIR__CAPTURES_MAX];
    unsigned captures_len;
    bool nonblocking;  /* the handler is */
    bool alone;        /* the handler runs for one request at a time: line.c */
    const char *allow; /* for 405 and OPTIONS */

    /* Who asks: from identity. */
    struct weir_caller caller;
    const char *address_key; /* under which the remote address is counted: "192.0.2.1",
                                "2001:db8::/64"; NULL before, and where there is none */
    const struct weir_decision *refused;  /* the address alone is over a limit: identity
                                             looked no further; NULL: it isn't */
    const char *request_id;               /* NULL unless that filter runs */
    const struct weir_decision *decision; /* NULL before, or where no rule applied */

    /* What goes out. */
    int status; /* 0: not set */
    struct weir__pair *fields;
    unsigned fields_len, fields_capacity;
    struct weir__buf out;  /* body bytes not yet handed to the transport */
    const char *head_text; /* built at the commit; NULL before */
    size_t head_len;
    bool head_sent;
    bool in_handler; /* weir_write may send */
    bool sealed;     /* the answer is complete: what the handler writes is void */
    bool torn;       /* it broke off after its head had left: not to be ended in order */
    bool replaced;   /* it is Weir's own, in place of what the app had begun */
    bool no_length;  /* the body's length is not known: a HEAD, its body left out */
    bool local_redirect; /* Location alone leaves (RFC 3875 6.2.2): the web server turns
                            to another path of its own */
    int64_t body_length; /* what the body will have, said before it is whole; -1: what
                            it has when it is */
    bool no_store;       /* Cache-Control is no-store, whatever was set */
    size_t sent_bytes;   /* body bytes handed to the transport */

    /* Its life. */
    enum weir__phase phase;
    unsigned stage;     /* the next hook of the phase */
    unsigned entered;   /* filters whose before was called */
    weir_step_fn *then; /* the continuation after a wait or an offload */
    bool then_may_block;
    bool offloaded; /* counted by offload_begin */
    bool timed_out; /* the last wait ended by its time */
    bool abandoned; /* the next run answers `refusal` */
    bool served;    /* the handler was called */
    bool unserved;  /* Weir itself refused after the chain: what was charged goes back */
    struct weir__refusal refusal;
    void *slots;
    bool in_line;                       /* for a handler that runs alone */
    struct weir *line_prev, *line_next; /* neighbours there, under its mutex */
    int64_t wait_until_us;
    struct weir__blocked *blocked; /* the thread that sits in the wait, NULL: parked */
    struct weir__lint *lint;       /* watches the hooks; NULL without that filter */
    const struct weir_filter *running; /* whose hook runs, NULL: none */
    _Atomic uint64_t wait_word;        /* number of the wait, and its state: wait.c */
    atomic_bool gone;                  /* the client is away */
    atomic_bool dropped; /* answered over the handler's head: its output is void */
};

/* The pieces between which life.c, request.c and response.c call each other. */

/* Parses method, path, query, length and remote address out of the parameters. False
 * where the request is malformed: status 400 is due and *ret_detail says why. */
bool weir__request_parse(struct weir *w, const char **ret_detail);

/* The first parameter of that exact name, NULL where absent or empty. */
const char *weir__request_param(const struct weir *w, const char *name, size_t name_len);

/* Empties status, fields and unsent body: an error answer replaces what was begun. */
void weir__response_reset(struct weir *w);

/* Builds head_text from status and fields: "Status: 200 OK", then CGI fields, then the
 * others (RFC 3875 section 6.3, lighttpd wants Status first). whole: the body is complete
 * in w->out, so that Content-Length is known. False when memory is short: 500 is due. */
bool weir__response_build_head(struct weir *w, bool whole);

/* "Too Many Requests" for 429; "" for an unknown number. Any thread. */
const char *weir__status_phrase(int status);

/* Frees what a request holds outside its arena. */
void weir__request_finish(struct weir *w);

#endif
