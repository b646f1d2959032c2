/* A worker in a process of its own behind a socket, for tests of what it does with
 * connections. One at a time. */
#ifndef TESTS_SUPPORT_WORKER_FIXTURE_H
#define TESTS_SUPPORT_WORKER_FIXTURE_H

#include <stdbool.h>
#include <sys/types.h>

#include "app.h"

struct worker_fixture {
    struct weir__options options; /* to be changed before the start */
    unsigned max_descriptors;     /* of the worker's process; 0: as many as here */
    bool tcp;                     /* on a port of 127.0.0.1, else a unix socket */
    char folder[64], path[96];    /* path as fcgi_connect() takes it */
    pid_t pid;                    /* 0: none runs */
    int control_fd;
};

/* Defaults; nothing runs. */
void worker_init(struct worker_fixture *fixture);

/* Starts it. False where the system refuses. */
bool worker_start(struct worker_fixture *fixture, const struct weir_app *app);

/* SIGTERM, then waits: its exit status, or 1,000 and more for a signal. */
int worker_stop(struct worker_fixture *fixture);
void worker_terminate(struct worker_fixture *fixture);
int worker_wait(struct worker_fixture *fixture);

/* Stops what runs, removes the files. False where a worker didn't end with 0. */
bool worker_finish(struct worker_fixture *fixture);

#endif
