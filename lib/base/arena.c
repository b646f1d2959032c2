/* Bump allocation from a list of blocks.
 *
 * Pieces are rounded up to ALIGN, so that every piece suits every type. The first block
 * is always of the usual size, even where the first piece is larger, so that what reset()
 * keeps between requests is bounded. Nothing here frees a single piece. */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN _Alignof(max_align_t)

struct weir__arena_block {
    struct weir__arena_block *next;
    size_t size, used; /* bytes of data */
    _Alignas(max_align_t) char data[];
};

void weir__arena_init(struct weir__arena *arena, size_t max_bytes, size_t block_bytes)
{
    *arena = (struct weir__arena){ .max_bytes = max_bytes, .block_bytes = block_bytes };
}

/* Frees the blocks behind this one. */
static void free_behind(struct weir__arena_block *block)
{
    struct weir__arena_block *next = block->next;
    block->next = NULL;
    while (next) {
        struct weir__arena_block *after = next->next;
        free(next);
        next = after;
    }
}

void weir__arena_finish(struct weir__arena *arena)
{
    if (arena->first) {
        free_behind(arena->first);
        free(arena->first);
    }
    arena->first = arena->now = NULL;
    arena->used_bytes = 0;
}

void weir__arena_reset(struct weir__arena *arena)
{
    if (arena->first) {
        free_behind(arena->first);
        arena->first->used = 0;
    }
    arena->now = arena->first;
    arena->used_bytes = 0;
}

/* A new block of that many bytes behind the present one, or as the first. */
static struct weir__arena_block *add_block(struct weir__arena *arena, size_t size)
{
    if (size > SIZE_MAX - sizeof(struct weir__arena_block))
        return NULL;
    struct weir__arena_block *block = malloc(sizeof *block + size);
    if (!block)
        return NULL;
    block->size = size;
    block->used = 0;
    block->next = NULL;
    if (arena->now) {
        block->next = arena->now->next;
        arena->now->next = block;
    } else {
        arena->first = arena->now = block;
    }
    return block;
}

/* A block with room for bytes, made where there is none. */
static struct weir__arena_block *block_for(struct weir__arena *arena, size_t bytes)
{
    if (!arena->now && !add_block(arena, arena->block_bytes))
        return NULL;
    if (bytes <= arena->now->size - arena->now->used)
        return arena->now;
    if (bytes > arena->block_bytes)
        return add_block(arena, bytes); /* full at once: `now` stays the one to fill */
    struct weir__arena_block *block = add_block(arena, arena->block_bytes);
    if (block)
        arena->now = block;
    return block;
}

void *weir__arena_alloc(struct weir__arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX - (ALIGN - 1))
        return NULL;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > arena->max_bytes - arena->used_bytes)
        return NULL;
    struct weir__arena_block *block = block_for(arena, bytes);
    if (!block)
        return NULL;
    void *piece = block->data + block->used;
    block->used += bytes;
    arena->used_bytes += bytes;
    return piece;
}

void *weir__arena_zalloc(struct weir__arena *arena, size_t bytes)
{
    void *piece = weir__arena_alloc(arena, bytes);
    if (piece)
        memset(piece, 0, bytes);
    return piece;
}

char *weir__arena_copy(struct weir__arena *arena, const char *text, size_t bytes)
{
    char *copy = bytes < SIZE_MAX ? weir__arena_alloc(arena, bytes + 1) : NULL;
    if (!copy)
        return NULL;
    if (bytes > 0)
        memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

char *weir__arena_printf(struct weir__arena *arena,
                         size_t *ret_bytes,
                         const char *format,
                         va_list args)
{
    va_list again;
    va_copy(again, args);
    int bytes = vsnprintf(NULL, 0, format, args);
    char *text = bytes < 0 ? NULL : weir__arena_alloc(arena, (size_t)bytes + 1);
    if (text) {
        vsnprintf(text, (size_t)bytes + 1, format, again);
        if (ret_bytes)
            *ret_bytes = (size_t)bytes;
    }
    va_end(again);
    return text;
}
