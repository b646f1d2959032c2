/* One packet is one message: sent whole or not at all, so that there is nothing to
 * reassemble. It must not block either side: a worker that is stuck may not stop the
 * parent, nor a stopped parent a worker. */
#include "process/control.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/log.h"

bool weir__control_send(int fd, const struct weir__control_message *message)
{
    ssize_t sent;
    do {
        sent = send(fd, message, sizeof *message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *message;
}

enum weir__control_result weir__control_receive(int fd,
                                                struct weir__control_message *ret_message)
{
    for (;;) {
        struct weir__control_message message;
        ssize_t got = recv(fd, &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
        if (got == (ssize_t)sizeof message) {
            *ret_message = message;
            return WEIR__CONTROL_MESSAGE;
        }
        if (got == 0)
            return WEIR__CONTROL_CLOSED;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN ? WEIR__CONTROL_NOTHING : WEIR__CONTROL_CLOSED;
        weir__log(WEIR_LOG_WARNING, "control: skipped a message of %zd bytes", got);
    }
}
