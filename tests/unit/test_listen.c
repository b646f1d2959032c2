#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "process/listen.h"

static char folder[64], path[96], address[128], other[96], other_address[128];
static struct weir__options options;
static struct weir__listeners listeners;
static struct weir_error error;

static void drop_line(void *arg, enum weir_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/weir-listen-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.sock", folder);
    snprintf(address, sizeof address, "unix:%s", path);
    snprintf(other, sizeof other, "%s/b.sock", folder);
    snprintf(other_address, sizeof other_address, "unix:%s", other);
    weir__options_defaults(&options);
    weir__log_replace(drop_line, NULL, WEIR_LOG_DEBUG);
}

static void remove_folder(void)
{
    unlink(path);
    unlink(other);
    cr_expect_eq(rmdir(folder), 0, "something is left in the folder");
}

TestSuite(listen, .init = make_folder, .fini = remove_folder);

static enum weir__listen_result open_addresses(const char *first, const char *second)
{
    options.listen_len = 0;
    if (first)
        options.listen[options.listen_len++] = first;
    if (second)
        options.listen[options.listen_len++] = second;
    error.text[0] = '\0';
    return weir__listen_open(&options, &listeners, &error);
}

/* A bound socket of the type at the path; it listens where backlog is not negative. */
static int bind_path(const char *at, int type, int backlog)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    snprintf(un.sun_path, sizeof un.sun_path, "%s", at);
    cr_assert_eq(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
    if (backlog >= 0)
        cr_assert_eq(listen(fd, backlog), 0);
    return fd;
}

static int connect_path(const char *at)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(un.sun_path, sizeof un.sun_path, "%s", at);
    if (connect(fd, (struct sockaddr *)&un, sizeof un) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;
    cr_assert_eq(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

Test(listen, addresses_are_numeric_and_whole)
{
    static const char *const good[] = {
        "unix:a",      "unix:/run/x.sock", "tcp:127.0.0.1:9000",    "tcp:0.0.0.0:0",
        "tcp:[::1]:1", "tcp:[::]:65535",   "tcp:[2001:db8::1]:443", "unix:a:b",
    };
    static const char *const bad[] = {
        "",
        "unix",
        "unix:",
        "UNIX:/a",
        "/a",
        ":9000",
        "9000",
        "tcp:",
        "tcp:9000",
        "tcp::9000",
        "tcp:localhost:9000",
        "tcp:127.0.0.1",
        "tcp:127.0.0.1:",
        "tcp:127.0.0.1:65536",
        "tcp:127.0.0.1:-1",
        "tcp:127.0.0.1: 1",
        "tcp:127.0.0.1:9000x",
        "tcp:127.0.0.1:9000:1",
        "tcp:127.1:9000",
        "tcp:127.0.0.01:9000",
        "tcp:::1:9000",
        "tcp:[::1]",
        "tcp:[::1]9000",
        "tcp:[::1:9000",
        "tcp:[127.0.0.1]:9000",
        "tcp:[::1%lo]:9000",
        "tcp:[]:9000",
        "tcp:[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]:9000",
    };
    struct weir__listen_address ret;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        error.text[0] = '\0';
        cr_expect(weir__listen_parse(good[i], &ret, &error), "%s", error.text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        error.text[0] = '\0';
        cr_expect_not(weir__listen_parse(bad[i], &ret, &error), "%s", bad[i]);
        cr_expect(
            strstr(error.text, bad[i]), "\"%s\" isn't quoted: %s", bad[i], error.text);
    }
}

Test(listen, a_path_too_long_for_a_socket_is_refused)
{
    struct weir__listen_address ret;
    char text[5 + 109] = "unix:";
    memset(text + 5, 'a', 107);
    cr_expect(weir__listen_parse(text, &ret, &error));
    text[5 + 107] = 'a';
    cr_expect_not(weir__listen_parse(text, &ret, &error));
    cr_expect(strstr(error.text, "108 bytes, a unix socket's has at most 107"));
}

Test(listen, a_unix_socket_is_bounded_to_its_mode_and_ready_for_many_workers)
{
    struct stat stat;
    umask(0);
    options.socket_mode = 0640;
    cr_assert_eq(open_addresses(address, NULL), WEIR__LISTEN_OK, "%s", error.text);
    cr_assert_eq(lstat(path, &stat), 0);
    cr_expect_eq(stat.st_mode & 07777, 0640);
    cr_expect_eq(umask(022), 0, "the umask is as it was");
    cr_expect_eq(listeners.len, 1);
    cr_expect(listeners.is_unix[0]);
    cr_expect(fcntl(listeners.fds[0], F_GETFD) & FD_CLOEXEC);
    cr_expect(fcntl(listeners.fds[0], F_GETFL) & O_NONBLOCK);
    cr_expect_eq(option_of(listeners.fds[0], SOL_SOCKET, SO_ACCEPTCONN), 1);
    int fd = connect_path(path);
    cr_expect_geq(fd, 0);
    close(fd);
    weir__listen_close(&listeners);
    cr_expect_neq(access(path, F_OK), 0, "the file is gone");
}

Test(listen, the_mode_does_not_depend_on_the_umask)
{
    struct stat stat;
    umask(0177);
    options.socket_mode = 0666;
    cr_assert_eq(open_addresses(address, NULL), WEIR__LISTEN_OK, "%s", error.text);
    cr_assert_eq(lstat(path, &stat), 0);
    cr_expect_eq(stat.st_mode & 07777, 0666);
    weir__listen_close(&listeners);
}

Test(listen, owner_and_group_are_set)
{
    struct stat stat;
    char uid[16], gid[16];
    snprintf(uid, sizeof uid, "%u", getuid());
    snprintf(gid, sizeof gid, "%u", getgid());
    options.socket_owner = uid;
    options.socket_group = gid;
    cr_assert_eq(open_addresses(address, NULL), WEIR__LISTEN_OK, "%s", error.text);
    cr_assert_eq(lstat(path, &stat), 0);
    cr_expect_eq(stat.st_uid, getuid());
    cr_expect_eq(stat.st_gid, getgid());
    weir__listen_close(&listeners);

    options.socket_group = "no-such-group";
    cr_assert_eq(open_addresses(address, NULL), WEIR__LISTEN_FAILED);
    cr_expect_str_eq(error.text, "--socket-group: no group \"no-such-group\"");
    options.socket_owner = "no-such-user";
    cr_assert_eq(open_addresses(address, NULL), WEIR__LISTEN_FAILED);
    cr_expect_str_eq(error.text, "--socket-owner: no user \"no-such-user\"");
}

Test(listen, a_dead_socket_is_replaced)
{
    close(bind_path(path, SOCK_STREAM, 8));
    cr_assert_eq(access(path, F_OK), 0);
    cr_assert_eq(open_addresses(address, NULL), WEIR__LISTEN_OK, "%s", error.text);
    int fd = connect_path(path);
    cr_expect_geq(fd, 0);
    close(fd);
    weir__listen_close(&listeners);
}

Test(listen, a_live_socket_is_left_alone_and_named)
{
    char text[256];
    int live = bind_path(path, SOCK_STREAM, 8);
    snprintf(text, sizeof text, "%s: already in use", address);
    cr_assert_eq(open_addresses(address, NULL), WEIR__LISTEN_FAILED);
    cr_expect_str_eq(error.text, text);
    int fd = connect_path(path);
    cr_expect_geq(fd, 0, "it still answers at its path");
    close(fd);
    close(live);
}

Test(listen, a_socket_with_a_full_backlog_is_live)
{
    int fds[4], live = bind_path(path, SOCK_STREAM, 0);
    for (int i = 0; i < 4; i++)
        fds[i] = connect_path(path);
    cr_assert_eq(fds[3], -1, "the backlog is full");
    cr_assert_eq(open_addresses(address, NULL), WEIR__LISTEN_FAILED);
    cr_expect(strstr(error.text, "already in use"));
    close(live);
}

Test(listen, a_datagram_socket_is_somebodys)
{
    int live = bind_path(path, SOCK_DGRAM, -1);
    cr_assert_eq(open_addresses(address, NULL), WEIR__LISTEN_FAILED);
    cr_expect(strstr(error.text, "already in use"));
    close(live);
}

Test(listen, any_other_file_is_left_alone)
{
    char byte = 0;
    int file = open(path, O_CREAT | O_RDWR, 0600);
    cr_assert_eq(write(file, "x", 1), 1);
    cr_assert_eq(open_addresses(address, NULL), WEIR__LISTEN_FAILED);
    cr_expect(strstr(error.text, "exists and is not a socket"));
    cr_expect_eq(pread(file, &byte, 1, 0), 1);
    cr_expect_eq(access(path, F_OK), 0);
    close(file);
}

Test(listen, a_link_to_a_dead_socket_is_left_alone)
{
    close(bind_path(other, SOCK_STREAM, 8));
    cr_assert_eq(symlink(other, path), 0);
    cr_assert_eq(open_addresses(address, NULL), WEIR__LISTEN_FAILED);
    cr_expect(strstr(error.text, "exists and is not a socket"));
    cr_expect_eq(access(other, F_OK), 0);
}

Test(listen, a_missing_folder_is_named)
{
    char text[160];
    snprintf(text, sizeof text, "unix:%s/none/a.sock", folder);
    cr_assert_eq(open_addresses(text, NULL), WEIR__LISTEN_FAILED);
    cr_expect(strstr(error.text, "/none: No such file"), "%s", error.text);
}

Test(listen, at_the_end_only_its_own_file_is_removed)
{
    struct stat before, after;
    cr_assert_eq(open_addresses(address, NULL), WEIR__LISTEN_OK, "%s", error.text);
    unlink(path);
    int successor = bind_path(path, SOCK_STREAM, 8);
    cr_assert_eq(lstat(path, &before), 0);
    weir__listen_close(&listeners);
    cr_assert_eq(lstat(path, &after), 0, "the successor's file is still there");
    cr_expect_eq(before.st_ino, after.st_ino);
    close(successor);
}

Test(listen, where_one_address_fails_nothing_stays)
{
    int file = open(other, O_CREAT | O_RDWR, 0600);
    cr_assert_eq(open_addresses(address, other_address), WEIR__LISTEN_FAILED);
    cr_expect_neq(access(path, F_OK), 0, "the first one's file is gone");
    int next = dup(file);
    cr_expect_eq(next, file + 1, "no descriptor is left");
    close(next);
    close(file);
}

Test(listen, a_relative_path_works)
{
    cr_assert_eq(chdir(folder), 0);
    cr_assert_eq(open_addresses("unix:a.sock", NULL), WEIR__LISTEN_OK, "%s", error.text);
    cr_expect_eq(access(path, F_OK), 0);
    weir__listen_close(&listeners);
    cr_expect_neq(access(path, F_OK), 0);
}

/* One start among many: waits for the others, tries, tells, and listens until the end. */
static void start_among_many(int go, int told, int end)
{
    char byte;
    while (read(go, &byte, 1) < 0)
        ;
    byte = open_addresses(address, NULL) == WEIR__LISTEN_OK ? 'w'
           : strstr(error.text, "already in use")           ? 'l'
                                                            : '?';
    if (write(told, &byte, 1) == 1)
        while (read(end, &byte, 1) < 0)
            ;
    _exit(0);
}

Test(listen, of_many_starts_at_once_exactly_one_gets_a_dead_path)
{
    enum { STARTS = 6, ROUNDS = 30 };
    for (int round = 0; round < ROUNDS; round++) {
        int go[2], told[2], end[2], winners = 0, losers = 0;
        char byte;
        close(bind_path(path, SOCK_STREAM, 8));
        cr_assert(pipe(go) == 0 && pipe(told) == 0 && pipe(end) == 0);
        for (int i = 0; i < STARTS; i++) {
            if (fork() == 0) {
                close(go[1]);
                close(end[1]);
                start_among_many(go[0], told[1], end[0]);
            }
        }
        close(go[1]);
        for (int i = 0; i < STARTS; i++) {
            cr_assert_eq(read(told[0], &byte, 1), 1);
            winners += byte == 'w';
            losers += byte == 'l';
        }
        cr_expect_eq(winners, 1, "round %d: %d have it", round, winners);
        cr_expect_eq(losers, STARTS - 1);
        int fd = connect_path(path);
        cr_expect_geq(fd, 0);
        close(fd);
        close(end[1]);
        for (int i = 0; i < STARTS; i++)
            cr_assert_gt(wait(NULL), 0);
        close(go[0]);
        close(told[0]);
        close(told[1]);
        close(end[0]);
        unlink(path);
    }
}

Test(listen, tcp_takes_a_free_port_and_says_which)
{
    char text[64], again[96];
    cr_assert_eq(
        open_addresses("tcp:127.0.0.1:0", NULL), WEIR__LISTEN_OK, "%s", error.text);
    weir__listen_text(listeners.fds[0], text, sizeof text);
    cr_expect_eq(strncmp(text, "tcp:127.0.0.1:", 14), 0, "%s", text);
    cr_expect_str_neq(text, "tcp:127.0.0.1:0");
    cr_expect_not(listeners.is_unix[0]);
    cr_expect(fcntl(listeners.fds[0], F_GETFD) & FD_CLOEXEC);
    cr_expect(fcntl(listeners.fds[0], F_GETFL) & O_NONBLOCK);
    cr_expect_eq(option_of(listeners.fds[0], SOL_SOCKET, SO_REUSEADDR), 1);
    cr_expect_eq(option_of(listeners.fds[0], IPPROTO_TCP, TCP_NODELAY), 1);

    struct weir__listeners first = listeners;
    snprintf(again, sizeof again, "%s: already in use", text);
    cr_assert_eq(open_addresses(text, NULL), WEIR__LISTEN_FAILED);
    cr_expect_str_eq(error.text, again);
    weir__listen_close(&first);
    cr_assert_eq(open_addresses(text, NULL), WEIR__LISTEN_OK, "%s", error.text);
    weir__listen_close(&listeners);
}

Test(listen, ipv6_is_ipv6_only)
{
    char text[64];
    cr_assert_eq(open_addresses("tcp:[::1]:0", NULL), WEIR__LISTEN_OK, "%s", error.text);
    cr_expect_eq(option_of(listeners.fds[0], IPPROTO_IPV6, IPV6_V6ONLY), 1);
    weir__listen_text(listeners.fds[0], text, sizeof text);
    cr_expect_eq(strncmp(text, "tcp:[::1]:", 10), 0, "%s", text);
    weir__listen_close(&listeners);
}

/* Runs fn in a child, which may do to its descriptors what it likes; 0 is good. */
static int in_child(int (*fn)(void))
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(fn());
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void pass_environment(pid_t pid, const char *count)
{
    char text[16];
    snprintf(text, sizeof text, "%d", (int)pid);
    setenv("LISTEN_PID", text, 1);
    setenv("LISTEN_FDS", count, 1);
}

static void close_standard_input(void)
{
    close(0);
    open("/dev/null", O_RDONLY);
}

static int passed_by_systemd(void)
{
    int first = bind_path(path, SOCK_STREAM, 8),
        second = bind_path(other, SOCK_STREAM, 8);
    int high = fcntl(second, F_DUPFD, 100);
    dup2(first, 3);
    dup2(high, 4);
    pass_environment(getpid(), "2");
    if (open_addresses(NULL, NULL) != WEIR__LISTEN_OK)
        return 1;
    if (listeners.len != 2 || listeners.fds[0] != 3 || listeners.fds[1] != 4)
        return 2;
    if (!listeners.is_unix[0] || !(fcntl(4, F_GETFD) & FD_CLOEXEC) ||
        !(fcntl(4, F_GETFL) & O_NONBLOCK))
        return 3;
    if (getenv("LISTEN_PID") || getenv("LISTEN_FDS"))
        return 4;
    weir__listen_close(&listeners);
    return access(path, F_OK) == 0 ? 0 : 5; /* systemd's file, not ours to remove */
}

static int passed_to_another_process(void)
{
    dup2(bind_path(path, SOCK_STREAM, 8), 3);
    close_standard_input();
    pass_environment(getppid(), "1");
    return open_addresses(NULL, NULL) == WEIR__LISTEN_NONE ? 0 : 1;
}

static int passed_something_else(void)
{
    int pipe_fds[2];
    if (pipe(pipe_fds) < 0)
        return 1;
    dup2(pipe_fds[0], 3);
    pass_environment(getpid(), "1");
    if (open_addresses(NULL, NULL) != WEIR__LISTEN_FAILED)
        return 2;
    return strstr(error.text, "no listening stream socket") ? 0 : 3;
}

static int bound_at_standard_input(void)
{
    int on = -1;
    socklen_t len = sizeof on;
    dup2(bind_path(path, SOCK_STREAM, 8), 0);
    if (open_addresses(NULL, NULL) != WEIR__LISTEN_OK)
        return 1;
    if (listeners.len != 1 || listeners.fds[0] < 3 || !listeners.is_unix[0])
        return 2;
    if (getsockopt(0, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) == 0 || errno != ENOTSOCK)
        return 3;
    return connect_path(path) >= 0 ? 0 : 4;
}

static int not_listening_at_standard_input(void)
{
    dup2(bind_path(path, SOCK_STREAM, -1), 0);
    return open_addresses(NULL, NULL) == WEIR__LISTEN_NONE ? 0 : 1;
}

Test(listen, systemds_sockets_are_taken)
{
    cr_expect_eq(in_child(passed_by_systemd), 0);
}

Test(listen, sockets_passed_to_another_process_are_not_taken)
{
    cr_expect_eq(in_child(passed_to_another_process), 0);
}

Test(listen, a_passed_descriptor_that_does_not_listen_is_refused)
{
    cr_expect_eq(in_child(passed_something_else), 0);
}

Test(listen, a_listening_socket_at_descriptor_0_is_moved_away)
{
    cr_expect_eq(in_child(bound_at_standard_input), 0);
}

Test(listen, a_bound_socket_at_descriptor_0_that_does_not_listen_is_nothing)
{
    cr_expect_eq(in_child(not_listening_at_standard_input), 0);
}

/* ---- sockets and other things that were handed on -------------------------------- */

/* The named one is taken over, file and all; the one that nobody names is closed. */
static int handed_and_named(void)
{
    struct weir__handed handed = { .listen_len = 2, .shm_fd = -1, .ready_fd = -1 };
    struct stat before, after;
    handed.listen_fds[0] = bind_path(other, SOCK_STREAM, 8);
    handed.listen_fds[1] = bind_path(path, SOCK_STREAM, 8);
    options.listen[options.listen_len++] = address;
    if (stat(path, &before) < 0 ||
        weir__listen_take_over(&options, &handed, &listeners, &error) != WEIR__LISTEN_OK)
        return 1;
    if (listeners.len != 1 || listeners.fds[0] != handed.listen_fds[1] ||
        !listeners.is_unix[0])
        return 2;
    if (stat(path, &after) < 0 || before.st_ino != after.st_ino)
        return 3;
    if (fcntl(handed.listen_fds[0], F_GETFD) >= 0)
        return 4;
    weir__listen_close(&listeners);
    return access(path, F_OK) < 0 ? 0 : 5;
}

static int handed_on_to_another(void)
{
    options.listen[options.listen_len++] = address;
    if (weir__listen_open(&options, &listeners, &error) != WEIR__LISTEN_OK)
        return 1;
    weir__listen_leave_files(&listeners);
    weir__listen_close(&listeners);
    return access(path, F_OK) == 0 ? 0 : 2;
}

static int handed_port(void)
{
    struct weir__handed handed = { .listen_len = 1, .shm_fd = -1, .ready_fd = -1 };
    char before[64], after[64];
    options.listen[options.listen_len++] = "tcp:127.0.0.1:0";
    if (weir__listen_open(&options, &listeners, &error) != WEIR__LISTEN_OK)
        return 1;
    handed.listen_fds[0] = listeners.fds[0];
    weir__listen_text(listeners.fds[0], before, sizeof before);
    if (weir__listen_take_over(&options, &handed, &listeners, &error) != WEIR__LISTEN_OK)
        return 2;
    weir__listen_text(listeners.fds[0], after, sizeof after);
    if (listeners.fds[0] != handed.listen_fds[0] || strcmp(before, after) != 0)
        return 3;
    /* The same port of another address is another socket. */
    options.listen[0] = "tcp:127.0.0.2:0";
    if (weir__listen_take_over(&options, &handed, &listeners, &error) != WEIR__LISTEN_OK)
        return 4;
    return fcntl(handed.listen_fds[0], F_GETFD) < 0 ? 0 : 5;
}

static int names_are_read(void)
{
    struct weir__handed handed;
    int null = open("/dev/null", O_RDWR);
    for (int fd = 3; fd < 8; fd++)
        dup2(null, fd);
    pass_environment(getpid(), "5");
    setenv("LISTEN_FDNAMES", "weir:weir-shm:weir-ready:weir-shm", 1);
    weir__handed_take(&handed);
    if (handed.listen_len != 2 || handed.listen_fds[0] != 3 || handed.listen_fds[1] != 7)
        return 1;
    if (handed.shm_fd != 6 || handed.ready_fd != 5)
        return 2;
    if (fcntl(4, F_GETFD) >= 0) /* of two the later one */
        return 3;
    return getenv("LISTEN_FDNAMES") ? 4 : 0;
}

Test(listen, a_socket_that_was_handed_on_is_taken_where_it_is_named)
{
    cr_expect_eq(in_child(handed_and_named), 0);
}

Test(listen, the_file_of_a_socket_that_is_handed_on_stays)
{
    cr_expect_eq(in_child(handed_on_to_another), 0);
}

Test(listen, port_0_is_the_port_that_was_handed_on)
{
    cr_expect_eq(in_child(handed_port), 0);
}

Test(listen, handed_descriptors_have_names)
{
    cr_expect_eq(in_child(names_are_read), 0);
}
