/* Requests and replies in memory. It keeps the bounds that a real transport keeps, and
 * follows life.c's needs one by one on one thread; only resume() may come from another.
 *
 * It never looks at the system's clock for the request's sake: when a wait is over is the
 * caller's to say. */
#include "transport/mem.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "options.h"

#define ARENA_BLOCK_BYTES ((size_t)16 * 1024)

/* The connection of a request, as its transport sees it. */
struct link {
    struct weir__mem *mem;
    struct weir__buf body;
    size_t taken;  /* bytes of the answer that the client has */
    uint64_t wait; /* the number of the last one */
    pthread_mutex_t mutex;
    pthread_cond_t resumed_cond;
    bool resumed; /* guarded by the mutex */
};

static struct link *link_of(const struct weir *w)
{
    return w->connection;
}

/* ---- the way out ------------------------------------------------------------------- */

/* The client takes bytes, as many as it stays for. */
static void take(struct weir *w, struct weir__buf *to, const char *bytes, size_t len)
{
    struct link *link = link_of(w);
    size_t most = link->mem->gone_after_bytes;
    size_t part = most > 0 && len > most - link->taken ? most - link->taken : len;
    if (!weir__buf_append(to, bytes, part))
        link->mem->short_of_memory = true;
    link->taken += part;
    if (most > 0 && link->taken == most)
        atomic_store(&w->gone, true);
}

/* Head and body so far. False: the client is gone. */
static bool deliver(struct weir *w)
{
    struct weir__mem *mem = link_of(w)->mem;
    if (!w->head_sent && !atomic_load(&w->gone)) {
        take(w, &mem->head, w->head_text, w->head_len);
        mem->status = w->status;
    }
    w->head_sent = true;
    if (!atomic_load(&w->gone))
        take(w, &mem->out, w->out.bytes, w->out.len);
    w->out.len = 0;
    return !atomic_load(&w->gone);
}

static bool mem_send(struct weir *w)
{
    link_of(w)->mem->flushes++;
    return deliver(w);
}

/* ---- waits and offloads ------------------------------------------------------------ */

static void mem_resume(struct weir *w)
{
    struct link *link = link_of(w);
    pthread_mutex_lock(&link->mutex);
    link->resumed = true;
    pthread_cond_signal(&link->resumed_cond);
    pthread_mutex_unlock(&link->mutex);
}

static void mem_arm(struct weir *w, uint64_t wait)
{
    struct link *link = link_of(w);
    link->wait = wait;
    pthread_mutex_lock(&link->mutex);
    link->resumed = false;
    pthread_mutex_unlock(&link->mutex);
}

static bool mem_offload_begin(struct weir *w)
{
    return !link_of(w)->mem->no_offload;
}

static void mem_hook(struct weir *w, const struct weir_filter *filter, const char *hook)
{
    struct weir__mem *mem = link_of(w)->mem;
    if (!weir__buf_printf(
            &mem->hooks, "%s%s:%s", mem->hooks.len > 0 ? " " : "", hook, filter->name))
        mem->short_of_memory = true;
}

static const struct weir__transport_ops mem_ops = {
    .name = "mem",
    .send = mem_send,
    .resume = mem_resume,
    .arm = mem_arm,
    .offload_begin = mem_offload_begin,
    .hook = mem_hook,
};

void weir__mem_time_out(struct weir *w)
{
    weir__life_timeout(w, link_of(w)->wait);
}

static struct timespec system_in(int64_t us)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + us % 1000000 * 1000;
    until.tv_sec += (time_t)(us / 1000000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    return until;
}

bool weir__mem_wait(struct weir *w, int64_t us)
{
    struct link *link = link_of(w);
    struct timespec until = system_in(us);
    pthread_mutex_lock(&link->mutex);
    while (!link->resumed &&
           pthread_cond_clockwait(
               &link->resumed_cond, &link->mutex, CLOCK_MONOTONIC, &until) == 0)
        ;
    bool resumed = link->resumed;
    pthread_mutex_unlock(&link->mutex);
    return resumed;
}

/* Until the request may be touched again. */
static void sit_out(struct weir *w)
{
    struct link *link = link_of(w);
    link->mem->waits++;
    if (link->mem->waiting)
        link->mem->waiting(w, link->mem->arg);
    pthread_mutex_lock(&link->mutex);
    while (!link->resumed)
        pthread_cond_wait(&link->resumed_cond, &link->mutex);
    pthread_mutex_unlock(&link->mutex);
}

/* ---- the way in -------------------------------------------------------------------- */

/* Whether the parameters keep the bounds of the options. */
static bool params_fit(const struct weir__mem *mem)
{
    const struct weir__options *options = mem->app->options;
    size_t bytes = 0;
    for (unsigned i = 0; i < mem->params_len; i++) {
        if (mem->params[i].value_len > options->max_param_value_bytes)
            return false;
        bytes += (size_t)mem->params[i].name_len + mem->params[i].value_len;
    }
    return mem->params_len <= options->max_params && bytes <= options->max_params_bytes;
}

/* The body as it comes, to its end or its bound. */
static void collect_body(struct weir *w)
{
    struct link *link = link_of(w);
    const struct weir__mem *mem = link->mem;
    size_t piece = mem->piece_bytes > 0 ? mem->piece_bytes : mem->body_len;
    bool ok = true;
    for (size_t at = 0; ok && at < mem->body_len; at += piece) {
        size_t len = piece < mem->body_len - at ? piece : mem->body_len - at;
        if (at + len > mem->app->options->max_body_bytes) {
            weir__life_abandon(w, 413, "PayloadTooLarge", NULL);
            return;
        }
        ok = weir__buf_append(&link->body, (const char *)mem->body + at, len);
    }
    if (!ok || !weir__buf_append(&link->body, "", 1)) {
        weir__life_abandon(w, 500, "InternalError", NULL);
        return;
    }
    w->body = link->body.bytes;
    w->body_len = link->body.len - 1;
}

static void run(struct weir *w)
{
    struct link *link = link_of(w);
    bool may_block = false;
    for (;;) {
        enum weir__need need = weir__life_run(w, may_block);
        may_block = false;
        switch (need) {
        case WEIR__NEED_RESUME:
            sit_out(w);
            break;
        case WEIR__NEED_BODY:
            if (!atomic_load(&w->gone))
                collect_body(w);
            break;
        case WEIR__NEED_THREAD:
            may_block = true;
            break;
        case WEIR__NEED_SEND:
            link->mem->complete = deliver(w) && !w->torn;
            return;
        }
    }
}

void weir__mem_run(struct weir__mem *mem)
{
    const struct weir__options *options = mem->app->options;
    struct link link = { .mem = mem, .mutex = PTHREAD_MUTEX_INITIALIZER };
    struct weir *w = calloc(1, sizeof *w);
    mem->short_of_memory = !w;
    if (!w)
        return;
    pthread_cond_init(&link.resumed_cond, NULL);
    weir__buf_init(&link.body, 0);
    weir__arena_init(&w->arena, options->max_request_bytes, ARENA_BLOCK_BYTES);
    weir__buf_init(&w->out, WEIR__OUT_MAX);

    weir__life_init(w, mem->app, mem->worker, &mem_ops, &link);
    w->params = mem->params;
    w->params_len = mem->params_len;
    w->authorizer = mem->authorizer;
    if (params_fit(mem))
        weir__life_begin(w);
    else
        weir__life_abandon(w, 431, "HeadersTooLarge", NULL);
    atomic_store(&w->gone, mem->gone);
    run(w);
    weir__life_end(w);

    weir__buf_finish(&w->out);
    weir__arena_finish(&w->arena);
    weir__buf_finish(&link.body);
    pthread_cond_destroy(&link.resumed_cond);
    pthread_mutex_destroy(&link.mutex);
    free(w);
}

void weir__mem_finish(struct weir__mem *mem)
{
    weir__buf_finish(&mem->head);
    weir__buf_finish(&mem->out);
    weir__buf_finish(&mem->hooks);
}
