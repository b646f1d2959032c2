/* Reads the environment that a supervisor, or an earlier generation, has prepared. What
 * the descriptors are is checked by those who use them: lib/process/listen.c and
 * lib/store/shm_segment.c. */
#include "process/handed.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/units.h"

#define DESCRIPTORS_MAX 4096 /* more is nobody's intention */

/* How many descriptors were passed to this very process; 0 where none. */
static unsigned count_of_ours(void)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    uint64_t pid_number, count = 0;
    bool ours = pid && fds && weir__unit_parse(WEIR__UNIT_COUNT, pid, &pid_number) &&
                pid_number == (uint64_t)getpid() &&
                weir__unit_parse(WEIR__UNIT_COUNT, fds, &count);
    if (!ours)
        return 0;
    return (unsigned)(count > DESCRIPTORS_MAX ? DESCRIPTORS_MAX : count);
}

/* Whether the first of the names, which colons part, is that one. */
static bool first_is(const char *names, const char *name)
{
    size_t len = strcspn(names, ":");
    return len == strlen(name) && memcmp(names, name, len) == 0;
}

static const char *behind(const char *names)
{
    names += strcspn(names, ":");
    return *names == ':' ? names + 1 : names;
}

/* Of two of a name the later one counts: systemd's store keeps them in their order. */
static void keep(int *place, int fd)
{
    if (*place >= 0)
        close(*place);
    *place = fd;
}

void weir__handed_take(struct weir__handed *ret_handed)
{
    struct weir__handed handed = { .shm_fd = -1, .ready_fd = -1 };
    const char *names = getenv("LISTEN_FDNAMES");
    unsigned count = count_of_ours();
    for (unsigned i = 0; i < count; i++) {
        int fd = WEIR__HANDED_FIRST + (int)i;
        bool is_shm = names && first_is(names, WEIR__HANDED_SHM);
        bool is_ready = names && first_is(names, WEIR__HANDED_READY);
        names = names ? behind(names) : NULL;
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        if (is_shm)
            keep(&handed.shm_fd, fd);
        else if (is_ready)
            keep(&handed.ready_fd, fd);
        else if (handed.listen_len++ < WEIR__LISTEN_MAX)
            handed.listen_fds[handed.listen_len - 1] = fd;
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    *ret_handed = handed;
}
