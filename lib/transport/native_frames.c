/* An answer as STDOUT records, sent from where it lies, head and body, with as many bytes
 * of framing around as needed. A small answer is one system call, END_REQUEST included.
 *
 * Never waits and keeps no state but how many bytes have left: the framing follows from
 * the lengths, so that it can be taken up again at any byte. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "transport/native_frames.h"

#include "net/fcgi.h"

/* A full record's content and its header: 64 KiB, without padding. */
#define RECORD_BYTES ((size_t)WEIR__FCGI_CONTENT_SENT + WEIR__FCGI_HEADER_BYTES)
#define RECORDS_A_CALL 6
#define IOVECS_A_RECORD 3 /* header, head, body */
/* The empty STDOUT and END_REQUEST. */
#define TRAILER_BYTES ((size_t)WEIR__FCGI_HEADER_BYTES + 16)
#define PADDING_MAX 7

/* What one system call sends. */
struct batch {
    struct iovec iov[RECORDS_A_CALL * IOVECS_A_RECORD + 1];
    unsigned iov_len;
    size_t bytes;
    size_t skip; /* of the first record: has left already */
    unsigned char headers[RECORDS_A_CALL][WEIR__FCGI_HEADER_BYTES];
    unsigned char tail[PADDING_MAX + TRAILER_BYTES];
};

static size_t content_bytes(const struct weir__native_frames *frames)
{
    return frames->head_len + frames->body_len;
}

static size_t padding_of(size_t content)
{
    return -content & PADDING_MAX;
}

/* All that is to be sent. */
static size_t framed_bytes(const struct weir__native_frames *frames)
{
    size_t content = content_bytes(frames);
    size_t records = (content + WEIR__FCGI_CONTENT_SENT - 1) / WEIR__FCGI_CONTENT_SENT;
    return records * WEIR__FCGI_HEADER_BYTES + content + padding_of(content) +
           (frames->end ? TRAILER_BYTES : 0);
}

static void add(struct batch *batch, const void *bytes, size_t len)
{
    size_t skip = batch->skip < len ? batch->skip : len;
    batch->skip -= skip;
    if (len == skip)
        return;
    batch->iov[batch->iov_len++] = (struct iovec){
        .iov_base = (char *)(uintptr_t)bytes + skip,
        .iov_len = len - skip,
    };
    batch->bytes += len - skip;
}

/* len bytes of the content from `from` on, which may lie in head and body. */
static void add_content(struct batch *batch,
                        const struct weir__native_frames *frames,
                        size_t from,
                        size_t len)
{
    if (from < frames->head_len) {
        size_t part = frames->head_len - from < len ? frames->head_len - from : len;
        add(batch, frames->head + from, part);
        from += part;
        len -= part;
    }
    if (len > 0)
        add(batch, frames->body + (from - frames->head_len), len);
}

/* Padding and, if the answer ends here, the trailer, in one piece. */
static void add_tail(struct batch *batch, const struct weir__native_frames *frames)
{
    unsigned char *trailer = batch->tail + PADDING_MAX;
    size_t padding = padding_of(content_bytes(frames));
    memset(batch->tail, 0, PADDING_MAX);
    if (frames->end) {
        weir__fcgi_put_header(trailer, WEIR__FCGI_STDOUT, frames->request_id, 0);
        weir__fcgi_put_end(trailer + WEIR__FCGI_HEADER_BYTES,
                           frames->request_id,
                           0,
                           WEIR__FCGI_REQUEST_COMPLETE);
    }
    add(batch, trailer - padding, padding + (frames->end ? TRAILER_BYTES : 0));
}

/* From the first byte that hasn't left on, as much as one call takes. */
static void fill(struct batch *batch, const struct weir__native_frames *frames)
{
    size_t content = content_bytes(frames);
    size_t from = frames->sent_bytes / RECORD_BYTES * WEIR__FCGI_CONTENT_SENT;
    batch->iov_len = 0;
    batch->bytes = 0;
    batch->skip = frames->sent_bytes % RECORD_BYTES;
    if (from > content) { /* the last record is a short one, with its tail a long one */
        from -= WEIR__FCGI_CONTENT_SENT;
        batch->skip += RECORD_BYTES;
    }
    for (unsigned i = 0; i < RECORDS_A_CALL && from < content; i++) {
        size_t len = content - from < WEIR__FCGI_CONTENT_SENT ? content - from
                                                              : WEIR__FCGI_CONTENT_SENT;
        weir__fcgi_put_header(
            batch->headers[i], WEIR__FCGI_STDOUT, frames->request_id, len);
        add(batch, batch->headers[i], WEIR__FCGI_HEADER_BYTES);
        add_content(batch, frames, from, len);
        from += len;
    }
    if (from == content)
        add_tail(batch, frames);
}

enum weir__native_sent weir__native_frames_send(int fd,
                                                struct weir__native_frames *frames)
{
    size_t all = framed_bytes(frames);
    while (frames->sent_bytes < all) {
        struct batch batch;
        fill(&batch, frames);
        struct msghdr message = { .msg_iov = batch.iov, .msg_iovlen = batch.iov_len };
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0)
            frames->sent_bytes += (size_t)sent;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return WEIR__NATIVE_NO_ROOM;
        else if (errno != EINTR)
            return WEIR__NATIVE_FAILED;
    }
    return WEIR__NATIVE_SENT;
}
