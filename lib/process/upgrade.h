/* A new generation of the program takes over from the running one: same command line, the
 * file that the program is now, the same sockets, the same counters.
 *
 * The old generation serves until the new one says that it is ready, so that a new one
 * that doesn't start changes nothing. The parent's single thread; only parent.c calls
 * this. */
#ifndef WEIR_PROCESS_UPGRADE_H
#define WEIR_PROCESS_UPGRADE_H

#include <stdint.h>
#include <sys/types.h>

#include "process/listen.h"

/* So long the new generation may take until it is ready. */
#define WEIR__UPGRADE_MS 30000

struct weir__upgrade_config {
    const char *program; /* the path of the program's file */
    char *const *argv;
    int shm_fd;   /* the counters' memory; -1: none */
    int ready_fd; /* where the generation before us waits for our word; -1: nowhere */
};

struct weir__upgrade {
    const struct weir__upgrade_config *config; /* NULL: there is no upgrade */
    pid_t pid;                                 /* the new generation's parent; 0: none */
    int word_fd;                               /* its word comes here; -1: none awaited */
    int64_t until_us;                          /* INT64_MAX: none awaited */
};

void weir__upgrade_init(struct weir__upgrade *upgrade,
                        const struct weir__upgrade_config *config);
void weir__upgrade_finish(struct weir__upgrade *upgrade);

/* Starts a new generation, which gets the sockets and the counters. Logged: where it
 * can't, where one is under way already. */
void weir__upgrade_start(struct weir__upgrade *upgrade,
                         const struct weir__listeners *listeners,
                         int64_t now_us);

/* Looks whether the new generation has said its word, once word_fd is readable or
 * until_us is there. True, once: it is ready and serves. One that failed is logged. */
bool weir__upgrade_hear(struct weir__upgrade *upgrade, int64_t now_us);

/* Ends a generation that isn't ready yet: the service is to stop. */
void weir__upgrade_cancel(struct weir__upgrade *upgrade);

/* For SIGCHLD. */
void weir__upgrade_reap(struct weir__upgrade *upgrade);

/* The new generation's word to the old one, once. */
void weir__upgrade_say_ready(const struct weir__upgrade_config *config);

#endif
