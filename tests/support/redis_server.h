/* A private redis-server for tests, in a temporary folder, on a unix socket and on a port
 * of 127.0.0.1, and a plain blocking client for it. It ends with the test, however that
 * ends. */
#ifndef TESTS_SUPPORT_REDIS_SERVER_H
#define TESTS_SUPPORT_REDIS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "store/redis_reply.h"

struct redis_server {
    char folder[64];
    char socket[96], address[112]; /* its path; "unix:PATH" */
    char tcp_address[64];          /* "tcp:127.0.0.1:PORT" */
    unsigned port;
    char password[64]; /* "": none */
    pid_t pid;         /* 0: it doesn't run */
};

/* Starts it and waits until it answers. Ends the program with a text where it can't. */
void redis_server_start(struct redis_server *ret_server);
/* The same with a password. */
void redis_server_start_with(struct redis_server *ret_server, const char *password);
/* Kills it, and starts it again at the same place, empty. */
void redis_server_kill(struct redis_server *server);
void redis_server_again(struct redis_server *server);
/* SIGSTOP, which returns once it has stopped, and SIGCONT. */
void redis_server_pause(struct redis_server *server);
void redis_server_resume(struct redis_server *server);
/* Ends it and removes its folder. */
void redis_server_finish(struct redis_server *server);

struct redis_client {
    int fd;
    struct weir__redis_replies *replies;
};

void redis_client_open(struct redis_client *ret_client, const char *socket_path);
void redis_client_close(struct redis_client *client);
/* Sends bytes that are commands, and takes one reply. */
void redis_client_send(struct redis_client *client, const struct weir__buf *commands);
void redis_client_take(struct redis_client *client, struct weir__redis_reply *ret_reply);
/* A command of words between blanks. Its reply: a string or status as it is, an integer
 * or array as "". */
const char *redis_client_ask(struct redis_client *client, const char *command);

#endif
