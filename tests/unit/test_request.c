#include "request.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct weir w;
static struct weir__pair params[64];

static void setup(void)
{
    w = (struct weir){ .params = params, .method = "", .path = "", .query = "" };
    w.body = "";
    w.content_length = -1;
    weir__arena_init(&w.arena, 65536, 4096);
}

static void teardown(void)
{
    weir__request_finish(&w);
    weir__arena_finish(&w.arena);
}

TestSuite(request, .init = setup, .fini = teardown);

static void param_bytes(const char *name, const char *value, size_t value_len)
{
    params[w.params_len++] = (struct weir__pair){ .name = name,
                                                  .value = value,
                                                  .name_len = (unsigned)strlen(name),
                                                  .value_len = (unsigned)value_len };
}

static void param(const char *name, const char *value)
{
    param_bytes(name, value, strlen(value));
}

/* Parses; NULL, or why it is a 400. */
static const char *parse(void)
{
    const char *detail = "no detail was given";
    return weir__request_parse(&w, &detail) ? NULL : detail;
}

/* The same, for a GET of /. */
static const char *parse_get(void)
{
    param("REQUEST_METHOD", "GET");
    param("REQUEST_URI", "/");
    return parse();
}

#define REFUSED(call_, why_)                                                             \
    do {                                                                                 \
        const char *detail_ = (call_);                                                   \
        cr_expect_not_null(detail_);                                                     \
        cr_expect_not_null(strstr(detail_ ? detail_ : "", why_), "%s", detail_);         \
    } while (0)

/* ---- parsing ----------------------------------------------------------------------- */

Test(request, is_read_from_the_parameters)
{
    param("REQUEST_METHOD", "POST");
    param("REQUEST_URI", "//api/%70aris/?a=1");
    param("QUERY_STRING", "a=1");
    param("CONTENT_LENGTH", "12");
    param("REMOTE_ADDR", "::ffff:192.0.2.7");
    cr_assert_null(parse());
    cr_expect_str_eq(weir_method(&w), "POST");
    cr_expect_str_eq(weir_request_path(&w), "/api/paris");
    cr_expect_str_eq(w.query, "a=1");
    cr_expect_eq(w.content_length, 12);
    cr_expect_str_eq(weir_remote_ip(&w), "192.0.2.7");
    cr_expect_not(w.head);
}

Test(request, a_head_request_is_known_as_one)
{
    param("REQUEST_METHOD", "HEAD");
    param("REQUEST_URI", "/");
    cr_assert_null(parse());
    cr_expect(w.head);
}

Test(request, without_a_uri_the_path_is_script_name_and_path_info)
{
    param("REQUEST_METHOD", "GET");
    param("SCRIPT_NAME", "/app");
    param("PATH_INFO", "/a//b/");
    cr_assert_null(parse());
    cr_expect_str_eq(w.path, "/app/a/b");
    cr_expect_str_eq(w.query, "");
}

Test(request, the_query_of_the_uri_stands_in_for_an_absent_one)
{
    param("REQUEST_METHOD", "GET");
    param("REQUEST_URI", "/a?x=1&y=%20z");
    param("QUERY_STRING", "");
    cr_assert_null(parse());
    cr_expect_str_eq(weir_query(&w, "x"), "1");
    cr_expect_str_eq(weir_query(&w, "y"), " z");
}

Test(request, a_path_that_can_be_read_in_two_ways_is_a_400)
{
    static const char *const bad[] = { "/a%2Fb", "/a%00b", "/%zz", "/%", "*", "a" };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        w.params_len = 0;
        param("REQUEST_METHOD", "GET");
        param("REQUEST_URI", bad[i]);
        cr_expect_not_null(parse(), "%s", bad[i]);
    }
    w.params_len = 0;
    param("REQUEST_METHOD", "GET");
    param("REQUEST_URI", "/caf%E9");
    REFUSED(parse(), "UTF-8");
}

Test(request, a_400_still_has_method_and_address)
{
    param("REQUEST_METHOD", "HEAD");
    param("REQUEST_URI", "/%zz");
    param("REMOTE_ADDR", "2001:DB8:0:0::1");
    cr_expect_not_null(parse());
    cr_expect_str_eq(w.method, "HEAD");
    cr_expect(w.head);
    cr_expect_str_eq(w.remote_text, "2001:db8::1");
    cr_expect_str_eq(w.path, "");
}

Test(request, a_missing_or_malformed_method_is_a_400)
{
    param("REQUEST_URI", "/");
    REFUSED(parse(), "method");
    static const char *const bad[] = {
        "", "G ET", "GET\r\nX: y", "GE\xc3\x89", "AMETHODOFMORETHANTHIRTYTWOBYTESXX"
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        w.params_len = 1;
        param("REQUEST_METHOD", bad[i]);
        REFUSED(parse(), "method");
        cr_expect_str_eq(w.method, "");
    }
    w.params_len = 1;
    param("REQUEST_METHOD", "get");
    cr_expect_null(parse());
    cr_expect_str_eq(w.method, "get");
}

Test(request, a_content_length_is_digits_only)
{
    static const char *const bad[] = { "+5",  "5 ",  "5,5",
                                       "0x5", "-1",  "1e3",
                                       " 5",  "5.0", "99999999999999999999" };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        w.params_len = 0;
        param("CONTENT_LENGTH", bad[i]);
        REFUSED(parse_get(), "content length");
    }
    w.params_len = 0;
    param("CONTENT_LENGTH", "");
    cr_expect_null(parse_get());
    cr_expect_eq(w.content_length, -1);
}

Test(request, what_is_no_address_is_none)
{
    static const char *const bad[] = {
        "", "@", "unix:", "/run/x.sock", "1.2.3", "banana"
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        w.params_len = 0;
        param("REMOTE_ADDR", bad[i]);
        cr_expect_null(parse_get());
        cr_expect_str_eq(weir_remote_ip(&w), "");
        cr_expect_eq(w.remote.family, WEIR__ADDR_NONE);
    }
}

Test(request, a_zone_of_an_address_is_dropped)
{
    param("REMOTE_ADDR", "fe80::1%eth0");
    cr_expect_null(parse_get());
    cr_expect_str_eq(weir_remote_ip(&w), "fe80::1");
}

Test(request, a_parameter_with_two_values_is_a_400)
{
    param("REMOTE_ADDR", "192.0.2.1");
    param("SERVER_NAME", "a");
    param("REMOTE_ADDR", "192.0.2.2");
    REFUSED(parse_get(), "two values");
}

Test(request, a_parameter_with_one_value_twice_is_none)
{
    param("REMOTE_ADDR", "192.0.2.1");
    param("REMOTE_ADDR", "");
    param("REMOTE_ADDR", "192.0.2.1");
    param("SCRIPT_NAME", "");
    param("SCRIPT_NAME", "/x");
    cr_expect_null(parse_get());
    cr_expect_str_eq(weir_param(&w, "REMOTE_ADDR"), "192.0.2.1");
    cr_expect_str_eq(weir_param(&w, "SCRIPT_NAME"), "/x");
}

/* 2,000 parameters share the marks by which names seen are known. */
Test(request, many_parameters_are_told_apart)
{
    static struct weir__pair many[2000];
    static char names[2000][8];
    w.params = many;
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(names[i], sizeof names[i], "P%u", i);
        many[i] =
            (struct weir__pair){ names[i], names[i], (unsigned)strlen(names[i]), 0 };
        many[i].value_len = many[i].name_len;
    }
    many[0] = (struct weir__pair){ "REQUEST_METHOD", "GET", 14, 3 };
    many[1] = (struct weir__pair){ "REQUEST_URI", "/", 11, 1 };
    w.params_len = 2000;
    cr_expect_null(parse());
    many[1999] = (struct weir__pair){ "P7", "x", 2, 1 };
    REFUSED(parse(), "two values");
    w.params = params;
}

Test(request, a_nul_in_a_parameter_is_a_400)
{
    param_bytes("REMOTE_USER", "bob\0x", 5);
    REFUSED(parse_get(), "NUL");
    w.params_len = 0;
    param_bytes("HTTP_X", "\0", 1);
    REFUSED(parse_get(), "NUL");
    w.params_len = 0;
    params[w.params_len++] = (struct weir__pair){ "A\0B", "v", 3, 1 };
    REFUSED(parse_get(), "NUL");
}

Test(request, the_first_fault_is_told)
{
    param("REQUEST_METHOD", "G T");
    param("REQUEST_URI", "/%zz");
    param("CONTENT_LENGTH", "x");
    REFUSED(parse(), "method");
}

Test(request, a_full_arena_is_a_400_and_no_crash)
{
    weir__arena_finish(&w.arena);
    weir__arena_init(&w.arena, 16, 16);
    param("REQUEST_METHOD", "GET");
    param("REQUEST_URI", "/a/long/path/that/has/no/room");
    REFUSED(parse(), "too long");
}

/* ---- headers, cookies, query ------------------------------------------------------- */

Test(request, headers_are_found_in_any_case_and_joined_in_order)
{
    param("HTTP_X_FORWARDED_FOR", "6.6.6.6");
    param("HTTP_USER_AGENT", "curl");
    param("HTTP_X_FORWARDED_FOR", "");
    param("HTTP_X_FORWARDED_FOR", "203.0.113.9");
    param("HTTP_COOKIE", "sid=a");
    param("HTTP_COOKIE", "b=c");
    param("HTTP_EMPTY", "");
    cr_expect_str_eq(weir_header(&w, "x-forwarded-FOR"), "6.6.6.6, 203.0.113.9");
    cr_expect_str_eq(weir_header(&w, "Cookie"), "sid=a; b=c");
    cr_expect_eq(weir_header(&w, "User-Agent"), params[1].value, "copied needlessly");
    cr_expect_null(weir_header(&w, "Empty"));
    cr_expect_null(weir_header(&w, "User"));
    cr_expect_null(weir_header(&w, "No such header"));
    cr_expect_null(weir_header(&w, ""));
}

Test(request, type_and_length_of_the_body_are_headers_too)
{
    param("CONTENT_TYPE", "text/plain");
    param("HTTP_CONTENT_TYPE", "text/html");
    param("CONTENT_LENGTH", "3");
    cr_expect_str_eq(weir_header(&w, "Content-Type"), "text/plain");
    cr_expect_str_eq(weir_header(&w, "content-length"), "3");
}

Test(request, an_empty_parameter_is_absent)
{
    param("REMOTE_USER", "");
    cr_expect_null(weir_param(&w, "REMOTE_USER"));
    cr_expect_null(weir_param(&w, "REMOTE"));
    cr_expect_null(weir_param(&w, "AUTH_TYPE"));
}

Test(request, a_header_for_which_memory_is_short_is_absent)
{
    static char value[40000];
    memset(value, 'x', sizeof value - 1);
    param("HTTP_A", value);
    param("HTTP_A", value);
    cr_expect_null(weir_header(&w, "A"));
}

Test(request, cookies_with_two_values_are_none)
{
    param("HTTP_COOKIE", "sid=A; xsid=bad; one=1; one=1");
    param("HTTP_COOKIE", "sid=B; q=\"v\"; e=");
    cr_expect_null(weir_cookie(&w, "sid"));
    cr_expect_str_eq(weir_cookie(&w, "xsid"), "bad");
    cr_expect_str_eq(weir_cookie(&w, "one"), "1");
    cr_expect_str_eq(weir_cookie(&w, "q"), "\"v\"");
    cr_expect_null(weir_cookie(&w, "e"));
    cr_expect_null(weir_cookie(&w, "SID"));
    cr_expect_null(weir_cookie(&w, "none"));
}

Test(request, without_a_cookie_header_there_are_no_cookies)
{
    cr_expect_null(weir_cookie(&w, "sid"));
}

Test(request, query_values_are_decoded)
{
    w.query = "a=1+2&b=%C3%A9&bad=%zz&a=3&flag&nul=%00&latin=%E9";
    cr_expect_str_eq(weir_query(&w, "a"), "1 2");
    cr_expect_str_eq(weir_query(&w, "b"), "\xc3\xa9");
    cr_expect_str_eq(weir_query(&w, "flag"), "");
    cr_expect_null(weir_query(&w, "bad"));
    cr_expect_null(weir_query(&w, "nul"));
    cr_expect_null(weir_query(&w, "latin"));
    cr_expect_null(weir_query(&w, "c"));
}

/* ---- captures ---------------------------------------------------------------------- */

Test(request, captures_are_decoded_once)
{
    const char *path = "/u/%2541%20x/r%C3%A9st";
    w.captures[0] = (struct weir__capture){ "name", path + 3, 4, 9, false };
    w.captures[1] = (struct weir__capture){ "*", path + 13, 1, 9, false };
    w.captures_len = 2;
    cr_expect_str_eq(weir_path(&w, "name"), "%41 x");
    cr_expect_str_eq(weir_path(&w, "name"), "%41 x");
    cr_expect_str_eq(weir_path(&w, "*"), "r\xc3\xa9st");
    cr_expect_null(weir_path(&w, "nam"));
    cr_expect_null(weir_path(&w, "other"));
}

/* ---- the body ---------------------------------------------------------------------- */

static void body(const char *type, const char *text)
{
    w.params_len = 0;
    param("CONTENT_TYPE", type);
    weir__request_finish(&w);
    w.body = text;
    w.body_len = strlen(text);
}

Test(request, the_body_is_empty_until_it_has_come)
{
    size_t len = 7;
    cr_expect_str_eq(weir_body(&w, &len), "");
    cr_expect_eq(len, 0);
    cr_expect_null(weir_body_string(&w, "user"));
    cr_expect_null(weir_form(&w, "user"));
    body("text/plain", "abc");
    cr_expect_str_eq(weir_body(&w, NULL), "abc");
}

Test(request, strings_of_a_json_body_are_found)
{
    body("application/json", "{\"user\":\"al\\u00e9\",\"n\":1,\"o\":{\"user\":\"x\"}}");
    const char *user = weir_body_string(&w, "user");
    cr_expect_str_eq(user, "al\xc3\xa9");
    cr_expect_eq(weir_body_string(&w, "user"), user, "parsed anew");
    cr_expect_null(weir_body_string(&w, "n"));
    cr_expect_null(weir_body_string(&w, "o"));
    cr_expect_null(weir_body_string(&w, "none"));
}

Test(request, a_body_that_is_no_json_object_has_no_strings)
{
    static const char *const bad[] = { "[\"user\"]",
                                       "\"user\"",
                                       "{\"user\":\"a\"",
                                       "{\"user\":\"a\"} x",
                                       "{\"user\":\"a\",\"user\":\"b\"}",
                                       "{\"user\":\"a\\u0000b\"}",
                                       "{\"user\":\"\xe9\"}",
                                       "null" };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        body("application/json", bad[i]);
        cr_expect_null(weir_body_string(&w, "user"), "%s", bad[i]);
        cr_expect_null(weir_body_string(&w, "user"), "%s", bad[i]);
    }
}

/* A megabyte of brackets would take a hundred times its size. */
Test(request, a_json_body_of_too_many_values_is_not_parsed)
{
    enum { VALUES = 20000 };
    char *text = malloc(64 + 2 * VALUES), *end = text;
    end = stpcpy(end, "{\"user\":\"a\",\"x\":[0");
    for (int i = 0; i < VALUES; i++)
        end = stpcpy(end, ",0");
    strcpy(end, "]}");
    body("application/json", text);
    cr_expect_null(weir_body_string(&w, "user"));

    /* The same bytes inside a string are one value. */
    end = stpcpy(text, "{\"user\":\"a\",\"x\":\"\\\"");
    for (int i = 0; i < VALUES; i++)
        end = stpcpy(end, ",0");
    strcpy(end, "\"}");
    body("application/json", text);
    cr_expect_str_eq(weir_body_string(&w, "user"), "a");

    memset(text, '[', 5000);
    text[5000] = '\0';
    body("application/json", text);
    cr_expect_null(weir_body_string(&w, "user"));
    free(text);
}

Test(request, form_fields_are_read_from_a_form_only)
{
    body("application/x-www-form-urlencoded; charset=UTF-8", "user=a+b&pw=%26");
    cr_expect_str_eq(weir_form(&w, "user"), "a b");
    cr_expect_str_eq(weir_form(&w, "pw"), "&");
    cr_expect_null(weir_form(&w, "none"));
    body("APPLICATION/X-WWW-Form-Urlencoded", "user=a");
    cr_expect_str_eq(weir_form(&w, "user"), "a");
    body("application/x-www-form-urlencodedx", "user=a");
    cr_expect_null(weir_form(&w, "user"));
    body("text/plain", "user=a");
    cr_expect_null(weir_form(&w, "user"));
    w.params_len = 0;
    cr_expect_null(weir_form(&w, "user"));
}

/* ---- the rest ---------------------------------------------------------------------- */

Test(request, is_gone_with_its_client_or_its_time)
{
    cr_expect_not(weir_gone(&w));
    atomic_store(&w.gone, true);
    cr_expect(weir_gone(&w));
    atomic_store(&w.gone, false);
    atomic_store(&w.dropped, true);
    cr_expect(weir_gone(&w));
}

Test(request, has_memory_up_to_its_bound)
{
    char *zeroes = weir_zalloc(&w, 100);
    cr_expect_arr_eq(zeroes, ((char[100]){ 0 }), 100);
    cr_expect_not_null(weir_alloc(&w, 100));
    cr_expect_str_eq(weir_printf(&w, "%s-%d", "a", 7), "a-7");
    cr_expect_null(weir_alloc(&w, 100000));
    cr_expect_null(weir_printf(&w, "%100000d", 7));
}

Test(request, knows_its_caller_and_endpoint)
{
    static const struct weir_endpoint endpoint = { .pattern = "GET /a" };
    cr_expect_eq(weir_caller(&w)->type, WEIR_CALLER_NONE);
    cr_expect_null(weir_endpoint_pattern(&w));
    w.endpoint = &endpoint;
    cr_expect_str_eq(weir_endpoint_pattern(&w), "GET /a");
}
