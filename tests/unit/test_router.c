#include "router.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "pattern.h"

#define ENDPOINTS_MAX 64

/* A router of the patterns, each with its index as endpoint. */
static struct weir__router *router_of(const char *const *patterns, size_t len)
{
    static struct weir_endpoint endpoints[ENDPOINTS_MAX + 1];
    memset(endpoints, 0, sizeof endpoints);
    for (size_t i = 0; i < len; i++)
        endpoints[i].pattern = patterns[i];
    struct weir__router *router = NULL;
    struct weir_error error = { .text = "" };
    cr_assert(weir__router_create(endpoints, &router, &error), "%s", error.text);
    return router;
}

/* What a search says: "3", "3 city=paris *=a/b", "404", or "405 GET, HEAD, OPTIONS". */
static const char *
find(const struct weir__router *router, const char *method, const char *path)
{
    static char text[512];
    static struct weir__arena arena;
    static bool ready;
    if (!ready)
        weir__arena_init(&arena, 65536, 4096);
    ready = true;
    weir__arena_reset(&arena);
    struct weir__capture captures[WEIR__CAPTURES_MAX];
    unsigned captures_len = 0;
    size_t endpoint = 0;
    const char *allow = NULL;
    switch (weir__router_find(
        router, method, path, &arena, &endpoint, captures, &captures_len, &allow)) {
    case WEIR__ROUTE_NO_PATH:
        return "404";
    case WEIR__ROUTE_NO_METHOD:
        snprintf(text, sizeof text, "405 %s", allow);
        return text;
    case WEIR__ROUTE_FOUND:
        break;
    }
    int len = snprintf(text, sizeof text, "%zu", endpoint);
    for (unsigned i = 0; i < captures_len; i++)
        len += snprintf(text + len,
                        sizeof text - (size_t)len,
                        " %.*s=%.*s",
                        (int)captures[i].name_len,
                        captures[i].name,
                        (int)captures[i].text_len,
                        captures[i].text);
    return text;
}

#define ROUTER(...)                                                                      \
    router_of((const char *const[]){ __VA_ARGS__ },                                      \
              sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

Test(router, finds_literals_names_and_rests)
{
    struct weir__router *router = ROUTER("GET /",
                                         "GET /health",
                                         "GET /api/weather/{city}",
                                         "GET /files/*",
                                         "GET /u/{user}/posts/{post}");
    cr_expect_str_eq(find(router, "GET", "/"), "0");
    cr_expect_str_eq(find(router, "GET", "/health"), "1");
    cr_expect_str_eq(find(router, "GET", "/api/weather/paris"), "2 city=paris");
    cr_expect_str_eq(find(router, "GET", "/files/a/b"), "3 *=a/b");
    cr_expect_str_eq(find(router, "GET", "/u/7/posts/a%20b"), "4 user=7 post=a%20b");
    weir__router_destroy(router);
}

Test(router, matches_whole_segments_only)
{
    struct weir__router *router = ROUTER("GET /health", "GET /api", "GET /u/{user}");
    const char *const strangers[] = { "/healthz", "/x/health", "/health/x",
                                      "/apix",    "/a",        "/",
                                      "/u",       "/u/1/2",    "/HEALTH" };
    for (unsigned i = 0; i < sizeof strangers / sizeof strangers[0]; i++)
        cr_expect_str_eq(find(router, "GET", strangers[i]), "404", "%s", strangers[i]);
    weir__router_destroy(router);
}

Test(router, a_rest_may_be_empty_but_ends_at_a_slash)
{
    struct weir__router *router = ROUTER("GET /files/*", "GET /v1/*");
    cr_expect_str_eq(find(router, "GET", "/files"), "0 *=");
    cr_expect_str_eq(find(router, "GET", "/v1/x"), "1 *=x");
    cr_expect_str_eq(find(router, "GET", "/v10"), "404");
    weir__router_destroy(router);
    router = ROUTER("* /*");
    cr_expect_str_eq(find(router, "GET", "/"), "0 *=");
    cr_expect_str_eq(find(router, "PURGE", "/a"), "0 *=a");
    weir__router_destroy(router);
}

/* The same answers whatever the order in which the patterns are declared. */
Test(router, prefers_the_most_specific_segment_by_segment)
{
    const char *const patterns[] = { "* /*",          "GET /v1/*",    "GET /v1/{a}",
                                     "GET /v1/msg",   "GET /{a}/msg", "GET /v1/{a}/x",
                                     "GET /v1/msg/*", "GET /v1/msg/y" };
    const struct {
        const char *path, *pattern;
    } rows[] = {
        { "/v1/msg", "GET /v1/msg" },
        { "/v1/other", "GET /v1/{a}" },
        { "/v1/a/b", "GET /v1/*" },
        { "/v2/msg", "GET /{a}/msg" },
        { "/v1/a/x", "GET /v1/{a}/x" },
        { "/v1/msg/x", "GET /v1/msg/*" },
        { "/v1/msg/y", "GET /v1/msg/y" },
        { "/v1", "GET /v1/*" },
        { "/v2", "* /*" },
        { "/", "* /*" },
    };
    const size_t len = sizeof patterns / sizeof patterns[0];
    for (int reverse = 0; reverse < 2; reverse++) {
        const char *order[ENDPOINTS_MAX];
        for (size_t i = 0; i < len; i++)
            order[i] = patterns[reverse ? len - 1 - i : i];
        struct weir__router *router = router_of(order, len);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            size_t endpoint = (size_t)atoi(find(router, "GET", rows[i].path));
            cr_expect_str_eq(order[endpoint], rows[i].pattern, "%s", rows[i].path);
        }
        weir__router_destroy(router);
    }
}

Test(router, a_path_is_not_lost_to_a_more_specific_dead_end)
{
    struct weir__router *router =
        ROUTER("GET /a/b/c", "GET /a/{x}/d", "GET /{y}/b/e", "GET /a/b/{z}/f");
    cr_expect_str_eq(find(router, "GET", "/a/b/c"), "0");
    cr_expect_str_eq(find(router, "GET", "/a/b/d"), "1 x=b");
    cr_expect_str_eq(find(router, "GET", "/a/b/e"), "2 y=a");
    cr_expect_str_eq(find(router, "GET", "/a/b/c/f"), "3 z=c");
    weir__router_destroy(router);
}

Test(router, nor_is_a_method_lost_to_one)
{
    struct weir__router *router =
        ROUTER("GET /a/b", "POST /a/{x}", "DELETE /a/*", "* /c", "GET /{y}");
    cr_expect_str_eq(find(router, "GET", "/a/b"), "0");
    cr_expect_str_eq(find(router, "POST", "/a/b"), "1 x=b");
    cr_expect_str_eq(find(router, "DELETE", "/a/b"), "2 *=b");
    cr_expect_str_eq(find(router, "GET", "/c"), "3");
    cr_expect_str_eq(find(router, "PUT", "/a/b"), "405 DELETE, GET, HEAD, OPTIONS, POST");
    weir__router_destroy(router);
}

Test(router, get_serves_head_unless_head_has_its_own)
{
    struct weir__router *router = ROUTER("GET /a", "GET /b", "HEAD /b", "* /c", "GET /c");
    cr_expect_str_eq(find(router, "HEAD", "/a"), "0");
    cr_expect_str_eq(find(router, "HEAD", "/b"), "2");
    cr_expect_str_eq(find(router, "HEAD", "/c"), "4");
    cr_expect_str_eq(find(router, "POST", "/c"), "3");
    weir__router_destroy(router);
}

Test(router, methods_are_case_sensitive_and_unknown_ones_are_405)
{
    struct weir__router *router = ROUTER("GET /a", "POST /b", "MKCOL /b");
    cr_expect_str_eq(find(router, "get", "/a"), "405 GET, HEAD, OPTIONS");
    cr_expect_str_eq(find(router, "FOO", "/a"), "405 GET, HEAD, OPTIONS");
    cr_expect_str_eq(find(router, "HEAD", "/b"), "405 MKCOL, OPTIONS, POST");
    cr_expect_str_eq(find(router, "FOO", "/none"), "404");
    weir__router_destroy(router);
}

Test(router, allow_is_sorted_whatever_the_order_of_declaration)
{
    struct weir__router *router = ROUTER("LOCK /a", "LOCKS /a", "ACL /a", "LOC /a");
    cr_expect_str_eq(find(router, "FOO", "/a"), "405 ACL, LOC, LOCK, LOCKS, OPTIONS");
    weir__router_destroy(router);
    router = ROUTER("LOCKS /a", "LOC /a", "LOCK /a", "ACL /a");
    cr_expect_str_eq(find(router, "FOO", "/a"), "405 ACL, LOC, LOCK, LOCKS, OPTIONS");
    weir__router_destroy(router);
}

Test(router, options_is_left_to_the_caller_unless_an_endpoint_has_it)
{
    struct weir__router *router = ROUTER("GET /a", "OPTIONS /b", "GET /b", "* /c");
    cr_expect_str_eq(find(router, "OPTIONS", "/a"), "405 GET, HEAD, OPTIONS");
    cr_expect_str_eq(find(router, "OPTIONS", "/b"), "1");
    cr_expect_str_eq(find(router, "OPTIONS", "/c"), "3");
    weir__router_destroy(router);
}

Test(router, an_empty_app_has_no_paths)
{
    struct weir__router *router = router_of(NULL, 0);
    cr_expect_str_eq(find(router, "GET", "/"), "404");
    weir__router_destroy(router);
    weir__router_destroy(NULL);
}

Test(router, finds_one_of_many_siblings)
{
    static char texts[ENDPOINTS_MAX][16];
    const char *patterns[ENDPOINTS_MAX];
    for (int i = 0; i < ENDPOINTS_MAX; i++) {
        snprintf(texts[i], sizeof texts[i], "GET /x/%d", i * 7919 % 1000);
        patterns[i] = texts[i];
    }
    struct weir__router *router = router_of(patterns, ENDPOINTS_MAX);
    for (int i = 0; i < ENDPOINTS_MAX; i++)
        cr_expect_eq(atoi(find(router, "GET", texts[i] + 4)), i);
    cr_expect_str_eq(find(router, "GET", "/x/1000"), "404");
    weir__router_destroy(router);
}

Test(router, a_deep_path_ends_the_search_at_the_patterns)
{
    struct weir__router *router = ROUTER("GET /{a}/{b}", "GET /a/*");
    static char path[60001];
    for (int i = 0; i < 60000; i += 2)
        memcpy(path + i, "/b", 2);
    cr_expect_str_eq(find(router, "GET", path), "404");
    weir__router_destroy(router);
}

/* ---- mistakes ---------------------------------------------------------------------- */

static void
refused(const char *const *patterns, size_t len, const char *why, const char *culprit)
{
    struct weir_endpoint endpoints[4] = { { .pattern = NULL } };
    for (size_t i = 0; i < len; i++)
        endpoints[i].pattern = patterns[i];
    struct weir__router *router = (struct weir__router *)endpoints;
    struct weir_error error = { .text = "" };
    cr_expect_not(weir__router_create(endpoints, &router, &error), "%s", culprit);
    cr_expect_eq((void *)router, (void *)endpoints, "output touched");
    cr_expect_not_null(strstr(error.text, why), "\"%s\" lacks \"%s\"", error.text, why);
    cr_expect_not_null(
        strstr(error.text, culprit), "\"%s\" lacks \"%s\"", error.text, culprit);
}

static void refused_alone(const char *pattern, const char *why)
{
    refused((const char *const[]){ pattern }, 1, why, pattern);
}

Test(router, refuses_patterns_that_match_the_same_requests)
{
    const char *const equal[] = { "GET /a", "POST /a", "GET /a" };
    refused(equal, 3, "the same requests as \"GET /a\"", "\"GET /a\"");
    const char *const names[] = { "GET /a/{x}", "GET /a/{y}" };
    refused(names, 2, "the same requests as \"GET /a/{x}\"", "\"GET /a/{y}\"");
    const char *const rests[] = { "* /{x}/*", "* /{y}/*" };
    refused(rests, 2, "the same requests as \"* /{x}/*\"", "\"* /{y}/*\"");
}

Test(router, refuses_what_is_no_method)
{
    refused_alone("/a", "no method");
    refused_alone(" /a", "no method");
    refused_alone("", "no method");
    refused_alone("get /a", "upper case");
    refused_alone("G(T /a", "no method");
    refused_alone("GET", "a path");
    refused_alone("GET  /a", "one blank");
    refused_alone("GET a", "begins with /");
    refused_alone("GET http://h/a", "begins with /");
}

Test(router, refuses_paths_that_no_request_has)
{
    refused_alone("GET //", "empty segment");
    refused_alone("GET /a//b", "empty segment");
    refused_alone("GET /a/", "without a slash");
    refused_alone("GET /a/./b", "normalised");
    refused_alone("GET /a/../b", "normalised");
    refused_alone("GET /%61", "it is \"/a\"");
    refused_alone("GET /a%c3%a9", "it is \"/a%C3%A9\"");
    refused_alone("GET /a;v=1", "normalised");
    refused_alone("GET /a?x=1", "normalised");
    refused_alone("GET /a b", "normalised");
    refused_alone("GET /%zz", "GET /%zz");
    refused_alone("GET /a%2Fb", "GET /a%2Fb");
}

Test(router, refuses_names_and_stars_that_mean_nothing)
{
    refused_alone("GET /{}", "needs a name");
    refused_alone("GET /{a b}", "needs a name");
    refused_alone("GET /{a}/{b}/{a}", "{a} stands twice");
    refused_alone("GET /a{x}", "whole segments");
    refused_alone("GET /{x", "whole segments");
    refused_alone("GET /x}", "whole segments");
    refused_alone("GET /a*", "whole segments");
    refused_alone("GET /*/a", "not the last");
    refused_alone("GET /*/*", "not the last");
}

Test(router, refuses_too_many_captures_and_segments)
{
    char pattern[400] = "GET ";
    for (int i = 0; i < WEIR__CAPTURES_MAX; i++)
        sprintf(pattern + strlen(pattern), "/{n%d}", i);
    struct weir__router *router = ROUTER(pattern);
    cr_expect_str_eq(find(router, "GET", "/a/b"), "404");
    weir__router_destroy(router);
    strcat(pattern, "/*");
    refused_alone(pattern, "more than 16 names");

    strcpy(pattern, "GET ");
    for (int i = 0; i <= WEIR__PATTERN_SEGMENTS_MAX; i++)
        strcat(pattern, "/a");
    refused_alone(pattern, "more than 64 segments");
}
