/* Ways in which limits were dodged, or refusals misread, in other programs: each is tried
 * on an app with the default chain, in memory. */
#include <weir/filters/identity.h>
#include <weir/filters/ratelimit.h>
#include <weir/test.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/rng.h"

/* ---- the app ----------------------------------------------------------------------- */

static int ok(struct weir *w)
{
    return weir_text(w, 200, "ok");
}

static int cacheable(struct weir *w)
{
    weir_set_header(w, "Cache-Control", "public, max-age=300");
    return weir_text(w, 200, "ok");
}

static int whoami(struct weir *w)
{
    return weir_text(
        w,
        200,
        weir_printf(
            w, "%s:%s", weir_caller_type_name(weir_caller(w)->type), weir_caller(w)->id));
}

#define FIVE_BY_IP                                                                       \
    WEIR_LIMITS(WEIR_FIXED_WINDOW("five", 5, WEIR_MINUTES(1), .by = WEIR_BY_IP))

static const struct weir_endpoint endpoints[] = {
    { "* /*", ok, .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("rest", 2, WEIR_MINUTES(1))) },
    { "GET /v1/msg",
      ok,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("msg", 100, WEIR_MINUTES(1))) },
    { "POST /login", ok, .limits = FIVE_BY_IP },
    { "GET /report",
      ok,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("report", 5, WEIR_MINUTES(1))) },
    { "GET /d", ok, .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("d", 5, WEIR_MINUTES(1))) },
    { "OPTIONS /d",
      ok,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("preflight", 20, WEIR_MINUTES(1))) },
    { "GET /window",
      ok,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("window", 10, WEIR_MINUTES(1))) },
    { "GET /bucket",
      ok,
      .limits = WEIR_LIMITS(WEIR_TOKEN_BUCKET("bucket", 1, 1, WEIR_SECONDS(1))) },
    { "GET /odd",
      ok,
      .limits = WEIR_LIMITS(WEIR_TOKEN_BUCKET("odd", 3, 7, WEIR_SECONDS(100))) },
    { "GET /cacheable",
      cacheable,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("one", 1, WEIR_MINUTES(1))) },
    { "GET /whoami", whoami, .limits = WEIR_UNLIMITED },
    { "GET /health", ok, .limits = WEIR_UNLIMITED },
    { 0 },
};

/* A later filter that wants every answer cached. */
static enum weir_verdict cache_commit(struct weir *w, const void *self, void *slot)
{
    (void)self;
    (void)slot;
    weir_set_header(w, "Cache-Control", "public, max-age=300");
    return WEIR_NEXT;
}

static const struct weir_filter cache = { .name = "cache", .commit = cache_commit };

static char asked[64]; /* the cookie that the session callback was given */

static bool session_user(struct weir *w, struct weir_caller *ret_caller)
{
    const char *sid = weir_cookie(w, "sid");
    snprintf(asked, sizeof asked, "%s", sid ? sid : "-");
    return sid && weir_caller_user(ret_caller, sid);
}

/* Outside of any function, so that the lists live as long as the program. */
static struct weir_app app = {
    WEIR_ABI,
    .endpoints = endpoints,
    .default_limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("default", 2, WEIR_MINUTES(1))),
    .chain = WEIR_CHAIN({ &cache, NULL },
                        WEIR_USE(identity, .session_user = session_user),
                        WEIR_USE(ratelimit)),
};
static struct weir_test *t;

static void setup(void)
{
    struct weir_error error = { "" };
    t = weir_test_create(&app, NULL, &error);
    cr_assert_not_null(t, "%s", error.text);
}

static void teardown(void)
{
    weir_test_destroy(t);
}

TestSuite(traps, .init = setup, .fini = teardown);

static struct weir_test_reply *
ask(const char *method, const char *target, const char *params)
{
    struct weir_test_request request = { .method = method,
                                         .target = target,
                                         .params = params };
    return weir_test_send(t, &request);
}

static int status(const char *method, const char *target)
{
    return ask(method, target, NULL)->status;
}

static long retry_after(const struct weir_test_reply *reply)
{
    const char *text = weir_test_header(reply, "Retry-After");
    char *end;
    cr_assert_not_null(text);
    long seconds = strtol(text, &end, 10);
    cr_assert(*text >= '1' && *text <= '9' && *end == '\0', "%s", text);
    return seconds;
}

/* ---- who ------------------------------------------------------------------------------
 */

Test(traps, two_cookies_of_one_name_are_no_session)
{
    static const struct {
        const char *cookie, *asked, *caller;
    } rows[] = {
        { "Cookie: sid=A; sid=B", "-", "ip:127.0.0.1" },
        { "Cookie: sid=A\nCookie: sid=B", "-", "ip:127.0.0.1" },
        { "Cookie: xsid=A; sid=B", "B", "user:B" },
        { "Cookie: sid=; sid=B", "-", "ip:127.0.0.1" },
        { "Cookie: SID=B", "-", "ip:127.0.0.1" },
        { "Cookie: sid=B;;; =; x", "B", "user:B" },
        { "Cookie: a=1;sid=B", "B", "user:B" },
        { "Cookie: sid=a, sid=B", "-", "ip:127.0.0.1" },
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_test_reply *r = weir_test_get(t, "/whoami", rows[i].cookie);
        cr_expect_str_eq(r->body, rows[i].caller, "%s: %s", rows[i].cookie, r->body);
        cr_expect_str_eq(asked, rows[i].asked, "%s: %s", rows[i].cookie, asked);
    }
}

/* ---- paths and methods ------------------------------------------------------------- */

Test(traps, every_spelling_of_a_path_is_counted_as_one)
{
    static const char *const spellings[] = {
        "/login", "/login/", "//login", "/./login?x=1", "/a/../login?"
    };
    for (unsigned i = 0; i < 5; i++)
        cr_expect_eq(status("POST", spellings[i]), 200, "%s", spellings[i]);
    cr_expect_eq(status("POST", "/login?y"), 429);
    cr_expect_eq(status("POST", "/%6cogin"), 429);
    cr_expect_eq(status("POST", "/login;jsessionid=1"), 429);
    cr_expect_eq(status("POST", "/login%2F"), 400);
    cr_expect_eq(status("POST", "/LOGIN"), 200, "case matters: another endpoint");
}

Test(traps, so_is_every_spelling_of_script_name_and_path_info)
{
    static const char *const spellings[] = { "REQUEST_URI=\nSCRIPT_NAME=/login",
                                             "REQUEST_URI=\nSCRIPT_NAME=/login/",
                                             "REQUEST_URI=\nSCRIPT_NAME=//login",
                                             "REQUEST_URI=\nPATH_INFO=/./login",
                                             "REQUEST_URI=\nSCRIPT_NAME=/a/../login" };
    for (unsigned i = 0; i < 5; i++)
        cr_expect_eq(ask("POST", "/", spellings[i])->status, 200, "%s", spellings[i]);
    cr_expect_eq(ask("POST", "/", "REQUEST_URI=\nSCRIPT_NAME=\nPATH_INFO=/login")->status,
                 429);
    cr_expect_eq(status("POST", "/login"), 429);
}

Test(traps, head_is_counted_as_get)
{
    static const char *const methods[] = { "GET", "HEAD", "GET", "HEAD", "GET" };
    for (unsigned i = 0; i < 5; i++)
        cr_expect_eq(status(methods[i], "/report"), 200);
    struct weir_test_reply *head = ask("HEAD", "/report", NULL);
    struct weir_test_reply *get = ask("GET", "/report", NULL);
    cr_expect_eq(head->status, 429);
    cr_expect_eq(get->status, 429);
    cr_expect_str_eq(head->head, get->head);
    cr_expect_eq(head->body_len, 0);
    cr_expect_gt(get->body_len, 0);
}

Test(traps, no_method_is_under_no_rule)
{
    struct weir_test_request request = { .method = "POST",
                                         .target = "/report",
                                         .headers = "X-HTTP-Method-Override: DELETE" };
    cr_expect_eq(weir_test_send(t, &request)->status, 200, "the rest's");
    cr_expect_eq(status("FOO", "/report"), 200);
    cr_expect_eq(status("FOO", "/report"), 429);
    cr_expect_eq(status("POST", "/report"), 429);
}

Test(traps, an_unknown_path_is_counted_before_it_is_a_404)
{
    static const struct weir_endpoint few[] = { { "GET /known", ok }, { 0 } };
    weir_test_destroy(t);
    app.endpoints = few;
    t = weir_test_create(&app, NULL, NULL);
    cr_expect_eq(status("GET", "/a"), 404);
    cr_expect_eq(status("GET", "/b"), 404);
    cr_expect_eq(status("GET", "/c"), 429);
    cr_expect_eq(status("POST", "/known"), 429);
    cr_expect_eq(status("GET", "/known"), 200, "an endpoint has its own count");
}

Test(traps, the_special_rule_wins_over_the_general_one)
{
    for (int i = 0; i < 50; i++)
        cr_expect_eq(status("GET", "/v1/msg"), 200);
    cr_expect_eq(status("GET", "/v1/other"), 200);
    cr_expect_eq(status("GET", "/v10/msg"), 200);
    cr_expect_eq(status("GET", "/v1"), 429);
}

Test(traps, an_exemption_frees_no_longer_path)
{
    for (int i = 0; i < 10; i++)
        cr_expect_eq(status("GET", "/health"), 200);
    cr_expect_eq(status("GET", "/healthz-internal"), 200);
    cr_expect_eq(status("GET", "/x/health"), 200);
    cr_expect_eq(status("GET", "/health/x"), 429);
    cr_expect_eq(status("POST", "/health"), 429);
}

Test(traps, an_authorizer_believes_no_path_from_a_header)
{
    struct weir_test_request request = {
        .target = "/report",
        .authorizer = true,
        .headers = "X-Original-URI: /health\nX-Original-URL: /health\n"
                   "X-Rewrite-URL: /health\nX-Forwarded-Uri: /health",
    };
    for (int i = 0; i < 5; i++)
        cr_expect_eq(weir_test_send(t, &request)->status, 200);
    struct weir_test_reply *r = weir_test_send(t, &request);
    cr_expect_eq(r->status, 429);
    cr_expect_eq(strncmp(r->head, "Status: 429 ", 12), 0);
}

Test(traps, preflights_are_not_charged_to_the_call)
{
    for (int i = 0; i < 10; i++)
        cr_expect_eq(status("OPTIONS", "/d"), 200);
    for (int i = 0; i < 5; i++)
        cr_expect_eq(status("GET", "/d"), 200);
    cr_expect_eq(status("GET", "/d"), 429);
    for (int i = 0; i < 10; i++)
        cr_expect_eq(status("OPTIONS", "/d"), 200);
    cr_expect_eq(status("OPTIONS", "/d"), 429);
}

/* ---- what a refusal says ----------------------------------------------------------- */

Test(traps, retry_after_of_a_window_is_what_is_left_of_it)
{
    for (int i = 0; i < 10; i++)
        cr_expect_eq(status("GET", "/window"), 200);
    weir_test_advance(t, WEIR_SECONDS(20));
    cr_expect_eq(retry_after(ask("GET", "/window", NULL)), 40);
}

Test(traps, retry_after_is_never_zero)
{
    cr_expect_eq(status("GET", "/bucket"), 200);
    weir_test_advance(t, WEIR_MILLISECONDS(200));
    cr_expect_eq(retry_after(ask("GET", "/bucket", NULL)), 1);
    weir_test_advance(t, WEIR_MILLISECONDS(792));
    cr_expect_eq(retry_after(ask("GET", "/bucket", NULL)), 1);
}

/* Whatever came before: who waits as told passes, and who comes a second earlier doesn't,
 * unless the wait was one second. */
Test(traps, retry_after_is_exact_over_random_traces)
{
    static const char *const targets[] = { "/window", "/bucket", "/odd" };
    struct rng rng = { 20260101 };
    unsigned refused = 0;
    for (int i = 0; i < 3000; i++) {
        const char *target = targets[rng_between(&rng, 0, 2)];
        weir_test_advance(t, rng_between(&rng, 0, 3000000));
        struct weir_test_reply *r = ask("GET", target, NULL);
        if (r->status == 200)
            continue;
        refused++;
        long seconds = retry_after(r);
        if (seconds > 1) {
            weir_test_advance(t, WEIR_SECONDS(seconds - 1));
            cr_assert_eq(
                status("GET", target), 429, "%s after %ld s", target, seconds - 1);
            weir_test_advance(t, WEIR_SECONDS(1));
        } else {
            weir_test_advance(t, WEIR_SECONDS(seconds));
        }
        cr_assert_eq(status("GET", target), 200, "%s after %ld s", target, seconds);
    }
    cr_expect_gt(refused, 500);
}

Test(traps, header_and_body_say_the_same_wait)
{
    for (int i = 0; i < 10; i++)
        status("GET", "/window");
    weir_test_advance(t, 1);
    struct weir_test_reply *r = ask("GET", "/window", NULL);
    cr_expect_str_eq(weir_test_header(r, "Retry-After"), "60");
    cr_expect_str_eq(weir_test_header(r, "RateLimit"), "\"window\";r=0;t=60");
    cr_expect_not_null(strstr(r->body, "\"retry_after\":60"));
    cr_expect_not_null(strstr(r->body, "try again in 60 seconds."));
    cr_expect_not_null(strstr(r->body, "\"violated-policies\":[\"window\"]"));
}

Test(traps, a_reset_is_seconds_from_now_and_no_date)
{
    cr_expect_str_eq(weir_test_header(ask("GET", "/window", NULL), "RateLimit"),
                     "\"window\";r=9;t=60");
    weir_test_advance(t, WEIR_SECONDS(10));
    cr_expect_str_eq(weir_test_header(ask("GET", "/window", NULL), "RateLimit"),
                     "\"window\";r=8;t=50");
}

Test(traps, a_refusal_is_never_cached)
{
    struct weir_test_reply *r = ask("GET", "/cacheable", NULL);
    cr_expect_eq(r->status, 200);
    cr_expect_str_eq(weir_test_header(r, "Cache-Control"), "public, max-age=300");
    r = ask("GET", "/cacheable", NULL);
    cr_expect_eq(r->status, 429);
    cr_expect_str_eq(weir_test_header(r, "Cache-Control"), "no-store");
    cr_expect_null(strstr(r->head, "max-age"));
}
