/* Makes and ends the engine, drains it, and sums up its counts. What it does with a
 * connection is in the other native_*.c. */
#include "transport/native.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/native_impl.h"

static bool make(struct weir__native *native, struct weir_error *ret_error)
{
    const struct weir__options *options = native->options;
    native->counts = aligned_alloc(64, native->loop->threads * sizeof *native->counts);
    native->connections = calloc(options->max_connections, sizeof *native->connections);
    if (!native->counts || !native->connections || !weir__native_pace_init(native))
        return weir__error(ret_error, "record engine: %s", strerror(ENOMEM));
    memset(native->counts, 0, native->loop->threads * sizeof *native->counts);
    if (!weir__offloads_init(
            &native->offloads, options->max_offloads, options->max_offloads_an_address))
        return weir__error(ret_error, "record engine: %s", strerror(ENOMEM));
    return weir__native_listen(native, ret_error);
}

bool weir__native_create(const struct weir__native_config *config,
                         struct weir__native **ret_native,
                         struct weir_error *ret_error)
{
    struct weir__native *native = calloc(1, sizeof *native);
    if (!native)
        return weir__error(ret_error, "record engine: %s", strerror(ENOMEM));
    native->config = *config;
    native->options = config->app->options;
    native->loop = config->worker->loop;
    native->spare_fd = -1;
    pthread_mutex_init(&native->listen_mutex, NULL);
    pthread_mutex_init(&native->pool_mutex, NULL);
    if (!make(native, ret_error)) {
        weir__native_destroy(native);
        return false;
    }
    *ret_native = native;
    return true;
}

void weir__native_destroy(struct weir__native *native)
{
    if (!native)
        return;
    weir__native_pool_finish(native);
    if (native->spare_fd >= 0)
        close(native->spare_fd);
    weir__offloads_finish(&native->offloads);
    pthread_mutex_destroy(&native->pool_mutex);
    pthread_mutex_destroy(&native->listen_mutex);
    free(native->connections);
    free(native->paces_us);
    free(native->counts);
    free(native);
}

void weir__native_drain(struct weir__native *native)
{
    /* Counted as open meanwhile, so that the end is not told before all have been asked.
     */
    atomic_fetch_add(&native->open, 1);
    atomic_store(&native->draining, true);
    weir__native_unlisten(native);
    pthread_mutex_lock(&native->pool_mutex);
    unsigned len = native->connections_len;
    pthread_mutex_unlock(&native->pool_mutex);
    for (unsigned i = 0; i < len; i++) {
        struct weir__native_connection *connection = native->connections[i];
        if (weir__native_post(connection, WEIR__NATIVE_LOOK))
            weir__loop_soon(native->loop, &connection->task);
    }
    weir__native_closed_one(native);
}

void weir__native_stats(const struct weir__native *native,
                        struct weir__native_stats *ret_stats)
{
    struct weir__native_stats sum = { .connections = atomic_load(&native->open) };
    for (unsigned i = 0; i < native->loop->threads; i++) {
        struct weir__native_counts *counts = &native->counts[i];
        sum.requests += atomic_load_explicit(&counts->requests, memory_order_relaxed);
        sum.refused += atomic_load_explicit(&counts->refused, memory_order_relaxed);
        sum.failed += atomic_load_explicit(&counts->failed, memory_order_relaxed);
        sum.accepted += atomic_load_explicit(&counts->accepted, memory_order_relaxed);
    }
    *ret_stats = sum;
}
