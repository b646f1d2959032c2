/* Tests of apps without a web server, a socket or a clock: requests and replies in
 * memory. Installed as weir/test.h.
 *
 *     struct weir_test *t = weir_test_create(&app, NULL, NULL);
 *     struct weir_test_reply *r = weir_test_get(t, "/api/weather/paris", "Cookie:
 * sid=x"); assert(r->status == 200 && strstr(r->body, "paris")); weir_test_advance(t,
 * WEIR_SECONDS(60));
 *     ...
 *     weir_test_destroy(t);
 *
 * An app under test is the app itself: the same tables, checks, chain and limits. One
 * request runs at a time, to its end, on the calling thread; so do its offloads and its
 * handler. Time stands still unless the test moves it. Clock and log belong to the whole
 * process: one struct weir_test at a time, and only one thread makes calls on it. */
#ifndef WEIR_TEST_H
#define WEIR_TEST_H

#include <weir/store.h>
#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An app under test. */
struct weir_test;

struct weir_test_options {
    struct weir_store *store; /* NULL: the app's, else a small one in shared memory; stays
                                 the caller's */
    int64_t wall_us;          /* since 1970, what the wall clock says at first;
                                 0: 1,900,000,000 seconds */
    const char *const *arguments; /* the command line without the program's name, the
                                     library's options and the app's own, ended by NULL:
                                     { "--max-body", "10", NULL }; NULL: none */
};

/* Does what weir_main does before it listens, and what a worker does before its first
 * request: the app's start, the check of all tables, worker_start, thread_start. options
 * may be NULL. NULL with a text in ret_error (which may be NULL) where one of them
 * refuses. app, and what options name, must outlive it. */
WEIR_API struct weir_test *weir_test_create(const struct weir_app *app,
                                            const struct weir_test_options *options,
                                            struct weir_error *ret_error);

/* Stops the app and frees it with all its replies; takes NULL. The system's clock and the
 * log to standard error are put back. */
WEIR_API void weir_test_destroy(struct weir_test *t);

/* Moves both clocks ahead by us microseconds, 0 or more. */
WEIR_API void weir_test_advance(struct weir_test *t, int64_t us);

/* What both clocks of the library say now; the first is for deadlines and counters. */
WEIR_API int64_t weir_test_now_us(const struct weir_test *t);

/* What happens to a request that waits (weir_wait, a store that answers later). */
enum weir_test_wait {
    WEIR_TEST_WAKE,    /* it stays until somebody wakes it, on any thread; after five
                          seconds of the system's clock its time is over all the same */
    WEIR_TEST_TIME_OUT /* unless it is woken at once, the clocks jump to the end of the
                          wait */
};

/* One request. Only method and target are needed; the rest may be zero. */
struct weir_test_request {
    const char *method;  /* NULL: GET, or POST where there is a body */
    const char *target;  /* as on the request line: "/a?b=c" */
    const char *headers; /* lines "Name: value", with a newline between them; a name may
                            come twice; or NULL */
    const char *params;  /* CGI parameters beside those that follow from the request, or
                            in their place: "REMOTE_ADDR=192.0.2.1\nHTTPS=on"; one
                            without a value is left out; or NULL */
    const void *body;
    size_t body_len;    /* 0 with a body: it ends at its NUL */
    size_t piece_bytes; /* of the body that come at a time; 0: all */
    bool authorizer;    /* in the role of an authorizer: no handler, no body */

    enum weir_test_wait wait;
    /* Called each time the request has begun to wait; may call weir_wake() on it, or
     * have another thread do that. */
    void (*waiting)(struct weir *w, void *arg);
    void *arg;

    bool no_offload;         /* as if too many offloads were in flight for the address */
    bool gone;               /* the client is gone once the request has been read */
    size_t gone_after_bytes; /* or once that many bytes of head and body have left; 0: not
                              */
};

/* What came back. Owned by the test, until weir_test_destroy(). */
struct weir_test_reply {
    int status;       /* 0: no head has left */
    const char *head; /* as it left: "Status: 200 OK\r\n...\r\n\r\n"; "" for none */
    const char *body; /* NUL-ended, may hold NULs */
    size_t body_len;
    bool complete;     /* ended in order: not torn off, nor the client gone */
    unsigned flushes;  /* how often something left before the handler was through */
    unsigned waits;    /* how often the request has waited */
    const char *hooks; /* in the order of their calls, with a blank between them:
                          "before:identity before:ratelimit commit:ratelimit ..." */
    const char *log;   /* what was logged since the reply before, each line with
                          its newline */
};

/* Sends a request and runs it to its end. Never NULL: where memory is short, or the
 * request can't be sent (a header line without a colon), the reply has status 0 and its
 * log says why. */
WEIR_API struct weir_test_reply *weir_test_send(struct weir_test *t,
                                                const struct weir_test_request *request);

/* The same for what is wanted most: headers as in the struct, or NULL. A body without a
 * Content-Type is JSON where it begins with a brace or bracket, else a form. */
WEIR_API struct weir_test_reply *
weir_test_get(struct weir_test *t, const char *target, const char *headers);
WEIR_API struct weir_test_reply *weir_test_post(struct weir_test *t,
                                                const char *target,
                                                const char *headers,
                                                const char *body);

/* The value of the first header of that name, in any case, or NULL. Valid as long as the
 * reply. */
WEIR_API const char *weir_test_header(const struct weir_test_reply *reply,
                                      const char *name);

#ifdef __cplusplus
}
#endif

#endif
