#include "base/arena.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

Test(arena, pieces_are_aligned_and_apart)
{
    struct weir__arena arena;
    weir__arena_init(&arena, 4096, 256);
    char *before = NULL;
    for (int i = 0; i < 20; i++) {
        char *piece = weir__arena_alloc(&arena, 7);
        cr_assert_not_null(piece);
        cr_assert_eq((uintptr_t)piece % _Alignof(max_align_t), 0);
        cr_assert_neq(piece, before);
        memset(piece, i, 7);
        before = piece;
    }
    weir__arena_finish(&arena);
}

Test(arena, a_full_arena_says_null_and_lives_on)
{
    struct weir__arena arena;
    weir__arena_init(&arena, 128, 64);
    cr_assert_not_null(weir__arena_alloc(&arena, 100));
    cr_assert_null(weir__arena_alloc(&arena, 100));
    cr_assert_not_null(weir__arena_alloc(&arena, 16));
    cr_assert_null(weir__arena_alloc(&arena, 1));
    cr_assert_not_null(weir__arena_alloc(&arena, 0));
    cr_assert_eq(arena.used_bytes, 128);
    weir__arena_finish(&arena);
}

Test(arena, a_size_that_would_overflow_says_null)
{
    struct weir__arena arena;
    weir__arena_init(&arena, SIZE_MAX, 64);
    cr_assert_null(weir__arena_alloc(&arena, SIZE_MAX));
    cr_assert_null(weir__arena_alloc(&arena, SIZE_MAX - 20));
    cr_assert_null(weir__arena_copy(&arena, "", SIZE_MAX));
    weir__arena_finish(&arena);
}

Test(arena, a_large_piece_gets_its_own_block_and_small_ones_go_on_filling)
{
    struct weir__arena arena;
    weir__arena_init(&arena, 1 << 20, 256);
    char *small = weir__arena_alloc(&arena, 16);
    char *large = weir__arena_alloc(&arena, 10000);
    memset(large, 'x', 10000);
    cr_assert_eq((char *)weir__arena_alloc(&arena, 16), small + 16);
    weir__arena_finish(&arena);
}

Test(arena, reset_keeps_one_block_of_the_usual_size)
{
    struct weir__arena arena;
    weir__arena_init(&arena, 1 << 20, 256);
    weir__arena_alloc(&arena, 10000);
    struct weir__arena_block *kept = arena.first;
    char *piece = weir__arena_alloc(&arena, 16);
    for (int i = 0; i < 100; i++)
        weir__arena_alloc(&arena, 100);
    weir__arena_reset(&arena);
    cr_assert_eq(arena.first, kept);
    cr_assert_eq(arena.now, kept);
    cr_assert_eq(arena.used_bytes, 0);
    cr_assert_eq((char *)weir__arena_alloc(&arena, 16), piece);
    weir__arena_finish(&arena);
    weir__arena_finish(&arena);
}

Test(arena, zalloc_zeroes_what_was_used_before)
{
    struct weir__arena arena;
    weir__arena_init(&arena, 4096, 256);
    memset(weir__arena_alloc(&arena, 64), 0xff, 64);
    weir__arena_reset(&arena);
    unsigned char *piece = weir__arena_zalloc(&arena, 64);
    for (int i = 0; i < 64; i++)
        cr_assert_eq(piece[i], 0);
    weir__arena_finish(&arena);
}

static char *print(struct weir__arena *arena, size_t *ret_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static char *print(struct weir__arena *arena, size_t *ret_bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = weir__arena_printf(arena, ret_bytes, format, args);
    va_end(args);
    return text;
}

Test(arena, copy_and_printf_end_with_nul)
{
    struct weir__arena arena;
    weir__arena_init(&arena, 256, 64);
    cr_assert_str_eq(weir__arena_copy(&arena, "abcdef", 3), "abc");
    cr_assert_str_eq(weir__arena_copy(&arena, NULL, 0), "");
    size_t bytes = 0;
    cr_assert_str_eq(print(&arena, &bytes, "%s-%d", "x", 42), "x-42");
    cr_assert_eq(bytes, 4);
    cr_assert_str_eq(print(&arena, NULL, "y"), "y");
    bytes = 7;
    cr_assert_null(print(&arena, &bytes, "%300s", ""));
    cr_assert_eq(bytes, 7);
    weir__arena_finish(&arena);
}
