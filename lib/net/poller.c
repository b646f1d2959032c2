/* The only file that knows epoll. It holds no state of its own and takes no lock: the
 * kernel's is enough. */
#include "net/poller.h"

#include <assert.h>
#include <sys/epoll.h>
#include <unistd.h>

bool weir__poller_init(struct weir__poller *poller)
{
    poller->fd = epoll_create1(EPOLL_CLOEXEC);
    return poller->fd >= 0;
}

void weir__poller_finish(struct weir__poller *poller)
{
    if (poller->fd >= 0)
        close(poller->fd);
    poller->fd = -1;
}

static uint32_t events_of(unsigned what)
{
    return EPOLLET | EPOLLRDHUP | (what & WEIR__POLL_READ ? (uint32_t)EPOLLIN : 0) |
           (what & WEIR__POLL_WRITE ? (uint32_t)EPOLLOUT : 0);
}

static bool
control(struct weir__poller *poller, int op, int fd, uint32_t events, void *arg)
{
    struct epoll_event event = { .events = events, .data.ptr = arg };
    return epoll_ctl(poller->fd, op, fd, &event) == 0;
}

bool weir__poller_add(struct weir__poller *poller, int fd, unsigned what, void *arg)
{
    return control(poller, EPOLL_CTL_ADD, fd, events_of(what), arg);
}

bool weir__poller_add_listener(struct weir__poller *poller, int fd, void *arg)
{
    /* EPOLLRDHUP isn't allowed beside EPOLLEXCLUSIVE. */
    return control(poller, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET | EPOLLEXCLUSIVE, arg);
}

bool weir__poller_change(struct weir__poller *poller, int fd, unsigned what, void *arg)
{
    return control(poller, EPOLL_CTL_MOD, fd, events_of(what), arg);
}

void weir__poller_remove(struct weir__poller *poller, int fd)
{
    control(poller, EPOLL_CTL_DEL, fd, 0, NULL);
}

static unsigned what_of(uint32_t events)
{
    return (events & (EPOLLIN | EPOLLPRI) ? WEIR__POLL_READ : 0u) |
           (events & EPOLLOUT ? WEIR__POLL_WRITE : 0u) |
           (events & EPOLLRDHUP ? WEIR__POLL_SHUT : 0u) |
           (events & (EPOLLHUP | EPOLLERR) ? WEIR__POLL_GONE : 0u);
}

unsigned weir__poller_wait(struct weir__poller *poller,
                           struct weir__poll_event *ret_events,
                           unsigned max,
                           int timeout_ms)
{
    struct epoll_event events[WEIR__POLL_EVENTS_MAX];
    assert(max > 0 && max <= WEIR__POLL_EVENTS_MAX);
    int count = epoll_wait(poller->fd, events, (int)max, timeout_ms);
    for (int i = 0; i < count; i++)
        ret_events[i] = (struct weir__poll_event){ .arg = events[i].data.ptr,
                                                   .what = what_of(events[i].events) };
    return count > 0 ? (unsigned)count : 0;
}
