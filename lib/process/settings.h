/* What a process needs before it listens and forks: signals, descriptors, limits. */
#ifndef WEIR_PROCESS_SETTINGS_H
#define WEIR_PROCESS_SETTINGS_H

#include <signal.h>

#include <weir/weir.h>

/* The signals that the parent takes through its signalfd: TERM, INT, HUP, USR1, USR2,
 * CHLD. */
void weir__settings_signals(sigset_t *ret_set);

/* The parent's, once, before anything is opened: ignores SIGPIPE; opens /dev/null where
 * descriptors 0 to 2 are closed, so that no socket gets their numbers; marks all others
 * close-on-exec; raises the bound of open files to the hard one. False with a text.
 * Before any thread. */
bool weir__settings_parent(struct weir_error *ret_error);

/* Blocks the parent's signals, so that from now on none is lost until it is read, and
 * sets SIGCHLD to what waitpid(2) needs. As late as possible, right before there is
 * something to clean up: up to then Ctrl-C just ends the process. False with a text. */
bool weir__settings_block(struct weir_error *ret_error);

/* A worker's, right after the fork: SIGTERM stays blocked, for the worker's signalfd; INT
 * (a terminal sends it to the whole group), HUP, USR1 and USR2 are the parent's matter
 * and ignored. */
void weir__settings_worker(void);

#endif
