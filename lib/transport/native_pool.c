/* Connections and requests that are used again, with their memory, so that a warmed-up
 * worker allocates nothing; and the budget of what all requests hold.
 *
 * Nothing is freed before the engine ends: late events and late wakes may look at any
 * connection and any request there ever was. */
#include <stdlib.h>
#include <unistd.h>

#include "transport/native_impl.h"

/* What a request keeps in the pool of the memory that a large one needed. */
#define BODY_KEEP_BYTES ((size_t)16 * 1024)

static void work(struct weir__task *task)
{
    weir__native_go_on(
        (struct weir__native_connection *)((char *)task -
                                           offsetof(struct weir__native_connection,
                                                    task)));
}

static void ready(struct weir__source *source, unsigned what)
{
    struct weir__native_connection *connection = (struct weir__native_connection *)source;
    unsigned mail =
        (what & WEIR__POLL_READ ? (unsigned)WEIR__NATIVE_READ : 0u) |
        (what & WEIR__POLL_WRITE ? (unsigned)WEIR__NATIVE_WRITE : 0u) |
        (what & (WEIR__POLL_SHUT | WEIR__POLL_GONE) ? (unsigned)WEIR__NATIVE_SHUT : 0u);
    if (weir__native_post(connection, mail))
        weir__native_go_on(connection);
}

static void ring(struct weir__alarm *alarm)
{
    struct weir__native_connection *connection =
        (struct weir__native_connection *)((char *)alarm -
                                           offsetof(struct weir__native_connection,
                                                    alarm));
    if (weir__native_post(connection, WEIR__NATIVE_TIME))
        weir__native_go_on(connection);
}

static struct weir__native_connection *make_connection(struct weir__native *native)
{
    struct weir__native_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return NULL;
    connection->source.ready = ready;
    connection->task.run = work;
    connection->alarm.fire = ring;
    connection->native = native;
    connection->fd = -1;
    return connection;
}

struct weir__native_connection *weir__native_connection_take(struct weir__native *native)
{
    pthread_mutex_lock(&native->pool_mutex);
    struct weir__native_connection *connection = native->free_connections;
    if (connection) {
        native->free_connections = connection->next;
    } else if (native->connections_len < native->options->max_connections) {
        connection = make_connection(native);
        if (connection)
            native->connections[native->connections_len++] = connection;
    }
    pthread_mutex_unlock(&native->pool_mutex);
    return connection;
}

void weir__native_connection_put(struct weir__native_connection *connection)
{
    struct weir__native *native = connection->native;
    pthread_mutex_lock(&native->pool_mutex);
    connection->next = native->free_connections;
    native->free_connections = connection;
    pthread_mutex_unlock(&native->pool_mutex);
    weir__native_closed_one(native); /* who hears of it finds it in the pool */
}

/* ---- requests --------------------------------------------------------------------- */

static void free_request(struct weir__native_request *request)
{
    weir__arena_finish(&request->w.arena);
    weir__buf_finish(&request->w.out);
    weir__buf_finish(&request->body);
    pthread_mutex_destroy(&request->mutex);
    free(request);
}

static struct weir__native_request *pop_request(struct weir__native *native)
{
    struct weir__native_counts *mine = &native->counts[weir__turn_index()];
    struct weir__native_request *request = mine->spare;
    if (request) {
        mine->spare = NULL;
        return request;
    }
    pthread_mutex_lock(&native->pool_mutex);
    request = native->free_requests;
    if (request)
        native->free_requests = request->next;
    pthread_mutex_unlock(&native->pool_mutex);
    return request ? request : weir__native_request_create(native);
}

struct weir__native_request *weir__native_request_take(struct weir__native *native)
{
    struct weir__native_request *request = pop_request(native);
    if (!request)
        return NULL;
    const struct weir__options *options = native->options;
    const struct weir__fcgi_caps caps = {
        .max_bytes = options->max_params_bytes,
        .max_value_bytes = options->max_param_value_bytes,
        .max_pairs = options->max_params,
    };
    request->params_done = request->begun = request->stdin_done = false;
    request->admitted = false;
    request->body_too_large = request->orphan = request->sending = false;
    request->look_when_sent = false;
    atomic_store_explicit(&request->cut, false, memory_order_relaxed);
    weir__fcgi_pairs_init(&request->pairs, &request->w.arena, &caps);
    weir__native_request_count(request);
    return request;
}

/* Under no lock; NULL-ended list. */
static struct weir__native_connection *take_starving(struct weir__native *native)
{
    pthread_mutex_lock(&native->pool_mutex);
    struct weir__native_connection *list = native->starving;
    native->starving = NULL;
    atomic_store(&native->starving_len, 0);
    pthread_mutex_unlock(&native->pool_mutex);
    return list;
}

static void feed_starving(struct weir__native *native)
{
    struct weir__native_connection *next;
    for (struct weir__native_connection *list = take_starving(native); list;
         list = next) {
        next = list->next_starving;
        atomic_store(&list->starving, false);
        if (weir__native_post(list, WEIR__NATIVE_LOOK))
            weir__loop_soon(native->loop, &list->task);
    }
}

void weir__native_request_put(struct weir__native_request *request)
{
    struct weir__native *native = request->native;
    struct weir__native_counts *mine = &native->counts[weir__turn_index()];
    weir__buf_reset(&request->body, BODY_KEEP_BYTES);
    atomic_fetch_sub(&native->buffered_bytes, request->counted_bytes);
    request->counted_bytes = 0;
    if (!mine->spare) {
        mine->spare = request;
    } else {
        pthread_mutex_lock(&native->pool_mutex);
        request->next = native->free_requests;
        native->free_requests = request;
        pthread_mutex_unlock(&native->pool_mutex);
    }
    if (atomic_load(&native->starving_len) > 0 && weir__native_has_budget(native))
        feed_starving(native);
}

/* ---- the budget ------------------------------------------------------------------- */

void weir__native_request_count(struct weir__native_request *request)
{
    size_t bytes = sizeof *request + WEIR__NATIVE_ARENA_BLOCK + request->body.capacity +
                   request->w.out.capacity;
    if (request->w.arena.used_bytes > WEIR__NATIVE_ARENA_BLOCK)
        bytes += request->w.arena.used_bytes;
    if (bytes == request->counted_bytes)
        return;
    /* Unsigned, so that a smaller amount wraps to a subtraction. */
    atomic_fetch_add(&request->native->buffered_bytes, bytes - request->counted_bytes);
    request->counted_bytes = bytes;
}

bool weir__native_has_budget(const struct weir__native *native)
{
    return atomic_load(&native->buffered_bytes) < native->options->max_buffered_bytes;
}

void weir__native_starve(struct weir__native_connection *connection)
{
    struct weir__native *native = connection->native;
    if (atomic_exchange(&connection->starving, true))
        return;
    pthread_mutex_lock(&native->pool_mutex);
    connection->next_starving = native->starving;
    native->starving = connection;
    atomic_fetch_add(&native->starving_len, 1);
    pthread_mutex_unlock(&native->pool_mutex);
    /* It may have come back meanwhile, unseen by who gave it back. */
    if (weir__native_has_budget(native))
        feed_starving(native);
}

void weir__native_pool_finish(struct weir__native *native)
{
    for (unsigned i = 0; i < native->connections_len; i++) {
        struct weir__native_connection *connection = native->connections[i];
        if (connection->fd >= 0)
            close(connection->fd);
        free(connection);
    }
    for (struct weir__native_request *next, *all = native->requests; all; all = next) {
        next = all->next_of_all;
        free_request(all);
    }
}
