/* Tells systemd how far the service is (sd_notify(3)), without its library. */
#ifndef WEIR_PROCESS_NOTIFY_H
#define WEIR_PROCESS_NOTIFY_H

#include <stdbool.h>

/* Sends state ("READY=1", "STOPPING=1") as one datagram to the socket that NOTIFY_SOCKET
 * names, a path or, after "@", an abstract name. False where there is none or nobody
 * reads; never blocks. Not while another thread changes the environment. */
bool weir__notify(const char *state);

/* Gives fd to systemd to keep beyond our end, in place of what it keeps under that name:
 * the next start finds it as process/handed.h says. Nothing happens where the unit's
 * FileDescriptorStoreMax= is 0. Otherwise as weir__notify(). */
bool weir__notify_keep(const char *name, int fd);

#endif
