/* One datagram; that it doesn't arrive is no reason to stop serving, so the result only
 * matters to tests. */
#include "process/notify.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* fd -1: none goes along. */
static bool tell(const char *state, int fd)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    const char *name = getenv("NOTIFY_SOCKET");
    size_t len = name ? strlen(name) : 0;
    if (len < 2 || len >= sizeof un.sun_path || (name[0] != '/' && name[0] != '@'))
        return false;
    memcpy(un.sun_path, name, len);
    if (name[0] == '@')
        un.sun_path[0] = '\0';
    int socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_fd < 0)
        return false;
    struct iovec text = { .iov_base = (void *)(uintptr_t)state,
                          .iov_len = strlen(state) };
    struct msghdr message = {
        .msg_name = &un,
        .msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len),
        .msg_iov = &text,
        .msg_iovlen = 1,
    };
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof fd)];
    } control = { .bytes = { 0 } };
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    ssize_t sent = sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(socket_fd);
    return sent == (ssize_t)text.iov_len;
}

bool weir__notify(const char *state)
{
    return tell(state, -1);
}

bool weir__notify_keep(const char *name, int fd)
{
    char remove[64], keep[64];
    snprintf(remove, sizeof remove, "FDSTOREREMOVE=1\nFDNAME=%s", name);
    snprintf(keep, sizeof keep, "FDSTORE=1\nFDNAME=%s", name);
    return tell(remove, -1) && tell(keep, fd);
}
