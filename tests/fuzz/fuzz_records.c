/* Records: however the stream is cut into windows, the same records come out, and they
 * are those of a plain reading by the specification. The first eight bytes of the input
 * are the sizes of the windows. */
#include "fuzz.h"

#include "net/fcgi.h"

#define CUTS 8

/* All pieces as one text of records: header, content, whether it ended. */
static bool
transcribe(struct weir__buf *text, const uint8_t *stream, size_t len, const uint8_t *cuts)
{
    struct weir__fcgi_reader reader = { .in_record = false };
    struct weir__fcgi_piece piece;
    bool inside = false;
    size_t turn = 0;
    for (size_t at = 0; at < len;) {
        size_t window = cuts ? fuzz_cut(cuts, CUTS, turn++) : len;
        size_t size = len - at < window ? len - at : window, done = 0, used;
        uint8_t *copy = fuzz_copy(stream + at, size);
        enum weir__fcgi_step step;
        while (
            (step = weir__fcgi_read(&reader, copy + done, size - done, &used, &piece)) ==
            WEIR__FCGI_PIECE) {
            MUST(used > 0 && done + used <= size);
            MUST(piece.len <= piece.header.content_len);
            if (!inside)
                MUST(weir__buf_append(text, &piece.header, sizeof piece.header));
            MUST(weir__buf_append(text, piece.bytes, piece.len));
            if (piece.last)
                MUST(weir__buf_append(text, "|", 1));
            inside = !piece.last;
            done += used;
        }
        free(copy);
        if (step == WEIR__FCGI_BAD)
            return false;
        MUST(done + used == size);
        at += size;
    }
    return true;
}

/* What section 3.3 and the sections of each type forbid, as fcgi.h lists it. */
static bool is_bad(const uint8_t *at, unsigned content_len)
{
    unsigned type = at[1], id = at[2] << 8 | at[3];
    bool is_app = type >= 1 && type <= 8, is_management = type >= 9 && type <= 11;
    if (at[0] != 1 || (is_app && id == 0) || (is_management && id != 0))
        return true;
    if (type == WEIR__FCGI_ABORT_REQUEST)
        return content_len > 0;
    return (type == WEIR__FCGI_BEGIN_REQUEST || type == WEIR__FCGI_END_REQUEST ||
            type == WEIR__FCGI_UNKNOWN_TYPE) &&
           content_len != WEIR__FCGI_BODY_BYTES;
}

/* The same text by a plain reading, record after record. */
static bool transcribe_plainly(struct weir__buf *text, const uint8_t *stream, size_t len)
{
    while (len >= WEIR__FCGI_HEADER_BYTES) {
        struct weir__fcgi_header header = {
            .type = stream[1],
            .padding_len = stream[6],
            .request_id = (uint16_t)(stream[2] << 8 | stream[3]),
            .content_len = (uint16_t)(stream[4] << 8 | stream[5]),
        };
        if (is_bad(stream, header.content_len))
            return false;
        bool in_one =
            header.content_len > 0 && (header.type == WEIR__FCGI_BEGIN_REQUEST ||
                                       header.type == WEIR__FCGI_END_REQUEST ||
                                       header.type == WEIR__FCGI_UNKNOWN_TYPE);
        stream += WEIR__FCGI_HEADER_BYTES;
        len -= WEIR__FCGI_HEADER_BYTES;
        size_t size = len < header.content_len ? len : header.content_len;
        bool whole = size == header.content_len;
        if (whole || (size > 0 && !in_one)) {
            MUST(weir__buf_append(text, &header, sizeof header));
            MUST(weir__buf_append(text, stream, size));
        }
        if (whole)
            MUST(weir__buf_append(text, "|", 1));
        size_t used = size + header.padding_len;
        used = used < len ? used : len;
        stream += used;
        len -= used;
    }
    return true;
}

static void must_equal(const struct weir__buf *one, const struct weir__buf *two)
{
    MUST(one->len == two->len);
    MUST(one->len == 0 || memcmp(one->bytes, two->bytes, one->len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CUTS)
        return 0;
    struct weir__buf plain, whole, cut;
    weir__buf_init(&plain, 0);
    weir__buf_init(&whole, 0);
    weir__buf_init(&cut, 0);
    bool plain_ok = transcribe_plainly(&plain, data + CUTS, size - CUTS);
    MUST(transcribe(&whole, data + CUTS, size - CUTS, NULL) == plain_ok);
    MUST(transcribe(&cut, data + CUTS, size - CUTS, data) == plain_ok);
    must_equal(&plain, &whole);
    must_equal(&plain, &cut);
    weir__buf_finish(&plain);
    weir__buf_finish(&whole);
    weir__buf_finish(&cut);
    return 0;
}
