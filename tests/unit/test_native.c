/* The record engine behind a socket: a worker in a process of its own, and the raw client
 * that plays to it what web servers send, and what they never should. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app.h"
#include "process/worker.h"
#include "support/fcgi_client.h"

/* ---- the app --------------------------------------------------------------------------
 */

static int hello(struct weir *w)
{
    return weir_text(w, 200, "hello");
}

/* Method, path, one parameter and the body's length, as the app saw them. */
static int echo(struct weir *w)
{
    size_t len;
    const char *body = weir_body(w, &len);
    const char *forwarded = weir_header(w, "X-Forwarded-For");
    unsigned sum = 0;
    for (size_t i = 0; i < len; i++)
        sum += (unsigned char)body[i];
    return weir_text(w,
                     200,
                     weir_printf(w,
                                 "%s %s [%s] %s %zu %u",
                                 weir_method(w),
                                 weir_request_path(w),
                                 forwarded ? forwarded : "",
                                 weir_remote_ip(w),
                                 len,
                                 sum));
}

static int milliseconds(struct weir *w)
{
    const char *ms = weir_path(w, "ms");
    return ms ? atoi(ms) : 0;
}

static int slow(struct weir *w)
{
    usleep((useconds_t)milliseconds(w) * 1000);
    return weir_text(w, 200, weir_gone(w) ? "gone" : "slow");
}

/* So many KiB, in one piece or as a stream. */
static int large(struct weir *w)
{
    static const char kib[1024] = "0123456789";
    int n = milliseconds(w);
    for (int i = 0; i < n; i++)
        if (!weir_write(w, kib, sizeof kib))
            return 500;
    return 200;
}

static const struct weir_endpoint endpoints[] = {
    { "GET /hello", hello, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "GET /plain", hello, .limits = WEIR_UNLIMITED },
    { "* /echo", echo, .limits = WEIR_UNLIMITED },
    { "GET /slow/{ms}", slow, .limits = WEIR_UNLIMITED },
    { "GET /large/{ms}", large, .limits = WEIR_UNLIMITED },
    { "GET /stream/{ms}", large, .limits = WEIR_UNLIMITED },
    { "POST /once",
      hello,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("once", 1, WEIR_DAYS(1))) },
    { 0 },
};

static const struct weir_app declared = { WEIR_ABI, .endpoints = endpoints };

/* ---- the worker -----------------------------------------------------------------------
 */

static struct weir__options options;
static char folder[] = "/tmp/weir-native-XXXXXX";
static char path[64];
static pid_t worker;
static int parents_fd;

static int listen_unix(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(fd, 4096) < 0)
        _exit(99);
    return fd;
}

static int run_worker(int control_fd, int listen_fd)
{
    struct weir_error error = { 0 };
    struct weir__app *app;
    static const bool is_unix = true;
    if (!weir__app_create(&declared, &options, NULL, &app, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 98;
    }
    return weir__worker_run(&(struct weir__worker_config){ .app = app,
                                                           .listen_fds = &listen_fd,
                                                           .listen_unix = &is_unix,
                                                           .listen_len = 1,
                                                           .control_fd = control_fd });
}

/* With the options as they are now. */
static void start_worker(void)
{
    int pair[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s", folder);
    int listen_fd = listen_unix();
    worker = fork();
    cr_assert_geq(worker, 0);
    if (worker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_IGN);
        close(pair[0]);
        _exit(run_worker(pair[1], listen_fd));
    }
    close(listen_fd);
    close(pair[1]);
    parents_fd = pair[0];
}

/* Its exit status after a drain; 1,000 and more: a signal. */
static int stop_worker(void)
{
    int status;
    close(parents_fd);
    kill(worker, SIGTERM);
    waitpid(worker, &status, 0);
    worker = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void init(void)
{
    weir__options_defaults(&options);
    options.shm_entries = 1024;
}

static void finish(void)
{
    if (worker > 0)
        cr_expect_eq(stop_worker(), 0, "the worker must end in order");
    unlink(path);
    rmdir(folder);
}

TestSuite(native, .init = init, .fini = finish, .timeout = 60);

/* ---- requests -------------------------------------------------------------------------
 */

/* One reply of this connection, whose body must be that text. */
static void expect_reply(struct fcgi_client *client, int status, const char *body)
{
    struct fcgi_reply reply;
    cr_assert(fcgi_read_reply(client, 1, 5000, &reply), "no END_REQUEST for %s", body);
    cr_expect(reply.stdout_ended);
    cr_expect_eq(reply.end.protocol_status, WEIR__FCGI_REQUEST_COMPLETE);
    cr_expect_eq(reply.status, status, "%d %s", reply.status, reply.body);
    if (body)
        cr_expect_str_eq(reply.body, body);
    fcgi_reply_finish(&reply);
}

static void connect_to_worker(struct fcgi_client *client)
{
    cr_assert(fcgi_connect(client, path), "%s", strerror(errno));
}

Test(native, answers_a_request_and_closes)
{
    start_worker();
    struct fcgi_client client;
    connect_to_worker(&client);
    cr_assert(fcgi_send_request(&client, &(struct fcgi_request){ .uri = "/hello" }));
    expect_reply(&client, 200, "hello");
    cr_expect(fcgi_is_closed(&client, 1000));
    fcgi_close(&client);
}

Test(native, keeps_a_connection_for_many_requests)
{
    start_worker();
    struct fcgi_client client;
    connect_to_worker(&client);
    for (int i = 0; i < 1000; i++) {
        cr_assert(
            fcgi_send_request(&client,
                              &(struct fcgi_request){ .uri = i % 2 ? "/hello" : "/plain",
                                                      .keep_conn = true }));
        expect_reply(&client, 200, "hello");
    }
    fcgi_close(&client);
}
