/* Growth by doubling, up to the bound.
 *
 * The memory always has one byte more than capacity says, for the NUL that vsnprintf
 * writes behind the text; that byte belongs to nobody. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN ((size_t)255)

void weir__buf_init(struct weir__buf *buf, size_t max_bytes)
{
    *buf = (struct weir__buf){ .max_bytes = max_bytes };
}

void weir__buf_finish(struct weir__buf *buf)
{
    free(buf->bytes);
    buf->bytes = NULL;
    buf->len = buf->capacity = 0;
}

void weir__buf_reset(struct weir__buf *buf, size_t keep_bytes)
{
    if (buf->capacity > keep_bytes)
        weir__buf_finish(buf);
    buf->len = 0;
}

bool weir__buf_reserve(struct weir__buf *buf, size_t bytes)
{
    size_t bound = buf->max_bytes ? buf->max_bytes : SIZE_MAX - 1;
    if (bytes > bound - buf->len)
        return false;
    size_t need = buf->len + bytes;
    if (buf->bytes && need <= buf->capacity)
        return true;
    size_t capacity = buf->capacity > CAPACITY_MIN ? buf->capacity : CAPACITY_MIN;
    while (capacity < need)
        capacity = capacity > SIZE_MAX / 4 ? need : capacity * 2 + 1;
    if (capacity > bound)
        capacity = bound;
    char *grown = realloc(buf->bytes, capacity + 1);
    if (!grown)
        return false;
    buf->bytes = grown;
    buf->capacity = capacity;
    return true;
}

bool weir__buf_append(struct weir__buf *buf, const void *bytes, size_t len)
{
    if (!weir__buf_reserve(buf, len))
        return false;
    if (len > 0)
        memcpy(buf->bytes + buf->len, bytes, len);
    buf->len += len;
    return true;
}

bool weir__buf_printf(struct weir__buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    bool ok = len >= 0 && weir__buf_reserve(buf, (size_t)len);
    if (ok) {
        vsnprintf(buf->bytes + buf->len, (size_t)len + 1, format, again);
        buf->len += (size_t)len;
    }
    va_end(again);
    va_end(args);
    return ok;
}

void weir__buf_consume(struct weir__buf *buf, size_t bytes)
{
    if (bytes >= buf->len) {
        buf->len = 0;
    } else {
        memmove(buf->bytes, buf->bytes + bytes, buf->len - bytes);
        buf->len -= bytes;
    }
}
