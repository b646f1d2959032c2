/* Refusals, fields, and what happens while the store is away or late. */
#include "kit.h"

#include <weir/filters/identity.h>
#include <weir/filters/ratelimit.h>

#include <jansson.h>

#include "support/ratelimit_judge.h"

/* ---- endpoints --------------------------------------------------------------------- */

static int64_t cost; /* of GET /cost */

static int64_t its_cost(struct weir *w)
{
    (void)w;
    return cost;
}

static int hello(struct weir *w)
{
    return weir_text(w, 200, "hello");
}

static int redirects(struct weir *w)
{
    weir_set_header(w, "Location", "/");
    return 302;
}

static const struct weir_rule five[] = { WEIR_FIXED_WINDOW("five", 5, WEIR_MINUTES(1)),
                                         { 0 } };
static const struct weir_rule costly[] = {
    WEIR_FIXED_WINDOW("costly", 10, WEIR_MINUTES(1), .cost_fn = its_cost),
    { 0 },
};
static const struct weir_rule blocked[] = {
    WEIR_FIXED_WINDOW("blocked", WEIR_BLOCK, WEIR_MINUTES(1)),
    { 0 },
};
static const struct weir_rule allows[] = {
    WEIR_FIXED_WINDOW("allows", 5, WEIR_MINUTES(1), .on_store_error = WEIR_ALLOW),
    { 0 },
};
static const struct weir_rule mixed[] = {
    WEIR_FIXED_WINDOW("local", 5, WEIR_MINUTES(1)),
    WEIR_FIXED_WINDOW("denies", 5, WEIR_HOURS(1), .on_store_error = WEIR_DENY),
    { 0 },
};
static const struct weir_rule half[] = {
    WEIR_FIXED_WINDOW("allows", 1, WEIR_MINUTES(1), .on_store_error = WEIR_ALLOW),
    WEIR_FIXED_WINDOW("local", 2, WEIR_HOURS(1)),
    { 0 },
};
static const struct weir_rule unlimited[] = { { .algorithm = WEIR_ALGORITHM_UNLIMITED },
                                              { 0 } };
static const struct weir_rule defaults[] = {
    WEIR_FIXED_WINDOW("default", 3, WEIR_MINUTES(1)),
    { 0 },
};

static const struct weir_endpoint endpoints[] = {
    { "GET /five", hello, .limits = five, .nonblocking = true },
    { "POST /five", hello, .limits = five, .nonblocking = true },
    { "GET /cost", hello, .limits = costly, .nonblocking = true },
    { "GET /blocked", hello, .limits = blocked, .nonblocking = true },
    { "GET /allows", hello, .limits = allows, .nonblocking = true },
    { "GET /mixed", hello, .limits = mixed, .nonblocking = true },
    { "GET /half", hello, .limits = half, .nonblocking = true },
    { "GET /redirect", redirects, .limits = five, .nonblocking = true },
    { "GET /health", hello, .limits = unlimited, .nonblocking = true },
    { "GET /default", hello, .nonblocking = true },
    { 0 },
};

static void open_with(const struct weir_use *chain, struct weir_store *store)
{
    kit_open_app(&(struct weir_app){
        WEIR_ABI,
        .endpoints = endpoints,
        .chain = chain,
        .default_limits = defaults,
        .store = store,
    });
}

static void open_default(void)
{
    open_with(NULL, NULL);
}

TestSuite(ratelimit, .init = open_default, .fini = kit_close);

/* Whatever was asked: fields that are there are what the drafts say, and a body tells the
 * same time as the header. */
static void judge_answer(void)
{
    static struct sf_list policy, state;
    const char *fault = NULL;
    if (*kit_sent_header("RateLimit"))
        fault = judge_state(kit_sent_header("RateLimit"), &state);
    cr_assert_null(fault, "RateLimit: %s: %s", kit_sent_header("RateLimit"), fault);
    if (*kit_sent_header("RateLimit-Policy"))
        fault = judge_policy(kit_sent_header("RateLimit-Policy"), &policy);
    cr_assert_null(
        fault, "RateLimit-Policy: %s: %s", kit_sent_header("RateLimit-Policy"), fault);
    const char *retry_after = kit_sent_header("Retry-After");
    json_t *body = json_loads(kit_sent_body(), JSON_REJECT_DUPLICATES, NULL);
    json_t *told = json_object_get(body, "retry_after");
    if (*retry_after && json_object_get(body, "code"))
        cr_assert_eq(json_integer_value(told), strtoll(retry_after, NULL, 10));
    json_decref(body);
}

static int ask_from(const char *remote_addr, const char *method, const char *uri)
{
    kit_request(method, uri);
    kit_param("REMOTE_ADDR", remote_addr);
    kit_begin();
    cr_assert(kit_run());
    judge_answer();
    return kit.w.status;
}

static int ask(const char *method, const char *uri)
{
    return ask_from("192.0.2.1", method, uri);
}

static void expect_header(const char *name, const char *value)
{
    cr_assert_str_eq(kit_sent_header(name), value, "%s: %s", name, kit_sent_header(name));
}

/* ---- answers ----------------------------------------------------------------------- */

Test(ratelimit, tells_how_much_is_left)
{
    cr_assert_eq(ask("GET", "/five"), 200);
    expect_header("RateLimit-Policy", "\"five\";q=5;w=60");
    expect_header("RateLimit", "\"five\";r=4;t=60");
    expect_header("Retry-After", "");
    expect_header("Weir-Source", "");
    cr_assert_str_eq(kit_sent_body(), "hello");
}

Test(ratelimit, refuses_who_is_over)
{
    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(ask("GET", "/five"), 200);
    kit.now_us += WEIR_SECONDS(20);
    cr_assert_eq(ask("GET", "/five"), 429);
    expect_header("Status", "");
    cr_assert(kit_sent_line("Status: 429 Too Many Requests"));
    expect_header("Retry-After", "40");
    expect_header("RateLimit-Policy", "\"five\";q=5;w=60");
    expect_header("RateLimit", "\"five\";r=0;t=40");
    expect_header("Cache-Control", "no-store");
    expect_header("Content-Type", "application/problem+json");
    cr_assert_str_eq(
        kit_sent_body(),
        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\","
        "\"title\":\"Request cannot be satisfied as assigned quota has been exceeded\","
        "\"status\":429,\"detail\":\"Rate limit exceeded, try again in 40 seconds.\","
        "\"code\":\"TooManyRequests\",\"violated-policies\":[\"five\"],"
        "\"retry_after\":40}");
    cr_assert_eq(ask_from("192.0.2.2", "GET", "/five"), 200, "another caller");
    kit.now_us += WEIR_SECONDS(40);
    cr_assert_eq(ask("GET", "/five"), 200, "the promise is kept");
}

Test(ratelimit, leaves_an_unlimited_endpoint_alone)
{
    for (unsigned i = 0; i < 20; i++)
        cr_assert_eq(ask("GET", "/health"), 200);
    expect_header("RateLimit", "");
    expect_header("RateLimit-Policy", "");
}

Test(ratelimit, counts_unknown_paths_in_one_bucket_a_caller)
{
    cr_assert_eq(ask("GET", "/a"), 404);
    cr_assert_eq(ask("GET", "/b"), 404);
    cr_assert_eq(ask("GET", "/c"), 404);
    cr_assert_eq(ask("GET", "/d"), 429);
    cr_assert_eq(ask_from("192.0.2.2", "GET", "/d"), 404);
    cr_assert_eq(ask("GET", "/default"), 200, "counted apart");
}

Test(ratelimit, counts_malformed_paths_too)
{
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(ask("GET", "/a%2Fb"), 400);
    cr_assert_eq(ask("GET", "/%zz"), 429);
}

/* std. A14 */
Test(ratelimit, puts_no_fields_on_a_redirect)
{
    cr_assert_eq(ask("GET", "/redirect"), 302);
    expect_header("RateLimit", "");
    expect_header("RateLimit-Policy", "");
}

Test(ratelimit, refuses_a_cost_that_can_never_be_paid_without_a_wait)
{
    cost = 11;
    cr_assert_eq(ask("GET", "/cost"), 429);
    expect_header("Retry-After", "");
    cr_assert(strstr(kit_sent_body(), "\"code\":\"CostExceedsLimit\""));
    cr_assert_null(strstr(kit_sent_body(), "retry_after"));
    cost = 10;
    cr_assert_eq(ask("GET", "/cost"), 200);
    expect_header("RateLimit", "\"costly\";r=0;t=60");
}

Test(ratelimit, takes_a_negative_cost_for_one)
{
    cost = -5;
    cr_assert_eq(ask("GET", "/cost"), 200);
    expect_header("RateLimit", "\"costly\";r=9;t=60");
}

Test(ratelimit, blocks_without_a_wait)
{
    cr_assert_eq(ask("GET", "/blocked"), 429);
    expect_header("Retry-After", "");
    cr_assert(strstr(kit_sent_body(), "\"code\":\"TooManyRequests\""));
}

/* ---- cases B41: method tricks ------------------------------------------------------ */

Test(ratelimit, counts_head_as_get)
{
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(ask("GET", "/five"), 200);
    for (unsigned i = 0; i < 2; i++)
        cr_assert_eq(ask("HEAD", "/five"), 200);
    cr_assert_eq(ask("HEAD", "/five"), 429);
    cr_assert_str_eq(kit_sent_body(), "");
    char *head = strdup(kit.sent);
    cr_assert_eq(ask("GET", "/five"), 429);
    cr_assert_str_neq(kit_sent_body(), "");
    *strstr(kit.sent, "\r\n\r\n") = *strstr(head, "\r\n\r\n") = '\0';
    cr_assert_str_eq(head, kit.sent, "the same fields");
    free(head);
}

Test(ratelimit, believes_no_override_of_the_method)
{
    kit_request("POST", "/five");
    kit_param("REMOTE_ADDR", "192.0.2.1");
    kit_param("HTTP_X_HTTP_METHOD_OVERRIDE", "DELETE");
    kit_begin();
    cr_assert(kit_run());
    cr_assert_eq(kit.w.status, 200);
    expect_header("RateLimit", "\"five\";r=4;t=60");
}

Test(ratelimit, counts_an_unknown_method_under_the_default_rule)
{
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(ask("FOO", "/five"), 405);
    cr_assert_eq(ask("FOO", "/five"), 429);
    cr_assert_eq(ask("GET", "/five"), 200);
    expect_header("RateLimit", "\"five\";r=4;t=60");
}

/* ---- cases B45: preflights --------------------------------------------------------- */

Test(ratelimit, does_not_charge_a_preflight_to_the_methods_own_rule)
{
    unsigned passed = 0;
    for (unsigned i = 0; i < 10; i++)
        passed += ask("OPTIONS", "/five") == 204;
    cr_assert_eq(passed, 3u, "they run into the rule for what has no endpoint");
    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(ask("GET", "/five"), 200);
    cr_assert_eq(ask("GET", "/five"), 429);
}

/* ---- cases B49: a cached 429 ------------------------------------------------------- */

static enum weir_verdict allows_caches(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    weir_set_header(w, "Cache-Control", "public, max-age=300");
    return WEIR_NEXT;
}

static const struct weir_filter filter_outer = { .name = "outer",
                                                 .before = allows_caches,
                                                 .commit = allows_caches };
static const struct weir_filter filter_inner = { .name = "inner",
                                                 .before = allows_caches,
                                                 .commit = allows_caches };
static const struct weir_use caching_chain[] = {
    { &filter_outer, NULL }, WEIR_USE(identity), WEIR_USE(ratelimit),
    { &filter_inner, NULL }, { NULL, NULL },
};

Test(ratelimit, is_not_cached_whatever_other_filters_say)
{
    kit_close();
    open_with(caching_chain, NULL);
    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(ask("GET", "/five"), 200);
    expect_header("Cache-Control", "public, max-age=300");
    cr_assert_eq(ask("GET", "/five"), 429);
    expect_header("Cache-Control", "no-store");
    cr_assert_null(strstr(kit.sent, "max-age"));
}

/* ---- options ----------------------------------------------------------------------- */

static void be_refused_with(const struct weir_ratelimit *options)
{
    kit_close();
    const struct weir_use chain[] = { WEIR_USE(identity),
                                      { &weir_filter_ratelimit, options },
                                      { NULL, NULL } };
    open_with(chain, NULL);
    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(ask("GET", "/five"), 200);
    ask("GET", "/five");
}

Test(ratelimit, can_answer_as_a_response_status)
{
    be_refused_with(&(struct weir_ratelimit){ .size = sizeof(struct weir_ratelimit),
                                              .format = WEIR_FORMAT_RESPONSE_STATUS });
    cr_assert_eq(kit.w.status, 429);
    expect_header("Content-Type", "application/json");
    cr_assert_str_eq(kit_sent_body(),
                     "{\"responseStatus\":{\"errorCode\":\"TooManyRequests\","
                     "\"message\":\"Rate limit exceeded, try again in 60 seconds.\"}}");
}

Test(ratelimit, can_answer_as_both)
{
    be_refused_with(&(struct weir_ratelimit){ .size = sizeof(struct weir_ratelimit),
                                              .format = WEIR_FORMAT_BOTH });
    expect_header("Content-Type", "application/problem+json");
    cr_assert(strstr(kit_sent_body(), "\"code\":\"TooManyRequests\""));
    cr_assert(strstr(kit_sent_body(), "\"errorCode\":\"TooManyRequests\""));
}

static void says_slow_down(struct weir *w,
                           int status,
                           const char *code,
                           const struct weir_decision *decision,
                           int64_t retry_after)
{
    cr_assert_eq(weir_status(w), status);
    cr_assert_str_eq(weir_response_header(w, "Retry-After"), "60");
    cr_assert_not_null(weir_response_header(w, "RateLimit"));
    cr_assert_not(decision->allowed);
    weir_text(
        w, status, weir_printf(w, "slow down: %s, %lld", code, (long long)retry_after));
}

Test(ratelimit, can_answer_as_the_app_says)
{
    be_refused_with(&(struct weir_ratelimit){ .size = sizeof(struct weir_ratelimit),
                                              .refusal = says_slow_down });
    cr_assert_eq(kit.w.status, 429);
    cr_assert_str_eq(kit_sent_body(), "slow down: TooManyRequests, 60");
    expect_header("Cache-Control", "no-store");
}

Test(ratelimit, can_leave_its_fields_out)
{
    be_refused_with(&(struct weir_ratelimit){ .size = sizeof(struct weir_ratelimit),
                                              .retry_after = WEIR_OFF,
                                              .ratelimit = WEIR_OFF,
                                              .source = WEIR_ON });
    expect_header("Retry-After", "");
    expect_header("RateLimit", "");
    expect_header("RateLimit-Policy", "");
    expect_header("Weir-Source", "shm");
    expect_header("Cache-Control", "no-store");
}

/* ---- giving back ------------------------------------------------------------------- */

Test(ratelimit, gives_back_what_weir_itself_did_not_serve)
{
    for (unsigned i = 0; i < 20; i++) {
        kit_request("GET", "/five");
        kit_param("REMOTE_ADDR", "192.0.2.1");
        kit_begin();
        cr_assert_eq(weir__life_run(&kit.w, false), WEIR__NEED_BODY);
        weir__life_abandon(&kit.w, 413, "PayloadTooLarge", NULL);
        cr_assert(kit_run());
        cr_assert(kit_sent_line("Status: 413 Content Too Large"));
    }
    cr_assert_eq(ask("GET", "/five"), 200);
    expect_header("RateLimit", "\"five\";r=4;t=60");
}

/* std. G17 */
Test(ratelimit, keeps_what_a_client_that_went_away_has_used)
{
    kit_request("GET", "/five");
    kit_param("REMOTE_ADDR", "192.0.2.1");
    kit_begin();
    cr_assert_eq(weir__life_run(&kit.w, false), WEIR__NEED_BODY);
    atomic_store(&kit.w.gone, true);
    cr_assert(kit_run());
    cr_assert_eq(ask("GET", "/five"), 200);
    expect_header("RateLimit", "\"five\";r=3;t=60");
}

/* ---- a store that is away or late -------------------------------------------------- */

/* It answers when the test says so. */
static struct {
    struct weir_store store;
    bool is_away;
    struct weir_store_ask *pending;
    unsigned refunds;
} remote;

static enum weir_store_result remote_decide(void *self, struct weir_store_ask *its_ask)
{
    (void)self;
    if (remote.is_away)
        return WEIR_STORE_UNAVAILABLE;
    remote.pending = its_ask;
    return WEIR_STORE_PENDING;
}

static void remote_refund(void *self, struct weir_store_ask *its_ask)
{
    (void)self;
    cr_assert(its_ask->receipts[0].charged);
    remote.refunds++;
}

static const struct weir_store_ops remote_ops = {
    .name = "remote",
    .may_pend = true,
    .decide = remote_decide,
    .refund = remote_refund,
};

static void remote_answers(enum weir_store_result result, bool allowed)
{
    struct weir_store_ask *its_ask = remote.pending;
    remote.pending = NULL;
    its_ask->result = result;
    its_ask->decision = (struct weir_decision){
        .allowed = allowed,
        .source = WEIR_SOURCE_REDIS,
        .rules_len = 1,
        .rules = { { .rule = its_ask->items[0].rule,
                     .allowed = allowed,
                     .cost = 1,
                     .remaining = allowed ? 4 : 0,
                     .retry_us = allowed ? 0 : WEIR_SECONDS(7),
                     .next_us = WEIR_SECONDS(7),
                     .full_us = WEIR_SECONDS(7) } },
    };
    its_ask->receipts[0].charged = allowed;
    its_ask->done(its_ask);
}

static const struct weir_use source_chain[] = {
    WEIR_USE(identity),
    WEIR_USE(ratelimit, .source = WEIR_ON),
    { NULL, NULL },
};

static void open_remote(void)
{
    memset(&remote, 0, sizeof remote);
    remote.store.ops = &remote_ops;
    open_with(source_chain, &remote.store);
}

static void open_away(void)
{
    open_remote();
    remote.is_away = true;
}

TestSuite(ratelimit_away, .init = open_away, .fini = kit_close);

Test(ratelimit_away, lets_through_without_fields_where_the_rule_says_allow)
{
    for (unsigned i = 0; i < 20; i++)
        cr_assert_eq(ask("GET", "/allows"), 200);
    expect_header("RateLimit", "");
    expect_header("RateLimit-Policy", "");
    expect_header("Weir-Source", "allow");
}

Test(ratelimit_away, refuses_with_503_where_a_rule_says_deny)
{
    cr_assert_eq(ask("GET", "/mixed"), 503);
    expect_header("Retry-After", "1");
    expect_header("RateLimit", "");
    expect_header("Cache-Control", "no-store");
    expect_header("Weir-Source", "deny");
    cr_assert(strstr(kit_sent_body(), "\"code\":\"StoreUnavailable\""));
}

Test(ratelimit_away, enforces_the_share_of_this_instance_by_default)
{
    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(ask("GET", "/five"), 200);
    expect_header("RateLimit", "\"five\";r=0;t=60");
    expect_header("Weir-Source", "local");
    cr_assert_eq(ask("GET", "/five"), 429);
    expect_header("Weir-Source", "local");
}

Test(ratelimit_away, enforces_only_the_rules_that_say_local)
{
    cr_assert_eq(ask("GET", "/half"), 200);
    expect_header("RateLimit-Policy", "\"local\";q=2;w=3600");
    cr_assert_eq(ask("GET", "/half"), 200);
    cr_assert_eq(ask("GET", "/half"), 429);
}

Test(ratelimit_away, gives_a_local_charge_back_to_the_local_store)
{
    kit_request("GET", "/five");
    kit_param("REMOTE_ADDR", "192.0.2.1");
    kit_begin();
    cr_assert_eq(weir__life_run(&kit.w, false), WEIR__NEED_BODY);
    weir__life_abandon(&kit.w, 503, "Overloaded", NULL);
    cr_assert(kit_run());
    cr_assert_eq(ask("GET", "/five"), 200);
    expect_header("RateLimit", "\"five\";r=4;t=60");
    cr_assert_eq(remote.refunds, 0u);
}

TestSuite(ratelimit_late, .init = open_remote, .fini = kit_close);

static void ask_and_park(const char *uri)
{
    kit_request("GET", uri);
    kit_param("REMOTE_ADDR", "192.0.2.1");
    kit_begin();
    cr_assert_not(kit_run());
    cr_assert_eq(kit.w.wait_until_us, kit.now_us + WEIR_MILLISECONDS(20));
}

Test(ratelimit_late, waits_for_the_answer_without_a_thread)
{
    ask_and_park("/five");
    remote_answers(WEIR_STORE_READY, true);
    cr_assert_eq(kit.resumes, 1u);
    cr_assert(kit_run());
    cr_assert_eq(kit.w.status, 200);
    expect_header("RateLimit", "\"five\";r=4;t=7");
    expect_header("Weir-Source", "redis");
    cr_assert_eq(remote.refunds, 0u);
}

Test(ratelimit_late, refuses_by_an_answer_that_came_later)
{
    ask_and_park("/five");
    remote_answers(WEIR_STORE_READY, false);
    cr_assert(kit_run());
    cr_assert_eq(kit.w.status, 429);
    expect_header("Retry-After", "7");
}

Test(ratelimit_late, decides_locally_when_the_store_gives_up)
{
    ask_and_park("/five");
    remote_answers(WEIR_STORE_UNAVAILABLE, false);
    cr_assert(kit_run());
    cr_assert_eq(kit.w.status, 200);
    expect_header("Weir-Source", "local");
}

Test(ratelimit_late, decides_locally_at_the_deadline_and_gives_a_late_charge_back)
{
    ask_and_park("/five");
    kit.now_us += WEIR_MILLISECONDS(20);
    weir__life_timeout(&kit.w, kit.armed);
    cr_assert(kit_run());
    cr_assert_eq(kit.w.status, 200);
    expect_header("Weir-Source", "local");
    unsigned resumes = kit.resumes;
    remote_answers(WEIR_STORE_READY, true);
    cr_assert_eq(remote.refunds, 1u);
    cr_assert_eq(kit.resumes, resumes, "the request is over");
}

Test(ratelimit_late, gives_nothing_back_when_a_late_answer_refused)
{
    ask_and_park("/five");
    weir__life_timeout(&kit.w, kit.armed);
    cr_assert(kit_run());
    remote_answers(WEIR_STORE_READY, false);
    cr_assert_eq(remote.refunds, 0u);
}

Test(ratelimit_late, gives_a_charge_back_to_the_store_that_took_it)
{
    ask_and_park("/five");
    remote_answers(WEIR_STORE_READY, true);
    cr_assert_eq(weir__life_run(&kit.w, false), WEIR__NEED_BODY);
    weir__life_abandon(&kit.w, 413, "PayloadTooLarge", NULL);
    cr_assert(kit_run());
    cr_assert_eq(remote.refunds, 1u);
}

Test(ratelimit_late, gives_a_charge_back_that_comes_after_the_request_was_abandoned)
{
    ask_and_park("/five");
    weir_wake(&kit.w); /* the transport's time is up */
    weir__life_abandon(&kit.w, 504, "RequestTimeout", NULL);
    cr_assert(kit_run());
    cr_assert_eq(kit.w.status, 504);
    remote_answers(WEIR_STORE_READY, true);
    cr_assert_eq(remote.refunds, 1u);
}

Test(ratelimit_late, waits_on_when_it_is_woken_for_nothing)
{
    ask_and_park("/five");
    kit.now_us += WEIR_MILLISECONDS(5);
    weir_wake(&kit.w);
    cr_assert_not(kit_run());
    cr_assert_eq(kit.w.wait_until_us, kit.now_us + WEIR_MILLISECONDS(15));
    remote_answers(WEIR_STORE_READY, true);
    cr_assert(kit_run());
    cr_assert_eq(kit.w.status, 200);
}
