/* Listening sockets: one connection for each wake-up, so that the workers share them;
 * what to do when there are too many, or no descriptors left.
 *
 * Reads nothing: that is the connection's, in the same turn. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "transport/native_impl.h"

#define SHORTAGE_PAUSE_US 50000
/* ---- in and out of the poller, under listen_mutex --------------------------------- */

static void list(struct weir__native_listener *listener)
{
    struct weir__poller *poller = &listener->native->loop->poller;
    listener->listed = weir__poller_add_listener(poller, listener->fd, listener);
}

static void unlist(struct weir__native_listener *listener)
{
    weir__poller_remove(&listener->native->loop->poller, listener->fd);
    listener->listed = false;
}

static void lock(struct weir__native *native)
{
    pthread_mutex_lock(&native->listen_mutex);
}

static void unlock(struct weir__native *native)
{
    pthread_mutex_unlock(&native->listen_mutex);
}

/* The kernel wakes whoever has been listed for longest, always the same worker: with a
 * connection that stays this one goes behind the others. */
void weir__native_kept_one(struct weir__native *native)
{
    atomic_fetch_add(&native->kept, 1);
    lock(native);
    for (unsigned i = 0; i < native->listeners_len; i++) {
        if (native->listeners[i].listed) {
            unlist(&native->listeners[i]);
            list(&native->listeners[i]);
        }
    }
    unlock(native);
}

/* Accepts again, unless the worker is to end or has too many. What waits in the backlog
 * is reported when the socket is listed. */
static void relist(struct weir__native_listener *listener)
{
    struct weir__native *native = listener->native;
    lock(native);
    if (!listener->listed && !atomic_load(&native->draining) &&
        !atomic_load(&native->full))
        list(listener);
    unlock(native);
}

static void resume(struct weir__alarm *alarm)
{
    weir__alarm_clear(alarm);
    relist(
        (struct weir__native_listener *)((char *)alarm -
                                         offsetof(struct weir__native_listener, resume)));
}

void weir__native_relisten(struct weir__native *native)
{
    for (unsigned i = 0; i < native->listeners_len; i++)
        relist(&native->listeners[i]);
}

/* ---- too many --------------------------------------------------------------------- */

/* No descriptor is left: the connection is taken with the spare one and closed, so that
 * its peer knows; then the socket rests for a while. */
static void relieve(struct weir__native_listener *listener)
{
    static struct weir__log_kind kind;
    struct weir__native *native = listener->native;
    int error = errno;
    lock(native);
    if (native->spare_fd >= 0) {
        close(native->spare_fd);
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            close(fd);
        native->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    unlist(listener);
    unlock(native);
    weir__log_limited(
        &kind, WEIR_LOG_WARNING, "can't accept connections: %s", strerror(error));
    weir__alarm_set(
        native->loop, &listener->resume, weir__turn_now_us() + SHORTAGE_PAUSE_US);
}

/* As many connections as may be: none is taken until one is closed. */
static void rest(struct weir__native *native)
{
    static struct weir__log_kind kind;
    lock(native);
    atomic_store(&native->full, true);
    for (unsigned i = 0; i < native->listeners_len; i++)
        unlist(&native->listeners[i]);
    unlock(native);
    weir__log_limited(&kind,
                      WEIR_LOG_WARNING,
                      "%u connections are open, the most there may be",
                      native->options->max_connections);
}

static bool has_room(const struct weir__native *native)
{
    return atomic_load(&native->open) < native->options->max_connections;
}

void weir__native_closed_one(struct weir__native *native)
{
    unsigned left = atomic_fetch_sub(&native->open, 1) - 1;
    if (atomic_load(&native->draining)) {
        if (left == 0 && native->config.drained)
            native->config.drained(native->config.arg);
    } else if (atomic_load(&native->full) && has_room(native) &&
               atomic_exchange(&native->full, false)) {
        weir__native_relisten(native);
    }
}

/* ---- accepting -------------------------------------------------------------------- */

static void welcome(struct weir__native_listener *listener, int fd)
{
    struct weir__native *native = listener->native;
    struct weir__native_connection *connection = weir__native_connection_take(native);
    if (!connection) {
        close(fd);
        weir__native_closed_one(native);
        return;
    }
    struct weir__native_counts *mine = &native->counts[weir__turn_index()];
    atomic_fetch_add_explicit(&mine->accepted, 1, memory_order_relaxed);
    connection->accepted_fd = fd;
    connection->accepted_unix = listener->unix_socket;
    if (weir__native_post(connection, WEIR__NATIVE_OPEN))
        weir__native_go_on(connection);
}

static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* False: none waits, or none can be taken. */
static bool accept_one(struct weir__native_listener *listener)
{
    struct weir__native *native = listener->native;
    if (atomic_fetch_add(&native->open, 1) >= native->options->max_connections) {
        rest(native);
        weir__native_closed_one(native);
        return false;
    }
    /* Asked only now that this one is counted: either the end is not told yet, or it is
     * seen here. A connection taken after it would be lost; left, it is another's. */
    if (atomic_load(&native->draining) && !atomic_load(&listener->last_look)) {
        weir__native_closed_one(native);
        return false;
    }
    int fd;
    do
        fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0) {
        if (is_shortage(errno))
            relieve(listener);
        weir__native_closed_one(native);
        return false;
    }
    welcome(listener, fd);
    return true;
}

/* An event stands for any number of connections: one is taken now, and if there was one,
 * this thread looks for the next after what else it has in this turn. Not behind one that
 * stays: with that the socket was listed anew, so that what still waits is reported, and
 * other workers may be faster. A worker that drains is listed no more. */
static bool accept_and_look_again(struct weir__native_listener *listener)
{
    struct weir__native *native = listener->native;
    unsigned kept = atomic_load(&native->kept);
    if (!accept_one(listener))
        return false;
    bool reported = atomic_load(&native->kept) != kept && !atomic_load(&native->draining);
    if (!reported && !atomic_exchange(&listener->again_queued, true))
        weir__loop_soon(native->loop, &listener->again);
    return true;
}

static void ready(struct weir__source *source, unsigned what)
{
    (void)what;
    accept_and_look_again((struct weir__native_listener *)source);
}

static void again(struct weir__task *task)
{
    struct weir__native_listener *listener =
        (struct weir__native_listener *)((char *)task -
                                         offsetof(struct weir__native_listener, again));
    atomic_store(&listener->again_queued, false);
    /* Read before it looks: what was announced up to then is there to be found. */
    bool last_look = atomic_load(&listener->last_look);
    if (!accept_and_look_again(listener) && last_look &&
        atomic_exchange(&listener->last_look, false))
        weir__native_closed_one(listener->native);
}

bool weir__native_listen(struct weir__native *native, struct weir_error *ret_error)
{
    const struct weir__native_config *config = &native->config;
    native->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (unsigned i = 0; i < config->listen_len; i++) {
        struct weir__native_listener *listener = &native->listeners[i];
        listener->source.ready = ready;
        listener->again.run = again;
        listener->resume.fire = resume;
        listener->native = native;
        listener->fd = config->listen_fds[i];
        listener->unix_socket = config->listen_unix[i];
        native->listeners_len = i + 1;
        list(listener);
        if (!listener->listed)
            return weir__error(ret_error, "listening socket: %s", strerror(errno));
    }
    return true;
}

void weir__native_unlisten(struct weir__native *native)
{
    lock(native);
    for (unsigned i = 0; i < native->listeners_len; i++)
        unlist(&native->listeners[i]);
    unlock(native);
    /* What the kernel has announced to this worker alone is still taken, and the end is
     * not told before. */
    for (unsigned i = 0; i < native->listeners_len; i++) {
        struct weir__native_listener *listener = &native->listeners[i];
        atomic_fetch_add(&native->open, 1);
        atomic_store(&listener->last_look, true);
        if (!atomic_exchange(&listener->again_queued, true))
            weir__loop_soon(native->loop, &listener->again);
    }
}
