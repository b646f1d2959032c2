/* Finding a cookie in a Cookie header (RFC 6265bis sections 4.1.1 and 4.2.1). */
#ifndef WEIR_COOKIE_H
#define WEIR_COOKIE_H

#include "base/span.h"

enum weir__cookie_result {
    WEIR__COOKIE_FOUND,
    WEIR__COOKIE_ABSENT,
    WEIR__COOKIE_AMBIGUOUS, /* there twice, with two values: order means nothing (4.2.2)
                             */
    WEIR__COOKIE_BAD        /* its value holds bytes that the grammar doesn't know */
};

/* Looks for the cookie of exactly that name. The value comes undecoded, with its quotes
 * where it has any, and may be empty; it is set only where FOUND. header is the joined
 * header ("; " between lines). Pure; any thread. */
enum weir__cookie_result weir__cookie_find(const char *header,
                                           size_t header_len,
                                           const char *name,
                                           struct weir__span *ret_value);

#endif
