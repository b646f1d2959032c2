/* The Redis store: one connection in each process, in its worker's loop or, where there
 * is no worker, in a small loop of its own that is started at the first question.
 *
 * A connection must never be used by two processes: each would get the other's answers. A
 * page that the kernel empties at fork says whether this process has made its own. What
 * goes over the connection is redis_connection.c's and below. */
#include <weir/store.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "store/redis_connection.h"
#include "worker.h"

#define TIMEOUT_US INT64_C(20000)
#define START_WAIT_US INT64_C(50000)
#define SILENCE_PARTS 4 /* of the time-out: 5 ms */
#define PASSWORD_BYTES 512
#define OWN_THREADS 2

enum { NOT_HERE, HERE };

/* In a page that a child finds zeroed. */
struct process {
    atomic_int started; /* HERE: this process has its connection */
};

struct redis {
    struct weir__redis_settings settings;
    struct process *process;
    char password[PASSWORD_BYTES];
    pthread_mutex_t start_lock;
    struct weir__redis_connection connection;
    bool has_connection; /* of this process, or of the one it was forked from */
    bool own_loop;
    struct weir__loop loop;
    struct thread {
        struct weir__loop *loop;
        unsigned index;
        pthread_t id;
        bool made;
    } threads[OWN_THREADS];
};

/* ---- a connection for this process ----------------------------------------------------
 */

static void *run_thread(void *arg)
{
    const struct thread *thread = arg;
    weir__loop_enter(thread->loop, thread->index);
    weir__loop_run(thread->loop);
    weir__loop_leave();
    return NULL;
}

static void join_threads(struct redis *redis)
{
    weir__loop_stop(&redis->loop);
    for (unsigned i = 0; i < OWN_THREADS; i++) {
        if (redis->threads[i].made)
            pthread_join(redis->threads[i].id, NULL);
        redis->threads[i].made = false;
    }
}

/* Closes what this process has, or, after a fork, what it has inherited: the copies of
 * the descriptors are its own to close, the threads are not here. */
static void drop(struct redis *redis)
{
    bool here = atomic_load(&redis->process->started) == HERE;
    if (redis->own_loop && here)
        join_threads(redis);
    if (redis->has_connection && !here)
        weir__redis_connection_disown(&redis->connection);
    if (redis->has_connection)
        weir__redis_connection_finish(&redis->connection);
    if (redis->own_loop)
        weir__loop_finish(&redis->loop);
    redis->has_connection = redis->own_loop = false;
    atomic_store(&redis->process->started, NOT_HERE);
}

static bool start(struct redis *redis,
                  struct weir__loop *loop,
                  int64_t wait_us,
                  struct weir_error *ret_error)
{
    if (!weir__redis_connection_init(&redis->connection, &redis->settings, loop))
        return weir__error(ret_error, "redis: out of memory");
    redis->has_connection = true;
    weir__redis_connection_start(&redis->connection, wait_us);
    return true;
}

/* Signals stay the app's own threads' affair. */
static bool start_threads(struct redis *redis, struct weir_error *ret_error)
{
    sigset_t all, before;
    int error = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < OWN_THREADS && !error; i++) {
        struct thread *thread = &redis->threads[i];
        thread->loop = &redis->loop;
        thread->index = i;
        error = pthread_create(&thread->id, NULL, run_thread, thread);
        thread->made = error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !error || weir__error(ret_error, "redis: thread: %s", strerror(error));
}

static bool start_own(struct redis *redis, struct weir_error *ret_error)
{
    if (!weir__loop_init(&redis->loop, OWN_THREADS, 1, ret_error))
        return false;
    redis->own_loop = true;
    if (!start(redis, &redis->loop, redis->settings.timeout_us, ret_error))
        return false;
    if (start_threads(redis, ret_error))
        return true;
    join_threads(redis);
    return false;
}

/* False, and logged, where this process can have none. */
static bool ensure_started(struct redis *redis)
{
    static struct weir__log_kind kind;
    struct weir_error error = { "" };
    if (atomic_load_explicit(&redis->process->started, memory_order_acquire) == HERE)
        return true;
    pthread_mutex_lock(&redis->start_lock);
    bool here = atomic_load(&redis->process->started) == HERE;
    if (!here) {
        drop(redis);
        here = start_own(redis, &error);
        if (here)
            atomic_store(&redis->process->started, HERE);
        else
            weir__log_limited(&kind, WEIR_LOG_ERROR, "%s", error.text);
    }
    pthread_mutex_unlock(&redis->start_lock);
    return here;
}

static bool
redis_worker_start(void *self, struct weir_worker *worker, struct weir_error *ret_error)
{
    struct redis *redis = self;
    int64_t wait_us = redis->settings.timeout_us;
    drop(redis);
    if (!start(redis,
               worker->loop,
               wait_us > START_WAIT_US ? wait_us : START_WAIT_US,
               ret_error))
        return false;
    atomic_store(&redis->process->started, HERE);
    return true;
}

static void redis_worker_stop(void *self)
{
    drop(self);
}

/* ---- questions -----------------------------------------------------------------------
 */

static enum weir_store_result redis_decide(void *self, struct weir_store_ask *ask)
{
    struct redis *redis = self;
    if (!ensure_started(redis))
        return WEIR_STORE_UNAVAILABLE;
    return weir__redis_connection_ask(&redis->connection, ask);
}

static void redis_refund(void *self, struct weir_store_ask *ask)
{
    struct redis *redis = self;
    if (atomic_load(&redis->process->started) == HERE)
        weir__redis_connection_refund(&redis->connection, ask);
    for (unsigned i = 0; i < ask->items_len; i++)
        ask->receipts[i].charged = false;
}

/* ---- the store -----------------------------------------------------------------------
 */

static void redis_destroy(void *self)
{
    struct redis *redis = self;
    drop(redis);
    pthread_mutex_destroy(&redis->start_lock);
    munmap(redis->process, sizeof *redis->process);
    munmap(redis->settings.breaker, sizeof *redis->settings.breaker);
    explicit_bzero(redis->password, sizeof redis->password);
    free(redis);
}

static const struct weir_store_ops redis_ops = {
    .name = "redis",
    .may_pend = true,
    .worker_start = redis_worker_start,
    .worker_stop = redis_worker_stop,
    .decide = redis_decide,
    .refund = redis_refund,
    .destroy = redis_destroy,
};

/* The first line of the file; its text is in no message. */
static bool
read_password(const char *path, char *ret_password, struct weir_error *ret_error)
{
    char text[PASSWORD_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof text) : -1;
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (len < 0)
        return weir__error(
            ret_error, "redis: password file %s: %s", path, strerror(error));
    size_t line = 0;
    while (line < (size_t)len && text[line] != '\n' && text[line] != '\r')
        line++;
    if (line == 0 || line == sizeof text || memchr(text, '\0', line))
        return weir__error(ret_error,
                           "redis: password file %s: its first line is not 1 to %d bytes "
                           "of text",
                           path,
                           PASSWORD_BYTES - 1);
    memcpy(ret_password, text, line);
    ret_password[line] = '\0';
    explicit_bzero(text, sizeof text);
    return true;
}

static bool check(struct redis *redis,
                  const struct weir_redis_options *options,
                  struct weir_error *ret_error)
{
    if (!options || !options->address)
        return weir__error(ret_error, "redis: address: missing");
    if (options->timeout_us < 0)
        return weir__error(ret_error, "redis: timeout_us: negative");
    if (!weir__redis_address_parse(options->address, &redis->settings.address, ret_error))
        return false;
    if (options->password_file) {
        if (!read_password(options->password_file, redis->password, ret_error))
            return false;
        redis->settings.password = redis->password;
    }
    redis->settings.database = options->database;
    redis->settings.timeout_us = options->timeout_us ? options->timeout_us : TIMEOUT_US;
    redis->settings.silence_us = redis->settings.timeout_us / SILENCE_PARTS;
    return true;
}

static bool map_memory(struct redis *redis, struct weir_error *ret_error)
{
    int prot = PROT_READ | PROT_WRITE;
    redis->process =
        mmap(NULL, sizeof *redis->process, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    redis->settings.breaker = mmap(
        NULL, sizeof *redis->settings.breaker, prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (redis->process == MAP_FAILED || (void *)redis->settings.breaker == MAP_FAILED ||
        madvise(redis->process, sizeof *redis->process, MADV_WIPEONFORK) < 0)
        return weir__error(ret_error, "redis: memory: %s", strerror(errno));
    return true;
}

struct weir_store *weir_redis_create(const struct weir_redis_options *options,
                                     struct weir_error *ret_error)
{
    struct weir_store *store = malloc(sizeof *store);
    struct redis *redis = calloc(1, sizeof *redis);
    if (!store || !redis) {
        weir__error(ret_error, "redis: out of memory");
        goto free_both;
    }
    if (!check(redis, options, ret_error) || !map_memory(redis, ret_error))
        goto free_both;
    pthread_mutex_init(&redis->start_lock, NULL);
    *store = (struct weir_store){ .ops = &redis_ops, .self = redis };
    return store;

free_both:
    free(redis);
    free(store);
    return NULL;
}
