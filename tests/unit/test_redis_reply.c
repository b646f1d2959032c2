/* Replies of Redis: what is expected, and what a hostile or mad server may send. */
#include "store/redis_reply.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct weir__redis_replies *replies;
static struct weir__redis_reply reply;

static void set_up(void)
{
    replies = weir__redis_replies_create();
    cr_assert(replies);
}

static void tear_down(void)
{
    weir__redis_replies_destroy(replies);
}

TestSuite(redis_reply, .init = set_up, .fini = tear_down);

static enum weir__redis_next feed(const char *bytes, size_t len)
{
    if (!weir__redis_replies_feed(replies, bytes, len))
        return WEIR__REDIS_BROKEN;
    return weir__redis_replies_next(replies, &reply);
}

static enum weir__redis_next feed_text(const char *text)
{
    return feed(text, strlen(text));
}

Test(redis_reply, reads_status_error_and_string)
{
    cr_assert_eq(feed_text("+OK\r\n-ERR no\r\n$3\r\na\rb\r\n"), WEIR__REDIS_READY);
    cr_assert_eq(reply.kind, WEIR__REDIS_STATUS);
    cr_assert_str_eq(reply.bytes, "OK");
    cr_assert_eq(weir__redis_replies_next(replies, &reply), WEIR__REDIS_READY);
    cr_assert_eq(reply.kind, WEIR__REDIS_ERROR);
    cr_assert_eq(weir__redis_replies_next(replies, &reply), WEIR__REDIS_READY);
    cr_assert_eq(reply.kind, WEIR__REDIS_STRING);
    cr_assert_eq(reply.len, 3);
    cr_assert_eq(memcmp(reply.bytes, "a\rb", 4), 0);
    cr_assert_eq(weir__redis_replies_next(replies, &reply), WEIR__REDIS_MORE);
}

Test(redis_reply, takes_bytes_one_by_one)
{
    const char *text = "$5\r\nhello\r\n";
    for (size_t i = 0; i + 1 < strlen(text); i++)
        cr_assert_eq(feed(text + i, 1), WEIR__REDIS_MORE);
    cr_assert_eq(feed("\n", 1), WEIR__REDIS_READY);
    cr_assert_str_eq(reply.bytes, "hello");
}

/* What other clients took for data. */
Test(redis_reply, other_forms_are_nothing_of_ours_and_the_stream_goes_on)
{
    const char *others[] = {
        "$-1\r\n",
        "*-1\r\n",
        ":5\r\n",
        "*0\r\n",
        "*1\r\n$1\r\na\r\n",
        "*2\r\n$8\r\n12345678\r\n$1\r\na\r\n",
        "*2\r\n*1\r\n:1\r\n*1\r\n-ERR x\r\n",
        "*1\r\n$-1\r\n",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        reply.kind = WEIR__REDIS_STRING;
        cr_assert_eq(feed_text(others[i]), WEIR__REDIS_READY, "%s", others[i]);
        cr_assert_eq(reply.kind, WEIR__REDIS_OTHER, "%s", others[i]);
        cr_assert_eq(reply.len, 0);
        cr_assert_eq(feed_text("+OK\r\n"), WEIR__REDIS_READY, "%s", others[i]);
        cr_assert_eq(reply.kind, WEIR__REDIS_STATUS);
    }
}

Test(redis_reply, a_string_longer_than_any_of_ours_is_none)
{
    char text[400];
    int len = snprintf(text, sizeof text, "$300\r\n%0300d\r\n", 7);
    cr_assert_eq(feed(text, (size_t)len), WEIR__REDIS_READY);
    cr_assert_eq(reply.kind, WEIR__REDIS_OTHER);
}

/* Feeds pieces for ever and says how many bytes were taken before it gave up. */
static size_t taken_of(const char *head, const char *piece)
{
    size_t taken = 0;
    enum weir__redis_next next = feed_text(head);
    for (; next == WEIR__REDIS_MORE && taken < 1000000; taken += strlen(piece))
        next = feed_text(piece);
    cr_assert_eq(next, WEIR__REDIS_BROKEN, "%s", head);
    return taken;
}

Test(redis_reply, half_a_gigabyte_is_not_waited_for)
{
    cr_assert_lt(taken_of("$536870912\r\n", "xxxxxxxxxxxxxxxx"), 6000);
}

Test(redis_reply, a_line_without_end_is_not_waited_for)
{
    cr_assert_lt(taken_of("-", "xxxxxxxxxxxxxxxx"), 6000);
}

Test(redis_reply, a_reply_that_outgrows_its_bound_after_it_was_fed_is_broken_for_good)
{
    char piece[5000];
    memset(piece, 'x', sizeof piece);
    cr_assert_eq(feed_text("$100000\r\n"), WEIR__REDIS_MORE);
    cr_assert_eq(feed(piece, sizeof piece), WEIR__REDIS_BROKEN);
    cr_assert_eq(feed_text("+OK\r\n"), WEIR__REDIS_BROKEN);
}

Test(redis_reply, hostile_bytes_break_the_stream)
{
    const char *hostile[] = {
        "HTTP/1.1 400 Bad Request\r\n", "\r\n",     "x", "$x\r\n",
        "*1000000000000\r\n",           ":12x\r\n",
    };
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        tear_down();
        set_up();
        cr_assert_eq(feed_text(hostile[i]), WEIR__REDIS_BROKEN, "%s", hostile[i]);
    }
}

Test(redis_reply, depth_without_end_breaks_the_stream)
{
    enum weir__redis_next next = WEIR__REDIS_MORE;
    int depth = 0;
    for (; next == WEIR__REDIS_MORE && depth < 1000; depth++)
        next = feed_text("*1\r\n");
    cr_assert_eq(next, WEIR__REDIS_BROKEN);
    cr_assert_lt(depth, 20);
}

Test(redis_reply, an_array_of_two_thousand_million_costs_nothing)
{
    cr_assert_eq(feed_text("*2147483647\r\n"), WEIR__REDIS_MORE);
    cr_assert_neq(feed_text(":1\r\n:2\r\n"), WEIR__REDIS_READY);
}

Test(redis_reply, an_error_is_known_by_its_first_word)
{
    cr_assert_eq(feed_text("-NOSCRIPT No matching script. Please use EVAL.\r\n"),
                 WEIR__REDIS_READY);
    cr_assert(weir__redis_is_error(&reply, "NOSCRIPT"));
    cr_assert_not(weir__redis_is_error(&reply, "NOSCRIP"));
    cr_assert_eq(feed_text("+NOSCRIPT\r\n"), WEIR__REDIS_READY);
    cr_assert_not(weir__redis_is_error(&reply, "NOSCRIPT"));
    cr_assert_eq(feed_text("-ERR Error running script (call to f_12): @user_script:3: "
                           "-READONLY You can't write against a read only replica.\r\n"),
                 WEIR__REDIS_READY);
    cr_assert(weir__redis_is_error(&reply, "READONLY"));
}
