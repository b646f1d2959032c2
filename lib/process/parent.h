/* The parent process: starts the workers, starts them again, stops them.
 *
 * It serves nothing and parses nothing, so that nothing from outside can harm it. */
#ifndef WEIR_PROCESS_PARENT_H
#define WEIR_PROCESS_PARENT_H

#include "process/listen.h"
#include "process/worker.h"

struct weir__upgrade_config; /* process/upgrade.h */

/* At a stop a worker has the drain time; then so much longer until it is killed. */
#define WEIR__PARENT_GRACE_MS 500

/* A second SIGTERM or SIGINT means "now". One that comes so soon after the first is its
 * echo: Ctrl-C reaches the whole group, and a script around us passes its own on. */
#define WEIR__PARENT_ECHO_MS 250

struct weir__parent_config {
    const struct weir__app *app; /* handed to the workers */
    struct weir__listeners *listeners;
    unsigned workers;                           /* 1 to 256 */
    unsigned drain_ms;                          /* what a worker is given to finish */
    const struct weir__upgrade_config *upgrade; /* NULL: SIGUSR2 does nothing */

    /* What a worker does: weir__worker_run, or a test's. */
    int (*run)(const struct weir__worker_config *config);
};

/* Runs until SIGTERM or SIGINT and the last worker's end; then 0. Closes the listeners as
 * soon as the stop begins.
 *
 * A worker that dies is started again at once, under the brake of process/brake.h. Where
 * a worker says that it can't start (status 1) before any was ready, the whole start has
 * failed: 71, as where the system refuses what is needed (EX_OSERR). What happens is
 * logged. SIGUSR1 logs the sums of all workers. SIGUSR2 starts a new generation; once it
 * is ready this one drains, without a new connection of its own, and 0 is returned.
 * SIGHUP is taken and does nothing.
 *
 * After weir__settings_parent() and weir__settings_block(), before any thread exists. In
 * a worker it doesn't return: the process ends with what run returned. */
int weir__parent_run(const struct weir__parent_config *config);

#endif
