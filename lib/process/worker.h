/* One worker process: a few threads on one epoll, each carrying its request all the way.
 *
 * process/parent.c forks and calls weir__worker_run(); what a worker does with a
 * connection is the transport's. */
#ifndef WEIR_PROCESS_WORKER_H
#define WEIR_PROCESS_WORKER_H

#include "app.h"

struct weir__worker_config {
    const struct weir__app *app;
    unsigned index;          /* 0 to workers - 1 */
    const int *listen_fds;   /* non-blocking, CLOEXEC, shared with the other workers */
    const bool *listen_unix; /* which of them are unix sockets */
    unsigned listen_len;
    int control_fd; /* a SOCK_SEQPACKET pair with the parent; its end (EOF) means that the
                       parent is gone: drain. Messages: process/control.h */
};

/* Runs until the drain is over; returns the process's exit status: 0 after a drain, 1
 * where it could not start (logged). Signals other than SIGKILL must be blocked or
 * ignored by the caller; SIGTERM to a worker is taken as drain through a signalfd. */
int weir__worker_run(const struct weir__worker_config *config);

#endif
