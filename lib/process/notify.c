/* One datagram; that it doesn't arrive is no reason to stop serving, so the result only
 * matters to tests. */
#include "process/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool weir__notify(const char *state)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    const char *name = getenv("NOTIFY_SOCKET");
    size_t len = name ? strlen(name) : 0;
    if (len < 2 || len >= sizeof un.sun_path || (name[0] != '/' && name[0] != '@'))
        return false;
    memcpy(un.sun_path, name, len);
    if (name[0] == '@')
        un.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    ssize_t sent = sendto(fd,
                          state,
                          strlen(state),
                          MSG_DONTWAIT | MSG_NOSIGNAL,
                          (const struct sockaddr *)&un,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
    return sent == (ssize_t)strlen(state);
}
