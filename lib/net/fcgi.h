/* The FastCGI 1.0 record codec, both halves: what a server of records needs and what a
 * client needs. Section numbers are those of the specification.
 *
 * Pure functions over bytes: no sockets, no clock, no heap. fcgi.c has the records,
 * fcgi_pairs.c the name-value pairs. Not for several threads on one struct. */
#ifndef WEIR_NET_FCGI_H
#define WEIR_NET_FCGI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/pair.h"
#include "base/span.h"

/* ---- records (3.3) ----------------------------------------------------------------- */

enum weir__fcgi_type {
    WEIR__FCGI_BEGIN_REQUEST = 1,
    WEIR__FCGI_ABORT_REQUEST = 2,
    WEIR__FCGI_END_REQUEST = 3,
    WEIR__FCGI_PARAMS = 4,
    WEIR__FCGI_STDIN = 5,
    WEIR__FCGI_STDOUT = 6,
    WEIR__FCGI_STDERR = 7,
    WEIR__FCGI_DATA = 8,
    WEIR__FCGI_GET_VALUES = 9,
    WEIR__FCGI_GET_VALUES_RESULT = 10,
    WEIR__FCGI_UNKNOWN_TYPE = 11
};

enum weir__fcgi_role {
    WEIR__FCGI_RESPONDER = 1,
    WEIR__FCGI_AUTHORIZER = 2,
    WEIR__FCGI_FILTER = 3
};

/* protocolStatus of END_REQUEST (5.5). */
enum weir__fcgi_status {
    WEIR__FCGI_REQUEST_COMPLETE = 0,
    WEIR__FCGI_CANT_MPX_CONN = 1,
    WEIR__FCGI_OVERLOADED = 2,
    WEIR__FCGI_UNKNOWN_ROLE = 3
};

#define WEIR__FCGI_KEEP_CONN 1 /* flag of BEGIN_REQUEST */

#define WEIR__FCGI_HEADER_BYTES 8
#define WEIR__FCGI_BODY_BYTES 8 /* BEGIN_REQUEST, END_REQUEST, UNKNOWN_TYPE */
#define WEIR__FCGI_CONTENT_MAX 65535
/* The most that we put into one record: whole eights, so that content and padding stay
 * within 16 bits for receivers that add them up. */
#define WEIR__FCGI_CONTENT_SENT 65528

struct weir__fcgi_header {
    unsigned char type; /* enum weir__fcgi_type, or any other number */
    unsigned char padding_len;
    uint16_t request_id; /* 0: a management record */
    uint16_t content_len;
};

/* Reads records out of a byte stream, in pieces as the bytes arrive. All zero is the
 * start. */
struct weir__fcgi_reader {
    struct weir__fcgi_header header; /* of the present record */
    unsigned char head[WEIR__FCGI_HEADER_BYTES];
    unsigned char body[WEIR__FCGI_BODY_BYTES];
    unsigned head_len, body_len; /* gathered so far */
    unsigned content_left, padding_left;
    bool in_record;
};

/* A piece of one record's content. */
struct weir__fcgi_piece {
    struct weir__fcgi_header header;
    const unsigned char *bytes; /* in the window, or in the reader: use it before the next
                                   call */
    size_t len;                 /* 0 only where the record has no content */
    bool last;                  /* the record's content ends with it */
};

enum weir__fcgi_step {
    WEIR__FCGI_NEED_MORE, /* all bytes are used up */
    WEIR__FCGI_PIECE,     /* *ret_piece is filled in; call again with the rest */
    WEIR__FCGI_BAD        /* not FastCGI: close the connection */
};

/* Takes bytes from the window until there is a piece to hand out; *ret_used says how many
 * (also with NEED_MORE, then all). However the stream is cut into windows, the pieces'
 * bytes add up to the same records. The bodies of BEGIN_REQUEST, END_REQUEST and
 * UNKNOWN_TYPE always come whole. The last piece comes before the padding has arrived.
 *
 * BAD: another version than 1; request id 0 on an application record (types 1 to 8), one
 * that isn't 0 on GET_VALUES, GET_VALUES_RESULT or UNKNOWN_TYPE; a body of another length
 * than 8 on the three above, or any on ABORT_REQUEST. Unknown types pass: 4.2 wants an
 * answer to those with id 0. After BAD the reader must not be used again. */
enum weir__fcgi_step weir__fcgi_read(struct weir__fcgi_reader *reader,
                                     const void *window,
                                     size_t len,
                                     size_t *ret_used,
                                     struct weir__fcgi_piece *ret_piece);

/* Whether the stream stands between two records, where a peer may close. */
bool weir__fcgi_between_records(const struct weir__fcgi_reader *reader);

/* The body of a BEGIN_REQUEST piece (5.1) and of an END_REQUEST piece (5.5). */
struct weir__fcgi_begin {
    unsigned role; /* enum weir__fcgi_role, or any other number */
    bool keep_conn;
};
struct weir__fcgi_end {
    uint32_t app_status;
    unsigned protocol_status; /* enum weir__fcgi_status, or any other number */
};
struct weir__fcgi_begin weir__fcgi_begin_decode(const struct weir__fcgi_piece *piece);
struct weir__fcgi_end weir__fcgi_end_decode(const struct weir__fcgi_piece *piece);

/* ---- building records -------------------------------------------------------------- */

/* Eight zero bytes to send as padding. */
extern const unsigned char weir__fcgi_zeros[8];

/* Writes the header of a record of that type with content_len bytes (0 to
 * WEIR__FCGI_CONTENT_SENT) and returns how many bytes of padding, 0 to 7, must follow the
 * content: the whole is a multiple of 8 (3.3). content_len 0 ends a stream. */
unsigned weir__fcgi_put_header(unsigned char ret_bytes[WEIR__FCGI_HEADER_BYTES],
                               enum weir__fcgi_type type,
                               uint16_t request_id,
                               size_t content_len);

/* Each writes one whole record. */
void weir__fcgi_put_begin(unsigned char ret_bytes[16],
                          uint16_t request_id,
                          enum weir__fcgi_role role,
                          bool keep_conn);
void weir__fcgi_put_end(unsigned char ret_bytes[16],
                        uint16_t request_id,
                        uint32_t app_status,
                        enum weir__fcgi_status status);
void weir__fcgi_put_unknown_type(unsigned char ret_bytes[16], unsigned char type);

/* Appends bytes as records of a stream (PARAMS, STDIN, STDOUT, ...), padded with zeros;
 * not the empty record that ends it. False at the buffer's bound, or short of memory;
 * nothing is appended then. */
bool weir__fcgi_append_stream(struct weir__buf *buf,
                              enum weir__fcgi_type type,
                              uint16_t request_id,
                              const void *bytes,
                              size_t len);

/* Appends pairs as a whole PARAMS stream, its end included. A pair that fits into one
 * record is not spread over two: php-fpm wants it so. False and unchanged as above. */
bool weir__fcgi_append_params(struct weir__buf *buf,
                              uint16_t request_id,
                              const struct weir__pair *pairs,
                              size_t pairs_len);

/* ---- name-value pairs (3.4) -------------------------------------------------------- */

/* Walks over pairs in content that is cut anywhere. All zero is the start. */
struct weir__fcgi_walk {
    unsigned char lengths[8]; /* gathered so far */
    unsigned lengths_len;
    bool in_pair;
    uint32_t name_left, value_left;
};

/* The bounds of PARAMS. */
struct weir__fcgi_caps {
    size_t max_bytes;       /* names and values in all */
    size_t max_value_bytes; /* one name or value */
    unsigned max_pairs;
};

enum weir__fcgi_pairs_result {
    WEIR__FCGI_PAIRS_OK,
    WEIR__FCGI_PAIRS_BAD,       /* malformed: 400 */
    WEIR__FCGI_PAIRS_TOO_LARGE, /* past a cap: 431 */
    WEIR__FCGI_PAIRS_NO_MEMORY  /* the arena is full: 500 */
};

/* The parameters of one request as they arrive, copied into its arena. */
struct weir__fcgi_pairs {
    struct weir__arena *arena;
    struct weir__fcgi_caps caps;
    struct weir__pair *pairs; /* in the arena, in arrival order, names may repeat */
    unsigned pairs_len;
    unsigned capacity;
    size_t bytes; /* names and values so far, against max_bytes */
    struct weir__fcgi_walk walk;
    char *name, *value; /* of the pair that is being filled */
    uint32_t name_len, value_len;
    enum weir__fcgi_pairs_result result; /* the first failure stays */
};

/* Starts with no pair; nothing is taken from the arena before bytes arrive. */
void weir__fcgi_pairs_init(struct weir__fcgi_pairs *pairs,
                           struct weir__arena *arena,
                           const struct weir__fcgi_caps *caps);

/* Takes a piece of PARAMS content. Lengths are held against the caps before anything is
 * allocated. BAD: an empty name, one with '=' or NUL, a value with NUL (it would be cut
 * silently, RFC 3875 knows no such thing). A failure stays: later pieces are passed over.
 */
enum weir__fcgi_pairs_result
weir__fcgi_pairs_take(struct weir__fcgi_pairs *pairs, const void *bytes, size_t len);

/* The stream is over: BAD where it ends inside a pair. */
enum weir__fcgi_pairs_result weir__fcgi_pairs_end(struct weir__fcgi_pairs *pairs);

/* Appends one pair's lengths and texts, without a record around it. False as above, or
 * where a text is 2^31 bytes or longer. */
bool weir__fcgi_append_pair(struct weir__buf *buf, const struct weir__pair *pair);

/* ---- GET_VALUES (4.1) -------------------------------------------------------------- */

/* Which known variables one GET_VALUES record asks for. All zero is the start. Unknown
 * and repeated names cost nothing, so the reply is bounded. */
struct weir__fcgi_query {
    struct weir__fcgi_walk walk;
    char name[16]; /* the one that is being read, as far as it can be known */
    unsigned name_len;
    uint32_t name_whole_len;
    bool max_conns, max_reqs, mpxs_conns;
};

/* Takes a piece of the record's content. Values, which should be empty, are ignored, and
 * so is a pair that is cut by the record's end. */
void weir__fcgi_query_take(struct weir__fcgi_query *query, const void *bytes, size_t len);

#define WEIR__FCGI_VALUES_BYTES 80 /* for the longest reply */

/* Writes the whole GET_VALUES_RESULT record, its padding included, to be sent at once.
 * FCGI_MPXS_CONNS is "0". Returns its length. */
size_t weir__fcgi_put_values(unsigned char ret_bytes[WEIR__FCGI_VALUES_BYTES],
                             const struct weir__fcgi_query *query,
                             unsigned max_conns,
                             unsigned max_reqs);

#endif
