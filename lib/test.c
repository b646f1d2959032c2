/* An app under test: stands in for the parent, the worker, the web server and the clock.
 *
 * It adds no behaviour of its own to a request: what an app gets here is what it gets in
 * a worker, but for the threads. */
#include <weir/test.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "app.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "test_request.h"
#include "transport/mem.h"
#include "worker.h"

#define FIRST_NOW_US WEIR_DAYS(10)
#define FIRST_WALL_US WEIR_SECONDS(1900000000)
#define PATIENCE_US WEIR_SECONDS(5)
#define ARGUMENTS_MAX 64
#define REQUEST_BYTES ((size_t)64 * 1024 * 1024)
#define REQUEST_BLOCK_BYTES ((size_t)64 * 1024)

/* A reply and what it points to. */
struct reply {
    struct weir_test_reply public;
    struct reply *next;
    struct weir__buf head, body, hooks, log;
    struct weir__buf lines; /* the head once more, a NUL behind each line */
};

struct weir_test {
    const struct weir_app *app;
    struct weir__options options;
    char *arguments[ARGUMENTS_MAX + 2];
    struct weir__app *frozen;
    struct weir_worker worker;
    bool store_started, fallback_started, worker_started, thread_started;
    struct reply *replies;
    const struct weir_test_request *request; /* that runs now */
    pthread_mutex_t log_mutex;
    struct weir__buf log; /* guarded by it: a store's threads log too */
};

/* The clocks belong to the process, as the functions that read them do. Threads of a
 * store read them while the test may move them. */
static _Atomic int64_t now_us, wall_us;

static int64_t test_now_us(void)
{
    return atomic_load(&now_us);
}

static int64_t test_wall_us(void)
{
    return atomic_load(&wall_us);
}

void weir_test_advance(struct weir_test *t, int64_t us)
{
    (void)t;
    if (us <= 0)
        return;
    atomic_fetch_add(&now_us, us);
    atomic_fetch_add(&wall_us, us);
}

int64_t weir_test_now_us(const struct weir_test *t)
{
    (void)t;
    return test_now_us();
}

static void keep_line(void *arg, enum weir_log_level level, const char *line)
{
    struct weir_test *t = arg;
    (void)level;
    pthread_mutex_lock(&t->log_mutex);
    weir__buf_printf(&t->log, "%s\n", line);
    pthread_mutex_unlock(&t->log_mutex);
}

/* ---- start and stop ---------------------------------------------------------------- */

static bool read_options(struct weir_test *t,
                         const char *const *arguments,
                         struct weir_error *ret_error)
{
    static char program[] = "test";
    int count = 0;
    t->arguments[count++] = program;
    for (; arguments && *arguments; arguments++) {
        if (count > ARGUMENTS_MAX)
            return weir__error(ret_error, "test: too many arguments");
        t->arguments[count++] = (char *)*arguments;
    }
    return weir__options_parse(
        &t->options, count, t->arguments, t->app->options, ret_error);
}

static bool start_store(struct weir_test *t,
                        struct weir_store *store,
                        bool *ret_started,
                        struct weir_error *ret_error)
{
    if (store && store->ops->worker_start &&
        !store->ops->worker_start(store->self, &t->worker, ret_error))
        return false;
    *ret_started = store != NULL;
    return true;
}

static void stop_store(struct weir_store *store, bool started)
{
    if (started && store->ops->worker_stop)
        store->ops->worker_stop(store->self);
}

/* What a worker does before its first request. */
static bool start_worker(struct weir_test *t, struct weir_error *ret_error)
{
    if (!start_store(t, t->frozen->store, &t->store_started, ret_error) ||
        !start_store(t, t->frozen->fallback, &t->fallback_started, ret_error))
        return false;
    if (t->app->worker_start && !t->app->worker_start(&t->worker))
        return weir__error(ret_error, "test: worker_start refused");
    t->worker_started = true;
    if (t->app->thread_start && !t->app->thread_start(&t->worker))
        return weir__error(ret_error, "test: thread_start refused");
    t->thread_started = true;
    return true;
}

static void stop_worker(struct weir_test *t)
{
    if (t->thread_started && t->app->thread_stop)
        t->app->thread_stop(&t->worker);
    if (t->worker_started && t->app->worker_stop)
        t->app->worker_stop(&t->worker);
    if (!t->frozen)
        return;
    stop_store(t->frozen->fallback, t->fallback_started);
    stop_store(t->frozen->store, t->store_started);
}

struct weir_test *weir_test_create(const struct weir_app *app,
                                   const struct weir_test_options *options,
                                   struct weir_error *ret_error)
{
    static const struct weir_test_options defaults;
    options = options ? options : &defaults;
    struct weir_test *t = calloc(1, sizeof *t);
    if (!t) {
        weir__error(ret_error, "test: out of memory");
        return NULL;
    }
    t->app = app;
    pthread_mutex_init(&t->log_mutex, NULL);
    atomic_store(&now_us, FIRST_NOW_US);
    atomic_store(&wall_us, options->wall_us > 0 ? options->wall_us : FIRST_WALL_US);
    weir__clock_replace(test_now_us, test_wall_us);
    weir__log_replace(keep_line, t, WEIR_LOG_DEBUG);
    if (!read_options(t, options->arguments, ret_error) ||
        (app->start && !app->start(ret_error)) ||
        !weir__app_create(app, &t->options, options->store, &t->frozen, ret_error) ||
        !start_worker(t, ret_error)) {
        weir_test_destroy(t);
        return NULL;
    }
    return t;
}

static void free_reply(struct reply *reply)
{
    weir__buf_finish(&reply->head);
    weir__buf_finish(&reply->body);
    weir__buf_finish(&reply->hooks);
    weir__buf_finish(&reply->log);
    weir__buf_finish(&reply->lines);
    free(reply);
}

void weir_test_destroy(struct weir_test *t)
{
    if (!t)
        return;
    stop_worker(t);
    weir__app_destroy(t->frozen);
    while (t->replies) {
        struct reply *next = t->replies->next;
        free_reply(t->replies);
        t->replies = next;
    }
    weir__log_replace(NULL, NULL, WEIR_LOG_INFO);
    weir__clock_replace(NULL, NULL);
    weir__buf_finish(&t->log);
    pthread_mutex_destroy(&t->log_mutex);
    free(t);
}

/* ---- one request ------------------------------------------------------------------- */

/* A request waits: it is woken, or its time passes. */
static void sit_out(struct weir *w, void *arg)
{
    struct weir_test *t = arg;
    const struct weir_test_request *request = t->request;
    int64_t until_us = w->wait_until_us;
    if (request->waiting)
        request->waiting(w, request->arg);
    if (weir__mem_wait(w, request->wait == WEIR_TEST_TIME_OUT ? 0 : PATIENCE_US))
        return;
    weir_test_advance(t, until_us - test_now_us());
    weir__mem_time_out(w);
}

/* The text of a buffer, "" for an empty one. */
static const char *text_of(struct weir__buf *buf)
{
    if (!weir__buf_append(buf, "", 1))
        return "";
    buf->len--;
    return buf->bytes;
}

static struct weir_test_reply *unsendable(struct reply *reply, const char *why)
{
    static struct reply nothing = {
        .public = { .head = "", .body = "", .hooks = "", .log = "test: out of memory\n" }
    };
    if (!reply)
        return &nothing.public;
    weir__buf_printf(&reply->log, "test: %s\n", why);
    reply->public = nothing.public;
    reply->public.log = text_of(&reply->log);
    return &reply->public;
}

/* Takes over what the exchange and the log have collected. */
static struct weir_test_reply *
finish_reply(struct weir_test *t, struct reply *reply, struct weir__mem *mem)
{
    reply->head = mem->head;
    reply->body = mem->out;
    reply->hooks = mem->hooks;
    pthread_mutex_lock(&t->log_mutex);
    reply->log = t->log;
    weir__buf_init(&t->log, 0);
    pthread_mutex_unlock(&t->log_mutex);
    if (mem->short_of_memory)
        return unsendable(reply, "out of memory");
    reply->public = (struct weir_test_reply){
        .status = mem->status,
        .head = text_of(&reply->head),
        .body = text_of(&reply->body),
        .body_len = reply->body.len,
        .complete = mem->complete,
        .flushes = mem->flushes,
        .waits = mem->waits,
        .hooks = text_of(&reply->hooks),
        .log = text_of(&reply->log),
    };
    weir__buf_append(&reply->lines, reply->head.bytes, reply->head.len);
    text_of(&reply->lines);
    for (size_t i = 0; i + 1 < reply->lines.len; i++) {
        if (reply->lines.bytes[i] == '\r')
            reply->lines.bytes[i] = '\0';
    }
    return &reply->public;
}

struct weir_test_reply *weir_test_send(struct weir_test *t,
                                       const struct weir_test_request *request)
{
    struct reply *reply = calloc(1, sizeof *reply);
    if (!reply)
        return unsendable(NULL, NULL);
    reply->next = t->replies;
    t->replies = reply;

    struct weir__mem mem = { .app = t->frozen,
                             .worker = &t->worker,
                             .body = request->body,
                             .body_len = request->body_len,
                             .piece_bytes = request->piece_bytes,
                             .authorizer = request->authorizer,
                             .gone = request->gone,
                             .gone_after_bytes = request->gone_after_bytes,
                             .no_offload = request->no_offload,
                             .waiting = sit_out,
                             .arg = t };
    if (request->body && request->body_len == 0)
        mem.body_len = strlen(request->body);
    struct weir__arena arena;
    weir__arena_init(&arena, REQUEST_BYTES, REQUEST_BLOCK_BYTES);
    const char *why =
        weir__test_params(request, mem.body_len, &arena, &mem.params, &mem.params_len);
    t->request = request;
    if (!why)
        weir__mem_run(&mem);
    struct weir_test_reply *public =
        why ? unsendable(reply, why) : finish_reply(t, reply, &mem);
    weir__arena_finish(&arena);
    return public;
}

struct weir_test_reply *
weir_test_get(struct weir_test *t, const char *target, const char *headers)
{
    return weir_test_send(
        t, &(struct weir_test_request){ .target = target, .headers = headers });
}

struct weir_test_reply *weir_test_post(struct weir_test *t,
                                       const char *target,
                                       const char *headers,
                                       const char *body)
{
    return weir_test_send(
        t,
        &(struct weir_test_request){
            .method = "POST", .target = target, .headers = headers, .body = body });
}

/* Each line ends with a NUL and a line feed. */
const char *weir_test_header(const struct weir_test_reply *reply, const char *name)
{
    const struct reply *own = (const struct reply *)(const void *)reply;
    const char *line = own->lines.bytes;
    const char *end = line ? line + own->lines.len : NULL;
    size_t len = strlen(name);
    while (line < end) {
        if (strncasecmp(line, name, len) == 0 && line[len] == ':')
            return line + len + 2;
        line += strlen(line) + 2;
    }
    return NULL;
}
