/* Forks before any thread exists, as the parent process does. */
#include "support/worker_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/worker.h"

void worker_init(struct worker_fixture *fixture)
{
    *fixture = (struct worker_fixture){ .control_fd = -1 };
    weir__options_defaults(&fixture->options);
    fixture->options.shm_entries = 1024;
    /* A test on a busy machine may be silent for longer than a web server is; those that
     * are about silence set a time of their own. */
    fixture->options.silent_unix_ms = 5000;
}

static int listen_at(const struct sockaddr *address, socklen_t len)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, address, len) == 0 && listen(fd, 4096) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int listen_unix(struct worker_fixture *fixture)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(fixture->path, sizeof fixture->path, "%s/s", fixture->folder);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", fixture->path);
    return listen_at((struct sockaddr *)&address, sizeof address);
}

static int listen_tcp(struct worker_fixture *fixture)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int fd = listen_at((struct sockaddr *)&address, len);
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return -1;
    snprintf(fixture->path, sizeof fixture->path, "tcp:%u", ntohs(address.sin_port));
    return fd;
}

/* The leak check at the end of a process is that of exit(), which a forked test doesn't
 * reach: it is asked for here, where the build has one. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static int with_leak_check(int status)
{
    bool leaks = __lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check();
    return leaks ? 97 : status;
}

static int run(const struct worker_fixture *fixture,
               const struct weir_app *declared,
               int listen_fd,
               int control_fd)
{
    struct weir_error error = { 0 };
    struct weir__app *app;
    bool is_unix = !fixture->tcp;
    if (!weir__app_create(declared, &fixture->options, NULL, &app, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 98;
    }
    int status =
        weir__worker_run(&(struct weir__worker_config){ .app = app,
                                                        .listen_fds = &listen_fd,
                                                        .listen_unix = &is_unix,
                                                        .listen_len = 1,
                                                        .control_fd = control_fd });
    weir__app_destroy(app);
    return status;
}

bool worker_start(struct worker_fixture *fixture, const struct weir_app *app)
{
    int pair[2];
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/weir-worker-XXXXXX");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0 ||
        !mkdtemp(fixture->folder))
        return false;
    int listen_fd = fixture->tcp ? listen_tcp(fixture) : listen_unix(fixture);
    if (listen_fd < 0 || (fixture->pid = fork()) < 0)
        return false;
    if (fixture->pid == 0) {
        struct rlimit limit = { fixture->max_descriptors, fixture->max_descriptors };
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_IGN);
        if (fixture->max_descriptors > 0)
            setrlimit(RLIMIT_NOFILE, &limit);
        close(pair[0]);
        _exit(with_leak_check(run(fixture, app, listen_fd, pair[1])));
    }
    close(listen_fd);
    close(pair[1]);
    fixture->control_fd = pair[0];
    return true;
}

void worker_terminate(struct worker_fixture *fixture)
{
    kill(fixture->pid, SIGTERM);
}

int worker_wait(struct worker_fixture *fixture)
{
    int status;
    if (waitpid(fixture->pid, &status, 0) < 0)
        return -1;
    fixture->pid = 0;
    close(fixture->control_fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int worker_stop(struct worker_fixture *fixture)
{
    worker_terminate(fixture);
    return worker_wait(fixture);
}

bool worker_finish(struct worker_fixture *fixture)
{
    bool ok = fixture->pid == 0 || worker_stop(fixture) == 0;
    unlink(fixture->path);
    rmdir(fixture->folder);
    return ok;
}
