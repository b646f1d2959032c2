/* Who calls: only what was verified, and never more than one bucket an address. */
#include "kit.h"

#include <weir/filters/identity.h>
#include <weir/filters/ratelimit.h>

static unsigned looked_up;
static struct weir_caller seen;

/* A session store of one: the cookie sid=good is alice. */
static bool session_user(struct weir *w, struct weir_caller *ret_caller)
{
    const char *sid = weir_cookie(w, "sid");
    looked_up++;
    return sid && strcmp(sid, "good") == 0 && weir_caller_user(ret_caller, "alice");
}

static int whoami(struct weir *w)
{
    seen = *weir_caller(w);
    return 200;
}

static const struct weir_endpoint endpoints[] = {
    { "GET /", whoami, .nonblocking = true },
    { 0 },
};

static const struct weir_use plain[] = { WEIR_USE(identity), { NULL, NULL } };

static void open_plain(void)
{
    kit_open(endpoints, plain);
}

static void reopen(const struct weir_use *chain)
{
    kit_close();
    kit_open(endpoints, chain);
    looked_up = 0;
}

TestSuite(identity, .init = open_plain, .fini = kit_close);

static void expect(enum weir_caller_type type, const char *id)
{
    kit_begin();
    cr_assert(kit_run());
    cr_assert_eq(kit.w.status, 200);
    cr_assert_str_eq(weir_caller_type_name(seen.type), weir_caller_type_name(type));
    cr_assert_str_eq(seen.id, id);
    cr_assert_eq(seen.id_len, strlen(id));
}

static void expect_at(const char *remote_addr, enum weir_caller_type type, const char *id)
{
    kit_request("GET", "/");
    kit_param("REMOTE_ADDR", remote_addr);
    expect(type, id);
}

/* ---- the address ------------------------------------------------------------------- */

Test(identity, is_the_address_where_nothing_else_is_known)
{
    expect_at("192.0.2.1", WEIR_CALLER_IP, "192.0.2.1");
}

/* cases B32 */
Test(identity, counts_ipv6_by_its_first_64_bits)
{
    expect_at("2001:db8:1:2::1", WEIR_CALLER_IP, "2001:db8:1:2::/64");
    expect_at("2001:DB8:1:2:0:0:0:1", WEIR_CALLER_IP, "2001:db8:1:2::/64");
    expect_at("2001:db8:1:3::1", WEIR_CALLER_IP, "2001:db8:1:3::/64");
    expect_at("fe80::1%eth0", WEIR_CALLER_IP, "fe80::/64");
}

Test(identity, counts_ipv6_by_the_prefix_it_was_told)
{
    reopen(WEIR_CHAIN(WEIR_USE(identity, .ipv6_prefix = 48)));
    expect_at("2001:db8:1:2::1", WEIR_CALLER_IP, "2001:db8:1::/48");
    cr_assert_str_eq(kit.w.address_key, "2001:db8:1::/48");
}

Test(identity, takes_ipv4_inside_ipv6_as_ipv4)
{
    expect_at("::ffff:198.51.100.7", WEIR_CALLER_IP, "198.51.100.7");
    expect_at("64:ff9b::c633:6407", WEIR_CALLER_IP, "198.51.100.7");
}

/* cases B34 */
Test(identity, is_nobody_without_an_address)
{
    kit_request("GET", "/");
    expect(WEIR_CALLER_NONE, "");
    cr_assert_null(kit.w.address_key);
    expect_at("", WEIR_CALLER_NONE, "");
    expect_at("@", WEIR_CALLER_NONE, "");
    expect_at("unix:", WEIR_CALLER_NONE, "");
    expect_at("/run/socket", WEIR_CALLER_NONE, "");
    expect_at("192.0.2.1:8080", WEIR_CALLER_NONE, "");
}

Test(identity, believes_no_header_of_the_client)
{
    kit_request("GET", "/");
    kit_param("REMOTE_ADDR", "192.0.2.1");
    kit_param("HTTP_X_FORWARDED_FOR", "1.2.3.4");
    kit_param("HTTP_FORWARDED", "for=1.2.3.4");
    kit_param("HTTP_X_REAL_IP", "1.2.3.4");
    kit_param("HTTP_REMOTE_ADDR", "1.2.3.4");
    kit_param("HTTP_REMOTE_USER", "root");
    expect(WEIR_CALLER_IP, "192.0.2.1");
}

/* ---- REMOTE_USER ------------------------------------------------------------------- */

static void ask_as_bob(void)
{
    kit_request("GET", "/");
    kit_param("REMOTE_ADDR", "192.0.2.1");
    kit_param("REMOTE_USER", "bob");
    kit_param("HTTP_REMOTE_USER", "root");
}

Test(identity, ignores_remote_user_unless_it_is_switched_on)
{
    ask_as_bob();
    expect(WEIR_CALLER_IP, "192.0.2.1");
}

Test(identity, takes_remote_user_as_a_type_of_its_own)
{
    reopen(WEIR_CHAIN(WEIR_USE(identity, .remote_user = true)));
    ask_as_bob();
    expect(WEIR_CALLER_REMOTE_USER, "bob");
    kit_request("GET", "/");
    kit_param("REMOTE_ADDR", "192.0.2.1");
    kit_param("REMOTE_USER", "");
    expect(WEIR_CALLER_IP, "192.0.2.1");
}

/* ---- sessions ---------------------------------------------------------------------- */

static const struct weir_use with_session[] = {
    WEIR_USE(identity,
             .session_user = session_user,
             .session_cookie = "sid",
             .remote_user = true),
    { NULL, NULL },
};

static void ask_with_cookie(const char *cookie)
{
    kit_request("GET", "/");
    kit_param("REMOTE_ADDR", "192.0.2.1");
    kit_param("HTTP_COOKIE", cookie);
}

Test(identity, is_the_user_of_a_session_that_the_app_confirms)
{
    reopen(with_session);
    ask_with_cookie("sid=good");
    expect(WEIR_CALLER_USER, "alice");
    cr_assert_eq(looked_up, 1u);
    cr_assert_eq(kit.threads, 1u, "the look-up may block");
}

Test(identity, stays_the_address_when_the_app_does_not_confirm)
{
    reopen(with_session);
    ask_with_cookie("sid=made-up");
    expect(WEIR_CALLER_IP, "192.0.2.1");
    cr_assert_eq(looked_up, 1u);
}

Test(identity, costs_no_thread_without_the_cookie)
{
    reopen(with_session);
    ask_with_cookie("xsid=good; sid2=good; SID=good");
    expect(WEIR_CALLER_IP, "192.0.2.1");
    cr_assert_eq(looked_up, 0u);
    cr_assert_eq(kit.threads, 0u);
}

/* cases B38 */
Test(identity, takes_two_values_of_one_cookie_for_no_session)
{
    reopen(with_session);
    ask_with_cookie("sid=good; sid=other");
    expect(WEIR_CALLER_IP, "192.0.2.1");
    cr_assert_eq(looked_up, 0u);
}

Test(identity, looks_up_every_request_where_no_cookie_is_named)
{
    reopen(WEIR_CHAIN(WEIR_USE(identity, .session_user = session_user)));
    expect_at("192.0.2.1", WEIR_CALLER_IP, "192.0.2.1");
    cr_assert_eq(looked_up, 1u);
}

Test(identity, prefers_the_session_to_remote_user)
{
    reopen(with_session);
    ask_with_cookie("sid=good");
    kit_param("REMOTE_USER", "bob");
    expect(WEIR_CALLER_USER, "alice");
    ask_with_cookie("sid=made-up");
    kit_param("REMOTE_USER", "bob");
    expect(WEIR_CALLER_REMOTE_USER, "bob");
}

static bool lies(struct weir *w, struct weir_caller *ret_caller)
{
    (void)w;
    *ret_caller =
        (struct weir_caller){ .type = WEIR_CALLER_IP, .id_len = 3, .id = "lie" };
    return true;
}

static bool forgets_the_id(struct weir *w, struct weir_caller *ret_caller)
{
    (void)w;
    ret_caller->type = WEIR_CALLER_USER;
    return true;
}

static bool changes_its_mind(struct weir *w, struct weir_caller *ret_caller)
{
    (void)w;
    weir_caller_user(ret_caller, "mallory");
    return false;
}

Test(identity, takes_a_user_or_key_with_an_id_only)
{
    weir_session_user_fn *const bad[] = { lies, forgets_the_id, changes_its_mind };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        reopen(WEIR_CHAIN(WEIR_USE(identity, .session_user = bad[i])));
        expect_at("192.0.2.1", WEIR_CALLER_IP, "192.0.2.1");
    }
}

/* ---- with limits ------------------------------------------------------------------- */

static const struct weir_rule by_ip[] = {
    WEIR_FIXED_WINDOW("ip", 3, WEIR_MINUTES(1), .by = WEIR_BY_IP),
    { 0 },
};
static const struct weir_rule by_caller[] = {
    WEIR_FIXED_WINDOW("caller", 5, WEIR_MINUTES(1)),
    { 0 },
};
static const struct weir_endpoint by_ip_endpoints[] = {
    { "GET /", whoami, .limits = by_ip, .nonblocking = true },
    { 0 },
};
static const struct weir_endpoint by_caller_endpoints[] = {
    { "GET /", whoami, .limits = by_caller, .nonblocking = true },
    { 0 },
};

static const struct weir_use limited_chain[] = {
    WEIR_USE(identity, .session_user = session_user, .session_cookie = "sid"),
    WEIR_USE(ratelimit),
    { NULL, NULL },
};

static void reopen_limited(const struct weir_endpoint *limited)
{
    kit_close();
    kit_open(limited, limited_chain);
    looked_up = 0;
}

static int status_with(const char *remote_addr, const char *cookie)
{
    kit_request("GET", "/");
    kit_param("REMOTE_ADDR", remote_addr);
    kit_param("HTTP_COOKIE", cookie);
    kit_begin();
    cr_assert(kit_run());
    return kit.w.status;
}

Test(identity, buys_no_look_up_for_an_address_that_is_refused_anyway)
{
    reopen_limited(by_ip_endpoints);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(status_with("192.0.2.1", "sid=good"), 200);
    cr_assert_eq(looked_up, 3u);
    kit.now_us += WEIR_SECONDS(20);
    cr_assert_eq(status_with("192.0.2.1", "sid=good"), 429);
    cr_assert_eq(looked_up, 3u);
    cr_assert_eq(kit.threads, 0u);
    cr_assert(kit_sent_line("Retry-After: 40"));
    cr_assert_eq(status_with("192.0.2.2", "sid=good"), 200);
    kit.now_us += WEIR_SECONDS(40);
    cr_assert_eq(status_with("192.0.2.1", "sid=good"), 200);
    cr_assert_eq(seen.type, WEIR_CALLER_USER);
}

/* Time passes between identity and ratelimit. */
static enum weir_verdict takes_a_minute(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self, (void)slot;
    kit.now_us += WEIR_MINUTES(1);
    return WEIR_NEXT;
}

static const struct weir_filter filter_slow = { .name = "slow",
                                                .before = takes_a_minute };
Test(identity, lets_nobody_through_whom_it_has_not_looked_up)
{
    reopen_limited(by_ip_endpoints);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(status_with("192.0.2.1", "sid=good"), 200);
    /* The slow filter comes between the two, in a chain that is running already. */
    kit.app->stages[kit.app->stages_len++] = kit.app->stages[1];
    kit.app->stages[1].filter = &filter_slow;
    cr_assert_eq(status_with("192.0.2.1", "sid=good"), 429);
    cr_assert_eq(looked_up, 3u);
}

static const struct weir_rule in_twos[] = {
    WEIR_TOKEN_BUCKET("ip", 4, 1, WEIR_SECONDS(1), .by = WEIR_BY_IP, .cost = 2),
    { 0 },
};
static const struct weir_endpoint in_twos_endpoints[] = {
    { "GET /", whoami, .limits = in_twos, .nonblocking = true },
    { 0 },
};

Test(identity, promises_the_wait_for_the_whole_cost)
{
    reopen_limited(in_twos_endpoints);
    for (unsigned i = 0; i < 2; i++)
        cr_assert_eq(status_with("192.0.2.1", "sid=good"), 200);
    cr_assert_eq(status_with("192.0.2.1", "sid=good"), 429);
    cr_assert(kit_sent_line("Retry-After: 2"));
}

static const struct weir_rule blocked[] = {
    WEIR_FIXED_WINDOW("ip", WEIR_BLOCK, WEIR_MINUTES(1), .by = WEIR_BY_IP),
    { 0 },
};
static const struct weir_endpoint blocked_endpoints[] = {
    { "GET /", whoami, .limits = blocked, .nonblocking = true },
    { 0 },
};

Test(identity, looks_up_where_no_filter_enforces_limits)
{
    kit_close();
    kit_open(blocked_endpoints, with_session);
    cr_assert_eq(status_with("192.0.2.1", "sid=good"), 200);
    cr_assert_eq(seen.type, WEIR_CALLER_USER);
}

/* cases B35 */
Test(identity, gives_no_fresh_budget_for_a_fresh_cookie)
{
    char cookie[32];
    unsigned passed = 0;
    reopen_limited(by_caller_endpoints);
    for (unsigned i = 0; i < 20; i++) {
        snprintf(cookie, sizeof cookie, "sid=%u", i);
        passed += status_with("192.0.2.1", cookie) == 200;
    }
    cr_assert_eq(passed, 5u);
}

Test(identity, gives_a_session_one_budget_from_all_addresses)
{
    reopen_limited(by_caller_endpoints);
    cr_assert_eq(status_with("192.0.2.1", "sid=good"), 200);
    cr_assert_eq(status_with("192.0.2.2", "sid=good"), 200);
    cr_assert_eq(status_with("2001:db8::1", "sid=good"), 200);
    cr_assert_eq(kit.w.decision->rules[0].remaining, 2);
}

/* cases B34 */
Test(identity, gives_all_who_have_no_address_one_budget)
{
    unsigned passed = 0;
    reopen_limited(by_ip_endpoints);
    static const char *const nowhere[] = { "", "@", "unix:", "garbage" };
    for (unsigned i = 0; i < 4; i++) {
        int status = status_with(nowhere[i], "");
        cr_assert(status == 200 || status == 429);
        passed += status == 200;
    }
    cr_assert_eq(passed, 3u);
}
