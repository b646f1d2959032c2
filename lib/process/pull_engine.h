/* The engine of a program with a loop of its own: one worker in threads of this process,
 * started once. */
#ifndef WEIR_PROCESS_PULL_ENGINE_H
#define WEIR_PROCESS_PULL_ENGINE_H

#include <weir/weir.h>

/* Freezes the app and reads the environment; blocks SIGTERM in the calling thread. Once.
 * False with a text. */
bool weir__pull_engine_init(const struct weir_app *app, struct weir_error *ret_error);
bool weir__pull_engine_is_init(void);

/* Opens a socket from libfcgi's form of an address, ":PORT" or a path; -1 with a line in
 * the log. */
int weir__pull_engine_open(const char *path);

/* Whether there is a socket to listen on: that descriptor, or one that the options or
 * systemd name. */
bool weir__pull_engine_can_listen(int fd);

/* Starts the worker on listen_fd (0: on what the options, systemd or descriptor 0 say),
 * unless it runs; calls ended() once, on a thread of its own, when it has ended. False,
 * logged, where it can't. Any thread. */
bool weir__pull_engine_start(int listen_fd, void (*ended)(void));

#endif
