#include "response.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct weir w;

static void setup(void)
{
    w = (struct weir){ .body_length = -1 }; /* as life.c begins a request */
    weir__arena_init(&w.arena, 65536, 4096);
    weir__buf_init(&w.out, WEIR__OUT_MAX);
}

static void teardown(void)
{
    weir__arena_finish(&w.arena);
    weir__buf_finish(&w.out);
}

TestSuite(response, .init = setup, .fini = teardown);

/* The call says false, and is reported so often as that breach. */
#define REFUSED(times_, breach_, call_)                                                  \
    do {                                                                                 \
        unsigned long before_ = weir_breach_count(breach_);                              \
        cr_expect_not(call_);                                                            \
        cr_expect_eq(weir_breach_count(breach_) - before_, times_);                      \
    } while (0)

static const char *head(bool whole)
{
    cr_assert(weir__response_build_head(&w, whole));
    cr_assert_eq(w.head_len, strlen(w.head_text));
    return w.head_text;
}

static void out(const char *bytes)
{
    cr_assert(weir__buf_append(&w.out, bytes, strlen(bytes)));
}

/* ---- status ------------------------------------------------------------------------ */

Test(response, takes_a_status_from_200_to_599)
{
    static const int bad[] = { 0, 100, 199, 600, -1, 1000 };
    cr_expect_eq(weir_status(&w), 0);
    cr_expect(weir_set_status(&w, 200));
    cr_expect(weir_set_status(&w, 599));
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        REFUSED(1, WEIR_BREACH_STATUS, weir_set_status(&w, bad[i]));
    cr_expect_eq(weir_status(&w), 599);
}

Test(response, knows_the_phrases_of_the_statuses)
{
    cr_expect_str_eq(weir__status_phrase(200), "OK");
    cr_expect_str_eq(weir__status_phrase(429), "Too Many Requests");
    cr_expect_str_eq(weir__status_phrase(431), "Request Header Fields Too Large");
    cr_expect_str_eq(weir__status_phrase(451), "Unavailable For Legal Reasons");
    cr_expect_str_eq(weir__status_phrase(504), "Gateway Timeout");
    cr_expect_str_eq(weir__status_phrase(511), "Network Authentication Required");
    static const int unknown[] = {
        -1, 0, 100, 199, 299, 306, 452, 499, 512, 599, 600, 700
    };
    for (unsigned i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        cr_expect_str_eq(weir__status_phrase(unknown[i]), "", "%d", unknown[i]);
}

/* ---- fields ------------------------------------------------------------------------ */

Test(response, setting_a_header_replaces_all_of_that_name)
{
    cr_expect(weir_add_header(&w, "Vary", "Accept"));
    cr_expect(weir_add_header(&w, "X-Other", "1"));
    cr_expect(weir_add_header(&w, "vary", "Cookie"));
    cr_expect_str_eq(weir_response_header(&w, "VARY"), "Accept");
    cr_expect(weir_set_header(&w, "Vary", "Origin"));
    cr_expect_str_eq(head(true),
                     "Status: 200 OK\r\n"
                     "Content-Length: 0\r\n"
                     "Vary: Origin\r\n"
                     "X-Other: 1\r\n"
                     "\r\n");
}

Test(response, added_headers_stay_lines_of_their_own)
{
    cr_expect(weir_add_header(&w, "Set-Cookie", "a=1; Path=/"));
    cr_expect(weir_add_header(&w, "Set-Cookie", "b=2"));
    cr_expect_not_null(strstr(head(true),
                              "Set-Cookie: a=1; Path=/\r\n"
                              "Set-Cookie: b=2\r\n"));
}

Test(response, null_and_empty_values_remove_a_header)
{
    weir_add_header(&w, "Vary", "Accept");
    weir_add_header(&w, "Vary", "Cookie");
    cr_expect(weir_set_header(&w, "vary", NULL));
    cr_expect_null(weir_response_header(&w, "Vary"));
    cr_expect(weir_set_header(&w, "X-A", "1"));
    cr_expect(weir_set_header(&w, "X-A", ""));
    cr_expect(weir_set_header(&w, "X-None", NULL));
    cr_expect(weir_add_header(&w, "X-B", ""));
    cr_expect(weir_add_header(&w, "X-C", NULL));
    cr_expect_eq(w.fields_len, 0);
}

Test(response, copies_names_and_values)
{
    char name[] = "X-Name", value[] = "value";
    cr_expect(weir_set_header(&w, name, value));
    memset(name, 'z', sizeof name - 1);
    memset(value, 'z', sizeof value - 1);
    cr_expect_str_eq(weir_response_header(&w, "X-Name"), "value");
}

Test(response, refuses_headers_that_would_be_read_as_something_else)
{
    static const struct {
        const char *name, *value;
    } bad[] = {
        { "X-A", "a\r\nSet-Cookie: x=y" },
        { "X-A", "a\nb" },
        { "X-A", "a\rb" },
        { "X-A", "a\x01" },
        { "X-A", "a\x7f" },
        { "X-A", " a" },
        { "X-A", "a " },
        { "X-A", "\ta" },
        { "X A", "a" },
        { "X-A:", "a" },
        { "", "a" },
        { "X\r\nY", "a" },
        { "X\xc3\xa9", "a" },
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        REFUSED(1, WEIR_BREACH_HEADER, weir_set_header(&w, bad[i].name, bad[i].value));
        cr_expect_not(weir_add_header(&w, bad[i].name, bad[i].value));
    }
    cr_expect_eq(w.fields_len, 0);
    cr_expect(weir_set_header(&w, "X-A", "a\tb \xe9 caf\xc3\xa9"));
}

Test(response, refuses_headers_that_are_not_the_apps)
{
    static const char *const own[] = {
        "Status",       "status",     "Content-Length",
        "CONNECTION",   "Keep-Alive", "TE",
        "Trailer",      "Upgrade",    "Transfer-Encoding",
        "Proxy-Status", "proxy-",     "Proxy-Authenticate",
    };
    for (unsigned i = 0; i < sizeof own / sizeof own[0]; i++) {
        REFUSED(1, WEIR_BREACH_HEADER, weir_set_header(&w, own[i], "1"));
        cr_expect_not(weir_set_header(&w, own[i], NULL));
        cr_expect_not(weir_add_header(&w, own[i], "1"));
    }
    cr_expect(weir_set_header(&w, "Status-X", "1"));
    cr_expect(weir_set_header(&w, "Proxy", "1"));
    cr_expect(weir_set_header(&w, "Tee", "1"));
}

Test(response, a_field_that_may_stand_once_is_not_added_twice)
{
    cr_expect(weir_add_header(&w, "Retry-After", "2"));
    REFUSED(1, WEIR_BREACH_HEADER, weir_add_header(&w, "retry-after", "5"));
    cr_expect(weir_set_header(&w, "Retry-After", "7"));
    cr_expect_str_eq(weir_response_header(&w, "Retry-After"), "7");
    cr_expect_eq(w.fields_len, 1);
}

Test(response, holds_many_fields_and_says_so_when_memory_is_short)
{
    char name[16];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "X-%d", i);
        cr_expect(weir_set_header(&w, name, name));
    }
    cr_expect_str_eq(weir_response_header(&w, "X-0"), "X-0");
    cr_expect_str_eq(weir_response_header(&w, "X-199"), "X-199");
    static char value[70000];
    memset(value, 'v', sizeof value - 1);
    cr_expect_not(weir_set_header(&w, "X-Long", value));
    cr_expect_not(weir_set_header(&w, "X-7", value));
    cr_expect_str_eq(weir_response_header(&w, "X-7"), "X-7");
    cr_expect_eq(w.fields_len, 200);
}

Test(response, changes_after_the_head_is_built_are_breaches)
{
    head(true);
    REFUSED(1, WEIR_BREACH_LATE, weir_set_status(&w, 404));
    REFUSED(1, WEIR_BREACH_LATE, weir_set_header(&w, "A", "1"));
    REFUSED(1, WEIR_BREACH_LATE, weir_add_header(&w, "A", "1"));
    cr_expect_eq(w.status, 200);
}

Test(response, what_comes_after_an_answer_of_weirs_own_is_dropped_in_silence)
{
    head(true);
    w.sealed = true;
    REFUSED(0, WEIR_BREACH_LATE, weir_set_status(&w, 404));
}

Test(response, a_reset_forgets_status_fields_and_body)
{
    weir_set_status(&w, 201);
    weir_set_header(&w, "X-A", "1");
    out("body");
    weir__response_reset(&w);
    cr_expect_str_eq(head(true), "Status: 200 OK\r\nContent-Length: 0\r\n\r\n");
}

/* ---- the head ---------------------------------------------------------------------- */

Test(response, the_head_has_status_then_cgi_fields_then_the_others)
{
    weir_set_status(&w, 429);
    weir_set_header(&w, "Cache-Control", "no-store");
    weir_set_header(&w, "Retry-After", "12");
    weir_set_header(&w, "RateLimit-Policy", "\"login\";q=5;w=60");
    weir_set_header(&w, "RateLimit", "\"login\";r=0;t=12");
    weir_set_header(&w, "Content-Type", "application/problem+json");
    out("{}");
    cr_expect_str_eq(head(true),
                     "Status: 429 Too Many Requests\r\n"
                     "Content-Type: application/problem+json\r\n"
                     "Content-Length: 2\r\n"
                     "Cache-Control: no-store\r\n"
                     "Retry-After: 12\r\n"
                     "RateLimit-Policy: \"login\";q=5;w=60\r\n"
                     "RateLimit: \"login\";r=0;t=12\r\n"
                     "\r\n");
}

Test(response, a_redirect_has_its_location_among_the_cgi_fields)
{
    weir_set_status(&w, 303);
    weir_set_header(&w, "X-A", "1");
    weir_set_header(&w, "location", "/next");
    cr_expect_str_eq(head(true),
                     "Status: 303 See Other\r\n"
                     "location: /next\r\n"
                     "Content-Length: 0\r\n"
                     "X-A: 1\r\n"
                     "\r\n");
}

Test(response, a_body_without_a_type_is_plain_text)
{
    out("hello");
    cr_expect_str_eq(head(true),
                     "Status: 200 OK\r\n"
                     "Content-Type: text/plain; charset=utf-8\r\n"
                     "Content-Length: 5\r\n"
                     "\r\n");
}

Test(response, a_body_that_grows_has_a_type_but_no_length)
{
    cr_expect_str_eq(head(false),
                     "Status: 200 OK\r\n"
                     "Content-Type: text/plain; charset=utf-8\r\n"
                     "\r\n");
}

Test(response, an_empty_body_needs_no_type)
{
    weir_set_status(&w, 201);
    cr_expect_str_eq(head(true), "Status: 201 Created\r\nContent-Length: 0\r\n\r\n");
}

Test(response, statuses_without_a_body_have_no_length)
{
    static const int bodiless[] = { 204, 304 };
    for (int i = 0; i < 4; i++) {
        w.head_text = NULL;
        weir_set_status(&w, bodiless[i / 2]);
        const char *text = head(i % 2 == 0);
        cr_expect_null(strstr(text, "Content-"), "%s", text);
    }
}

Test(response, a_head_request_has_the_length_of_gets_body)
{
    w.head = true;
    out("12345678");
    cr_expect_not_null(strstr(head(true), "\r\nContent-Length: 8\r\n"));
}

Test(response, a_status_without_a_phrase_gets_one)
{
    weir_set_status(&w, 299);
    cr_expect_not_null(strstr(head(true), "Status: 299 Unknown Status\r\n"));
}

Test(response, a_head_without_room_is_a_failure)
{
    weir__arena_finish(&w.arena);
    weir__arena_init(&w.arena, 64, 64);
    cr_expect_not(weir__response_build_head(&w, true));
    cr_expect_null(w.head_text);
}
