/* Every bound and switch of a running app, with its default in one table. The command
 * line fills it (process/options.c); tests fill it by hand. */
#ifndef WEIR_OPTIONS_H
#define WEIR_OPTIONS_H

#include <stdio.h>

#include <weir/weir.h>

#define WEIR__LISTEN_MAX 8

/* What the command line asks for. */
enum weir__action {
    WEIR__ACTION_RUN,
    WEIR__ACTION_HELP,    /* print the options */
    WEIR__ACTION_VERSION, /* print the version */
    WEIR__ACTION_ROUTES,  /* check the tables, print every endpoint with its limits */
    WEIR__ACTION_CHECK    /* check the tables */
};

struct weir__options {
    enum weir__action action;

    /* Where to listen: "unix:PATH" or "tcp:ADDRESS:PORT". */
    const char *listen[WEIR__LISTEN_MAX];
    unsigned listen_len;
    unsigned socket_mode;     /* of a unix socket's file, default 0660 */
    const char *socket_owner; /* of that file: a user's name or number; NULL: who starts
                                 it */
    const char *socket_group; /* the same for its group */

    unsigned workers; /* processes, default 2 */
    unsigned threads; /* of each worker, default 8, at least 2: one is always left to read
                         and refuse */

    /* Bounds of what comes in. */
    size_t max_params_bytes;      /* all names and values, default 64 KiB */
    size_t max_param_value_bytes; /* one value, default 8 KiB */
    unsigned max_params;          /* names, default 256 */
    size_t max_body_bytes;        /* default 1 MiB */
    unsigned max_connections;     /* of a worker, default 4096 */
    size_t max_buffered_bytes;    /* all buffers of a worker, default 256 MiB; past it
                                     nothing more is read */
    size_t max_request_bytes;     /* a request's arena, default 1 MiB */

    /* Bounds of time, in milliseconds. */
    unsigned silent_ms;      /* accepted, no whole record yet: default 1,000 */
    unsigned silent_unix_ms; /* the same on a unix socket: default 200 */
    unsigned head_ms;        /* first byte of a request to its last parameter: 2,000 */
    unsigned write_ms;       /* a peer that doesn't read: 10,000 */
    unsigned total_ms;       /* a whole request: 60,000, then 504 */
    unsigned idle_ms;        /* a kept connection without a request: 75,000 */
    unsigned drain_ms;       /* after SIGTERM: 5,000 */
    unsigned linger_ms;      /* reading on after an early answer: 2,000 */
    size_t linger_bytes;     /* the same, in bytes: 32 MiB */

    unsigned max_offloads;            /* in flight in a worker, default 64 */
    unsigned max_offloads_an_address; /* in flight for one remote address, default 4 */

    const char *store; /* "shm", "redis:unix:PATH", "redis:tcp:ADDRESS:PORT" */
    const char *redis_password_file; /* its first line is the password; NULL: none */
    unsigned redis_database;         /* default 0 */
    unsigned redis_timeout_ms;       /* of a decision, default 20 */
    unsigned instances; /* that share the store, default 1: each enforces max / instances
                           while it is away */
    size_t shm_entries; /* counters in shared memory; 0: the store's default */
    int shm_fd;         /* memory with the counters of an earlier start; 0: none */
    enum weir_log_level log_level; /* lowest that is sent, default info */
};

/* The defaults above; listen_len 0. */
void weir__options_defaults(struct weir__options *ret);

/* Fills ret_options with the defaults and then with what the command line says, `--name
 * VALUE` or `--name=VALUE`, the last one winning; calls the setters of the app's own
 * options. Texts point into argv. False with a text that names the option: unknown, a
 * missing argument, a bad value, anything that is no option. Not for several threads. */
bool weir__options_parse(struct weir__options *ret_options,
                         int argc,
                         char **argv,
                         const struct weir_option *app_options,
                         struct weir_error *ret_error);

/* Checks the table of the app's own options: names well formed, none twice, none of ours,
 * each with help and a setter. app_options may be NULL. Not for several threads. */
bool weir__options_check(const struct weir_option *app_options,
                         struct weir_error *ret_error);

/* Prints every option with its default, the app's own behind ours. */
void weir__options_help(FILE *out,
                        const char *program,
                        const struct weir_option *app_options);

#endif
