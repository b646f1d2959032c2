/* Where a Redis is, and a socket to it. Numeric addresses only: nothing here may ask a
 * name server. */
#ifndef WEIR_STORE_REDIS_SOCKET_H
#define WEIR_STORE_REDIS_SOCKET_H

#include <sys/socket.h>

#include <weir/weir.h>

struct weir__redis_address {
    struct sockaddr_storage address;
    socklen_t len;
};

/* "unix:PATH", "tcp:192.0.2.1:6379", "tcp:[2001:db8::1]:6379". False with a text. */
bool weir__redis_address_parse(const char *text,
                               struct weir__redis_address *ret,
                               struct weir_error *ret_error);

/* Begins to connect: a non-blocking, close-on-exec descriptor, TCP without delay and with
 * a bound on unacknowledged data. -1 with errno where that fails at once, which on a unix
 * socket includes a full queue. */
int weir__redis_connect(const struct weir__redis_address *address);

/* How that went, once the descriptor can be written to: 0 or the error's number. */
int weir__redis_connect_error(int fd);

/* Sends what goes at once, without SIGPIPE. Bytes sent, or -1 with errno. */
ssize_t weir__redis_send(int fd, const void *bytes, size_t len);

#endif
