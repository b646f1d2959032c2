/* An endpoint's pattern, "GET /api/weather/{city}", taken apart and checked. */
#ifndef WEIR_PATTERN_H
#define WEIR_PATTERN_H

#include "base/span.h"
#include "request.h"

#define WEIR__PATTERN_SEGMENTS_MAX 64

enum weir__segment_kind {
    WEIR__SEGMENT_LITERAL, /* exactly this text */
    WEIR__SEGMENT_NAME,    /* {name}: one segment, not empty */
    WEIR__SEGMENT_REST     /* a trailing *: nothing, or all that follows */
};

/* text is the literal, the name without its braces, or "*"; it points into the pattern.
 */
struct weir__segment {
    enum weir__segment_kind kind;
    struct weir__span text;
};

struct weir__pattern {
    struct weir__span method; /* "*" for any */
    unsigned segments_len;    /* 0 for "/" */
    struct weir__segment segments[WEIR__PATTERN_SEGMENTS_MAX];
};

/* Takes a pattern apart. False with a text that quotes it where it is a mistake: the
 * method is no token in upper case; the path is not in the form on which routes match
 * (path.h); a name is empty, comes twice, or has bytes other than [A-Za-z0-9_]; `*` is
 * not the last segment; more than WEIR__CAPTURES_MAX pieces are captured. Any thread. */
bool weir__pattern_parse(const char *pattern,
                         struct weir__pattern *ret_pattern,
                         struct weir_error *ret_error);

#endif
