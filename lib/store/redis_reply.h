/* Replies of Redis, taken from a stream into one fixed struct: no allocation for each,
 * and nothing that a server sends makes more than WEIR__REDIS_REPLY_MAX bytes wait here.
 *
 * Only what this library's commands are answered with has a content: status, error, and
 * strings of a few hundred bytes. Whatever else is well formed is WEIR__REDIS_OTHER. */
#ifndef WEIR_STORE_REDIS_REPLY_H
#define WEIR_STORE_REDIS_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#define WEIR__REDIS_REPLY_MAX 4096 /* bytes of one reply that isn't complete */
#define WEIR__REDIS_STRING_MAX 256 /* bytes of a string that is of use here */

enum weir__redis_kind {
    WEIR__REDIS_STATUS,
    WEIR__REDIS_ERROR,
    WEIR__REDIS_STRING,
    WEIR__REDIS_OTHER /* nil, integer, array, a longer string */
};

struct weir__redis_reply {
    enum weir__redis_kind kind;
    size_t len;                             /* of bytes */
    char bytes[WEIR__REDIS_STRING_MAX + 1]; /* with a NUL behind; errors and status are
                                               cut to it */
};

enum weir__redis_next {
    WEIR__REDIS_MORE, /* no whole reply yet */
    WEIR__REDIS_READY,
    WEIR__REDIS_BROKEN /* no protocol, too long, or memory is short: the stream is lost */
};

struct weir__redis_replies; /* one stream */

/* NULL when memory is short. */
struct weir__redis_replies *weir__redis_replies_create(void);
void weir__redis_replies_destroy(struct weir__redis_replies *replies); /* takes NULL */

/* Takes bytes as they come. Call it, then weir__redis_replies_next() until that says
 * MORE. False where the stream is broken. One thread at a time. */
bool weir__redis_replies_feed(struct weir__redis_replies *replies,
                              const void *bytes,
                              size_t len);
enum weir__redis_next weir__redis_replies_next(struct weir__redis_replies *replies,
                                               struct weir__redis_reply *ret_reply);

/* Whether an error's first word is this one. Before Redis 7 the word of an error inside a
 * script stands further back, behind "ERR Error running script": there it is found too.
 */
bool weir__redis_is_error(const struct weir__redis_reply *reply, const char *word);

#endif
