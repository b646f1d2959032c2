/* The demo app in memory, as the users of the library test theirs (weir/test.h): its own
 * tables, chain and limits, without a web server. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/test.h>

/* The app is static in its main.c, and how a cookie is made in session.c. */
#define main demo_main
int demo_main(int argc, char **argv);
#include "../../demo_app/main.c"
#undef main
#include "../../demo_app/session.c"

static struct weir_test *t;

static struct weir_test *create(struct weir_store *store, struct weir_error *ret_error)
{
    static const char *const arguments[] = { "--instance", "test", NULL };
    return weir_test_create(
        &app,
        &(struct weir_test_options){ .store = store, .arguments = arguments },
        ret_error);
}

static void init(void)
{
    struct weir_error error = { "" };
    t = create(NULL, &error);
    cr_assert(t, "%s", error.text);
}

static void finish(void)
{
    weir_test_destroy(t);
}

TestSuite(demo, .init = init, .fini = finish);

#define FROM "198.51.100.7"

static struct weir_test_reply *get(const char *target, const char *cookie)
{
    char headers[512] = "";
    if (cookie)
        snprintf(headers, sizeof headers, "Cookie: " SESSION_COOKIE "=%s", cookie);
    return weir_test_send(t,
                          &(struct weir_test_request){ .target = target,
                                                       .headers = headers,
                                                       .params = "REMOTE_ADDR=" FROM });
}

static struct weir_test_reply *
post(const char *target, const char *type, const char *body)
{
    char headers[128] = "";
    if (type)
        snprintf(headers, sizeof headers, "Content-Type: %s", type);
    return weir_test_send(t,
                          &(struct weir_test_request){ .method = "POST",
                                                       .target = target,
                                                       .headers = headers,
                                                       .params = "REMOTE_ADDR=" FROM,
                                                       .body = body });
}

static struct weir_test_reply *log_in(const char *user, const char *password)
{
    char body[128];
    snprintf(body, sizeof body, "{\"user\":\"%s\",\"password\":\"%s\"}", user, password);
    return post("/api/login", "application/json", body);
}

/* The value of the cookie that a reply sets, to be freed; NULL for none. */
static char *cookie_of(const struct weir_test_reply *reply)
{
    const char *field = weir_test_header(reply, "Set-Cookie");
    if (!field || strncmp(field, SESSION_COOKIE "=", strlen(SESSION_COOKIE "=")) != 0)
        return NULL;
    field += strlen(SESSION_COOKIE "=");
    return strndup(field, strcspn(field, ";"));
}

static void expect_who(const char *cookie, const char *who)
{
    struct weir_test_reply *reply = get("/whoami", cookie);
    cr_expect_eq(reply->status, 200);
    cr_expect_str_eq(reply->body, who, "%s: %s", cookie ? cookie : "-", reply->body);
}

#define ADDRESS "{\"type\":\"ip\",\"id\":\"" FROM "\"}"
#define ALICE "{\"type\":\"user\",\"id\":\"alice\"}"

/* ---- limits --------------------------------------------------------------------------
 */

Test(demo, gives_the_weather_100_times_a_minute)
{
    for (int i = 0; i < 100; i++)
        cr_assert_eq(get("/api/weather/paris", NULL)->status, 200, "%d", i);
    struct weir_test_reply *refused = get("//api/weather/%72ome?x=1", NULL);
    cr_expect_eq(refused->status, 429);
    cr_expect_str_eq(weir_test_header(refused, "Retry-After"), "60");
    weir_test_advance(t, WEIR_SECONDS(60));
    cr_expect_eq(get("/api/weather/paris", NULL)->status, 200);
}

Test(demo, gives_a_user_a_budget_of_its_own)
{
    char *alice = cookie_of(log_in("alice", "weir"));
    char *bob = cookie_of(log_in("bob", "weir"));
    for (int i = 0; i < 100; i++)
        get("/api/weather/paris", alice);
    cr_expect_eq(get("/api/weather/paris", alice)->status, 429);
    cr_expect_eq(get("/api/weather/paris", bob)->status, 200);
    cr_expect_eq(get("/api/weather/paris", NULL)->status, 200);
    free(alice);
    free(bob);
}

Test(demo, counts_every_log_in_of_an_address)
{
    cr_expect_eq(log_in("alice", "weir")->status, 200);
    cr_expect_eq(log_in("bob", "weir")->status, 200);
    cr_expect_eq(log_in("carol", "weir")->status, 200);
    cr_expect_eq(log_in("alice", "wrong")->status, 403);
    cr_expect_eq(post("/api/login", "application/json", "{}")->status, 400);
    struct weir_test_reply *sixth = log_in("alice", "weir");
    cr_expect_eq(sixth->status, 429);
    cr_expect_null(weir_test_header(sixth, "Set-Cookie"));
}

Test(demo, lets_nobody_log_in_while_the_store_is_away)
{
    struct weir_store *fake = weir_fake_create();
    weir_fake_push(fake, &(struct weir_fake_answer){ .kind = WEIR_FAKE_UNAVAILABLE });
    weir_test_destroy(t);
    t = create(fake, NULL);
    struct weir_test_reply *reply = log_in("alice", "weir");
    cr_expect_eq(reply->status, 503);
    cr_expect(strstr(reply->body, "\"StoreUnavailable\""), "%s", reply->body);
    weir_test_destroy(t);
    t = NULL;
    weir_store_destroy(fake);
}

Test(demo, never_counts_a_health_check)
{
    for (int i = 0; i < 1000; i++) {
        struct weir_test_reply *reply = get("/health", NULL);
        cr_assert_eq(reply->status, 200);
        cr_assert_null(weir_test_header(reply, "RateLimit"));
    }
}

Test(demo, has_a_default_limit_of_600_a_minute)
{
    for (int i = 0; i < 600; i++)
        cr_assert_eq(get("/whoami", NULL)->status, 200);
    cr_expect_eq(get("/whoami", NULL)->status, 429);
    cr_expect_eq(get("/", NULL)->status, 200);
}

/* A guesser who has an account of his own is still the same address. */
Test(demo, counts_log_ins_of_a_logged_in_user_by_address)
{
    char *cookie = cookie_of(log_in("alice", "weir"));
    char headers[256];
    snprintf(headers, sizeof headers, "Cookie: " SESSION_COOKIE "=%s", cookie);
    for (int i = 0; i < 4; i++)
        log_in("bob", "guess");
    struct weir_test_reply *reply =
        weir_test_send(t,
                       &(struct weir_test_request){ .target = "/api/login",
                                                    .headers = headers,
                                                    .params = "REMOTE_ADDR=" FROM,
                                                    .body = "{}" });
    cr_expect_eq(reply->status, 429);
    free(cookie);
}

/* ---- sessions ------------------------------------------------------------------------
 */

Test(demo, knows_whom_it_gave_a_cookie)
{
    struct weir_test_reply *reply = log_in("alice", "weir");
    const char *field = weir_test_header(reply, "Set-Cookie");
    cr_expect_str_eq(reply->body, ALICE);
    cr_assert(field);
    cr_expect(strstr(field, "; HttpOnly"), "%s", field);
    cr_expect(strstr(field, "; SameSite=Strict"), "%s", field);
    char *cookie = cookie_of(reply);
    expect_who(cookie, ALICE);
    expect_who(NULL, ADDRESS);
    free(cookie);
}

Test(demo, knows_only_three_users_and_one_password)
{
    static const char *const wrong[][2] = {
        { "alice", "" },      { "alice", "Weir" }, { "alice", "weir " },
        { "alice", "weirr" }, { "alice", "wei" },  { "mallory", "weir" },
        { "", "weir" },       { "Alice", "weir" }, { "alice.", "weir" },
        { "", "" },           { "alic", "weir" },  { "alice\\u0000", "weir" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct weir_test_reply *reply = log_in(wrong[i][0], wrong[i][1]);
        cr_expect(reply->status == 403 || reply->status == 400,
                  "%s %s: %d",
                  wrong[i][0],
                  wrong[i][1],
                  reply->status);
        cr_expect_null(weir_test_header(reply, "Set-Cookie"));
        weir_test_advance(t, WEIR_SECONDS(60));
    }
}

/* Every single change of a good cookie, and some larger ones. */
Test(demo, takes_no_cookie_but_its_own)
{
    char *good = cookie_of(log_in("alice", "weir"));
    size_t len = strlen(good);
    expect_who(good, ALICE);
    for (size_t i = 0; i < len; i++) {
        char changed[COOKIE_MAX];
        memcpy(changed, good, len + 1);
        changed[i] = changed[i] == 'a' ? 'b' : 'a';
        expect_who(changed, ADDRESS);
        weir_test_advance(t, WEIR_SECONDS(1));
    }
    char text[1024];
    const char *mac = strrchr(good, '.');
    snprintf(text, sizeof text, "%s0", good);
    expect_who(text, ADDRESS);
    snprintf(text, sizeof text, "%.*s", (int)len - 1, good);
    expect_who(text, ADDRESS);
    snprintf(text, sizeof text, "%.*s", (int)(mac - good), good);
    expect_who(text, ADDRESS);
    snprintf(text, sizeof text, "%.*s.", (int)(mac - good), good);
    expect_who(text, ADDRESS);
    snprintf(text, sizeof text, "alice.0%s", strchr(good, '.') + 1);
    expect_who(text, ADDRESS);
    snprintf(text, sizeof text, "alice.+%s", strchr(good, '.') + 1);
    expect_who(text, ADDRESS);
    expect_who(".", ADDRESS);
    expect_who("..", ADDRESS);
    expect_who("alice.99999999999999999999999.0", ADDRESS);
    memset(text, 'a', 500);
    memcpy(text + 500, mac, strlen(mac) + 1);
    expect_who(text, ADDRESS);
    free(good);
}

Test(demo, ends_a_session_at_its_time)
{
    char cookie[COOKIE_MAX];
    cr_assert(make_cookie("alice", 5, time(NULL) + 60, cookie));
    expect_who(cookie, ALICE);
    cr_assert(make_cookie("alice", 5, time(NULL), cookie));
    expect_who(cookie, ADDRESS);
}

Test(demo, logs_out)
{
    struct weir_test_reply *reply = post("/api/logout", NULL, NULL);
    cr_expect_eq(reply->status, 204);
    cr_expect(strstr(weir_test_header(reply, "Set-Cookie"), "=; Path=/; Max-Age=0;"));
}

Test(demo, leads_a_form_back_to_the_page)
{
    static const char form[] = "application/x-www-form-urlencoded";
    struct weir_test_reply *reply = post("/api/login", form, "user=bob&password=weir");
    cr_expect_eq(reply->status, 303);
    cr_expect_str_eq(weir_test_header(reply, "Location"), "/");
    char *cookie = cookie_of(reply);
    expect_who(cookie, "{\"type\":\"user\",\"id\":\"bob\"}");
    free(cookie);
    cr_expect_eq(post("/api/login", form, "user=bob&password=no")->status, 403);
    cr_expect_eq(post("/api/login", form, "user=bob")->status, 400);
    cr_expect_eq(post("/api/logout", form, "page=yes")->status, 303);
}

Test(demo, logs_no_password_and_no_cookie)
{
    struct weir_test_reply *wrong = log_in("alice", "secret-guess");
    cr_expect_null(strstr(wrong->log, "secret-guess"));
    struct weir_test_reply *right = log_in("alice", "weir");
    char *cookie = cookie_of(right);
    cr_expect_null(strstr(right->log, cookie));
    cr_expect_null(strstr(get("/whoami", cookie)->log, cookie));
    free(cookie);
}

/* ---- start ----------------------------------------------------------------------------
 */

static void expect_refused_start(const char *option, const char *value)
{
    const char *const arguments[] = { option, value, NULL };
    struct weir_error error = { "" };
    weir_test_destroy(t);
    t = weir_test_create(
        &app, &(struct weir_test_options){ .arguments = arguments }, &error);
    cr_expect_null(t);
    cr_expect(strstr(error.text, option), "%s %s: %s", option, value, error.text);
    instance_name = session_key_file = NULL;
}

Test(demo, refuses_a_start_with_a_bad_key_or_name)
{
    char path[] = "/tmp/weir_demo_key.XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    expect_refused_start("--key-file", path);
    cr_assert_eq(write(fd, "0123456789012345678901234567890", 31), 31);
    expect_refused_start("--key-file", path);
    cr_assert_eq(write(fd, "12", 2), 2);
    expect_refused_start("--key-file", path);
    close(fd);
    unlink(path);
    expect_refused_start("--key-file", path);
    expect_refused_start("--instance", "two words");
    expect_refused_start("--instance", "a\r\nb: c");
}

Test(demo, checks_cookies_with_the_key_of_the_file)
{
    char path[] = "/tmp/weir_demo_key.XXXXXX";
    const char *const arguments[] = { "--key-file", path, NULL };
    const struct weir_test_options with_key = { .arguments = arguments };
    int fd = mkstemp(path);
    cr_assert_eq(write(fd, "01234567890123456789012345678901", 32), 32);
    close(fd);

    weir_test_destroy(t);
    t = weir_test_create(&app, &with_key, NULL);
    char *cookie = cookie_of(log_in("alice", "weir"));
    weir_test_destroy(t);
    t = weir_test_create(&app, &with_key, NULL);
    expect_who(cookie, ALICE);
    weir_test_destroy(t);
    session_key_file = NULL;
    init();
    expect_who(cookie, ADDRESS);
    free(cookie);
    unlink(path);
}

/* ---- answers -------------------------------------------------------------------------
 */

Test(demo, names_its_instance_in_every_answer)
{
    static const struct {
        const char *method, *target;
        int status;
    } cases[] = {
        { "GET", "/", 200 },           { "GET", "/whoami", 200 },
        { "GET", "/nowhere", 404 },    { "DELETE", "/whoami", 405 },
        { "GET", "/a%2Fb", 400 },      { "GET", "/%zz", 400 },
        { "HEAD", "/whoami", 200 },    { "OPTIONS", "/whoami", 204 },
        { "POST", "/api/login", 400 }, { "POST", "/api/logout", 204 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_test_reply *reply =
            weir_test_send(t,
                           &(struct weir_test_request){ .method = cases[i].method,
                                                        .target = cases[i].target });
        const char *name = weir_test_header(reply, "Demo-Instance");
        cr_expect_eq(
            reply->status, cases[i].status, "%s: %d", cases[i].target, reply->status);
        cr_expect(name && strcmp(name, "test") == 0, "%s", cases[i].target);
    }
}

Test(demo, sends_any_city_back_safely)
{
    struct weir_test_reply *reply = get("/api/weather/%22%3Cb%3E%5C%C3%A9", NULL);
    cr_expect_eq(reply->status, 200);
    cr_expect(
        strstr(reply->body, "{\"city\":\"\\\"<b>\\\\\xc3\xa9\","), "%s", reply->body);
    cr_expect_str_eq(weir_test_header(reply, "Content-Type"), "application/json");

    char target[128] = "/api/weather/";
    memset(target + 13, 'a', 64);
    cr_expect_eq(get(target, NULL)->status, 200);
    target[13 + 64] = 'a';
    cr_expect_eq(get(target, NULL)->status, 404);
    cr_expect_eq(get("/api/weather/a%0Ab", NULL)->status, 404);
    cr_expect_eq(get("/api/weather/a%7f", NULL)->status, 404);
    cr_expect_eq(get("/api/weather/%ff", NULL)->status, 400);
}

/* What the policy would make the browser refuse must not be in the page. */
Test(demo, has_a_page_that_its_own_policy_allows)
{
    struct weir_test_reply *reply = get("/", NULL);
    const char *policy = weir_test_header(reply, "Content-Security-Policy");
    cr_expect_str_eq(weir_test_header(reply, "Content-Type"), "text/html; charset=utf-8");
    cr_expect(policy && strncmp(policy, "default-src 'none'; ", 20) == 0, "%s", policy);
    cr_expect_null(strstr(policy, "unsafe"));
    cr_expect_null(strstr(reply->body, "<script>"));
    cr_expect_null(strstr(reply->body, "style=\""));
    cr_expect_null(strstr(reply->body, "://"));
    cr_expect_eq(get("/page.css", NULL)->status, 200);
    cr_expect_eq(get("/page.js", NULL)->status, 200);
}

/* Its limit is the chain's: the handler that was written for libfcgi knows of none. */
Test(demo, runs_a_classic_handler_that_its_refused_requests_never_reach)
{
    char expected[64];
    for (int run = 1; run <= 10; run++) {
        struct weir_test_reply *reply = get("/classic", NULL);
        snprintf(expected, sizeof expected, "run %d, for " FROM "\n", run);
        cr_expect_eq(reply->status, 200);
        cr_expect_str_eq(reply->body, expected);
        cr_expect_str_eq(weir_test_header(reply, "Content-Type"), "text/plain");
        cr_expect(weir_test_header(reply, "RateLimit"));
    }
    for (int i = 0; i < 3; i++)
        cr_expect_eq(get("/classic", NULL)->status, 429);
    weir_test_advance(t, WEIR_SECONDS(60));
    cr_expect_str_eq(get("/classic", NULL)->body, "run 11, for " FROM "\n");
}
