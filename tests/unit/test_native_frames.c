/* Answers as records, taken up again at any byte. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/fcgi.h"
#include "transport/native_frames.h"

#define FULL ((size_t)WEIR__FCGI_CONTENT_SENT)

static char content[8 * 65536];

static void init(void)
{
    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (char)(i * 7 + i / 251);
}

TestSuite(native_frames, .init = init);

/* What the codec makes of the same. */
static struct weir__buf wanted_bytes(const struct weir__native_frames *frames)
{
    struct weir__buf wanted;
    unsigned char end[WEIR__FCGI_HEADER_BYTES + 16];
    weir__buf_init(&wanted, 0);
    cr_assert(weir__fcgi_append_stream(&wanted,
                                       WEIR__FCGI_STDOUT,
                                       frames->request_id,
                                       content,
                                       frames->head_len + frames->body_len));
    weir__fcgi_put_header(end, WEIR__FCGI_STDOUT, frames->request_id, 0);
    weir__fcgi_put_end(end + WEIR__FCGI_HEADER_BYTES, frames->request_id, 0, 0);
    if (frames->end)
        cr_assert(weir__buf_append(&wanted, end, sizeof end));
    return wanted;
}

static void drain(int fd, struct weir__buf *seen)
{
    char bytes[65536];
    for (ssize_t len; (len = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
        cr_assert(weir__buf_append(seen, bytes, (size_t)len));
}

/* Sends from that byte on: what comes must be the rest of what is wanted. */
static void expect_rest(struct weir__native_frames frames,
                        const struct weir__buf *wanted,
                        size_t from)
{
    int pair[2];
    struct weir__buf seen;
    enum weir__native_sent sent;
    weir__buf_init(&seen, 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    frames.sent_bytes = from;
    do {
        sent = weir__native_frames_send(pair[0], &frames);
        drain(pair[1], &seen);
    } while (sent == WEIR__NATIVE_NO_ROOM);
    cr_assert_eq(sent, WEIR__NATIVE_SENT);
    cr_assert_eq(frames.sent_bytes, wanted->len);
    cr_assert_eq(seen.len, wanted->len - from, "from %zu", from);
    cr_assert(seen.len == 0 || memcmp(seen.bytes, wanted->bytes + from, seen.len) == 0,
              "content %zu, from %zu",
              frames.head_len + frames.body_len,
              from);
    weir__buf_finish(&seen);
    close(pair[0]);
    close(pair[1]);
}

/* At the start, around each record's border, and at the end. */
static void expect_all(size_t head_len, size_t len, bool end)
{
    struct weir__native_frames frames = { .request_id = 0x102,
                                          .head = content,
                                          .head_len = head_len,
                                          .body = content + head_len,
                                          .body_len = len - head_len,
                                          .end = end };
    struct weir__buf wanted = wanted_bytes(&frames);
    for (size_t from = 0; from <= wanted.len; from++) {
        size_t in_record = from % (FULL + WEIR__FCGI_HEADER_BYTES);
        if (in_record < 10 || in_record > 65525 || from + 34 > wanted.len ||
            (from > head_len && from < head_len + 10))
            expect_rest(frames, &wanted, from);
    }
    weir__buf_finish(&wanted);
}

Test(native_frames, are_the_codecs_records_from_any_byte_on)
{
    static const size_t lengths[] = { 0,        1,        7,        8,
                                      9,        120,      FULL,     FULL - 1,
                                      FULL - 8, FULL - 9, FULL + 1, FULL + FULL / 2 };
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        expect_all(lengths[i] < 90 ? lengths[i] : 90, lengths[i], true);
        expect_all(0, lengths[i], false);
    }
}

Test(native_frames, of_many_records_take_several_calls)
{
    expect_all(90, 7 * FULL + 3, true);
    expect_all(FULL + 5, 6 * FULL, true);
    expect_all(0, 7 * FULL, false);
}

Test(native_frames, say_when_the_peer_is_gone)
{
    int pair[2];
    struct weir__native_frames frames = { .request_id = 1, .end = true };
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    close(pair[1]);
    cr_expect_eq(weir__native_frames_send(pair[0], &frames), WEIR__NATIVE_FAILED);
    close(pair[0]);
}
