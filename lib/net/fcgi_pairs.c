/* FastCGI name-value pairs: PARAMS into a request's arena, GET_VALUES, and the encoding.
 *
 * Both decoders stand on one walk, which gives lengths, pieces of names and pieces of
 * values, wherever the content was cut. Lengths are held against the caps before memory
 * is taken, and never added up in less than 64 bits. */
#include "net/fcgi.h"

#include <string.h>

#define PAIRS_FIRST 32 /* room for so many is taken with the first pair */

enum event {
    NEED_MORE,
    LENGTHS, /* walk->name_left and value_left are those of a new pair */
    NAME,    /* a piece of the name */
    VALUE,   /* a piece of the value */
};

/* How many bytes the length that starts with this one has. */
static unsigned length_bytes(unsigned char first)
{
    return first & 0x80 ? 4 : 1;
}

static uint32_t decode_length(const unsigned char *bytes)
{
    if (!(bytes[0] & 0x80))
        return bytes[0];
    return (uint32_t)(bytes[0] & 0x7f) << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Whether both lengths of a pair have been gathered. */
static bool have_lengths(const struct weir__fcgi_walk *walk)
{
    if (walk->lengths_len == 0)
        return false;
    unsigned name = length_bytes(walk->lengths[0]);
    return walk->lengths_len > name &&
           walk->lengths_len == name + length_bytes(walk->lengths[name]);
}

/* Hands out the next event and takes its bytes off *bytes and *len. */
static enum event step(struct weir__fcgi_walk *walk,
                       const unsigned char **bytes,
                       size_t *len,
                       struct weir__span *ret_piece)
{
    if (walk->in_pair && walk->name_left == 0 && walk->value_left == 0)
        walk->in_pair = false;
    while (!walk->in_pair) {
        if (*len == 0)
            return NEED_MORE;
        walk->lengths[walk->lengths_len++] = *(*bytes)++;
        --*len;
        if (!have_lengths(walk))
            continue;
        walk->name_left = decode_length(walk->lengths);
        walk->value_left = decode_length(walk->lengths + length_bytes(walk->lengths[0]));
        walk->lengths_len = 0;
        walk->in_pair = true;
        return LENGTHS;
    }
    if (*len == 0)
        return NEED_MORE;
    uint32_t *left = walk->name_left > 0 ? &walk->name_left : &walk->value_left;
    enum event event = walk->name_left > 0 ? NAME : VALUE;
    size_t take = *left < *len ? *left : *len;
    *ret_piece = (struct weir__span){ (const char *)*bytes, take };
    *left -= (uint32_t)take;
    *bytes += take;
    *len -= take;
    return event;
}

/* Whether the content so far ends with a whole pair. */
static bool between_pairs(const struct weir__fcgi_walk *walk)
{
    return walk->lengths_len == 0 &&
           (!walk->in_pair || (walk->name_left == 0 && walk->value_left == 0));
}

/* ---- PARAMS ------------------------------------------------------------------------ */

void weir__fcgi_pairs_init(struct weir__fcgi_pairs *pairs,
                           struct weir__arena *arena,
                           const struct weir__fcgi_caps *caps)
{
    *pairs = (struct weir__fcgi_pairs){ .arena = arena, .caps = *caps };
}

/* Makes room for one more entry; the arena keeps the old array until the request ends. */
static bool grow(struct weir__fcgi_pairs *pairs)
{
    if (pairs->pairs_len < pairs->capacity)
        return true;
    unsigned capacity = pairs->capacity ? pairs->capacity * 2 : PAIRS_FIRST;
    if (capacity > pairs->caps.max_pairs)
        capacity = pairs->caps.max_pairs;
    struct weir__pair *grown =
        weir__arena_alloc(pairs->arena, capacity * sizeof *pairs->pairs);
    if (!grown)
        return false;
    if (pairs->pairs_len > 0)
        memcpy(grown, pairs->pairs, pairs->pairs_len * sizeof *grown);
    pairs->pairs = grown;
    pairs->capacity = capacity;
    return true;
}

/* The lengths of a new pair are known: holds them against the caps, makes room. */
static enum weir__fcgi_pairs_result begin_pair(struct weir__fcgi_pairs *pairs)
{
    uint32_t name = pairs->walk.name_left, value = pairs->walk.value_left;
    if (name == 0)
        return WEIR__FCGI_PAIRS_BAD;
    uint64_t bytes = (uint64_t)pairs->bytes + name + value;
    if (pairs->pairs_len >= pairs->caps.max_pairs || name > pairs->caps.max_value_bytes ||
        value > pairs->caps.max_value_bytes || bytes > pairs->caps.max_bytes)
        return WEIR__FCGI_PAIRS_TOO_LARGE;
    char *text = weir__arena_alloc(pairs->arena, (size_t)name + value + 2);
    if (!text || !grow(pairs))
        return WEIR__FCGI_PAIRS_NO_MEMORY;
    text[name] = text[(size_t)name + 1 + value] = '\0';
    pairs->bytes = (size_t)bytes;
    pairs->name = text;
    pairs->value = text + name + 1;
    pairs->name_len = name;
    pairs->value_len = value;
    return WEIR__FCGI_PAIRS_OK;
}

/* Copies a piece to its place, which follows from what is still missing behind it. */
static enum weir__fcgi_pairs_result fill_name(struct weir__fcgi_pairs *pairs,
                                              struct weir__span piece)
{
    if (memchr(piece.bytes, '\0', piece.len) || memchr(piece.bytes, '=', piece.len))
        return WEIR__FCGI_PAIRS_BAD;
    size_t behind = pairs->walk.name_left;
    memcpy(pairs->name + pairs->name_len - behind - piece.len, piece.bytes, piece.len);
    return WEIR__FCGI_PAIRS_OK;
}

static enum weir__fcgi_pairs_result fill_value(struct weir__fcgi_pairs *pairs,
                                               struct weir__span piece)
{
    if (memchr(piece.bytes, '\0', piece.len))
        return WEIR__FCGI_PAIRS_BAD;
    size_t behind = pairs->walk.value_left;
    memcpy(pairs->value + pairs->value_len - behind - piece.len, piece.bytes, piece.len);
    return WEIR__FCGI_PAIRS_OK;
}

static void end_pair(struct weir__fcgi_pairs *pairs)
{
    pairs->pairs[pairs->pairs_len++] = (struct weir__pair){
        .name = pairs->name,
        .value = pairs->value,
        .name_len = pairs->name_len,
        .value_len = pairs->value_len,
    };
    pairs->name = pairs->value = NULL;
}

enum weir__fcgi_pairs_result
weir__fcgi_pairs_take(struct weir__fcgi_pairs *pairs, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    struct weir__span piece;
    enum event event;
    while (pairs->result == WEIR__FCGI_PAIRS_OK &&
           (event = step(&pairs->walk, &at, &len, &piece)) != NEED_MORE) {
        if (event == LENGTHS)
            pairs->result = begin_pair(pairs);
        else if (event == NAME)
            pairs->result = fill_name(pairs, piece);
        else
            pairs->result = fill_value(pairs, piece);
        if (pairs->result == WEIR__FCGI_PAIRS_OK && between_pairs(&pairs->walk))
            end_pair(pairs);
    }
    return pairs->result;
}

enum weir__fcgi_pairs_result weir__fcgi_pairs_end(struct weir__fcgi_pairs *pairs)
{
    if (pairs->result == WEIR__FCGI_PAIRS_OK && !between_pairs(&pairs->walk))
        pairs->result = WEIR__FCGI_PAIRS_BAD;
    return pairs->result;
}

/* ---- encoding ---------------------------------------------------------------------- */

static size_t put_length(unsigned char ret_bytes[4], size_t length)
{
    if (length < 0x80) {
        ret_bytes[0] = (unsigned char)length;
        return 1;
    }
    ret_bytes[0] = (unsigned char)(length >> 24 | 0x80);
    ret_bytes[1] = (unsigned char)(length >> 16);
    ret_bytes[2] = (unsigned char)(length >> 8);
    ret_bytes[3] = (unsigned char)length;
    return 4;
}

bool weir__fcgi_append_pair(struct weir__buf *buf, const struct weir__pair *pair)
{
    unsigned char lengths[8];
    if (pair->name_len > INT32_MAX || pair->value_len > INT32_MAX)
        return false;
    size_t before = buf->len;
    size_t len = put_length(lengths, pair->name_len);
    len += put_length(lengths + len, pair->value_len);
    if (weir__buf_append(buf, lengths, len) &&
        weir__buf_append(buf, pair->name, pair->name_len) &&
        weir__buf_append(buf, pair->value, pair->value_len))
        return true;
    buf->len = before;
    return false;
}

/* Appends what is in content as records, and empties it. */
static bool
flush_params(struct weir__buf *buf, uint16_t request_id, struct weir__buf *content)
{
    bool ok = weir__fcgi_append_stream(
        buf, WEIR__FCGI_PARAMS, request_id, content->bytes, content->len);
    content->len = 0;
    return ok;
}

bool weir__fcgi_append_params(struct weir__buf *buf,
                              uint16_t request_id,
                              const struct weir__pair *pairs,
                              size_t pairs_len)
{
    size_t before = buf->len;
    struct weir__buf content;
    weir__buf_init(&content, 0);
    bool ok = true;
    for (size_t i = 0; ok && i < pairs_len; i++) {
        size_t start = content.len;
        ok = weir__fcgi_append_pair(&content, &pairs[i]);
        if (ok && start > 0 && content.len > WEIR__FCGI_CONTENT_SENT) {
            content.len = start; /* take it back: it begins the next record */
            ok = flush_params(buf, request_id, &content) &&
                 weir__fcgi_append_pair(&content, &pairs[i]);
        }
    }
    unsigned char end[WEIR__FCGI_HEADER_BYTES];
    weir__fcgi_put_header(end, WEIR__FCGI_PARAMS, request_id, 0);
    ok = ok && flush_params(buf, request_id, &content) &&
         weir__buf_append(buf, end, sizeof end);
    weir__buf_finish(&content);
    if (!ok)
        buf->len = before;
    return ok;
}

/* ---- GET_VALUES -------------------------------------------------------------------- */

#define MAX_CONNS "FCGI_MAX_CONNS"
#define MAX_REQS "FCGI_MAX_REQS"
#define MPXS_CONNS "FCGI_MPXS_CONNS"

static bool is_name(const struct weir__fcgi_query *query, const char *name)
{
    return query->name_whole_len == strlen(name) &&
           memcmp(query->name, name, query->name_whole_len) == 0;
}

/* Keeps the start of the name; one longer than the field is none that is known. */
static void query_name(struct weir__fcgi_query *query, struct weir__span piece)
{
    size_t room = sizeof query->name - query->name_len;
    size_t take = piece.len < room ? piece.len : room;
    memcpy(query->name + query->name_len, piece.bytes, take);
    query->name_len += (unsigned)take;
}

void weir__fcgi_query_take(struct weir__fcgi_query *query, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    struct weir__span piece;
    enum event event;
    while ((event = step(&query->walk, &at, &len, &piece)) != NEED_MORE) {
        if (event == LENGTHS) {
            query->name_len = 0;
            query->name_whole_len = query->walk.name_left;
        } else if (event == NAME) {
            query_name(query, piece);
        }
        if (!between_pairs(&query->walk))
            continue;
        query->max_conns |= is_name(query, MAX_CONNS);
        query->max_reqs |= is_name(query, MAX_REQS);
        query->mpxs_conns |= is_name(query, MPXS_CONNS);
    }
}

/* Writes one pair with a number as its value; returns its length. */
static size_t put_number(unsigned char *ret_bytes, const char *name, unsigned number)
{
    char digits[10];
    size_t name_len = strlen(name), first = sizeof digits;
    do
        digits[--first] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    size_t digits_len = sizeof digits - first;
    ret_bytes[0] = (unsigned char)name_len;
    ret_bytes[1] = (unsigned char)digits_len;
    memcpy(ret_bytes + 2, name, name_len);
    memcpy(ret_bytes + 2 + name_len, digits + first, digits_len);
    return 2 + name_len + digits_len;
}

size_t weir__fcgi_put_values(unsigned char ret_bytes[WEIR__FCGI_VALUES_BYTES],
                             const struct weir__fcgi_query *query,
                             unsigned max_conns,
                             unsigned max_reqs)
{
    unsigned char *content = ret_bytes + WEIR__FCGI_HEADER_BYTES;
    size_t len = 0;
    if (query->max_conns)
        len += put_number(content + len, MAX_CONNS, max_conns);
    if (query->max_reqs)
        len += put_number(content + len, MAX_REQS, max_reqs);
    if (query->mpxs_conns)
        len += put_number(content + len, MPXS_CONNS, 0);
    unsigned padding =
        weir__fcgi_put_header(ret_bytes, WEIR__FCGI_GET_VALUES_RESULT, 0, len);
    memset(content + len, 0, padding);
    return WEIR__FCGI_HEADER_BYTES + len + padding;
}
