/* What was handed to this process when it was started: listening sockets, the counters of
 * an earlier start, and a descriptor on which to say that it is ready.
 *
 * The form is that of sd_listen_fds(3), so that one reader serves systemd (its sockets
 * and its descriptor store) and the upgrade of process/upgrade.h. Start-up code of one
 * thread. */
#ifndef WEIR_PROCESS_HANDED_H
#define WEIR_PROCESS_HANDED_H

#include "options.h"

/* Names in LISTEN_FDNAMES that are ours; every other one is a socket's. */
#define WEIR__HANDED_SHM "weir-shm"
#define WEIR__HANDED_READY "weir-ready"

#define WEIR__HANDED_FIRST 3 /* the number of the first descriptor */

struct weir__handed {
    unsigned listen_len; /* sockets, or what was handed as such; may exceed the array */
    int listen_fds[WEIR__LISTEN_MAX];
    int shm_fd;   /* -1: none */
    int ready_fd; /* -1: nobody waits */
};

/* Reads LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, and takes them out of the environment,
 * so that no other process takes them for its own. Only what was handed to this very
 * process counts. The descriptors are the caller's then, close-on-exec. */
void weir__handed_take(struct weir__handed *ret_handed);

#endif
