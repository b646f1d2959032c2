/* Records: however the stream is cut into windows, the same records come out. The first
 * eight bytes of the input are the sizes of the windows. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CUTS)
        return 0;
    struct weir__buf whole, cut;
    weir__buf_init(&whole, 0);
    weir__buf_init(&cut, 0);
    bool whole_ok = transcribe(&whole, data + CUTS, size - CUTS, NULL);
    bool cut_ok = transcribe(&cut, data + CUTS, size - CUTS, data);
    MUST(whole_ok == cut_ok);
    MUST(whole.len == cut.len);
    MUST(whole.len == 0 || memcmp(whole.bytes, cut.bytes, whole.len) == 0);
    weir__buf_finish(&whole);
    weir__buf_finish(&cut);
    return 0;
}
