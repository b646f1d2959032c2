/* The families of fields of an answer: their bytes, their switches, what browsers may
 * see of them, and jitter. */
#include "kit.h"

#include <jansson.h>

#include <weir/filters/identity.h>
#include <weir/filters/ratelimit.h>

#include "support/ratelimit_judge.h"

static int hello(struct weir *w)
{
    return weir_text(w, 200, "hello");
}

static int redirects(struct weir *w)
{
    weir_set_header(w, "Location", "https://example.org/");
    return 302;
}

static int exposes(struct weir *w)
{
    weir_set_header(w, "Access-Control-Expose-Headers", "X-Own");
    return weir_text(w, 200, "hello");
}

static const struct weir_rule two[] = {
    WEIR_FIXED_WINDOW("minute", 5, WEIR_MINUTES(1)),
    WEIR_TOKEN_BUCKET("burst", 2, 1, WEIR_SECONDS(10)),
    { 0 },
};
static const struct weir_rule costly[] = {
    WEIR_FIXED_WINDOW("minute", 5, WEIR_MINUTES(1), .cost = 3),
    { 0 },
};
static const struct weir_rule none[] = {
    WEIR_FIXED_WINDOW("none", 0, WEIR_MINUTES(1)),
    { 0 },
};

static const struct weir_endpoint endpoints[] = {
    { "GET /two", hello, .limits = two, .nonblocking = true },
    { "GET /costly", hello, .limits = costly, .nonblocking = true },
    { "GET /none", hello, .limits = none, .nonblocking = true },
    { "GET /redirect", redirects, .limits = two, .nonblocking = true },
    { "GET /exposes", exposes, .limits = two, .nonblocking = true },
    { "GET /free", hello, .nonblocking = true },
    { 0 },
};

static struct weir_use chain[3] = { WEIR_USE(identity) };

static const struct weir_use *chain_of(const struct weir_ratelimit *options)
{
    chain[1] = (struct weir_use){ &weir_filter_ratelimit, options };
    return chain;
}

static void open_with(const struct weir_ratelimit *options)
{
    kit_open_app(&(struct weir_app){
        WEIR_ABI, .endpoints = endpoints, .chain = chain_of(options) });
}

#define OPEN(...)                                                                        \
    open_with(&(const struct weir_ratelimit){                                            \
        .size = sizeof(struct weir_ratelimit), .abi = 1, __VA_ARGS__ })

TestSuite(ratelimit_families, .fini = kit_close);

static int ask(const char *uri)
{
    kit_request("GET", uri);
    kit_param("REMOTE_ADDR", "192.0.2.1");
    kit_begin();
    cr_assert(kit_run());
    return kit.w.status;
}

/* What left, from its first field to the end of the head. */
static const char *head(void)
{
    static char text[4096];
    const char *end = strstr(kit.sent, "\r\n\r\n");
    cr_assert(end && (size_t)(end - kit.sent) < sizeof text);
    snprintf(text, sizeof text, "%.*s\r\n", (int)(end - kit.sent), kit.sent);
    return text;
}

static void expect(const char *name, const char *value)
{
    cr_assert_str_eq(kit_sent_header(name), value, "%s in %s", name, head());
}

/* ---- golden bytes ------------------------------------------------------------------ */

#define TYPE "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n"

Test(ratelimit_families, the_default_is_retry_after_and_drafts_08_to_11)
{
    OPEN(.source = WEIR_OFF);
    cr_assert_eq(ask("/two"), 200);
    cr_assert_str_eq(head(),
                     "Status: 200 OK\r\n" TYPE
                     "RateLimit-Policy: \"minute\";q=5;w=60, \"burst\";q=2;w=20\r\n"
                     "RateLimit: \"minute\";r=4;t=60, \"burst\";r=1;t=10\r\n");
}

Test(ratelimit_families, the_x_trio_tells_when_in_seconds_since_1970)
{
    OPEN(.ratelimit = WEIR_OFF, .x_ratelimit = WEIR_ON);
    cr_assert_eq(ask("/two"), 200);
    int64_t now = kit_wall() / 1000000;
    cr_assert_eq(now * 1000000, kit_wall());
    char expected[512];
    snprintf(expected,
             sizeof expected,
             "Status: 200 OK\r\n" TYPE "X-RateLimit-Limit: 2\r\n"
             "X-RateLimit-Remaining: 1\r\n"
             "X-RateLimit-Reset: %lld\r\n",
             (long long)now + 10);
    cr_assert_str_eq(head(), expected);
}

Test(ratelimit_families, draft_06_tells_in_how_many_seconds)
{
    OPEN(.ratelimit = WEIR_OFF, .ratelimit_draft_06 = WEIR_ON);
    cr_assert_eq(ask("/two"), 200);
    cr_assert_str_eq(head(),
                     "Status: 200 OK\r\n" TYPE "RateLimit-Policy: 5;w=60, 2;w=20\r\n"
                     "RateLimit-Limit: 2\r\n"
                     "RateLimit-Remaining: 1\r\n"
                     "RateLimit-Reset: 10\r\n");
}

Test(ratelimit_families, a_refusal_has_all_that_is_switched_on)
{
    OPEN(.ratelimit = WEIR_OFF,
         .ratelimit_draft_06 = WEIR_ON,
         .x_ratelimit = WEIR_ON,
         .source = WEIR_ON);
    cr_assert_eq(ask("/two"), 200);
    cr_assert_eq(ask("/two"), 200);
    kit.now_us += 2500000;
    int64_t reset = (kit_wall() + 500000) / 1000000 + 8;
    cr_assert_eq(ask("/two"), 429);
    char expected[1024];
    snprintf(expected,
             sizeof expected,
             "Status: 429 Too Many Requests\r\n"
             "Content-Type: application/problem+json\r\n"
             "Content-Length: 287\r\n"
             "Retry-After: 8\r\n"
             "Cache-Control: no-store\r\n"
             "RateLimit-Policy: 5;w=60, 2;w=20\r\n"
             "X-RateLimit-Limit: 2\r\n"
             "X-RateLimit-Remaining: 0\r\n"
             "X-RateLimit-Reset: %lld\r\n"
             "RateLimit-Limit: 2\r\n"
             "RateLimit-Remaining: 0\r\n"
             "RateLimit-Reset: 8\r\n"
             "Weir-Source: shm\r\n",
             (long long)reset);
    cr_assert_str_eq(head(), expected);
}

/* cases B47 */
Test(ratelimit_families, a_reset_as_a_date_and_as_seconds_are_each_in_its_unit)
{
    OPEN(.ratelimit = WEIR_OFF, .ratelimit_draft_06 = WEIR_ON, .x_ratelimit = WEIR_ON);
    cr_assert_eq(ask("/costly"), 200);
    expect("RateLimit-Reset", "60");
    long long at = strtoll(kit_sent_header("X-RateLimit-Reset"), NULL, 10);
    cr_assert_eq(at, kit_wall() / 1000000 + 60);
    kit.now_us += WEIR_SECONDS(10);
    cr_assert_eq(ask("/costly"), 429);
    expect("RateLimit-Reset", "50");
    expect("RateLimit-Remaining", "2");
    expect("Retry-After", "50");
    cr_assert_eq(strtoll(kit_sent_header("X-RateLimit-Reset"), NULL, 10), at);
    kit.now_us += WEIR_SECONDS(50);
    cr_assert_eq(ask("/costly"), 200, "at Reset it is let through");
}

Test(ratelimit_families, no_family_is_on_a_redirect)
{
    OPEN(.ratelimit = WEIR_OFF,
         .ratelimit_draft_06 = WEIR_ON,
         .x_ratelimit = WEIR_ON,
         .expose = WEIR_ON);
    cr_assert_eq(ask("/redirect"), 302);
    cr_assert_null(strstr(kit.sent, "RateLimit"));
    cr_assert_null(strstr(kit.sent, "Access-Control"));
}

Test(ratelimit_families, a_block_has_a_policy_but_no_trio)
{
    OPEN(.x_ratelimit = WEIR_ON);
    cr_assert_eq(ask("/none"), 429);
    expect("RateLimit-Policy", "\"none\";q=0;w=60");
    expect("RateLimit", "\"none\";r=0");
    expect("Retry-After", "");
    expect("X-RateLimit-Limit", "");
    cr_assert(strstr(kit_sent_body(), "\"code\":\"TooManyRequests\""));
    cr_assert_null(strstr(kit_sent_body(), "retry_after"));
}

/* ---- CORS -------------------------------------------------------------------------- */

Test(ratelimit_families, browsers_are_shown_nothing_by_default)
{
    OPEN(.source = WEIR_ON);
    cr_assert_eq(ask("/two"), 200);
    expect("Access-Control-Expose-Headers", "");
}

Test(ratelimit_families, browsers_are_shown_what_is_switched_on)
{
    OPEN(.expose = WEIR_ON, .source = WEIR_ON);
    const char *names = "Retry-After, RateLimit, RateLimit-Policy, Weir-Source";
    cr_assert_eq(ask("/two"), 200);
    expect("Access-Control-Expose-Headers", names);
    cr_assert_eq(ask("/two"), 200);
    cr_assert_eq(ask("/two"), 429);
    expect("Access-Control-Expose-Headers", names);
    cr_assert_eq(ask("/free"), 200);
    expect("Access-Control-Expose-Headers", names);
}

Test(ratelimit_families, browsers_are_shown_the_older_families)
{
    OPEN(.expose = WEIR_ON,
         .retry_after = WEIR_OFF,
         .ratelimit = WEIR_OFF,
         .x_ratelimit = WEIR_ON,
         .ratelimit_draft_06 = WEIR_ON);
    cr_assert_eq(ask("/two"), 200);
    expect("Access-Control-Expose-Headers",
           "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, "
           "RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, RateLimit-Policy");
}

Test(ratelimit_families, what_the_app_exposes_stays_exposed)
{
    OPEN(.expose = WEIR_ON);
    cr_assert_eq(ask("/exposes"), 200);
    cr_assert(kit_sent_line("Access-Control-Expose-Headers: X-Own"));
    cr_assert(kit_sent_line(
        "Access-Control-Expose-Headers: Retry-After, RateLimit, RateLimit-Policy"));
}

/* ---- jitter ------------------------------------------------------------------------ */

/* Header, body, t and both Resets of a refusal. */
static int64_t told(void)
{
    static struct sf_list state;
    int64_t seconds = strtoll(kit_sent_header("Retry-After"), NULL, 10);
    json_t *body = json_loads(kit_sent_body(), JSON_REJECT_DUPLICATES, NULL);
    char detail[128];
    snprintf(detail,
             sizeof detail,
             "Rate limit exceeded, try again in %lld second%s.",
             (long long)seconds,
             seconds == 1 ? "" : "s");
    cr_assert_eq(json_integer_value(json_object_get(body, "retry_after")), seconds);
    cr_assert_str_eq(json_string_value(json_object_get(body, "detail")), detail);
    json_decref(body);
    cr_assert_null(judge_state(kit_sent_header("RateLimit"), &state));
    cr_assert_eq(sf_param(&state.items[1], "t")->number, seconds);
    cr_assert_eq(strtoll(kit_sent_header("X-RateLimit-Reset"), NULL, 10),
                 kit_wall() / 1000000 + seconds);
    return seconds;
}

Test(ratelimit_families, jitter_is_only_ever_later_and_the_same_everywhere)
{
    bool seen[4] = { false };
    OPEN(.x_ratelimit = WEIR_ON, .jitter_us = WEIR_SECONDS(3));
    cr_assert_eq(ask("/two"), 200);
    cr_assert_eq(ask("/two"), 200);
    for (unsigned i = 0; i < 400; i++) {
        cr_assert_eq(ask("/two"), 429);
        int64_t seconds = told();
        cr_assert(seconds >= 10 && seconds <= 13, "%lld", (long long)seconds);
        seen[seconds - 10] = true;
    }
    cr_assert(seen[1] && seen[2] && seen[3]);
}

Test(ratelimit_families, without_jitter_the_wait_is_exact)
{
    OPEN(.x_ratelimit = WEIR_ON);
    cr_assert_eq(ask("/two"), 200);
    cr_assert_eq(ask("/two"), 200);
    for (unsigned i = 0; i < 20; i++) {
        cr_assert_eq(ask("/two"), 429);
        cr_assert_eq(told(), 10);
    }
}

/* ---- mistakes ---------------------------------------------------------------------- */

#define REFUSED(part_, ...)                                                              \
    expect_refusal((part_),                                                              \
                   &(const struct weir_ratelimit){                                       \
                       .size = sizeof(struct weir_ratelimit), .abi = 1, __VA_ARGS__ })

static void expect_refusal(const char *part, const struct weir_ratelimit *options)
{
    struct weir_app declared = { WEIR_ABI,
                                 .endpoints = endpoints,
                                 .chain = chain_of(options) };
    struct weir__options app_options = { .shm_entries = 1024 };
    struct weir_error error = { "" };
    struct weir__app *app = NULL;
    cr_expect_not(weir__app_create(&declared, &app_options, NULL, &app, &error));
    cr_expect(strstr(error.text, part), "%s, not: %s", part, error.text);
}

Test(ratelimit_mistakes, both_forms_of_ratelimit_policy_are_refused_at_start)
{
    REFUSED("ratelimit_draft_06", .ratelimit_draft_06 = WEIR_ON);
    REFUSED("ratelimit_draft_06", .ratelimit_draft_06 = WEIR_ON, .ratelimit = WEIR_ON);
}

Test(ratelimit_mistakes, switches_and_times_are_checked)
{
    REFUSED("x_ratelimit", .x_ratelimit = (enum weir_switch)3);
    REFUSED("expose", .expose = (enum weir_switch) - 1);
    REFUSED("jitter_us", .jitter_us = -1);
    REFUSED("jitter_us", .jitter_us = WEIR_HOURS(1) + 1);
    REFUSED("deadline_us", .deadline_us = -1);
    REFUSED("format", .format = (enum weir_refusal_format)3);
}
