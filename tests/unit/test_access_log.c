/* One line a request, that nobody can forge and no flood can multiply. */
#include "kit.h"

#include <weir/filters/access_log.h>
#include <weir/filters/identity.h>
#include <weir/filters/ratelimit.h>
#include <weir/filters/request_id.h>

#include "base/log.h"

static char lines[16][2200];
static unsigned lines_len;

static void take(void *arg, const char *line)
{
    cr_assert_eq(arg, lines);
    cr_assert_lt(lines_len, 16u);
    snprintf(lines[lines_len++], sizeof lines[0], "%s", line);
}

static int hello(struct weir *w)
{
    kit.now_us += 1204;
    return weir_text(w, 200, "hello");
}

static int unavailable(struct weir *w)
{
    return weir_problem(w, 503, "Overloaded", NULL);
}

static const struct weir_rule two[] = { WEIR_FIXED_WINDOW("two", 2, WEIR_HOURS(1)),
                                        { 0 } };
static const struct weir_endpoint endpoints[] = {
    { "GET /hello", hello },
    { "GET /two", hello, .limits = two },
    { "GET /503", unavailable },
    { 0 },
};
static const struct weir_use chain[] = {
    WEIR_USE(access_log, .write = take, .arg = lines),
    WEIR_USE(identity),
    WEIR_USE(ratelimit),
    { NULL, NULL },
};

static void open_log(void)
{
    lines_len = 0;
    kit_open(endpoints, chain);
}

TestSuite(access_log, .init = open_log, .fini = kit_close);

static void ask(const char *method, const char *uri)
{
    kit_request(method, uri);
    kit_param("REMOTE_ADDR", "192.0.2.1");
    kit_begin();
    cr_assert(kit_run());
}

Test(access_log, writes_a_line_a_request)
{
    ask("GET", "/hello?secret=1");
    cr_assert_eq(lines_len, 1u);
    cr_assert_str_eq(lines[0],
                     "time=2027-01-15T08:00:00.001Z status=200 ms=1.204 bytes=5 "
                     "caller=ip source=- method=GET path=/hello");
}

Test(access_log, names_who_decided)
{
    ask("GET", "/two");
    cr_assert(strstr(lines[0], " source=shm "), "%s", lines[0]);
}

Test(access_log, counts_no_body_for_head)
{
    ask("HEAD", "/hello");
    cr_assert(strstr(lines[0], " bytes=0 "), "%s", lines[0]);
}

Test(access_log, logs_what_matches_no_endpoint)
{
    ask("GET", "/nowhere");
    cr_assert(strstr(lines[0], "status=404 "), "%s", lines[0]);
    ask("GET", "/%00");
    cr_assert(strstr(lines[1], "status=400 "), "%s", lines[1]);
    cr_assert(strstr(lines[1], " path=-"), "%s", lines[1]);
}

Test(access_log, writes_no_byte_that_could_forge_a_line)
{
    kit_request("GET", "/hello%0Astatus=200/\x01\xff\"a=b");
    kit_begin();
    kit.w.method = "G\nE\x7fT status=200";
    cr_assert(kit_run());
    for (const char *byte = lines[0]; *byte; byte++)
        cr_assert(*byte >= 0x20 && *byte < 0x7f, "%s", lines[0]);
    cr_assert(
        strstr(lines[0], "method=G\\x0aE\\x7fT\\x20status\\x3d200 "), "%s", lines[0]);
    unsigned statuses = 0;
    for (const char *at = lines[0]; (at = strstr(at, " status=")); at++)
        statuses++;
    cr_assert_eq(statuses, 1u, "%s", lines[0]);
}

Test(access_log, cuts_a_path_that_is_too_long)
{
    char uri[4000];
    memset(uri, 'a', sizeof uri);
    uri[0] = '/';
    uri[sizeof uri - 1] = '\0';
    ask("GET", uri);
    size_t len = strlen(lines[0]);
    cr_assert_lt(len, 1500u);
    cr_assert_str_eq(lines[0] + len - 4, "a...");
}

Test(access_log, writes_a_line_a_second_for_refusals_and_says_how_many_it_left_out)
{
    for (unsigned i = 0; i < 2 + 10; i++)
        ask("GET", "/two");
    cr_assert_eq(lines_len, 3u);
    cr_assert(strstr(lines[2], " status=429 "), "%s", lines[2]);
    cr_assert_null(strstr(lines[2], "dropped"));
    ask("GET", "/503");
    cr_assert_eq(lines_len, 4u, "a kind of its own");
    ask("GET", "/hello");
    cr_assert_eq(lines_len, 5u);
    kit.now_us += WEIR_SECONDS(1);
    ask("GET", "/two");
    cr_assert_eq(lines_len, 6u);
    cr_assert(strstr(lines[5], " dropped=9 status=429 "), "%s", lines[5]);
    kit.now_us += WEIR_SECONDS(1);
    ask("GET", "/two");
    cr_assert_null(strstr(lines[6], "dropped"), "%s", lines[6]);
}

/* ---- the app's log ----------------------------------------------------------------- */

static void take_log(void *arg, enum weir_log_level level, const char *line)
{
    (void)arg;
    cr_assert_eq(level, WEIR_LOG_INFO);
    snprintf(lines[lines_len++], sizeof lines[0], "%s", line);
}

static const struct weir_use plain_chain[] = { WEIR_USE(request_id),
                                               WEIR_USE(access_log),
                                               { NULL, NULL } };

Test(access_log, goes_to_the_apps_log_by_default)
{
    kit_close();
    kit_open(endpoints, plain_chain);
    weir__log_replace(take_log, NULL, WEIR_LOG_INFO);
    ask("GET", "/hello");
    weir__log_replace(NULL, NULL, WEIR_LOG_INFO);
    cr_assert_eq(lines_len, 1u);
    char expected[256];
    snprintf(expected,
             sizeof expected,
             "status=200 ms=1.204 bytes=5 caller=none source=- id=%s method=GET "
             "path=/hello",
             kit_sent_header("X-Request-Id"));
    cr_assert_str_eq(lines[0], expected);
}
