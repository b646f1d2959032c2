/* FastCGI records, in and out.
 *
 * Bytes only: this file knows no sockets, no requests and no state of a connection beyond
 * the record that is being read. What a record means at this moment is the engine's. */
#include "net/fcgi.h"

#include <assert.h>
#include <string.h>

#define VERSION 1

const unsigned char weir__fcgi_zeros[8];

static unsigned read16(const unsigned char *bytes)
{
    return (unsigned)bytes[0] << 8 | bytes[1];
}

static uint32_t read32(const unsigned char *bytes)
{
    return (uint32_t)read16(bytes) << 16 | read16(bytes + 2);
}

static void write16(unsigned char *ret_bytes, unsigned number)
{
    ret_bytes[0] = (unsigned char)(number >> 8);
    ret_bytes[1] = (unsigned char)number;
}

/* The records whose body is eight bytes: handed out whole, however they arrive. */
static bool has_fixed_body(unsigned char type)
{
    return type == WEIR__FCGI_BEGIN_REQUEST || type == WEIR__FCGI_END_REQUEST ||
           type == WEIR__FCGI_UNKNOWN_TYPE;
}

static bool header_is_sane(const struct weir__fcgi_header *header)
{
    unsigned char type = header->type;
    if (type >= WEIR__FCGI_BEGIN_REQUEST && type <= WEIR__FCGI_DATA &&
        header->request_id == 0)
        return false;
    if (type >= WEIR__FCGI_GET_VALUES && type <= WEIR__FCGI_UNKNOWN_TYPE &&
        header->request_id != 0)
        return false;
    if (has_fixed_body(type))
        return header->content_len == WEIR__FCGI_BODY_BYTES;
    return type != WEIR__FCGI_ABORT_REQUEST || header->content_len == 0;
}

/* Copies from the window until *have bytes are want; returns how many it took. */
static size_t gather(unsigned char *ret_bytes,
                     unsigned *have,
                     unsigned want,
                     const unsigned char *window,
                     size_t len)
{
    size_t take = want - *have < len ? want - *have : len;
    if (take > 0)
        memcpy(ret_bytes + *have, window, take);
    *have += (unsigned)take;
    return take;
}

/* The eight bytes of a header are there: starts the record. */
static bool begin_record(struct weir__fcgi_reader *reader)
{
    const unsigned char *head = reader->head;
    reader->header = (struct weir__fcgi_header){
        .type = head[1],
        .request_id = (uint16_t)read16(head + 2),
        .content_len = (uint16_t)read16(head + 4),
        .padding_len = head[6],
    };
    reader->head_len = reader->body_len = 0;
    reader->content_left = reader->header.content_len;
    reader->padding_left = reader->header.padding_len;
    reader->in_record = true;
    return head[0] == VERSION && header_is_sane(&reader->header);
}

/* Takes content for one piece; false where the window doesn't suffice for any. */
static bool take_content(struct weir__fcgi_reader *reader,
                         const unsigned char *window,
                         size_t len,
                         size_t *used,
                         struct weir__fcgi_piece *ret_piece)
{
    bool fixed = has_fixed_body(reader->header.type);
    size_t take = reader->content_left < len ? reader->content_left : len;
    if (fixed)
        gather(reader->body, &reader->body_len, WEIR__FCGI_BODY_BYTES, window, take);
    *used += take;
    reader->content_left -= (unsigned)take;
    bool whole = reader->content_left == 0;
    if (!whole && (fixed || take == 0))
        return false;
    reader->in_record = !whole;
    *ret_piece = (struct weir__fcgi_piece){
        .header = reader->header,
        .bytes = fixed ? reader->body : window,
        .len = fixed ? WEIR__FCGI_BODY_BYTES : take,
        .last = whole,
    };
    return true;
}

enum weir__fcgi_step weir__fcgi_read(struct weir__fcgi_reader *reader,
                                     const void *window,
                                     size_t len,
                                     size_t *ret_used,
                                     struct weir__fcgi_piece *ret_piece)
{
    const unsigned char *bytes = window;
    size_t used = 0;
    *ret_used = 0;
    if (len == 0)
        return WEIR__FCGI_NEED_MORE;
    if (!reader->in_record) {
        used = reader->padding_left < len ? reader->padding_left : len;
        reader->padding_left -= (unsigned)used;
        used += gather(reader->head,
                       &reader->head_len,
                       WEIR__FCGI_HEADER_BYTES,
                       bytes + used,
                       len - used);
        if (reader->head_len == WEIR__FCGI_HEADER_BYTES && !begin_record(reader))
            return WEIR__FCGI_BAD;
    }
    bool piece = reader->in_record &&
                 take_content(reader, bytes + used, len - used, &used, ret_piece);
    *ret_used = used;
    return piece ? WEIR__FCGI_PIECE : WEIR__FCGI_NEED_MORE;
}

bool weir__fcgi_between_records(const struct weir__fcgi_reader *reader)
{
    return !reader->in_record && reader->padding_left == 0 && reader->head_len == 0;
}

struct weir__fcgi_begin weir__fcgi_begin_decode(const struct weir__fcgi_piece *piece)
{
    assert(piece->len == WEIR__FCGI_BODY_BYTES);
    return (struct weir__fcgi_begin){
        .role = read16(piece->bytes),
        .keep_conn = piece->bytes[2] & WEIR__FCGI_KEEP_CONN,
    };
}

struct weir__fcgi_end weir__fcgi_end_decode(const struct weir__fcgi_piece *piece)
{
    assert(piece->len == WEIR__FCGI_BODY_BYTES);
    return (struct weir__fcgi_end){
        .app_status = read32(piece->bytes),
        .protocol_status = piece->bytes[4],
    };
}

unsigned weir__fcgi_put_header(unsigned char ret_bytes[WEIR__FCGI_HEADER_BYTES],
                               enum weir__fcgi_type type,
                               uint16_t request_id,
                               size_t content_len)
{
    assert(content_len <= WEIR__FCGI_CONTENT_SENT);
    unsigned padding = (unsigned)(-content_len & 7);
    ret_bytes[0] = VERSION;
    ret_bytes[1] = (unsigned char)type;
    write16(ret_bytes + 2, request_id);
    write16(ret_bytes + 4, (unsigned)content_len);
    ret_bytes[6] = (unsigned char)padding;
    ret_bytes[7] = 0;
    return padding;
}

void weir__fcgi_put_begin(unsigned char ret_bytes[16],
                          uint16_t request_id,
                          enum weir__fcgi_role role,
                          bool keep_conn)
{
    weir__fcgi_put_header(
        ret_bytes, WEIR__FCGI_BEGIN_REQUEST, request_id, WEIR__FCGI_BODY_BYTES);
    memset(ret_bytes + 8, 0, WEIR__FCGI_BODY_BYTES);
    write16(ret_bytes + 8, (unsigned)role);
    ret_bytes[10] = keep_conn ? WEIR__FCGI_KEEP_CONN : 0;
}

void weir__fcgi_put_end(unsigned char ret_bytes[16],
                        uint16_t request_id,
                        uint32_t app_status,
                        enum weir__fcgi_status status)
{
    weir__fcgi_put_header(
        ret_bytes, WEIR__FCGI_END_REQUEST, request_id, WEIR__FCGI_BODY_BYTES);
    memset(ret_bytes + 8, 0, WEIR__FCGI_BODY_BYTES);
    write16(ret_bytes + 8, app_status >> 16);
    write16(ret_bytes + 10, app_status & 0xffff);
    ret_bytes[12] = (unsigned char)status;
}

void weir__fcgi_put_unknown_type(unsigned char ret_bytes[16], unsigned char type)
{
    weir__fcgi_put_header(ret_bytes, WEIR__FCGI_UNKNOWN_TYPE, 0, WEIR__FCGI_BODY_BYTES);
    memset(ret_bytes + 8, 0, WEIR__FCGI_BODY_BYTES);
    ret_bytes[8] = type;
}

bool weir__fcgi_append_stream(struct weir__buf *buf,
                              enum weir__fcgi_type type,
                              uint16_t request_id,
                              const void *bytes,
                              size_t len)
{
    size_t before = buf->len;
    const unsigned char *at = bytes;
    while (len > 0) {
        size_t take = len < WEIR__FCGI_CONTENT_SENT ? len : WEIR__FCGI_CONTENT_SENT;
        unsigned char header[WEIR__FCGI_HEADER_BYTES];
        unsigned padding = weir__fcgi_put_header(header, type, request_id, take);
        if (!weir__buf_append(buf, header, sizeof header) ||
            !weir__buf_append(buf, at, take) ||
            !weir__buf_append(buf, weir__fcgi_zeros, padding)) {
            buf->len = before;
            return false;
        }
        at += take;
        len -= take;
    }
    return true;
}
