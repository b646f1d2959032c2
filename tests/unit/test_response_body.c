#include "response.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "life.h"

/* A transport that collects what it is handed. */
static struct {
    char head[2048];
    struct weir__buf body;
    unsigned sends;
    size_t longest; /* bytes of body in one send */
    bool broken;    /* says that the client is gone */
} sent;

static bool keep_sent(struct weir *w)
{
    if (sent.broken)
        return false;
    if (!w->head_sent)
        snprintf(sent.head, sizeof sent.head, "%.*s", (int)w->head_len, w->head_text);
    w->head_sent = true;
    cr_assert(weir__buf_append(&sent.body, w->out.bytes, w->out.len));
    if (w->out.len > sent.longest)
        sent.longest = w->out.len;
    w->out.len = 0;
    sent.sends++;
    return true;
}

static const struct weir__transport_ops transport = { .name = "test", .send = keep_sent };
static const struct weir__app app;
static struct weir w;

static void setup(void)
{
    memset(&sent, 0, sizeof sent);
    weir__buf_init(&sent.body, 0);
    weir__arena_init(&w.arena, 65536, 4096);
    weir__buf_init(&w.out, WEIR__OUT_MAX);
    weir__life_init(&w, &app, NULL, &transport, NULL);
    w.in_handler = true;
}

static void teardown(void)
{
    weir__arena_finish(&w.arena);
    weir__buf_finish(&w.out);
    weir__buf_finish(&sent.body);
}

TestSuite(response_body, .init = setup, .fini = teardown);

static bool out_is(const char *text)
{
    return w.out.len == strlen(text) && memcmp(w.out.bytes, text, w.out.len) == 0;
}

/* ---- writing ----------------------------------------------------------------------- */

Test(response_body, a_small_body_waits_for_the_end_of_the_handler)
{
    cr_expect(weir_write(&w, "hel", 3));
    cr_expect(weir_write(&w, "lo", 2));
    cr_expect(out_is("hello"));
    cr_expect_eq(sent.sends, 0);
    cr_expect_null(w.head_text);
}

Test(response_body, a_large_body_leaves_as_it_grows)
{
    static char bytes[1000];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)('a' + i % 26);
    weir_set_status(&w, 201);
    for (int i = 0; i < 1000; i++) {
        cr_assert(weir_write(&w, bytes, sizeof bytes));
        cr_assert_leq(w.out.len, WEIR__OUT_HIGH_WATER);
    }
    cr_expect_eq(sent.sends, 1000000 / WEIR__OUT_HIGH_WATER);
    cr_expect_eq(sent.longest, WEIR__OUT_HIGH_WATER);
    cr_expect_str_eq(sent.head,
                     "Status: 201 Created\r\n"
                     "Content-Type: text/plain; charset=utf-8\r\n\r\n");
    cr_expect_eq(w.sent_bytes, sent.body.len);
    cr_expect_eq(sent.body.len + w.out.len, 1000000);
    for (size_t i = 0; i < sent.body.len; i++)
        cr_assert_eq(sent.body.bytes[i], bytes[i % 1000]);
}

Test(response_body, one_huge_write_leaves_in_pieces)
{
    size_t len = 3 * WEIR__OUT_HIGH_WATER + 17;
    char *bytes = calloc(1, len);
    cr_expect(weir_write(&w, bytes, len));
    cr_expect_eq(sent.sends, 3);
    cr_expect_eq(sent.longest, WEIR__OUT_HIGH_WATER);
    cr_expect_eq(w.out.len, 17);
    free(bytes);
}

Test(response_body, a_flush_sends_what_there_is)
{
    cr_expect(weir_flush(&w));
    cr_expect_eq(sent.sends, 1);
    cr_expect_not_null(w.head_text);
    weir_write(&w, "data", 4);
    cr_expect(weir_flush(&w));
    cr_expect_eq(sent.body.len, 4);
    cr_expect_eq(w.sent_bytes, 4);
    cr_expect_not(weir_set_header(&w, "X-Late", "1"));
}

Test(response_body, outside_a_blocking_handler_nothing_is_sent)
{
    size_t len = 2 * WEIR__OUT_HIGH_WATER;
    char *bytes = calloc(1, len);
    w.nonblocking = true;
    cr_expect(weir_write(&w, bytes, len));
    cr_expect_not(weir_flush(&w));
    w.nonblocking = false;
    w.in_handler = false;
    cr_expect(weir_write(&w, bytes, len));
    cr_expect_not(weir_flush(&w));
    cr_expect_eq(sent.sends, 0);
    cr_expect_eq(w.out.len, 2 * len);
    free(bytes);
}

Test(response_body, what_is_collected_has_a_bound)
{
    char *bytes = calloc(1, WEIR__OUT_MAX);
    w.in_handler = false;
    cr_expect(weir_write(&w, bytes, WEIR__OUT_MAX));
    cr_expect_not(weir_write(&w, "x", 1));
    free(bytes);
}

Test(response_body, a_head_request_gets_a_head_only)
{
    char *bytes = calloc(1, WEIR__OUT_HIGH_WATER);
    w.head = true;
    cr_expect(weir_write(&w, bytes, WEIR__OUT_HIGH_WATER));
    cr_expect(weir_write(&w, bytes, WEIR__OUT_HIGH_WATER));
    cr_expect_eq(sent.sends, 2);
    cr_expect_eq(sent.body.len, 0);
    cr_expect_eq(w.sent_bytes, 0);
    cr_expect_null(strstr(sent.head, "Content-Length"));
    free(bytes);
}

Test(response_body, a_status_without_a_body_sends_none)
{
    weir_set_status(&w, 204);
    weir_write(&w, "x", 1);
    cr_expect(weir_flush(&w));
    cr_expect_eq(sent.body.len, 0);
    cr_expect_str_eq(sent.head, "Status: 204 No Content\r\n\r\n");
}

Test(response_body, a_client_that_is_gone_gets_nothing)
{
    atomic_store(&w.gone, true);
    cr_expect_not(weir_write(&w, "x", 1));
    cr_expect_not(weir_flush(&w));
    atomic_store(&w.gone, false);
    sent.broken = true;
    weir_write(&w, "x", 1);
    cr_expect_not(weir_flush(&w));
    cr_expect_eq(w.sent_bytes, 0);
}

Test(response_body, a_write_after_the_answer_is_complete_is_a_breach)
{
    weir_flush(&w);
    w.in_handler = false;
    unsigned long before = weir_breach_count(WEIR_BREACH_LATE);
    cr_expect_not(weir_write(&w, "x", 1));
    cr_expect_eq(weir_breach_count(WEIR_BREACH_LATE), before + 1);
    w.sealed = true;
    cr_expect_not(weir_write(&w, "x", 1));
    cr_expect_eq(weir_breach_count(WEIR_BREACH_LATE), before + 1);
}

/* ---- whole answers ----------------------------------------------------------------- */

Test(response_body, text_and_html_set_status_type_and_body)
{
    cr_expect_eq(weir_text(&w, 200, "first"), 200);
    cr_expect_str_eq(weir_response_header(&w, "Content-Type"),
                     "text/plain; charset=utf-8");
    cr_expect_eq(weir_html(&w, 404, "<p>no</p>"), 404);
    cr_expect_str_eq(weir_response_header(&w, "Content-Type"),
                     "text/html; charset=utf-8");
    cr_expect(out_is("<p>no</p>"));
    cr_expect_eq(weir_status(&w), 404);
    cr_expect_eq(weir_text(&w, 200, ""), 200);
    cr_expect(out_is(""));
}

Test(response_body, json_is_compact_and_keeps_the_order)
{
    int status = weir_json(&w,
                           201,
                           "{s:s, s:i, s:[b, n], s:{s:s}}",
                           "zebra",
                           "caf\xc3\xa9 / \"x\"",
                           "apple",
                           7,
                           "list",
                           1,
                           "o",
                           "k",
                           "v");
    cr_expect_eq(status, 201);
    cr_expect(out_is("{\"zebra\":\"caf\xc3\xa9 / \\\"x\\\"\",\"apple\":7,"
                     "\"list\":[true,null],\"o\":{\"k\":\"v\"}}"));
    cr_expect_str_eq(weir_response_header(&w, "Content-Type"), "application/json");
    cr_expect_eq(weir_json(&w, 200, "s", "alone"), 200);
    cr_expect(out_is("\"alone\""));
}

Test(response_body, json_that_cannot_be_made_is_a_500)
{
    static const char problem[] = "{\"type\":\"about:blank\",\"title\":\"Internal Server "
                                  "Error\",\"status\":500,\"code\":\"InternalError\"}";
    weir_write(&w, "begun", 5);
    cr_expect_eq(weir_json(&w, 200, "{s:s}", "bad", "\xff"), 500);
    cr_expect(out_is(problem));
    cr_expect_eq(weir_json(&w, 200, "{s:s", "a", "b"), 500);
    cr_expect(out_is(problem));
    cr_expect_eq(weir_json(&w, 200, "{s:s}", "null", (char *)NULL), 500);
    cr_expect_str_eq(weir_response_header(&w, "Content-Type"),
                     "application/problem+json");
    cr_expect_eq(sent.sends, 0);
}

Test(response_body, an_answer_that_finds_no_memory_is_a_500)
{
    w.in_handler = false;
    weir__buf_finish(&w.out);
    weir__buf_init(&w.out, 100);
    char text[200];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    cr_expect_eq(weir_text(&w, 200, text), 500);
    cr_expect_eq(weir_status(&w), 500);
    cr_expect_eq(weir_json(&w, 200, "{s:s}", "text", text), 500);
    cr_expect(out_is("{\"type\":\"about:blank\",\"title\":\"Internal Server Error\","
                     "\"status\":500,\"code\":\"InternalError\"}"));
}

Test(response_body, a_large_whole_answer_leaves_in_pieces_too)
{
    size_t len = 2 * WEIR__OUT_HIGH_WATER;
    char *text = malloc(len + 1);
    memset(text, 'x', len);
    text[len] = '\0';
    cr_expect_eq(weir_json(&w, 203, "{s:s}", "text", text), 203);
    cr_expect_eq(sent.sends, 2);
    cr_expect_eq(sent.body.len + w.out.len, len + strlen("{\"text\":\"\"}"));
    cr_expect_not_null(strstr(sent.head, "Status: 203 "));
    free(text);
}

Test(response_body, an_answer_after_the_head_has_left_changes_nothing)
{
    weir_flush(&w);
    cr_expect_eq(weir_text(&w, 404, "late"), 404);
    cr_expect_eq(weir_status(&w), 200);
    cr_expect_eq(w.out.len, 0);
}
