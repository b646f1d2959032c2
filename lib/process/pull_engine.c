/* Runs a worker beside the program's own threads: same tables, checks, chain and options
 * as weir_main, from the environment in place of a command line.
 *
 * Never forks, never exits; knows nothing of libfcgi. The program's signals, descriptors
 * and children are its own: only signals that nobody handles are taken, and the engine's
 * threads get none. */
#include "process/pull_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "base/error.h"
#include "base/log.h"
#include "process/listen.h"
#include "process/pull_address.h"
#include "process/pull_environment.h"
#include "process/worker.h"

#define LEAVE_EXTRA_S 2 /* beside the drain: threads are joined, sockets closed */

static struct {
    pthread_mutex_t mutex; /* guards the start, and `over` */
    pthread_cond_t ended;
    bool is_init, started, failed, over;
    pid_t pid; /* of the process where it was started */
    struct weir_app declared;
    struct weir__pull_limits limits;
    struct weir__options options;
    struct weir__app *app;
    struct weir__listeners listeners;
    const struct weir__pull_events *events;
    int worker_fd;     /* the worker's end of its control channel */
    atomic_int our_fd; /* the other end: its close is the word to stop; -1: none yet */
    atomic_bool stopped;
} engine = { .mutex = PTHREAD_MUTEX_INITIALIZER,
             .ended = PTHREAD_COND_INITIALIZER,
             .our_fd = -1 };

/* ---- start ------------------------------------------------------------------------- */

/* An app of the program's has its own table: the environment can give it a default. */
static bool declare(const struct weir_app *app, struct weir_error *ret_error)
{
    if (app && engine.limits.has_paths)
        return weir__error(ret_error, "WEIR_LIMIT: the program has a table of its own");
    engine.declared =
        app ? *app : (struct weir_app){ WEIR_ABI, .endpoints = engine.limits.endpoints };
    if (engine.limits.defaults)
        engine.declared.default_limits = engine.limits.defaults;
    return true;
}

bool weir__pull_engine_init(const struct weir_app *app,
                            weir_fcgx_fn *fcgx,
                            struct weir_error *ret_error)
{
    if (engine.is_init)
        return weir__error(ret_error, "weir_fcgx_init: called before");
    if (app && !weir__app_check_abi(&app->abi, ret_error))
        return false;
    if (!weir__pull_environment(fcgx, &engine.options, &engine.limits, ret_error) ||
        !declare(app, ret_error))
        return false;
    weir__log_replace(
        engine.declared.log, engine.declared.log_arg, engine.options.log_level);
    if (app && app->start && !app->start(ret_error))
        return weir__error(ret_error, "the app's start failed");
    engine.is_init =
        weir__app_create(&engine.declared, &engine.options, NULL, &engine.app, ret_error);
    return engine.is_init;
}

/* ---- signals ----------------------------------------------------------------------- */

static void stop_on_signal(int number)
{
    int saved = errno;
    (void)number;
    weir__pull_engine_stop();
    errno = saved;
}

static void do_nothing(int number)
{
    (void)number;
}

/* As libfcgi: handlers, which end with an exec where a blocked or ignored signal doesn't,
 * and only where the program has none; without SA_RESTART, so that a parent of preforked
 * processes falls out of its wait(2). */
static void take_signal(int number, void (*handler)(int number))
{
    struct sigaction action = { .sa_handler = handler }, present;
    if (sigaction(number, NULL, &present) == 0 &&
        (present.sa_handler == SIG_DFL || present.sa_handler == SIG_IGN))
        sigaction(number, &action, NULL);
}

void weir__pull_engine_signals(void)
{
    take_signal(SIGPIPE, do_nothing);
    take_signal(SIGTERM, stop_on_signal);
    take_signal(SIGUSR1, stop_on_signal);
}

bool weir__pull_engine_is_init(void)
{
    return engine.is_init;
}

/* ---- sockets ----------------------------------------------------------------------- */

int weir__pull_engine_open(const char *path)
{
    struct weir_error error = { "" };
    struct weir__listeners listeners = { 0 };
    struct weir__options options = engine.options;
    char text[160];
    options.listen[0] = text;
    options.listen_len = 1;
    if (!weir__pull_address(path, text, sizeof text, &error) ||
        weir__listen_open(&options, &listeners, &error) != WEIR__LISTEN_OK) {
        weir__log(WEIR_LOG_ERROR, "%s", error.text);
        return -1;
    }
    return listeners.fds[0];
}

static bool is_listening(int fd)
{
    int yes = 0;
    socklen_t len = sizeof yes;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) == 0 && yes;
}

bool weir__pull_engine_can_listen(int fd)
{
    pthread_mutex_lock(&engine.mutex);
    bool started = engine.started; /* descriptor 0 is another one then */
    pthread_mutex_unlock(&engine.mutex);
    return started || engine.options.listen_len > 0 || getenv("LISTEN_FDS") ||
           is_listening(fd);
}

/* The program's own socket, as a worker takes it. */
static bool take_socket(int fd)
{
    struct sockaddr_storage address = { 0 };
    socklen_t len = sizeof address;
    if (!is_listening(fd) || getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return false;
    /* Its number stays the program's. */
    int ours = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (ours < 0)
        return false;
    fcntl(ours, F_SETFL, fcntl(ours, F_GETFL) | O_NONBLOCK);
    engine.listeners = (struct weir__listeners){
        .len = 1, .fds = { ours }, .is_unix = { address.ss_family == AF_UNIX }
    };
    return true;
}

static bool take_listeners(int listen_fd)
{
    struct weir_error error = { "" };
    if (listen_fd > 0 && engine.options.listen_len == 0) {
        if (take_socket(listen_fd))
            return true;
        weir__log(WEIR_LOG_ERROR, "descriptor %d is no listening socket", listen_fd);
        return false;
    }
    if (weir__listen_open(&engine.options, &engine.listeners, &error) == WEIR__LISTEN_OK)
        return true;
    weir__log(WEIR_LOG_ERROR,
              "%s",
              *error.text ? error.text : "nowhere to listen: set WEIR_LISTEN");
    return false;
}

/* ---- the worker -------------------------------------------------------------------- */

static void *run(void *arg)
{
    (void)arg;
    weir__worker_run(&(struct weir__worker_config){
        .app = engine.app,
        .listen_fds = engine.listeners.fds,
        .listen_unix = engine.listeners.is_unix,
        .listen_len = engine.listeners.len,
        .control_fd = engine.worker_fd,
    });
    weir__listen_close(&engine.listeners);
    engine.events->ended();
    pthread_mutex_lock(&engine.mutex);
    engine.over = true;
    pthread_cond_broadcast(&engine.ended);
    pthread_mutex_unlock(&engine.mutex);
    return NULL;
}

/* Its threads, which inherit the mask, get no signal: those are the program's. */
static bool start_thread(void)
{
    sigset_t all, present;
    pthread_t thread;
    pthread_attr_t detached;
    sigfillset(&all);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &present);
    int error = pthread_create(&thread, &detached, run, NULL);
    pthread_sigmask(SIG_SETMASK, &present, NULL);
    pthread_attr_destroy(&detached);
    if (error)
        weir__log(WEIR_LOG_ERROR, "can't start a thread: %s", strerror(error));
    return error == 0;
}

/* What is in flight when the program calls exit() is answered, as with libfcgi, which
 * writes an answer before FCGX_Finish_r returns. */
static void leave(void)
{
    struct timespec until;
    if (getpid() != engine.pid)
        return;
    weir__pull_engine_stop();
    engine.events->leaving();
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += engine.options.drain_ms / 1000 + LEAVE_EXTRA_S;
    pthread_mutex_lock(&engine.mutex);
    while (!engine.over &&
           pthread_cond_timedwait(&engine.ended, &engine.mutex, &until) == 0)
        ;
    pthread_mutex_unlock(&engine.mutex);
}

static bool open_control(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        weir__log(WEIR_LOG_ERROR, "socketpair: %s", strerror(errno));
        return false;
    }
    engine.worker_fd = pair[0];
    atomic_store(&engine.our_fd, pair[1]);
    return true;
}

/* Under the mutex, once. */
static bool start(int listen_fd)
{
    engine.pid = getpid();
    if (!open_control() || !take_listeners(listen_fd) || !start_thread())
        return false;
    atexit(leave);
    if (atomic_load(&engine.stopped)) /* meanwhile */
        weir__pull_engine_stop();
    return true;
}

bool weir__pull_engine_start(int listen_fd, const struct weir__pull_events *events)
{
    pthread_mutex_lock(&engine.mutex);
    if (!engine.started && !engine.failed && !atomic_load(&engine.stopped)) {
        engine.events = events;
        engine.started = start(listen_fd);
        engine.failed = !engine.started;
    }
    bool started = engine.started && engine.pid == getpid();
    pthread_mutex_unlock(&engine.mutex);
    return started;
}

bool weir__pull_engine_is_here(void)
{
    return engine.pid == getpid();
}

void weir__pull_engine_stop(void)
{
    atomic_store(&engine.stopped, true);
    int fd = atomic_load(&engine.our_fd);
    if (fd >= 0 && engine.pid == getpid())
        shutdown(fd, SHUT_RDWR);
}
