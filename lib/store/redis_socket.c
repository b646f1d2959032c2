/* Addresses and the socket calls of the Redis store. It neither waits nor retries. */
#include "store/redis_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

#define UNACKNOWLEDGED_MS 2000U

static bool parse_unix(const char *path, struct weir__redis_address *ret)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, len + 1);
    memset(ret, 0, sizeof *ret);
    memcpy(&ret->address, &address, sizeof address);
    ret->len = sizeof address;
    return true;
}

static bool parse_port(const char *text, in_port_t *ret_port)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || port < 1 || port > 65535)
        return false;
    *ret_port = htons((in_port_t)port);
    return true;
}

static bool parse_tcp(const char *text, struct weir__redis_address *ret)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
    struct sockaddr_in four = { .sin_family = AF_INET };
    char host[INET6_ADDRSTRLEN];
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    bool bracket = len > 2 && text[0] == '[' && text[len - 1] == ']';
    const char *begin = bracket ? text + 1 : text;
    if (bracket)
        len -= 2;
    if (len == 0 || len >= sizeof host)
        return false;
    memcpy(host, begin, len);
    host[len] = '\0';
    memset(ret, 0, sizeof *ret);
    if (bracket) {
        ret->len = sizeof six;
        if (inet_pton(AF_INET6, host, &six.sin6_addr) != 1 ||
            !parse_port(colon + 1, &six.sin6_port))
            return false;
        memcpy(&ret->address, &six, sizeof six);
        return true;
    }
    ret->len = sizeof four;
    if (inet_pton(AF_INET, host, &four.sin_addr) != 1 ||
        !parse_port(colon + 1, &four.sin_port))
        return false;
    memcpy(&ret->address, &four, sizeof four);
    return true;
}

bool weir__redis_address_parse(const char *text,
                               struct weir__redis_address *ret,
                               struct weir_error *ret_error)
{
    struct weir__redis_address made;
    if ((strncmp(text, "unix:", 5) == 0 && parse_unix(text + 5, &made)) ||
        (strncmp(text, "tcp:", 4) == 0 && parse_tcp(text + 4, &made))) {
        *ret = made;
        return true;
    }
    return weir__error(ret_error,
                       "redis: \"%.200s\" is not unix:PATH, tcp:ADDRESS:PORT or "
                       "tcp:[IPV6]:PORT with a numeric address",
                       text);
}

int weir__redis_connect(const struct weir__redis_address *address)
{
    int family = address->address.ss_family, on = 1;
    unsigned unacknowledged_ms = UNACKNOWLEDGED_MS;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (family != AF_UNIX) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        setsockopt(fd,
                   IPPROTO_TCP,
                   TCP_USER_TIMEOUT,
                   &unacknowledged_ms,
                   sizeof unacknowledged_ms);
    }
    if (connect(fd, (const struct sockaddr *)&address->address, address->len) == 0 ||
        errno == EINPROGRESS)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int weir__redis_connect_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

ssize_t weir__redis_send(int fd, const void *bytes, size_t len)
{
    return send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}
