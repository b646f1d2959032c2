/* From libfcgi's form of an address to ours. Opens nothing; what is odd about a path or a
 * port is found where it is opened. */
#include "process/pull_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static bool
look_up(const char *host, char *ret_text, size_t size, struct weir_error *ret_error)
{
    struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    int result = getaddrinfo(host, NULL, &hints, &found);
    if (result != 0)
        return weir__error(ret_error, "%s: %s", host, gai_strerror(result));
    const struct sockaddr_in *address = (const void *)found->ai_addr;
    bool ok = inet_ntop(AF_INET, &address->sin_addr, ret_text, (socklen_t)size) != NULL;
    freeaddrinfo(found);
    return ok || weir__error(ret_error, "%s: no IPv4 address", host);
}

bool weir__pull_address(const char *path,
                        char *text,
                        size_t size,
                        struct weir_error *ret_error)
{
    char host[256], address[INET_ADDRSTRLEN] = "0.0.0.0";
    const char *colon = strchr(path, ':');
    int written = 0;
    if (!colon || atol(colon + 1) <= 0) {
        written = snprintf(text, size, "unix:%s", path);
    } else {
        snprintf(host, sizeof host, "%.*s", (int)(colon - path), path);
        if (*host && strcmp(host, "*") != 0 &&
            !look_up(host, address, sizeof address, ret_error))
            return false;
        written = snprintf(text, size, "tcp:%s:%s", address, colon + 1);
    }
    return (size_t)written < size ||
           weir__error(ret_error, "%s: too long for an address", path);
}
