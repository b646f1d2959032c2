/* A run of bytes inside somebody else's text: not NUL-ended, valid as long as the text.
 */
#ifndef WEIR_BASE_SPAN_H
#define WEIR_BASE_SPAN_H

#include <stddef.h>

struct weir__span {
    const char *bytes;
    size_t len;
};

#endif
