/* The file of a unix socket: who may be replaced, what mode it gets, who removes it. The
 * rest of listening is listen.h's, the only caller. One thread. */
#ifndef WEIR_PROCESS_LISTEN_UNIX_H
#define WEIR_PROCESS_LISTEN_UNIX_H

#include "process/listen.h"

/* Binds and listens, with mode, owner and group of the options. False with a text;
 * nothing is left open or on disk then. */
bool weir__listen_unix_open(const struct weir__options *options,
                            const struct sockaddr_un *address,
                            int *ret_fd,
                            struct weir__listen_file *ret_file,
                            struct weir_error *ret_error);

/* Removes the file if it is still the one that was made; path "" is left alone. */
void weir__listen_unix_remove(struct weir__listen_file *file);

#endif
