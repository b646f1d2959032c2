/* Starts and ends a redis-server of the tests' own, and speaks with it without anything
 * of the store under test but the formats. */
#include "support/redis_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/redis_command.h"

static void fail(const char *what)
{
    fprintf(stderr, "redis_server: %s: %s\n", what, strerror(errno));
    abort();
}

/* A port that nobody has at the moment. */
static unsigned free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        fail("port");
    close(fd);
    return ntohs(address.sin_port);
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0)
        fail("socket");
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void run_server(const struct redis_server *server, pid_t parent)
{
    char port[16];
    snprintf(port, sizeof port, "%u", server->port);
    const char *args[] = { "redis-server",
                           "--port",
                           port,
                           "--bind",
                           "127.0.0.1",
                           "--unixsocket",
                           server->socket,
                           "--dir",
                           server->folder,
                           "--save",
                           "",
                           "--appendonly",
                           "no",
                           "--daemonize",
                           "no",
                           "--logfile",
                           "redis.log",
                           NULL,
                           NULL,
                           NULL };
    for (int i = 0; server->password[0] && i < 1; i++) {
        args[17] = "--requirepass";
        args[18] = server->password;
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && freopen("/dev/null", "w", stdout))
        execvp("redis-server", (char *const *)args);
    _exit(127);
}

static void wait_until_it_answers(const struct redis_server *server)
{
    for (int i = 0; i < 2000; i++) {
        int fd = connect_to(server->socket), status;
        if (fd >= 0) {
            close(fd);
            return;
        }
        if (waitpid(server->pid, &status, WNOHANG) == server->pid)
            fail("redis-server ended");
        usleep(5000);
    }
    fail("redis-server doesn't answer");
}

void redis_server_again(struct redis_server *server)
{
    pid_t parent = getpid();
    server->pid = fork();
    if (server->pid < 0)
        fail("fork");
    if (server->pid == 0)
        run_server(server, parent);
    wait_until_it_answers(server);
}

void redis_server_start_with(struct redis_server *ret_server, const char *password)
{
    struct redis_server *server = ret_server;
    memset(server, 0, sizeof *server);
    snprintf(server->folder, sizeof server->folder, "/tmp/weir-redis-XXXXXX");
    if (!mkdtemp(server->folder))
        fail("mkdtemp");
    server->port = free_port();
    snprintf(server->socket, sizeof server->socket, "%s/socket", server->folder);
    snprintf(server->address, sizeof server->address, "unix:%s", server->socket);
    snprintf(server->tcp_address,
             sizeof server->tcp_address,
             "tcp:127.0.0.1:%u",
             server->port);
    snprintf(server->password, sizeof server->password, "%s", password);
    redis_server_again(server);
}

void redis_server_start(struct redis_server *ret_server)
{
    redis_server_start_with(ret_server, "");
}

void redis_server_kill(struct redis_server *server)
{
    if (server->pid <= 0)
        return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    unlink(server->socket);
    server->pid = 0;
}

void redis_server_pause(struct redis_server *server)
{
    int status;
    kill(server->pid, SIGSTOP);
    if (waitpid(server->pid, &status, WUNTRACED) != server->pid || !WIFSTOPPED(status))
        fail("stop");
}

void redis_server_resume(struct redis_server *server)
{
    kill(server->pid, SIGCONT);
}

void redis_server_finish(struct redis_server *server)
{
    char path[128];
    redis_server_kill(server);
    snprintf(path, sizeof path, "%s/redis.log", server->folder);
    unlink(path);
    rmdir(server->folder);
}

/* ---- the client -------------------------------------------------------------------- */

void redis_client_open(struct redis_client *ret_client, const char *socket_path)
{
    ret_client->fd = connect_to(socket_path);
    ret_client->replies = weir__redis_replies_create();
    if (ret_client->fd < 0 || !ret_client->replies)
        fail("client");
}

void redis_client_close(struct redis_client *client)
{
    close(client->fd);
    weir__redis_replies_destroy(client->replies);
}

void redis_client_send(struct redis_client *client, const struct weir__buf *commands)
{
    for (size_t sent = 0; sent < commands->len;) {
        ssize_t now =
            send(client->fd, commands->bytes + sent, commands->len - sent, MSG_NOSIGNAL);
        if (now <= 0)
            fail("send");
        sent += (size_t)now;
    }
}

void redis_client_take(struct redis_client *client, struct weir__redis_reply *ret_reply)
{
    enum weir__redis_next next;
    while ((next = weir__redis_replies_next(client->replies, ret_reply)) ==
           WEIR__REDIS_MORE) {
        char bytes[2048];
        ssize_t got = recv(client->fd, bytes, sizeof bytes, 0);
        if (got <= 0)
            fail("recv");
        weir__redis_replies_feed(client->replies, bytes, (size_t)got);
    }
    if (next != WEIR__REDIS_READY)
        fail("the stream broke");
}

const char *redis_client_ask(struct redis_client *client, const char *command)
{
    static struct weir__redis_reply reply;
    struct weir__redis_arg args[16];
    struct weir__buf out;
    unsigned len = 0;
    for (const char *at = command; *at && len < 16; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        args[len++] = (struct weir__redis_arg){ at, word };
        at += word;
    }
    weir__buf_init(&out, 0);
    if (!weir__redis_put(&out, args, len))
        fail("memory");
    redis_client_send(client, &out);
    weir__buf_finish(&out);
    redis_client_take(client, &reply);
    return reply.bytes;
}
