/* Commands for Redis: framing, binary safety, a full buffer. */
#include "store/redis_command.h"

#include <criterion/criterion.h>
#include <string.h>

static struct weir__buf out;

static void set_up(void)
{
    weir__buf_init(&out, 0);
}

static void tear_down(void)
{
    weir__buf_finish(&out);
}

TestSuite(redis_command, .init = set_up, .fini = tear_down);

static void expect(const char *bytes, size_t len)
{
    cr_assert_eq(out.len, len);
    cr_assert_eq(memcmp(out.bytes, bytes, len), 0);
}

Test(redis_command, frames_each_word_with_its_length)
{
    cr_assert(weir__redis_put_select(&out, 3));
    expect("*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n", 23);
}

Test(redis_command, a_password_may_hold_any_byte)
{
    cr_assert(weir__redis_put_auth(&out, "a b\r\n*1\r\n%s"));
    static const char expected[] = "*2\r\n$4\r\nAUTH\r\n$11\r\na b\r\n*1\r\n%s\r\n";
    expect(expected, sizeof expected - 1);
}

Test(redis_command, an_argument_may_hold_nul)
{
    const struct weir__redis_arg args[] = { { "GET", 3 }, { "a\0b", 3 } };
    cr_assert(weir__redis_put(&out, args, 2));
    expect("*2\r\n$3\r\nGET\r\n$3\r\na\0b\r\n", 22);
}

Test(redis_command, loads_a_script_whole)
{
    cr_assert(weir__redis_put_load(&out, "return 1\n", 9));
    static const char expected[] =
        "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$9\r\nreturn 1\n\r\n";
    expect(expected, sizeof expected - 1);
}

Test(redis_command, a_full_buffer_gets_no_half_command)
{
    out.max_bytes = 40;
    cr_assert(weir__redis_put_select(&out, 0));
    cr_assert_not(weir__redis_put_auth(&out, "a password that is too long for it"));
    expect("*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n", 23);
}
