/* Name-value pairs: however the content is cut, the same pairs or the same error; pairs
 * that are taken keep what the decoder promises, and read back after encoding. The first
 * four bytes of the input are the sizes of the cuts, the fifth picks the caps. */
#include "fuzz.h"

#include "net/fcgi.h"

#define CUTS 4

static enum weir__fcgi_pairs_result decode(struct weir__fcgi_pairs *pairs,
                                           struct weir__fcgi_query *query,
                                           const uint8_t *content,
                                           size_t len,
                                           const uint8_t *cuts)
{
    size_t turn = 0;
    for (size_t at = 0; at < len;) {
        size_t window = cuts ? fuzz_cut(cuts, CUTS, turn++) : len;
        size_t size = len - at < window ? len - at : window;
        uint8_t *copy = fuzz_copy(content + at, size);
        weir__fcgi_pairs_take(pairs, copy, size);
        weir__fcgi_query_take(query, copy, size);
        free(copy);
        at += size;
    }
    return weir__fcgi_pairs_end(pairs);
}

static void must_equal(const struct weir__fcgi_pairs *one,
                       const struct weir__fcgi_pairs *two)
{
    MUST(one->pairs_len == two->pairs_len);
    for (unsigned i = 0; i < one->pairs_len; i++) {
        const struct weir__pair *a = &one->pairs[i], *b = &two->pairs[i];
        MUST(a->name_len == b->name_len && a->value_len == b->value_len);
        MUST(memcmp(a->name, b->name, a->name_len + 1) == 0);
        MUST(memcmp(a->value, b->value, a->value_len + 1) == 0);
    }
}

static void must_hold(const struct weir__fcgi_pairs *pairs,
                      const struct weir__fcgi_caps *caps)
{
    size_t bytes = 0;
    MUST(pairs->pairs_len <= caps->max_pairs);
    for (unsigned i = 0; i < pairs->pairs_len; i++) {
        const struct weir__pair *pair = &pairs->pairs[i];
        MUST(pair->name_len > 0 && strlen(pair->name) == pair->name_len);
        MUST(!strchr(pair->name, '='));
        MUST(strlen(pair->value) == pair->value_len);
        MUST(pair->name_len <= caps->max_value_bytes);
        MUST(pair->value_len <= caps->max_value_bytes);
        bytes += pair->name_len + pair->value_len;
    }
    MUST(bytes <= caps->max_bytes);
}

/* One length of the format, read in the plain way; false where it is cut. */
static bool plain_length(const uint8_t **at, const uint8_t *end, size_t *ret_length)
{
    size_t bytes = *at < end && **at & 0x80 ? 4 : 1, length = 0;
    if ((size_t)(end - *at) < bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        length = length << 8 | *(*at)++;
    *ret_length = bytes == 4 ? length & 0x7fffffff : length;
    return true;
}

/* Content that was taken must be these pairs, read in the plain way. */
static void
must_be_plain(const struct weir__fcgi_pairs *pairs, const uint8_t *content, size_t len)
{
    const uint8_t *at = content, *end = content + len;
    for (unsigned i = 0; i < pairs->pairs_len; i++) {
        size_t name_len, value_len;
        MUST(plain_length(&at, end, &name_len) && plain_length(&at, end, &value_len));
        MUST(name_len == pairs->pairs[i].name_len);
        MUST(value_len == pairs->pairs[i].value_len);
        MUST(name_len + value_len <= (size_t)(end - at));
        MUST(memcmp(pairs->pairs[i].name, at, name_len) == 0);
        MUST(memcmp(pairs->pairs[i].value, at + name_len, value_len) == 0);
        at += name_len + value_len;
    }
    MUST(at == end);
}

/* Encodes the pairs as a client does, and decodes that. */
static void must_read_back(const struct weir__fcgi_pairs *pairs,
                           const struct weir__fcgi_caps *caps)
{
    struct weir__buf stream;
    struct weir__arena arena;
    struct weir__fcgi_pairs again;
    struct weir__fcgi_reader reader = { .in_record = false };
    struct weir__fcgi_piece piece;
    size_t at = 0, used;
    weir__buf_init(&stream, 0);
    weir__arena_init(&arena, 1 << 20, 4096);
    weir__fcgi_pairs_init(&again, &arena, caps);
    MUST(weir__fcgi_append_params(&stream, 1, pairs->pairs, pairs->pairs_len));
    while (weir__fcgi_read(&reader, stream.bytes + at, stream.len - at, &used, &piece) ==
           WEIR__FCGI_PIECE) {
        weir__fcgi_pairs_take(&again, piece.bytes, piece.len);
        at += used;
    }
    MUST(weir__fcgi_pairs_end(&again) == WEIR__FCGI_PAIRS_OK);
    must_equal(pairs, &again);
    weir__arena_finish(&arena);
    weir__buf_finish(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CUTS + 1)
        return 0;
    const struct weir__fcgi_caps caps = {
        .max_bytes = data[CUTS] & 1 ? 65536 : 64,
        .max_value_bytes = data[CUTS] & 2 ? 8192 : 16,
        .max_pairs = data[CUTS] & 4 ? 256 : 3,
    };
    const uint8_t *content = data + CUTS + 1;
    size_t len = size - CUTS - 1;
    struct weir__arena arena;
    struct weir__fcgi_pairs whole, cut;
    struct weir__fcgi_query asked = { .name_len = 0 }, asked_cut = { .name_len = 0 };
    weir__arena_init(&arena, 1 << 20, 4096);
    weir__fcgi_pairs_init(&whole, &arena, &caps);
    weir__fcgi_pairs_init(&cut, &arena, &caps);
    enum weir__fcgi_pairs_result result = decode(&whole, &asked, content, len, NULL);
    MUST(decode(&cut, &asked_cut, content, len, data) == result);
    must_equal(&whole, &cut);
    must_hold(&whole, &caps);
    if (result == WEIR__FCGI_PAIRS_OK) {
        must_be_plain(&whole, content, len);
        must_read_back(&whole, &caps);
    }

    unsigned char reply[WEIR__FCGI_VALUES_BYTES], reply_cut[WEIR__FCGI_VALUES_BYTES];
    size_t reply_len = weir__fcgi_put_values(reply, &asked, UINT32_MAX, UINT32_MAX);
    MUST(reply_len ==
         weir__fcgi_put_values(reply_cut, &asked_cut, UINT32_MAX, UINT32_MAX));
    MUST(memcmp(reply, reply_cut, reply_len) == 0);
    weir__arena_finish(&arena);
    return 0;
}
