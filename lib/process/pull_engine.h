/* The engine of a program with a loop of its own: one worker in threads of this process,
 * started once. */
#ifndef WEIR_PROCESS_PULL_ENGINE_H
#define WEIR_PROCESS_PULL_ENGINE_H

#include <weir/weir.h>

/* Freezes the app and reads the environment; app NULL: every path goes to `fcgx`. Once.
 * False with a text. */
bool weir__pull_engine_init(const struct weir_app *app,
                            weir_fcgx_fn *fcgx,
                            struct weir_error *ret_error);
bool weir__pull_engine_is_init(void);

/* Takes SIGTERM and SIGUSR1 where the program has left them alone: they stop the engine.
 */
void weir__pull_engine_signals(void);

/* Opens a socket from libfcgi's form of an address, ":PORT" or a path; -1 with a line in
 * the log. */
int weir__pull_engine_open(const char *path);

/* Whether there is a socket to listen on: that descriptor, or one that the options or
 * systemd name. */
bool weir__pull_engine_can_listen(int fd);

/* What the engine tells the program's side, each once. */
struct weir__pull_events {
    void (*leaving)(void); /* the process is in exit(): nobody will take what waits */
    void (*ended)(void);   /* nothing will come any more; on the engine's thread */
};

/* Starts the worker on listen_fd (0: on what the options, systemd or descriptor 0 say),
 * unless it runs. False, logged, where it can't, or in a child of the process where it
 * runs. Any thread. */
bool weir__pull_engine_start(int listen_fd, const struct weir__pull_events *events);

/* Whether it was started in this process, not in a parent of it. Any thread. */
bool weir__pull_engine_is_here(void);

/* Nothing new is accepted; what is in flight is answered, then comes ended(). Any thread,
 * and from a signal's handler. */
void weir__pull_engine_stop(void);

#endif
