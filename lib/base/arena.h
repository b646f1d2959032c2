/* The bounded memory of one request: bump allocation, dropped whole.
 *
 * An arena owns a list of blocks. reset() keeps the first block for the next request, so
 * that a warmed-up worker allocates nothing. An arena that has reached its bound returns
 * NULL and never aborts. Not for several threads at a time. */
#ifndef WEIR_BASE_ARENA_H
#define WEIR_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdarg.h>

struct weir__arena_block;

struct weir__arena {
    struct weir__arena_block *first, *now;
    size_t used_bytes;  /* handed out since the last reset, over all blocks */
    size_t max_bytes;   /* the bound */
    size_t block_bytes; /* the size of a block; a larger piece gets a block of its own */
};

/* Sets up an empty arena; nothing is allocated before the first use. */
void weir__arena_init(struct weir__arena *arena, size_t max_bytes, size_t block_bytes);

/* Frees all blocks. */
void weir__arena_finish(struct weir__arena *arena);

/* Forgets every piece, keeps the first block. */
void weir__arena_reset(struct weir__arena *arena);

/* A piece aligned for any type, not zeroed; NULL when the bound is reached or memory is
 * short. bytes may be 0: the piece is then a valid pointer to nothing. */
void *weir__arena_alloc(struct weir__arena *arena, size_t bytes);

/* The same, zeroed. */
void *weir__arena_zalloc(struct weir__arena *arena, size_t bytes);

/* A copy of bytes with a NUL behind it, or NULL. */
char *weir__arena_copy(struct weir__arena *arena, const char *text, size_t bytes);

/* printf into the arena; NULL when it doesn't fit. ret_bytes may be NULL. */
char *weir__arena_printf(struct weir__arena *arena,
                         size_t *ret_bytes,
                         const char *format,
                         va_list args) __attribute__((format(printf, 3, 0)));

#endif
