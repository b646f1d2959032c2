/* Weir: a chain of filters around a FastCGI responder in C.
 *
 * The core's one public header: what an app fills in (endpoints, limits, filters) and the
 * calls on one request. Filters with options have headers of their own under
 * weir/filters/.
 *
 * Words. A filter is one stage; the chain is the frozen, ordered list of them around the
 * handlers; an endpoint is method, path pattern, handler and the limits declared beside
 * it; a caller is who asks; a rule is one limit; a store keeps the counters.
 *
 * Rules of the chain. Filters run in the order listed. `commit` and `after` run in
 * reverse, for every filter whose `before` was called: also when a filter answered itself
 * (DONE), failed (FAIL), when the client went away or the time was over. The hooks of one
 * request never run at the same time; those of different requests may, on any thread.
 *
 * Units are in the names; times are microseconds unless a name says otherwise. Zero in an
 * option means the default that its comment states. */
#ifndef WEIR_H
#define WEIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_PRINTF(format_, args_) __attribute__((format(printf, format_, args_)))
#else
#define WEIR_API
#define WEIR_PRINTF(format_, args_)
#endif

#define WEIR_VERSION "0.1.0"

/* An option that is on or off, where zero is the default that its comment states. */
enum weir_switch { WEIR_SWITCH_DEFAULT, WEIR_ON, WEIR_OFF };

/* ---- errors and the log ------------------------------------------------------------ */

/* A text for people about a mistake at start: the first one wins. Zero it before use. */
struct weir_error {
    char text[512];
};

enum weir_log_level {
    WEIR_LOG_DEBUG,
    WEIR_LOG_INFO,
    WEIR_LOG_WARNING,
    WEIR_LOG_ERROR,
};

/* Takes one line without its newline. Any thread; must not block. */
typedef void weir_log_fn(void *arg, enum weir_log_level level, const char *line);

/* ---- callers ----------------------------------------------------------------------- */

enum weir_caller_type {
    WEIR_CALLER_NONE, /* nobody was recognised: no address either */
    WEIR_CALLER_USER,
    WEIR_CALLER_KEY,
    WEIR_CALLER_IP,
    WEIR_CALLER_REMOTE_USER,
};

#define WEIR_CALLER_ID_MAX 255 /* bytes */

/* Who asks. id holds any bytes but is NUL-ended; only what was verified gets here. */
struct weir_caller {
    enum weir_caller_type type;
    unsigned id_len;
    char id[WEIR_CALLER_ID_MAX + 1];
};

/* The word for a type, as it stands in keys and in /whoami: "user", "key", "ip",
 * "remote_user", "none". Any thread. */
WEIR_API const char *weir_caller_type_name(enum weir_caller_type type);

/* Makes ret_caller the user `id`. Returns false and leaves it alone where id is NULL,
 * empty or over WEIR_CALLER_ID_MAX bytes. Any thread. */
WEIR_API bool weir_caller_user(struct weir_caller *ret_caller, const char *id);

/* ---- limits ------------------------------------------------------------------------ */

#define WEIR_MILLISECONDS(n_) ((int64_t)(n_)*1000)
#define WEIR_SECONDS(n_) ((int64_t)(n_)*1000000)
#define WEIR_MINUTES(n_) (WEIR_SECONDS(n_) * 60)
#define WEIR_HOURS(n_) (WEIR_SECONDS(n_) * 3600)
#define WEIR_DAYS(n_) (WEIR_SECONDS(n_) * 86400)

#define WEIR_RULES_MAX 8 /* rules that may meet in one request */

enum weir_algorithm {
    WEIR_ALGORITHM_NONE,
    WEIR_ALGORITHM_FIXED_WINDOW,
    WEIR_ALGORITHM_TOKEN_BUCKET,
    WEIR_ALGORITHM_SLIDING_COUNTER,
    WEIR_ALGORITHM_UNLIMITED, /* WEIR_UNLIMITED only */
};

/* Whom a rule counts. */
enum weir_by {
    WEIR_BY_CALLER,   /* default: what identity found: user, key, else address */
    WEIR_BY_IP,       /* the remote address, whoever is logged in */
    WEIR_BY_EVERYBODY /* one counter for all */
};

/* Where a fixed window begins. */
enum weir_anchor {
    WEIR_ANCHOR_REQUEST, /* default: with the caller's first request */
    WEIR_ANCHOR_CLOCK,   /* at the multiples of its length since 1970, UTC: a window of a
                            minute, an hour or a day is the calendar's */
    WEIR_ANCHOR_MONTH    /* with the calendar's month, UTC: WEIR_CALENDAR_MONTH */
};

/* What a rule does when its store can't answer. */
enum weir_on_store_error {
    WEIR_LOCAL, /* default: this instance's share, from shared memory */
    WEIR_ALLOW, /* let the request through, without RateLimit fields */
    WEIR_DENY   /* 503, code StoreUnavailable; wins where rules differ */
};

struct weir;

/* The cost of this request in units, 0 or more. Must not block. */
typedef int64_t weir_cost_fn(struct weir *w);

/* One limit. Fill it through the macro of its algorithm, whose positional numbers can't
 * be forgotten; the rest by name behind them. */
struct weir_rule {
    enum weir_algorithm algorithm;
    const char *name;  /* required; 1 to 64 of [A-Za-z0-9._-]; keys and headers use it */
    int64_t max;       /* units a window; a bucket's capacity. WEIR_BLOCK refuses all */
    int64_t refill;    /* token bucket: units that come back in each period */
    int64_t window_us; /* window, counter: its length; token bucket: the period */
    enum weir_by by;   /* whom it counts */
    int64_t cost;      /* units a request; 0: 1 */
    weir_cost_fn *cost_fn; /* worked out for each request instead of cost */
    const char *bucket;    /* shares the budget with every rule of this name and bucket;
                              NULL: the endpoint's own */
    enum weir_on_store_error on_store_error;
    enum weir_anchor anchor; /* fixed window: where it begins */
    int abi;                 /* set by the macros */
};

#define WEIR_BLOCK INT64_MIN /* as max: refuses every request */

/* A window of window_us from the caller's first request, max_ units in it; with
 * .anchor = WEIR_ANCHOR_CLOCK for all callers at the same time. */
#define WEIR_FIXED_WINDOW(...) WEIR__FIXED_WINDOW(__VA_ARGS__, .abi = 1)
#define WEIR__FIXED_WINDOW(name_, max_, window_us_, ...)                                 \
    {                                                                                    \
        .algorithm = WEIR_ALGORITHM_FIXED_WINDOW, .name = (name_), .max = (max_),        \
        .window_us = (window_us_), __VA_ARGS__                                           \
    }

/* max_ units in each calendar month, UTC. */
#define WEIR_CALENDAR_MONTH(...) WEIR__CALENDAR_MONTH(__VA_ARGS__, .abi = 1)
#define WEIR__CALENDAR_MONTH(name_, max_, ...)                                           \
    WEIR__FIXED_WINDOW(                                                                  \
        name_, max_, WEIR_DAYS(31), .anchor = WEIR_ANCHOR_MONTH, __VA_ARGS__)

/* No more than max_ units in any window of window_us, by an estimate: the units of the
 * clock's open window and, by the share of it that is still in view, those of the window
 * before. max_ is below the microseconds of a window, and at most 10^9. */
#define WEIR_SLIDING_COUNTER(...) WEIR__SLIDING_COUNTER(__VA_ARGS__, .abi = 1)
#define WEIR__SLIDING_COUNTER(name_, max_, window_us_, ...)                              \
    {                                                                                    \
        .algorithm = WEIR_ALGORITHM_SLIDING_COUNTER, .name = (name_), .max = (max_),     \
        .window_us = (window_us_), __VA_ARGS__                                           \
    }

/* A bucket that holds capacity_ units, starts full, and gets refill_ back evenly over
 * each period_us_ (GCRA; exact, whatever the numbers). */
#define WEIR_TOKEN_BUCKET(...) WEIR__TOKEN_BUCKET(__VA_ARGS__, .abi = 1)
#define WEIR__TOKEN_BUCKET(name_, capacity_, refill_, period_us_, ...)                   \
    {                                                                                    \
        .algorithm = WEIR_ALGORITHM_TOKEN_BUCKET, .name = (name_), .max = (capacity_),   \
        .refill = (refill_), .window_us = (period_us_), __VA_ARGS__                      \
    }

/* A list of rules, ended by a rule without algorithm. NULL where an endpoint says
 * nothing: the app's default rules hold. */
#define WEIR_LIMITS(...)                                                                 \
    ((const struct weir_rule[]){ __VA_ARGS__, { .algorithm = WEIR_ALGORITHM_NONE } })

/* Switches every rule off for this endpoint, the default and the global ones too. */
#define WEIR_UNLIMITED                                                                   \
    ((const struct weir_rule[]){ { .algorithm = WEIR_ALGORITHM_UNLIMITED },              \
                                 { .algorithm = WEIR_ALGORITHM_NONE } })

/* What one rule said. Counts are units; times microseconds. */
struct weir_rule_answer {
    const struct weir_rule *rule;
    bool allowed;
    bool never;        /* the cost is above max: no wait will help */
    int64_t cost;      /* of this request */
    int64_t remaining; /* whole units left after this decision, 0 or more */
    int64_t retry_us;  /* refused: exact wait until this cost is admitted if nobody else
                          comes; 0 where allowed */
    int64_t next_us;   /* until remaining grows; 0 when nothing was used */
    int64_t full_us;   /* until the whole budget is back */
};

/* Who decided. */
enum weir_source {
    WEIR_SOURCE_NONE, /* no rule applied */
    WEIR_SOURCE_SHM,
    WEIR_SOURCE_REDIS,
    WEIR_SOURCE_LOCAL, /* the share of this instance, since the shared store is away */
    WEIR_SOURCE_ALLOW, /* let through without knowing */
    WEIR_SOURCE_DENY,  /* refused without knowing: 503 */
    WEIR_SOURCE_FAKE,
};

/* The store's answer to one request for all its rules. All or nothing: where one rule
 * refuses, none is charged. */
struct weir_decision {
    bool allowed;
    enum weir_source source;
    unsigned rules_len;
    struct weir_rule_answer rules[WEIR_RULES_MAX];
};

/* ---- one request ------------------------------------------------------------------- */

/* What a hook says. */
enum weir_verdict {
    WEIR_NEXT, /* go on */
    WEIR_DONE, /* answered: no later filter, no handler */
    WEIR_FAIL, /* a 500 */
    WEIR_WAIT  /* parked: only as `return weir_wait(...)` or `return weir_offload(...)` */
};

/* A hook or a continuation of it: self is the filter's own (its options, or what `start`
 * made), slot its zeroed memory for this request. */
typedef enum weir_verdict weir_step_fn(struct weir *w, const void *self, void *slot);

/* Runs once when the last byte has left or the client is gone. Must not block. */
typedef void weir_after_fn(struct weir *w, const void *self, void *slot);

/* May block. Returns the response's status; 0 takes what weir_set_status() set, else 200.
 * Once the head has left (weir_flush, a large body) no other status can be said: 500 and
 * more then cuts the reply off and closes the connection, so that it isn't taken for
 * whole. */
typedef int weir_handler_fn(struct weir *w);

/* The request line. The method as sent ("GET"); the normalised path, on which routes and
 * rules match (percent-coding only where it must stay, no `//`, `.`, `..`, `;`
 * parameters, query or trailing slash). Valid until the end of the request. */
WEIR_API const char *weir_method(const struct weir *w);
WEIR_API const char *weir_request_path(const struct weir *w);

/* The segment that matched {name}, fully decoded, valid UTF-8; for a trailing `*` the
 * rest of the path under the name "*". NULL where the pattern has no such name. */
WEIR_API const char *weir_path(const struct weir *w, const char *name);

/* A CGI parameter by its exact name ("REMOTE_ADDR"); NULL where absent or empty
 * (RFC 3875 section 4.1). */
WEIR_API const char *weir_param(const struct weir *w, const char *name);

/* A request header by its HTTP name in any case ("User-Agent"); several lines are joined
 * in order, with ", ", Cookie with "; " (RFC 3875 section 4.1.18, RFC 9113 8.2.3). NULL
 * where absent. */
WEIR_API const char *weir_header(struct weir *w, const char *name);

/* The first query parameter of that name, decoded (`+` is a blank); NULL where absent or
 * badly coded. */
WEIR_API const char *weir_query(struct weir *w, const char *name);

/* The cookie of that name, undecoded. NULL where absent, where it stands twice with two
 * values (RFC 6265bis 4.2.2: order means nothing), or where it holds other bytes than the
 * grammar's. */
WEIR_API const char *weir_cookie(struct weir *w, const char *name);

/* The collected body, NUL-ended; len may be NULL. Empty before the handler runs. */
WEIR_API const char *weir_body(const struct weir *w, size_t *ret_len);

/* A string member of a JSON object body, in the request's memory; NULL where the body is
 * no JSON object or has no such string. */
WEIR_API const char *weir_body_string(struct weir *w, const char *member);

/* The first field of that name in a body of type application/x-www-form-urlencoded,
 * decoded as weir_query() does; NULL where absent, badly coded, or the body is of another
 * type. */
WEIR_API const char *weir_form(struct weir *w, const char *name);

/* The remote address in canonical text (RFC 5952; IPv4-mapped and NAT64 as the IPv4 that
 * they carry), "" where there is none. */
WEIR_API const char *weir_remote_ip(const struct weir *w);

/* Who asks: filled by the identity filter; type NONE before it ran. Never NULL. */
WEIR_API const struct weir_caller *weir_caller(const struct weir *w);

/* The endpoint's pattern ("GET /api/weather/{city}"); NULL where none matched. */
WEIR_API const char *weir_endpoint_pattern(const struct weir *w);

/* True once the client is known to be gone: work for it is wasted. */
WEIR_API bool weir_gone(const struct weir *w);

/* Memory that lives as long as the request, aligned for any type. NULL when the request's
 * bound is reached. weir_zalloc zeroes. */
WEIR_API void *weir_alloc(struct weir *w, size_t bytes);
WEIR_API void *weir_zalloc(struct weir *w, size_t bytes);
WEIR_API char *weir_printf(struct weir *w, const char *format, ...) WEIR_PRINTF(2, 3);

/* ---- one response ------------------------------------------------------------------ */

/* Sets the status, 200 to 599. False (and logged) after the head has left or for another
 * number. */
WEIR_API bool weir_set_status(struct weir *w, int status);
WEIR_API int weir_status(const struct weir *w);

/* Sets a header, in place of all of that name; or adds a line. The name must be a token,
 * the value free of CR, LF, NUL and other control characters, without blanks at its ends
 * (RFC 9110 5.5). Status, the hop-by-hop fields and Content-Length are Weir's;
 * Content-Type, Location and Retry-After can't be added twice. False (and logged)
 * otherwise, when memory is short, or after the head has left. A NULL value, or an empty
 * one, which is the same in CGI (RFC 3875 section 6.3), removes the header; adding it
 * adds nothing. Copies both. */
WEIR_API bool weir_set_header(struct weir *w, const char *name, const char *value);
WEIR_API bool weir_add_header(struct weir *w, const char *name, const char *value);

/* The value of a header that was set, the first of that name, or NULL. */
WEIR_API const char *weir_response_header(const struct weir *w, const char *name);

/* Appends to the body. In a handler a large body leaves as it grows: the call then waits
 * for the client, never past the write deadline. In a hook and in a .nonblocking handler
 * it is collected, up to 4 MiB. False when the client is gone, memory is short, or the
 * answer is complete. */
WEIR_API bool weir_write(struct weir *w, const void *bytes, size_t len);

/* Sends head and body so far; the response is committed by it. Only in a handler that may
 * block: false elsewhere, and as weir_write(). */
WEIR_API bool weir_flush(struct weir *w);

/* Whole answers: Content-Type and body; each returns the status, so that a handler ends
 * with `return weir_text(...)`. They replace a body that was not sent yet. weir_json
 * takes jansson's json_pack format (jansson.readthedocs.io, "Building Values") and makes
 * compact JSON, members in the order given; invalid UTF-8 or a bad format is a 500. */
WEIR_API int weir_text(struct weir *w, int status, const char *text);
WEIR_API int weir_html(struct weir *w, int status, const char *html);
WEIR_API int weir_json(struct weir *w, int status, const char *format, ...);

/* A problem body (RFC 9457): type about:blank and the status phrase as title (for 429 the
 * type of an exceeded quota), the code, the detail where not NULL, request_id where that
 * filter ran. Returns the status. The codes are stable words: BadRequest, NotFound, ...
 */
WEIR_API int
weir_problem(struct weir *w, int status, const char *code, const char *detail);

/* ---- waiting ----------------------------------------------------------------------- */

/* Only as `return weir_wait(...)` from a hook: parks the request without a thread until
 * weir_wake() or until timeout_us (required, above 0) is over, then calls `then` on any
 * thread. then may wait again. */
WEIR_API enum weir_verdict
weir_wait(struct weir *w, weir_step_fn *then, int64_t timeout_us);

/* Whether the last wait ended by its time. */
WEIR_API bool weir_timed_out(const struct weir *w);

/* Ends a wait: any thread, also before weir_wait() was called or more than once. The
 * request must not have reached its `after` yet: who can wake it that late is told first,
 * in `then`, that nobody waits any more. A wake that comes when its wait is over can end
 * the hook's next one early, so that `then` looks whether it has what it waited for. */
WEIR_API void weir_wake(struct weir *w);

/* Only as `return weir_offload(...)` from a hook: calls `then` on a thread that may
 * block. How many are in flight for one remote address is bounded; past it the request
 * is answered 503, code Overloaded. */
WEIR_API enum weir_verdict weir_offload(struct weir *w, weir_step_fn *then);

/* ---- workers ----------------------------------------------------------------------- */

struct weir_worker; /* one worker process */

WEIR_API struct weir_worker *weir_worker(const struct weir *w);

/* The app's own pointer (a database handle), set in worker_start. */
WEIR_API void weir_worker_set(struct weir_worker *worker, void *app_data);
WEIR_API void *weir_worker_get(const struct weir_worker *worker);

/* The calling thread's number within its worker, 0 to threads - 1; -1 outside. For state
 * that is kept per thread. */
WEIR_API int weir_thread(void);

/* ---- filters ----------------------------------------------------------------------- */

struct weir_app;

/* One stage. All hooks are optional. */
struct weir_filter {
    const char *name;     /* [a-z_], once in a chain */
    const char *provides; /* words, blank-separated, that later filters may need */
    const char *needs;    /* words that an earlier filter must provide */
    size_t options_size;  /* sizeof its options struct: compared with the user's */
    size_t slot_size;     /* bytes a request, zeroed */

    /* Once at start, before any worker: checks the options and makes what the hooks get
     * as self. NULL: self is the options struct. False with a text refuses the start. */
    bool (*start)(const struct weir_app *app,
                  const void *options,
                  void **ret_self,
                  struct weir_error *ret_error);
    void (*stop)(void *self); /* frees what start made (NULL where it made nothing) */

    weir_step_fn *before; /* on the way in */
    weir_step_fn *commit; /* once, before the first byte leaves: the last chance to edit
                             status and headers; NEXT, FAIL or WAIT */
    weir_after_fn *after; /* on the way out */
};

/* An entry of a chain: a filter and its options. */
struct weir_use {
    const struct weir_filter *filter;
    const void *options;
};

/* Each filter `x` has a struct weir_x of options, whose first member is size_t size and
 * whose last is int abi, and a const struct weir_filter weir_filter_x. WEIR_USE(x) or
 * WEIR_USE(x, .option = ...) is its entry. Like all of C's compound literals it lives, in
 * a function, as long as the block that it stands in: main's, or outside of functions. */
#define WEIR_USE(...) WEIR__USE(__VA_ARGS__, .abi = 1)
#define WEIR__USE(name_, ...)                                                            \
    {                                                                                    \
        &weir_filter_##name_, &(const struct weir_##name_)                               \
        {                                                                                \
            .size = sizeof(struct weir_##name_), __VA_ARGS__                             \
        }                                                                                \
    }

/* A chain, in order, ended by an empty entry. */
#define WEIR_CHAIN(...) ((const struct weir_use[]){ __VA_ARGS__, { NULL, NULL } })

/* What an app without a chain of its own has: identity, ratelimit, both without options.
 */
extern WEIR_API const struct weir_use *const weir_chain_default;

/* What a filter or handler can do against the rules of the chain. Each is logged, at most
 * once a second; where the chain has the lint filter, which also finds what costs time to
 * find, it is told as well. A hook that breaks a rule of its verdict is taken as FAIL. */
enum weir_breach {
    WEIR_BREACH_DONE_UNANSWERED, /* DONE, but no status was set */
    WEIR_BREACH_NEXT_ANSWERED,   /* before: NEXT, after a status or body was set (lint) */
    WEIR_BREACH_VERDICT,         /* a number that is no verdict */
    WEIR_BREACH_COMMIT_DONE,     /* commit has no DONE */
    WEIR_BREACH_WAIT_UNASKED, /* WAIT, but weir_wait() or weir_offload() wasn't called */
    WEIR_BREACH_WAIT_UNSAID,  /* one of them was called, but the verdict isn't WAIT */
    WEIR_BREACH_WAIT_ENDLESS, /* weir_wait() without a time or a continuation */
    WEIR_BREACH_WAIT_OUTSIDE, /* a wait or offload that no hook asked for */
    WEIR_BREACH_STATUS,       /* a status outside 200 to 599 */
    WEIR_BREACH_HEADER,       /* a header that is malformed or Weir's own */
    WEIR_BREACH_LATE,         /* status, header or body after the answer was complete */
    WEIR_BREACH_BODY,         /* a body with a status that has none (204, 304) */
    WEIR_BREACH_LENGTH,       /* a Content-Length that is not the body's (lint) */
    WEIR_BREACH_SLOT,         /* a write past the end of a slot (lint) */
    WEIR_BREACH_CONCURRENT,   /* two hooks of one request at the same time (lint) */
    WEIR_BREACH_ORDER,        /* a hook out of order, or twice (lint) */
    WEIR_BREACH_BLOCKED,      /* a hook kept its thread without weir_offload() (lint) */
    WEIR_BREACHES
};

/* The rule in words; never NULL. Any thread. */
WEIR_API const char *weir_breach_text(enum weir_breach breach);

/* How often this process has seen it. Any thread. */
WEIR_API unsigned long weir_breach_count(enum weir_breach breach);

/* ---- the app ----------------------------------------------------------------------- */

struct FCGX_Request; /* fcgiapp.h */

/* A handler as libfcgi knows it. */
typedef void weir_fcgx_fn(struct FCGX_Request *request);

/* Method, path pattern, handler and limits: `{ "GET /api/weather/{city}", forecast }`.
 *
 * A pattern is a method ("GET", or "*" for any) and a path of literal segments, `{name}`
 * for one segment, and a trailing `*` for the rest. The most specific one wins: literal
 * before `{name}` before `*`, segment by segment. GET serves HEAD too. */
struct weir_endpoint {
    const char *pattern;
    weir_handler_fn *handler;
    const struct weir_rule *limits; /* WEIR_LIMITS, WEIR_UNLIMITED; NULL: the default */
    bool nonblocking; /* the handler never blocks: it runs without a change of thread */

    /* In place of handler: one in libfcgi's form, for a program that links libfcgi. It
     * reads the collected body from request->in and writes CGI output (RFC 3875 section
     * 6) to request->out; request->err is the log. Runs for one request of a worker at a
     * time, the others wait in line without a thread. */
    weir_fcgx_fn *fcgx;
    bool parallel; /* fcgx is safe on several threads at a time */
};

/* Writes the body (and Content-Type) of a refusal in an app's own form. Status 429 or
 * 503, Retry-After and RateLimit are set already. code is "TooManyRequests", ...;
 * retry_after is whole seconds, 0 where there is none. Must not block. */
typedef void weir_refusal_fn(struct weir *w,
                             int status,
                             const char *code,
                             const struct weir_decision *decision,
                             int64_t retry_after);

/* The body of a refusal where no weir_refusal_fn is given. */
enum weir_refusal_format {
    WEIR_FORMAT_PROBLEM,         /* application/problem+json (RFC 9457) */
    WEIR_FORMAT_RESPONSE_STATUS, /* {"responseStatus":{"errorCode":...,"message":...}} */
    WEIR_FORMAT_BOTH             /* a problem with a member responseStatus */
};

struct weir_store; /* weir/store.h */

/* An option of the app's own: stands in --help beside the library's and is read with
 * them. All options take a value. */
struct weir_option {
    const char *name;       /* without its dashes: "key-file" */
    const char *value_name; /* what --help calls its value: "PATH" */
    const char *help;       /* one sentence, with the default */
    const char **ret_value; /* gets the value; left alone where the option is not given */
};

/* Sizes of the structs that the app fills in, so that a library of another layout says so
 * at start instead of reading nonsense. */
struct weir_abi {
    size_t app, endpoint, rule, filter, use, option;
};
#define WEIR_ABI                                                                         \
    .abi = { sizeof(struct weir_app),  sizeof(struct weir_endpoint),                     \
             sizeof(struct weir_rule), sizeof(struct weir_filter),                       \
             sizeof(struct weir_use),  sizeof(struct weir_option) }

/* Everything that an app declares. Must stay valid while it runs: a list that is written
 * inside a function other than main ends with that function. */
struct weir_app {
    struct weir_abi abi;                    /* WEIR_ABI */
    const char *name;                       /* in --help; NULL: argv[0] */
    const struct weir_endpoint *endpoints;  /* ended by one without pattern */
    const struct weir_use *chain;           /* WEIR_CHAIN; NULL: identity, ratelimit */
    const struct weir_rule *default_limits; /* for endpoints that say nothing, counted per
                                               endpoint, and for unknown paths; or NULL */
    const struct weir_rule *global_limits;  /* run beside every endpoint's own; or NULL */
    struct weir_store *store;               /* NULL: what --store says, shm by default */

    const struct weir_option *options; /* the app's own, ended by one without name; NULL:
                                          none */

    /* Once in the parent, when the options are read and before any worker: what all
     * workers share (a key). False with a text refuses the start. */
    bool (*start)(struct weir_error *ret_error);

    /* In each worker after fork, before its threads; false (logged) ends the worker. */
    bool (*worker_start)(struct weir_worker *worker);
    void (*worker_stop)(struct weir_worker *worker);
    /* In each thread of a worker. */
    bool (*thread_start)(struct weir_worker *worker);
    void (*thread_stop)(struct weir_worker *worker);

    weir_log_fn *log; /* NULL: standard error */
    void *log_arg;
};

/* Runs the app: reads the options, checks every table, listens, starts the workers and
 * keeps them running until SIGTERM or SIGINT. Call it once, from main, before any thread
 * exists. Returns the exit status: 0 after a stop, 64 for a mistake on the command line,
 * 71 where the system refuses something, 73 where it can't listen, 78 for a mistake in a
 * table (sysexits.h); what is wrong is one line of the log.
 *
 * `--help` lists the options with their defaults, `--routes` every endpoint with its
 * limits, `--check` only checks the tables. These print to standard output, which nothing
 * else in the library does. */
WEIR_API int weir_main(int argc, char **argv, const struct weir_app *app);

#ifdef __cplusplus
}
#endif

#endif
