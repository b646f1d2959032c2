/* A worker process: makes the loop, the engine and the threads, and ends them in order.
 *
 * Its first thread carries no request: it takes signals, the parent's messages and the
 * time, so that it is there when all others are stuck. */
#include "process/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "net/loop.h"
#include "process/control.h"
#include "transport/native.h"
#include "worker.h"

/* How often the first thread looks whether the others are stuck. */
#define LOOKS_A_TOTAL 4

struct thread {
    struct worker *worker;
    unsigned index;
    pthread_t id;
    bool made, joined;
};

struct worker {
    const struct weir__worker_config *config;
    const struct weir__app *app;
    struct weir_worker handle;
    struct weir__loop loop;
    struct weir__native *native;
    struct thread *threads;
    int signal_fd, drained_fd;
    bool loop_made, store_started, app_started;

    pthread_mutex_t mutex; /* guards what the threads report of their start */
    pthread_cond_t reported;
    unsigned started, failed;

    bool draining;
    int64_t drain_until_us;
};

/* ---- threads ---------------------------------------------------------------------- */

static void report_start(struct worker *worker, bool ok)
{
    pthread_mutex_lock(&worker->mutex);
    if (ok)
        worker->started++;
    else
        worker->failed++;
    pthread_cond_signal(&worker->reported);
    pthread_mutex_unlock(&worker->mutex);
}

static void *run_thread(void *arg)
{
    struct thread *thread = arg;
    struct worker *worker = thread->worker;
    const struct weir_app *app = worker->app->declared;
    weir__loop_enter(&worker->loop, thread->index);
    bool ok = !app->thread_start || app->thread_start(&worker->handle);
    report_start(worker, ok);
    if (ok) {
        weir__loop_run(&worker->loop);
        if (app->thread_stop)
            app->thread_stop(&worker->handle);
    }
    weir__loop_leave();
    return NULL;
}

/* Starts all, waits until each has said how its start went. */
static bool start_threads(struct worker *worker)
{
    unsigned made = 0;
    for (; made < worker->loop.threads; made++) {
        struct thread *thread = &worker->threads[made];
        thread->worker = worker;
        thread->index = made;
        int error = pthread_create(&thread->id, NULL, run_thread, thread);
        if (error) {
            weir__log(WEIR_LOG_ERROR, "can't start a thread: %s", strerror(error));
            break;
        }
        thread->made = true;
    }
    pthread_mutex_lock(&worker->mutex);
    while (worker->started + worker->failed < made)
        pthread_cond_wait(&worker->reported, &worker->mutex);
    bool ok = worker->started == worker->loop.threads;
    if (worker->failed > 0)
        weir__log(WEIR_LOG_ERROR, "the app's thread_start failed");
    pthread_mutex_unlock(&worker->mutex);
    return ok;
}

/* The wall clock's time at that monotonic one, as pthread_timedjoin_np() takes it. */
static struct timespec real_time(int64_t monotonic_us)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t left_us = monotonic_us - weir__clock_now_us();
    int64_t us = now.tv_nsec / 1000 + (left_us > 0 ? left_us : 0);
    return (struct timespec){ .tv_sec = now.tv_sec + us / 1000000,
                              .tv_nsec = us % 1000000 * 1000 };
}

/* Waits for the threads, but not past until_us: one that is stuck in a handler can't be
 * ended. False: there are such. */
static bool join_threads(struct worker *worker, int64_t until_us)
{
    bool all = true;
    weir__loop_stop(&worker->loop);
    for (unsigned i = 0; i < worker->loop.threads; i++) {
        struct thread *thread = &worker->threads[i];
        if (!thread->made || thread->joined)
            continue;
        struct timespec until = real_time(until_us);
        thread->joined = pthread_timedjoin_np(thread->id, NULL, &until) == 0;
        all = all && thread->joined;
    }
    return all;
}

/* ---- start and end ---------------------------------------------------------------- */

static void drained(void *arg)
{
    struct worker *worker = arg;
    uint64_t one = 1;
    ssize_t written = write(worker->drained_fd, &one, sizeof one);
    (void)written;
}

static bool start_store(struct worker *worker, struct weir_error *ret_error)
{
    struct weir_store *store = worker->app->store;
    worker->store_started =
        !store->ops->worker_start ||
        store->ops->worker_start(store->self, &worker->handle, ret_error);
    return worker->store_started;
}

static bool start_app(struct worker *worker, struct weir_error *ret_error)
{
    const struct weir_app *app = worker->app->declared;
    worker->app_started = !app->worker_start || app->worker_start(&worker->handle);
    return worker->app_started || weir__error(ret_error, "the app's worker_start failed");
}

/* How many processors there are for each worker. */
static unsigned cores_a_worker(const struct weir__options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > (long)options->workers
               ? (unsigned)(cores + options->workers - 1) / options->workers
               : 1;
}

static bool start(struct worker *worker, struct weir_error *ret_error)
{
    const struct weir__worker_config *config = worker->config;
    const struct weir__options *options = worker->app->options;
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    worker->signal_fd = signalfd(-1, &term, SFD_NONBLOCK | SFD_CLOEXEC);
    worker->drained_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    worker->threads = calloc(options->threads, sizeof *worker->threads);
    if (worker->signal_fd < 0 || worker->drained_fd < 0 || !worker->threads)
        return weir__error(ret_error, "worker: %s", strerror(errno));
    worker->loop_made = weir__loop_init(
        &worker->loop, options->threads, cores_a_worker(options), ret_error);
    if (!worker->loop_made)
        return false;
    worker->handle.index = config->index;
    worker->handle.loop = &worker->loop;
    return start_store(worker, ret_error) && start_app(worker, ret_error) &&
           weir__native_create(
               &(struct weir__native_config){ .app = worker->app,
                                              .worker = &worker->handle,
                                              .listen_fds = config->listen_fds,
                                              .listen_unix = config->listen_unix,
                                              .listen_len = config->listen_len,
                                              .drained = drained,
                                              .arg = worker },
               &worker->native,
               ret_error);
}

/* Only once no thread runs any more. */
static void finish(struct worker *worker)
{
    const struct weir_app *app = worker->app->declared;
    const struct weir_store *store = worker->app->store;
    weir__native_destroy(worker->native);
    if (worker->app_started && app->worker_stop)
        app->worker_stop(&worker->handle);
    if (worker->store_started && store->ops->worker_stop)
        store->ops->worker_stop(store->self);
    if (worker->loop_made)
        weir__loop_finish(&worker->loop);
    free(worker->threads);
    if (worker->signal_fd >= 0)
        close(worker->signal_fd);
    if (worker->drained_fd >= 0)
        close(worker->drained_fd);
    pthread_cond_destroy(&worker->reported);
    pthread_mutex_destroy(&worker->mutex);
}

/* ---- what the first thread does --------------------------------------------------- */

static void tell(struct worker *worker, enum weir__control_type type, uint64_t number)
{
    struct weir__control_message message = { .type = type, .number = number };
    if (worker->config->control_fd < 0)
        return;
    if (type == WEIR__CONTROL_STATS) {
        struct weir__native_stats stats;
        weir__native_stats(worker->native, &stats);
        message.stats = (struct weir__control_stats){ .requests = stats.requests,
                                                      .refused = stats.refused,
                                                      .failed = stats.failed,
                                                      .accepted = stats.accepted,
                                                      .connections = stats.connections };
    }
    weir__control_send(worker->config->control_fd, &message);
}

static void drain(struct worker *worker)
{
    if (worker->draining)
        return;
    worker->draining = true;
    worker->drain_until_us =
        weir__clock_now_us() + (int64_t)worker->app->options->drain_ms * 1000;
    tell(worker, WEIR__CONTROL_DRAINING, 0);
    weir__native_drain(worker->native);
}

/* False: the parent is gone. */
static bool take_messages(struct worker *worker)
{
    struct weir__control_message message;
    for (;;) {
        switch (weir__control_receive(worker->config->control_fd, &message)) {
        case WEIR__CONTROL_NOTHING:
            return true;
        case WEIR__CONTROL_CLOSED:
            return false;
        case WEIR__CONTROL_MESSAGE:
            if (message.type == WEIR__CONTROL_STATS_ASK)
                tell(worker, WEIR__CONTROL_STATS, message.number);
        }
    }
}

/* Whether every thread that may block has been at one thing for longer than a whole
 * request may take: nothing but refusals can be answered then. */
static bool is_stuck(const struct worker *worker)
{
    int64_t since_us =
        weir__clock_now_us() - (int64_t)worker->app->options->total_ms * 1000;
    unsigned stuck = 0;
    for (unsigned i = 0; i < worker->loop.threads; i++) {
        int64_t busy_us = atomic_load(&worker->loop.turns[i].busy_since_us);
        stuck += busy_us != 0 && busy_us < since_us;
    }
    return stuck >= worker->loop.threads - 1;
}

static int wait_ms(const struct worker *worker)
{
    int64_t look_ms = worker->app->options->total_ms / LOOKS_A_TOTAL + 1;
    if (worker->draining)
        look_ms = (worker->drain_until_us - weir__clock_now_us()) / 1000 + 1;
    return look_ms > 0 ? (int)look_ms : 0;
}

/* Until the drain is over. False: its time was, before the last connection was. */
static bool watch(struct worker *worker)
{
    struct pollfd fds[] = { { .fd = worker->signal_fd, .events = POLLIN },
                            { .fd = worker->config->control_fd, .events = POLLIN },
                            { .fd = worker->drained_fd, .events = POLLIN } };
    for (;;) {
        poll(fds, sizeof fds / sizeof *fds, wait_ms(worker));
        struct signalfd_siginfo signal;
        if (read(worker->signal_fd, &signal, sizeof signal) > 0)
            drain(worker);
        if (fds[1].fd >= 0 && fds[1].revents && !take_messages(worker)) {
            fds[1].fd = -1;
            drain(worker);
        }
        uint64_t count;
        if (read(worker->drained_fd, &count, sizeof count) > 0) {
            struct weir__native_stats stats;
            weir__native_stats(worker->native, &stats);
            if (stats.connections == 0)
                return true;
        }
        if (worker->draining && weir__clock_now_us() >= worker->drain_until_us)
            return false;
        if (!worker->draining && is_stuck(worker)) {
            weir__log(WEIR_LOG_ERROR,
                      "worker %u: its threads are stuck, it is replaced",
                      worker->config->index);
            drain(worker);
        }
    }
}

int weir__worker_run(const struct weir__worker_config *config)
{
    /* Static: threads that are stuck outlive this call. */
    static struct worker worker;
    struct weir_error error = { 0 };
    worker = (struct worker){ .config = config,
                              .app = config->app,
                              .signal_fd = -1,
                              .drained_fd = -1,
                              .mutex = PTHREAD_MUTEX_INITIALIZER,
                              .reported = PTHREAD_COND_INITIALIZER };
    bool ok = start(&worker, &error);
    if (!ok)
        weir__log(WEIR_LOG_ERROR, "worker %u: %s", config->index, error.text);
    if (ok && (ok = start_threads(&worker))) {
        tell(&worker, WEIR__CONTROL_READY, 0);
        if (!watch(&worker))
            weir__log(WEIR_LOG_WARNING,
                      "worker %u ends with requests unanswered",
                      config->index);
        tell(&worker, WEIR__CONTROL_STATS, 0);
    }
    int64_t join_until_us = weir__clock_now_us() + WEIR_SECONDS(1);
    if (worker.loop_made && !join_threads(&worker, join_until_us))
        return ok ? 0 : 1;
    finish(&worker);
    return ok ? 0 : 1;
}
