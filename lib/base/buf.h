/* A growable run of bytes with a bound, on the heap. It knows nothing of what it holds.
 *
 * Not for several threads at a time. Appends are all or nothing. */
#ifndef WEIR_BASE_BUF_H
#define WEIR_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct weir__buf {
    char *bytes;          /* NULL until the first append */
    size_t len, capacity; /* in bytes */
    size_t max_bytes;     /* 0: no bound but memory */
};

void weir__buf_init(struct weir__buf *buf, size_t max_bytes);
void weir__buf_finish(struct weir__buf *buf);

/* Empties it. Keeps the memory up to keep_bytes, frees it when it has grown past that. */
void weir__buf_reset(struct weir__buf *buf, size_t keep_bytes);

/* Makes room for bytes more behind len; false at the bound or when memory is short. */
bool weir__buf_reserve(struct weir__buf *buf, size_t bytes);

bool weir__buf_append(struct weir__buf *buf, const void *bytes, size_t len);
bool weir__buf_printf(struct weir__buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Drops the first bytes (they have been sent or parsed). */
void weir__buf_consume(struct weir__buf *buf, size_t bytes);

#endif
