/* Listening sockets: those that the options name, or those that were passed in.
 *
 * All are close-on-exec and non-blocking, since several workers accept on one. Start-up
 * code of one thread: nothing here is for several. */
#ifndef WEIR_PROCESS_LISTEN_H
#define WEIR_PROCESS_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "options.h"
#include "process/handed.h"

/* What "unix:PATH" or "tcp:ADDRESS:PORT" says. */
struct weir__listen_address {
    union {
        struct sockaddr any;
        struct sockaddr_un un;
        struct sockaddr_storage storage;
    } at;
    socklen_t len;
};

/* Pure. Addresses are numeric, IPv6 in brackets; port 0 takes a free one; a path is at
 * most 107 bytes (unix(7)). False with a text that quotes the address. */
bool weir__listen_parse(const char *text,
                        struct weir__listen_address *ret_address,
                        struct weir_error *ret_error);

#define WEIR__LISTEN_BACKLOG 4096 /* the kernel cuts it to net.core.somaxconn */

/* A socket file that was made here, to be removed at the end; path "" where none. */
struct weir__listen_file {
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    dev_t device;
    ino_t inode;
};

/* The sockets, side by side as a worker takes them. Zero it before use. */
struct weir__listeners {
    unsigned len;
    int fds[WEIR__LISTEN_MAX];
    bool is_unix[WEIR__LISTEN_MAX];
    struct weir__listen_file files[WEIR__LISTEN_MAX];
};

enum weir__listen_result {
    WEIR__LISTEN_OK,
    WEIR__LISTEN_NONE,  /* nothing was named and nothing passed: a usage error */
    WEIR__LISTEN_FAILED /* the text says why and names the address */
};

/* Opens every address of the options. A unix path is taken over only from a socket on
 * which nobody listens; its mode, owner and group are set before it listens. Without
 * addresses: the sockets of systemd's LISTEN_FDS and LISTEN_PID (which are taken out of
 * the environment, sd_listen_fds(3)), else a listening socket at descriptor 0, which is
 * then put elsewhere. On failure nothing stays open. */
enum weir__listen_result weir__listen_open(const struct weir__options *options,
                                           struct weir__listeners *ret_listeners,
                                           struct weir_error *ret_error);

/* The same with what was handed to this process, which has been read already. A handed
 * socket that listens on an address of the options stands for it, as it is; of tcp with
 * port 0 the port is the handed one's. What was handed and isn't named is closed. */
enum weir__listen_result weir__listen_take_over(const struct weir__options *options,
                                                const struct weir__handed *handed,
                                                struct weir__listeners *ret_listeners,
                                                struct weir_error *ret_error);

/* Closes them and removes the socket files that are still those that were made here. */
void weir__listen_close(struct weir__listeners *listeners);

/* From now on the files are another process's, which has the sockets too: closing removes
 * nothing. */
void weir__listen_leave_files(struct weir__listeners *listeners);

/* "unix:/run/app.sock", "tcp:127.0.0.1:9000": where it really listens, cut to size. */
void weir__listen_text(int fd, char *text, size_t size);

#endif
