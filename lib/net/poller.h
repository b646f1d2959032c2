/* Which descriptors can be read or written: bare epoll behind a small interface, so that
 * a kqueue could stand in its place.
 *
 * Everything is edge-triggered: an event says "look again", once for each change, and
 * costs no system call to arm. Descriptors may be added, changed and removed from any
 * thread while others wait. An event may be late (its descriptor has been closed since):
 * what `arg` points to must stay valid while threads wait, and an event is never more
 * than a hint. */
#ifndef WEIR_NET_POLLER_H
#define WEIR_NET_POLLER_H

#include <stdbool.h>

enum weir__poll {
    WEIR__POLL_READ = 1,  /* there may be something to read or to accept */
    WEIR__POLL_WRITE = 2, /* there may be room */
    WEIR__POLL_SHUT = 4,  /* the peer won't send any more; always reported */
    WEIR__POLL_GONE = 8   /* the peer is away altogether, or an error; always reported */
};

struct weir__poller {
    int fd;
};

struct weir__poll_event {
    void *arg;
    unsigned what; /* of enum weir__poll */
};

/* False with errno set. The descriptor is CLOEXEC. */
bool weir__poller_init(struct weir__poller *poller);
void weir__poller_finish(struct weir__poller *poller);

/* Watches fd for READ, WRITE or both. What is true already is reported at once. False
 * with errno. Any thread. */
bool weir__poller_add(struct weir__poller *poller, int fd, unsigned what, void *arg);

/* The same for a socket that listens and is watched by other processes too: a connection
 * wakes one of those that wait, not all. */
bool weir__poller_add_listener(struct weir__poller *poller, int fd, void *arg);

/* Watches for something else; what is true already is reported again. */
bool weir__poller_change(struct weir__poller *poller, int fd, unsigned what, void *arg);

/* Forgets fd. Closing the last copy of a descriptor does so too. */
void weir__poller_remove(struct weir__poller *poller, int fd);

#define WEIR__POLL_EVENTS_MAX 64 /* that one wait gives */

/* Waits until something happens or timeout_ms is over (0: looks only, -1: for ever).
 * Returns the number of events, 0 also where a signal came. Any number of threads may
 * wait; an event goes to one of them. */
unsigned weir__poller_wait(struct weir__poller *poller,
                           struct weir__poll_event *ret_events,
                           unsigned max,
                           int timeout_ms);

#endif
