#include "base/buf.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

Test(buf, grows_and_keeps_what_it_holds)
{
    struct weir__buf buf;
    weir__buf_init(&buf, 0);
    for (int i = 0; i < 5000; i++)
        cr_assert(weir__buf_append(&buf, "0123456789", 10));
    cr_assert_eq(buf.len, 50000);
    cr_assert_eq(memcmp(buf.bytes + 49990, "0123456789", 10), 0);
    weir__buf_finish(&buf);
}

Test(buf, an_append_past_the_bound_changes_nothing)
{
    struct weir__buf buf;
    weir__buf_init(&buf, 8);
    cr_assert(weir__buf_append(&buf, "12345", 5));
    cr_assert_not(weir__buf_append(&buf, "6789", 4));
    cr_assert_not(weir__buf_printf(&buf, "%s", "6789"));
    cr_assert_not(weir__buf_reserve(&buf, SIZE_MAX));
    cr_assert_eq(buf.len, 5);
    cr_assert(weir__buf_printf(&buf, "%d", 678));
    cr_assert_eq(buf.len, 8);
    cr_assert_eq(memcmp(buf.bytes, "12345678", 8), 0);
    cr_assert_leq(buf.capacity, 8);
    weir__buf_finish(&buf);
}

Test(buf, a_size_that_would_overflow_is_refused)
{
    struct weir__buf buf;
    weir__buf_init(&buf, 0);
    cr_assert(weir__buf_append(&buf, "x", 1));
    cr_assert_not(weir__buf_reserve(&buf, SIZE_MAX));
    cr_assert_not(weir__buf_reserve(&buf, SIZE_MAX - 1));
    cr_assert_eq(buf.len, 1);
    weir__buf_finish(&buf);
}

Test(buf, consume_drops_from_the_front)
{
    struct weir__buf buf;
    weir__buf_init(&buf, 0);
    weir__buf_append(&buf, "abcdef", 6);
    weir__buf_consume(&buf, 2);
    cr_assert_eq(buf.len, 4);
    cr_assert_eq(memcmp(buf.bytes, "cdef", 4), 0);
    weir__buf_consume(&buf, 10);
    cr_assert_eq(buf.len, 0);
    weir__buf_finish(&buf);
}

Test(buf, reset_keeps_small_memory_and_frees_large)
{
    struct weir__buf buf;
    weir__buf_init(&buf, 0);
    weir__buf_append(&buf, "abc", 3);
    weir__buf_reset(&buf, 1000);
    cr_assert_not_null(buf.bytes);
    cr_assert_eq(buf.len, 0);
    weir__buf_reserve(&buf, 5000);
    weir__buf_reset(&buf, 1000);
    cr_assert_null(buf.bytes);
    cr_assert_eq(buf.capacity, 0);
    cr_assert(weir__buf_append(&buf, "abc", 3));
    weir__buf_finish(&buf);
}

Test(buf, appending_nothing_is_fine)
{
    struct weir__buf buf;
    weir__buf_init(&buf, 0);
    cr_assert(weir__buf_append(&buf, NULL, 0));
    cr_assert(weir__buf_printf(&buf, "%s", ""));
    weir__buf_consume(&buf, 0);
    cr_assert_eq(buf.len, 0);
    weir__buf_finish(&buf);
}
