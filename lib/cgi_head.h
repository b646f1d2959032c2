/* The head of a CGI program's output (RFC 3875 section 6), as it comes.
 *
 * Pure: bytes in, fields out. What the fields mean is cgi_reply.c's. Not for several
 * threads on one struct. */
#ifndef WEIR_CGI_HEAD_H
#define WEIR_CGI_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pair.h"

#define WEIR__CGI_HEAD_BYTES_MAX ((size_t)8 * 1024)

enum weir__cgi_head_state {
    WEIR__CGI_HEAD_OPEN, /* the empty line has not come yet */
    WEIR__CGI_HEAD_WHOLE,
    WEIR__CGI_HEAD_TOO_LARGE, /* over WEIR__CGI_HEAD_BYTES_MAX */
};

/* A head under way; zeroed to begin with. */
struct weir__cgi_head {
    enum weir__cgi_head_state state;
    size_t len;                           /* bytes so far */
    size_t line;                          /* where the line under way begins */
    char bytes[WEIR__CGI_HEAD_BYTES_MAX]; /* last, so that zeroing can leave it out */
};

/* Begins a head. */
void weir__cgi_head_init(struct weir__cgi_head *head);

/* Takes what belongs to the head, its empty line with it, and returns how many bytes
 * these were; the rest is body. Lines end with LF or CR LF; a piece may end anywhere. */
size_t weir__cgi_head_feed(struct weir__cgi_head *head, const char *bytes, size_t len);

enum weir__cgi_line {
    WEIR__CGI_LINE_FIELD,
    WEIR__CGI_LINE_END, /* no field is left */
    WEIR__CGI_LINE_BAD, /* no token before the colon, no colon, a folded line, a control
                           character */
};

/* Reads the next line of a whole head from *at (0 at first) and moves it on. The texts
 * lie in the head and do not end with a NUL: the lengths say where; the value is without
 * the blanks at its ends. */
enum weir__cgi_line weir__cgi_head_next(const struct weir__cgi_head *head,
                                        size_t *at,
                                        struct weir__pair *ret_field);

#endif
