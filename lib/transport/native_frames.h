/* An answer, or a part of one, as FastCGI records on a socket. Private to native*.c. */
#ifndef WEIR_TRANSPORT_NATIVE_FRAMES_H
#define WEIR_TRANSPORT_NATIVE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The answer as records: STDOUT of head and body, and the end. How far it has left is one
 * number, since the framing follows from the lengths. */
struct weir__native_frames {
    uint16_t request_id;
    const char *head, *body;
    size_t head_len, body_len;
    bool end; /* with the empty STDOUT and END_REQUEST behind it */
    size_t sent_bytes;
};

enum weir__native_sent {
    WEIR__NATIVE_SENT,
    WEIR__NATIVE_NO_ROOM,
    WEIR__NATIVE_FAILED /* the peer is gone */
};

/* Sends as much as there is room for, without waiting. */
enum weir__native_sent weir__native_frames_send(int fd,
                                                struct weir__native_frames *frames);

#endif
