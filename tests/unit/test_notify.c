#include <criterion/criterion.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "process/notify.h"

/* A datagram socket bound to the name, "@" for abstract, which is put into the
 * environment too. */
static int bind_and_export(const char *name)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    memcpy(un.sun_path, name, strlen(name));
    if (name[0] == '@')
        un.sun_path[0] = '\0';
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    cr_assert_eq(bind(fd, (struct sockaddr *)&un, len), 0);
    setenv("NOTIFY_SOCKET", name, 1);
    return fd;
}

static void expect_state(int fd, const char *state)
{
    char text[64] = "";
    cr_expect_eq(recv(fd, text, sizeof text - 1, 0), (ssize_t)strlen(state));
    cr_expect_str_eq(text, state);
}

Test(notify, a_path_gets_one_datagram)
{
    char folder[] = "/tmp/weir-notify-XXXXXX", name[64];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(name, sizeof name, "%s/n", folder);
    int fd = bind_and_export(name);
    cr_expect(weir__notify("READY=1"));
    expect_state(fd, "READY=1");
    close(fd);
    cr_expect_not(weir__notify("STOPPING=1"), "nobody reads any more");
    unlink(name);
    rmdir(folder);
}

Test(notify, an_abstract_name_works)
{
    char name[64];
    snprintf(name, sizeof name, "@weir-notify-%d", (int)getpid());
    int fd = bind_and_export(name);
    cr_expect(weir__notify("READY=1"));
    expect_state(fd, "READY=1");
    close(fd);
}

Test(notify, without_a_socket_nothing_happens)
{
    static const char *const names[] = { "", "/", "relative", "vsock:2:1", "@" };
    char name[200] = "/";
    unsetenv("NOTIFY_SOCKET");
    cr_expect_not(weir__notify("READY=1"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        setenv("NOTIFY_SOCKET", names[i], 1);
        cr_expect_not(weir__notify("READY=1"), "%s", names[i]);
    }
    memset(name + 1, 'a', sizeof name - 2);
    name[sizeof name - 1] = '\0';
    setenv("NOTIFY_SOCKET", name, 1);
    cr_expect_not(weir__notify("READY=1"));
}

Test(notify, a_full_socket_does_not_block)
{
    char name[64];
    unsigned sent = 0;
    snprintf(name, sizeof name, "@weir-notify-full-%d", (int)getpid());
    int fd = bind_and_export(name);
    while (sent < 100000 && weir__notify("READY=1"))
        sent++;
    cr_expect_gt(sent, 0);
    cr_expect_lt(sent, 100000);
    close(fd);
}

Test(notify, a_descriptor_is_kept_in_place_of_the_one_before)
{
    char name[64], text[64] = "", control[CMSG_SPACE(sizeof(int))];
    snprintf(name, sizeof name, "@weir-notify-keep-%d", (int)getpid());
    int fd = bind_and_export(name), pipe_fds[2], kept = -1;
    cr_assert_eq(pipe(pipe_fds), 0);
    cr_expect(weir__notify_keep("weir-shm", pipe_fds[1]));
    expect_state(fd, "FDSTOREREMOVE=1\nFDNAME=weir-shm");
    struct iovec piece = { .iov_base = text, .iov_len = sizeof text - 1 };
    struct msghdr message = { .msg_iov = &piece,
                              .msg_iovlen = 1,
                              .msg_control = control,
                              .msg_controllen = sizeof control };
    cr_assert(recvmsg(fd, &message, 0) > 0);
    cr_expect_str_eq(text, "FDSTORE=1\nFDNAME=weir-shm");
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    cr_assert(header && header->cmsg_type == SCM_RIGHTS);
    memcpy(&kept, CMSG_DATA(header), sizeof kept);
    cr_assert_eq(write(kept, "x", 1), 1);
    cr_expect_eq(read(pipe_fds[0], text, 1), 1, "it is the same pipe");
    close(kept);
    close(fd);
}
