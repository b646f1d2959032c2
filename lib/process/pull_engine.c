/* Runs a worker beside the program's own threads: same tables, checks, chain and options
 * as weir_main, from the environment in place of a command line.
 *
 * Never forks, never exits; knows nothing of libfcgi. */
#include "process/pull_engine.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "app.h"
#include "base/error.h"
#include "base/log.h"
#include "process/listen.h"
#include "process/units.h"
#include "process/worker.h"

#define PREFIX "WEIR_"
#define LIMIT "WEIR_LIMIT"
#define ARGUMENTS_MAX 64

extern char **environ;

static struct {
    pthread_mutex_t mutex; /* guards the start */
    bool is_init, started, failed;
    struct weir_app declared;
    struct weir_rule limits[2];
    struct weir__options options;
    struct weir__app *app;
    struct weir__listeners listeners;
    void (*ended)(void);
} engine = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* ---- from the environment ---------------------------------------------------------- */

/* "100/1m", "10/500ms": a fixed window for each caller. */
static bool read_limit(const char *text, struct weir_rule *ret_rule)
{
    uint64_t max, window_ms;
    char count[24];
    const char *slash = strchr(text, '/');
    if (!slash || (size_t)(slash - text) >= sizeof count)
        return false;
    snprintf(count, sizeof count, "%.*s", (int)(slash - text), text);
    if (!weir__unit_parse(WEIR__UNIT_COUNT, count, &max) ||
        !weir__unit_parse(WEIR__UNIT_TIME, slash + 1, &window_ms) || max > INT64_MAX ||
        window_ms > INT64_MAX / 1000)
        return false;
    *ret_rule = (struct weir_rule)WEIR_FIXED_WINDOW(
        "limit", (int64_t)max, (int64_t)window_ms * 1000);
    return true;
}

static bool take_limit(struct weir_error *ret_error)
{
    const char *text = getenv(LIMIT);
    if (!text || !*text)
        return true;
    if (!read_limit(text, &engine.limits[0]))
        return weir__error(ret_error, LIMIT "=%s: not such as 100/60s", text);
    engine.declared.default_limits = engine.limits;
    return true;
}

/* "--max-body=10M" for WEIR_MAX_BODY=10M; NULL for a variable that is no option, or where
 * memory is short. Lives as long as the process: options point into it. */
static char *argument_of(const char *variable)
{
    size_t prefix = sizeof PREFIX - 1, limit = sizeof LIMIT - 1;
    if (strncmp(variable, PREFIX, prefix) != 0 ||
        (strncmp(variable, LIMIT, limit) == 0 && variable[limit] == '='))
        return NULL;
    char *argument = malloc(strlen(variable) + 3);
    if (!argument)
        return NULL;
    char *at = stpcpy(argument, "--");
    strcpy(at, variable + prefix);
    for (; *at && *at != '='; at++)
        *at = *at == '_' ? '-' : (char)tolower((unsigned char)*at);
    return argument;
}

static bool take_options(struct weir_error *ret_error)
{
    static char *arguments[ARGUMENTS_MAX + 1];
    int len = 1;
    arguments[0] = (char *)"weir";
    for (char **at = environ; at && *at && len < ARGUMENTS_MAX; at++) {
        char *argument = argument_of(*at);
        if (argument)
            arguments[len++] = argument;
    }
    if (!weir__options_parse(&engine.options, len, arguments, NULL, ret_error))
        return false;
    return engine.options.action == WEIR__ACTION_RUN ||
           weir__error(ret_error, "environment: an option that only prints");
}

bool weir__pull_engine_init(const struct weir_app *app, struct weir_error *ret_error)
{
    sigset_t term;
    if (engine.is_init)
        return weir__error(ret_error, "weir_fcgx_init: called before");
    engine.declared = *app;
    if (!take_limit(ret_error) || !take_options(ret_error))
        return false;
    weir__log_replace(app->log, app->log_arg, engine.options.log_level);
    if (app->start && !app->start(ret_error))
        return weir__error(ret_error, "the app's start failed");
    if (!weir__app_create(
            &engine.declared, &engine.options, NULL, &engine.app, ret_error))
        return false;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    signal(SIGPIPE, SIG_IGN);
    engine.is_init = true;
    return true;
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
    snprintf(text,
             sizeof text,
             path[0] == ':' ? "tcp:0.0.0.0%s" : "unix:%s", /* as libfcgi reads it */
             path);
    options.listen[0] = text;
    options.listen_len = 1;
    if (weir__listen_open(&options, &listeners, &error) != WEIR__LISTEN_OK) {
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
    return engine.options.listen_len > 0 || getenv("LISTEN_FDS") || is_listening(fd);
}

/* The program's own socket, as a worker takes it. */
static bool take_socket(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    if (!is_listening(fd) || getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return false;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    engine.listeners = (struct weir__listeners){
        .len = 1, .fds = { fd }, .is_unix = { address.ss_family == AF_UNIX }
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
        .control_fd = -1,
    });
    engine.ended();
    return NULL;
}

static bool start_thread(void)
{
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &detached, run, NULL);
    pthread_attr_destroy(&detached);
    if (error)
        weir__log(WEIR_LOG_ERROR, "can't start a thread: %s", strerror(error));
    return error == 0;
}

bool weir__pull_engine_start(int listen_fd, void (*ended)(void))
{
    pthread_mutex_lock(&engine.mutex);
    if (!engine.started && !engine.failed) {
        engine.ended = ended;
        engine.started = take_listeners(listen_fd) && start_thread();
        engine.failed = !engine.started;
    }
    bool started = engine.started;
    pthread_mutex_unlock(&engine.mutex);
    return started;
}
