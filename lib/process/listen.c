/* Makes listening sockets and takes over handed ones. A path in the file system is only
 * ever replaced where it is a socket on which nobody listens, and only removed where it
 * is still the file made here. Names are never looked up: an address is a number. */
#include "process/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "process/listen_unix.h"
#include "process/units.h"

/* ---- addresses ------------------------------------------------------------------- */

static bool parse_unix(const char *text,
                       const char *path,
                       struct weir__listen_address *ret_address,
                       struct weir_error *ret_error)
{
    struct weir__listen_address address = { .len = sizeof address.at.un };
    size_t len = strlen(path);
    if (len == 0)
        return weir__error(ret_error, "\"%s\" has no path", text);
    if (len >= sizeof address.at.un.sun_path)
        return weir__error(
            ret_error,
            "\"%s\": the path has %zu bytes, a unix socket's has at most %zu",
            text,
            len,
            sizeof address.at.un.sun_path - 1);
    address.at.un.sun_family = AF_UNIX;
    memcpy(address.at.un.sun_path, path, len + 1);
    *ret_address = address;
    return true;
}

static bool parse_tcp(const char *text,
                      const char *rest,
                      struct weir__listen_address *ret_address,
                      struct weir_error *ret_error)
{
    bool v6 = *rest == '[';
    const char *host = rest + v6;
    const char *host_end = v6 ? strstr(host, "]:") : strchr(host, ':');
    char number[INET6_ADDRSTRLEN] = "";
    uint64_t port = 0;
    if (!host_end ||
        !weir__unit_parse(WEIR__UNIT_COUNT, host_end + (v6 ? 2 : 1), &port) ||
        port > 65535)
        return weir__error(ret_error,
                           "\"%s\" is not tcp:ADDRESS:PORT or tcp:[IPV6]:PORT, with a "
                           "port of 0 to 65535",
                           text);
    size_t len = (size_t)(host_end - host);
    if (len < sizeof number)
        memcpy(number, host, len);

    struct weir__listen_address address = { .len = 0 };
    bool good;
    if (v6) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address.at.storage;
        address.len = sizeof *in6;
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons((uint16_t)port);
        good = inet_pton(AF_INET6, number, &in6->sin6_addr) == 1;
    } else {
        struct sockaddr_in *in = (struct sockaddr_in *)&address.at.storage;
        address.len = sizeof *in;
        in->sin_family = AF_INET;
        in->sin_port = htons((uint16_t)port);
        good = inet_pton(AF_INET, number, &in->sin_addr) == 1;
    }
    if (!good)
        return weir__error(ret_error,
                           "\"%s\": \"%.*s\" is not a numeric IPv%d address",
                           text,
                           (int)len,
                           host,
                           v6 ? 6 : 4);
    *ret_address = address;
    return true;
}

bool weir__listen_parse(const char *text,
                        struct weir__listen_address *ret_address,
                        struct weir_error *ret_error)
{
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text, text + 5, ret_address, ret_error);
    if (strncmp(text, "tcp:", 4) == 0)
        return parse_tcp(text, text + 4, ret_address, ret_error);
    return weir__error(
        ret_error, "\"%s\" is neither unix:PATH nor tcp:ADDRESS:PORT", text);
}

static bool is_loopback(const struct weir__listen_address *address)
{
    if (address->at.any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(
            &((const struct sockaddr_in6 *)&address->at.storage)->sin6_addr);
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address->at.storage;
    return ntohl(in->sin_addr.s_addr) >> 24 == 127;
}

static void text_of(const struct weir__listen_address *address, char *text, size_t size)
{
    char number[INET6_ADDRSTRLEN] = "?";
    if (address->at.any.sa_family == AF_UNIX) {
        snprintf(text,
                 size,
                 "unix:%.*s",
                 (int)sizeof address->at.un.sun_path,
                 address->at.un.sun_path);
    } else if (address->at.any.sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 =
            (const struct sockaddr_in6 *)&address->at.storage;
        inet_ntop(AF_INET6, &in6->sin6_addr, number, sizeof number);
        snprintf(text, size, "tcp:[%s]:%u", number, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&address->at.storage;
        inet_ntop(AF_INET, &in->sin_addr, number, sizeof number);
        snprintf(text, size, "tcp:%s:%u", number, ntohs(in->sin_port));
    }
}

void weir__listen_text(int fd, char *text, size_t size)
{
    struct weir__listen_address address = { .len = sizeof address.at };
    if (getsockname(fd, &address.at.any, &address.len) == 0)
        text_of(&address, text, size);
    else
        snprintf(text, size, "descriptor %d", fd);
}

/* ---- one socket ------------------------------------------------------------------ */

static bool open_tcp(const char *text,
                     const struct weir__listen_address *address,
                     int *ret_fd,
                     struct weir_error *ret_error)
{
    int on = 1;
    int fd =
        socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return weir__error(ret_error, "%s: %s", text, strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->at.any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    /* Accepted connections inherit it: an answer's last record never waits for an ACK. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (bind(fd, &address->at.any, address->len) < 0 ||
        listen(fd, WEIR__LISTEN_BACKLOG) < 0) {
        int why = errno;
        close(fd);
        return weir__error(ret_error,
                           "%s: %s",
                           text,
                           why == EADDRINUSE ? "already in use" : strerror(why));
    }
    if (!is_loopback(address))
        weir__log(WEIR_LOG_WARNING,
                  "%s: every host that reaches it can claim any remote address",
                  text);
    *ret_fd = fd;
    return true;
}

/* Whether fd is a socket that listens; 1, 0, or -1 where it is no socket at all. */
static int accepts(int fd)
{
    int on;
    socklen_t len = sizeof on;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) < 0)
        return -1;
    return on != 0;
}

/* Takes a handed socket into the list. */
static bool
add_handed(int fd, struct weir__listeners *listeners, struct weir_error *ret_error)
{
    int type = 0, domain = 0;
    socklen_t type_len = sizeof type, domain_len = sizeof domain;
    if (accepts(fd) != 1 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0 ||
        type != SOCK_STREAM ||
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) < 0 ||
        (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6))
        return weir__error(
            ret_error, "descriptor %d that was passed is no listening stream socket", fd);
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return weir__error(ret_error, "descriptor %d: %s", fd, strerror(errno));
    listeners->fds[listeners->len] = fd;
    listeners->is_unix[listeners->len] = domain == AF_UNIX;
    listeners->len++;
    return true;
}

/* ---- all of them ----------------------------------------------------------------- */

/* Whether a socket that listens at `its` is what the option asks for. */
static bool is_wanted(const struct weir__listen_address *its,
                      const struct weir__listen_address *wanted)
{
    if (its->at.any.sa_family != wanted->at.any.sa_family)
        return false;
    if (its->at.any.sa_family == AF_UNIX)
        return strncmp(its->at.un.sun_path,
                       wanted->at.un.sun_path,
                       sizeof its->at.un.sun_path) == 0;
    if (its->at.any.sa_family == AF_INET6) {
        const struct sockaddr_in6 *theirs = (const void *)&wanted->at.storage;
        const struct sockaddr_in6 *ours = (const void *)&its->at.storage;
        return memcmp(&ours->sin6_addr, &theirs->sin6_addr, sizeof ours->sin6_addr) ==
                   0 &&
               (theirs->sin6_port == 0 || ours->sin6_port == theirs->sin6_port);
    }
    const struct sockaddr_in *theirs = (const void *)&wanted->at.storage;
    const struct sockaddr_in *ours = (const void *)&its->at.storage;
    return ours->sin_addr.s_addr == theirs->sin_addr.s_addr &&
           (theirs->sin_port == 0 || ours->sin_port == theirs->sin_port);
}

/* Takes the socket that was handed to us for that address out of handed; -1: none was. */
static int take_handed(struct weir__handed *handed,
                       const struct weir__listen_address *wanted)
{
    for (unsigned i = 0; i < handed->listen_len && i < WEIR__LISTEN_MAX; i++) {
        struct weir__listen_address its = { .len = sizeof its.at };
        int fd = handed->listen_fds[i];
        if (fd >= 0 && accepts(fd) == 1 && getsockname(fd, &its.at.any, &its.len) == 0 &&
            is_wanted(&its, wanted)) {
            handed->listen_fds[i] = -1;
            return fd;
        }
    }
    return -1;
}

/* The file of a unix socket that was handed to us is ours to remove from now on. */
static void adopt_file(const struct sockaddr_un *address, struct weir__listen_file *file)
{
    struct stat stat;
    if (lstat(address->sun_path, &stat) < 0 || !S_ISSOCK(stat.st_mode))
        return;
    memcpy(file->path, address->sun_path, sizeof file->path);
    file->device = stat.st_dev;
    file->inode = stat.st_ino;
}

static bool open_one(const struct weir__options *options,
                     const char *text,
                     struct weir__handed *handed,
                     struct weir__listeners *listeners,
                     struct weir_error *ret_error)
{
    struct weir__listen_address address = { .len = 0 };
    unsigned i = listeners->len;
    if (!weir__listen_parse(text, &address, ret_error))
        return false;
    listeners->is_unix[i] = address.at.any.sa_family == AF_UNIX;
    int fd = take_handed(handed, &address);
    if (fd >= 0) {
        if (listeners->is_unix[i])
            adopt_file(&address.at.un, &listeners->files[i]);
        return add_handed(fd, listeners, ret_error);
    }
    bool opened = listeners->is_unix[i]
                      ? weir__listen_unix_open(options,
                                               &address.at.un,
                                               &listeners->fds[i],
                                               &listeners->files[i],
                                               ret_error)
                      : open_tcp(text, &address, &listeners->fds[i], ret_error);
    listeners->len += opened;
    return opened;
}

static bool open_named(const struct weir__options *options,
                       struct weir__handed handed,
                       struct weir__listeners *listeners,
                       struct weir_error *ret_error)
{
    for (unsigned i = 0; i < options->listen_len; i++)
        if (!open_one(options, options->listen[i], &handed, listeners, ret_error))
            return false;
    for (unsigned i = 0; i < handed.listen_len && i < WEIR__LISTEN_MAX; i++)
        if (handed.listen_fds[i] >= 0)
            close(handed.listen_fds[i]);
    return true;
}

/* Moves the listening socket at descriptor 0 away, so that nothing takes it for input. */
static bool move_standard_input(int *ret_fd, struct weir_error *ret_error)
{
    int moved = fcntl(0, F_DUPFD_CLOEXEC, WEIR__HANDED_FIRST);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool good = moved >= 0 && null >= 0 && dup2(null, 0) == 0;
    if (!good)
        weir__error(ret_error, "descriptor 0: %s", strerror(errno));
    if (null >= 0)
        close(null);
    if (!good && moved >= 0)
        close(moved);
    if (good)
        *ret_fd = moved;
    return good;
}

static enum weir__listen_result open_handed(const struct weir__handed *handed,
                                            struct weir__listeners *listeners,
                                            struct weir_error *ret_error)
{
    int fd = -1;
    if (handed->listen_len > WEIR__LISTEN_MAX) {
        weir__error(ret_error,
                    "%u sockets were passed, at most %d are taken",
                    handed->listen_len,
                    WEIR__LISTEN_MAX);
        return WEIR__LISTEN_FAILED;
    }
    for (unsigned i = 0; i < handed->listen_len; i++)
        if (!add_handed(handed->listen_fds[i], listeners, ret_error))
            return WEIR__LISTEN_FAILED;
    if (handed->listen_len > 0)
        return WEIR__LISTEN_OK;
    if (accepts(0) != 1)
        return WEIR__LISTEN_NONE;
    if (!move_standard_input(&fd, ret_error))
        return WEIR__LISTEN_FAILED;
    if (!add_handed(fd, listeners, ret_error)) {
        close(fd);
        return WEIR__LISTEN_FAILED;
    }
    return WEIR__LISTEN_OK;
}

enum weir__listen_result weir__listen_take_over(const struct weir__options *options,
                                                const struct weir__handed *handed,
                                                struct weir__listeners *ret_listeners,
                                                struct weir_error *ret_error)
{
    struct weir__listeners listeners = { 0 };
    enum weir__listen_result result;
    if (options->listen_len > 0)
        result = open_named(options, *handed, &listeners, ret_error)
                     ? WEIR__LISTEN_OK
                     : WEIR__LISTEN_FAILED;
    else
        result = open_handed(handed, &listeners, ret_error);
    if (result == WEIR__LISTEN_OK)
        *ret_listeners = listeners;
    else
        weir__listen_close(&listeners);
    return result;
}

enum weir__listen_result weir__listen_open(const struct weir__options *options,
                                           struct weir__listeners *ret_listeners,
                                           struct weir_error *ret_error)
{
    struct weir__handed handed = { .shm_fd = -1, .ready_fd = -1 };
    if (options->listen_len == 0)
        weir__handed_take(&handed);
    return weir__listen_take_over(options, &handed, ret_listeners, ret_error);
}

void weir__listen_close(struct weir__listeners *listeners)
{
    for (unsigned i = 0; i < listeners->len; i++) {
        /* The file goes first: as long as the socket is open its inode's number can't
         * come back for somebody else's file. */
        weir__listen_unix_remove(&listeners->files[i]);
        close(listeners->fds[i]);
    }
    listeners->len = 0;
}

void weir__listen_leave_files(struct weir__listeners *listeners)
{
    for (unsigned i = 0; i < listeners->len; i++)
        listeners->files[i].path[0] = '\0';
}
