#include "limit/policy.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct weir_rule *const minute =
    (const struct weir_rule[]){ WEIR_FIXED_WINDOW("minute", 600, WEIR_MINUTES(1)),
                                { 0 } };
static const struct weir_rule *const machine = (const struct weir_rule[]){
    WEIR_FIXED_WINDOW("machine", 100000, WEIR_MINUTES(1), .by = WEIR_BY_EVERYBODY), { 0 }
};

/* An app of one or two endpoints. */
struct tables {
    struct weir_endpoint endpoints[3];
    struct weir_app app;
};

static void init(struct tables *tables,
                 const char *pattern,
                 const struct weir_rule *limits,
                 const char *pattern2,
                 const struct weir_rule *limits2)
{
    *tables = (struct tables){ .endpoints = { { .pattern = pattern, .limits = limits },
                                              { .pattern = pattern2, .limits = limits2 },
                                              { .pattern = NULL } },
                               .app = { WEIR_ABI } };
    tables->app.endpoints = tables->endpoints;
}

static struct weir__policy *made(const struct tables *tables)
{
    struct weir__policy *policy = NULL;
    struct weir_error error = { { 0 } };
    cr_assert(weir__policy_create(&tables->app, &policy, &error), "%s", error.text);
    return policy;
}

/* The policy must be refused with exactly this text. */
static void refused(const struct tables *tables, const char *text)
{
    struct weir__policy *policy = NULL;
    struct weir_error error = { { 0 } };
    cr_expect_not(weir__policy_create(&tables->app, &policy, &error));
    cr_expect_null(policy);
    cr_expect_str_eq(error.text, text);
}

static void tails(const struct weir__policy *policy,
                  size_t endpoint,
                  const char *first,
                  const char *second)
{
    const struct weir__policy_entry *entry = weir__policy_find(policy, endpoint);
    const char *expected[] = { first, second };
    unsigned len = first ? second ? 2 : 1 : 0;
    cr_assert_eq(entry->rules_len, len, "%u rules", entry->rules_len);
    for (unsigned i = 0; i < len; i++)
        cr_expect_str_eq(entry->rules[i]->tail, expected[i]);
}

Test(policy, makes_an_endpoints_rules_stand_in_for_the_default_ones)
{
    struct tables tables;
    init(&tables,
         "GET /api/weather/{city}",
         WEIR_LIMITS(WEIR_FIXED_WINDOW("hour", 100, WEIR_HOURS(1)),
                     WEIR_TOKEN_BUCKET("burst", 20, 4, WEIR_SECONDS(1))),
         "GET /plain",
         NULL);
    tables.app.default_limits = minute;
    struct weir__policy *policy = made(&tables);
    tails(policy, 0, "GET /api/weather/:city:hour:w1", "GET /api/weather/:city:burst:b1");
    tails(policy, 1, "GET /plain:minute:w1", NULL);
    tails(policy, WEIR__POLICY_UNMATCHED, "*:minute:w1", NULL);
    cr_expect_eq(weir__policy_find(policy, 0)->rules[0]->limit.max, 100);
    cr_expect_eq(weir__policy_find(policy, 0)->rules[0]->limit.rule,
                 &tables.endpoints[0].limits[0]);
    weir__policy_destroy(policy);
}

Test(policy, adds_the_global_rules_to_all_and_counts_them_in_one_bucket)
{
    struct tables tables;
    init(&tables, "GET /a", minute, "* /b/*", (const struct weir_rule[]){ { 0 } });
    tables.app.global_limits = machine;
    struct weir__policy *policy = made(&tables);
    tails(policy, 0, "GET /a:minute:w1", "@global:machine:w1");
    tails(policy, 1, "@global:machine:w1", NULL);
    tails(policy, WEIR__POLICY_UNMATCHED, "@global:machine:w1", NULL);
    weir__policy_destroy(policy);
}

Test(policy, switches_everything_off_where_unlimited)
{
    struct tables tables;
    init(&tables, "GET /health", WEIR_UNLIMITED, "GET /", NULL);
    tables.app.default_limits = minute;
    tables.app.global_limits = machine;
    struct weir__policy *policy = made(&tables);
    tails(policy, 0, NULL, NULL);
    tails(policy, 1, "GET /:minute:w1", "@global:machine:w1");
    weir__policy_destroy(policy);

    tables.app.default_limits = WEIR_UNLIMITED;
    policy = made(&tables);
    tails(policy, 1, NULL, NULL);
    tails(policy, WEIR__POLICY_UNMATCHED, NULL, NULL);
    weir__policy_destroy(policy);
}

Test(policy, limits_nothing_where_nothing_is_declared)
{
    struct weir_app app = { WEIR_ABI };
    struct weir__policy *policy = NULL;
    cr_assert(weir__policy_create(&app, &policy, NULL));
    tails(policy, 0, NULL, NULL);
    tails(policy, WEIR__POLICY_UNMATCHED, NULL, NULL);
    weir__policy_destroy(policy);
    weir__policy_destroy(NULL);
}

Test(policy, shares_the_budget_of_a_named_bucket)
{
    struct tables tables;
    init(&tables,
         "POST /login",
         WEIR_LIMITS(WEIR_FIXED_WINDOW("tries", 5, WEIR_MINUTES(1), .bucket = "auth")),
         "POST /token",
         WEIR_LIMITS(WEIR_FIXED_WINDOW(
             "tries", 5, WEIR_MINUTES(1), .bucket = "auth", .cost = 2)));
    struct weir__policy *policy = made(&tables);
    tails(policy, 0, "auth:tries:w1", NULL);
    tails(policy, 1, "auth:tries:w1", NULL);
    weir__policy_destroy(policy);
}

/* "{x}" is ":x" in a key, so that a literal ":x" must be something else; and braces would
 * choose a slot in a Redis Cluster. */
Test(policy, writes_patterns_so_that_no_two_are_the_same_key)
{
    struct tables tables;
    init(&tables, "GET /a/{x}/b", minute, "GET /a/:x/b", minute);
    struct weir__policy *policy = made(&tables);
    tails(policy, 0, "GET /a/:x/b:minute:w1", NULL);
    tails(policy, 1, "GET /a/::x/b:minute:w1", NULL);
    weir__policy_destroy(policy);

    init(&tables, "GET /a:b/c*", minute, "GET /a/x{y}", minute);
    refused(&tables, "endpoint \"GET /a/x{y}\": a brace within a segment");
}

Test(policy, names_endpoint_rule_and_field_of_a_mistake)
{
    struct tables tables;
    init(&tables, "GET /a", WEIR_LIMITS(WEIR_FIXED_WINDOW("m", 1, 0)), NULL, NULL);
    refused(
        &tables,
        "endpoint \"GET /a\": limits[0] \"m\": window: 0 microseconds are not between "
        "a millisecond and 366 days");
    init(&tables,
         "GET /a",
         WEIR_LIMITS(WEIR_FIXED_WINDOW("m", 1, 1000), WEIR_FIXED_WINDOW(NULL, 1, 1000)),
         NULL,
         NULL);
    refused(&tables, "endpoint \"GET /a\": limits[1] \"\": name: missing");
    init(&tables, "GET /a", NULL, NULL, NULL);
    tables.app.default_limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("m", -5, 1000));
    refused(&tables,
            "default_limits[0] \"m\": max: -5 is negative (0 or WEIR_BLOCK refuses all)");
    tables.app.default_limits = NULL;
    tables.app.global_limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("m", 5, 1000, .cost = 6));
    refused(&tables,
            "global_limits[0] \"m\": cost: 6 is above max 5, no request could pass");
}

Test(policy, refuses_a_name_that_meets_its_like)
{
    struct tables tables;
    init(&tables,
         "GET /a",
         WEIR_LIMITS(WEIR_FIXED_WINDOW("m", 1, 1000), WEIR_FIXED_WINDOW("m", 2, 2000)),
         NULL,
         NULL);
    refused(
        &tables,
        "endpoint \"GET /a\": limits[1] \"m\": name: another rule that meets it in one "
        "request has it, for endpoint \"GET /a\"");
    init(&tables, "GET /a", WEIR_UNLIMITED, NULL, NULL);
    tables.app.default_limits = minute;
    tables.app.global_limits = minute;
    refused(
        &tables,
        "global_limits[0] \"minute\": name: another rule that meets it in one request "
        "has it, for paths that match no endpoint");
}

#define R(name_) WEIR_FIXED_WINDOW(name_, 1, 1000)

Test(policy, takes_eight_rules_that_meet_and_refuses_a_ninth)
{
    struct tables tables;
    init(&tables,
         "GET /a",
         WEIR_LIMITS(R("1"), R("2"), R("3"), R("4"), R("5"), R("6"), R("7")),
         NULL,
         NULL);
    tables.app.global_limits = machine;
    struct weir__policy *policy = made(&tables);
    cr_expect_eq(weir__policy_find(policy, 0)->rules_len, 8);
    weir__policy_destroy(policy);
    tables.app.global_limits = WEIR_LIMITS(R("8"), R("9"));
    refused(&tables,
            "global_limits[1] \"9\": limits: the ninth rule that meets in one request, "
            "for endpoint \"GET /a\"; 8 may (its own or the default ones, and the global "
            "ones)");
}

Test(policy, refuses_a_shared_bucket_with_two_sets_of_numbers)
{
    static const struct weir_rule others[] = {
        WEIR_FIXED_WINDOW("tries", 6, WEIR_MINUTES(1), .bucket = "auth"),
        WEIR_FIXED_WINDOW("tries", 5, WEIR_MINUTES(2), .bucket = "auth"),
        WEIR_FIXED_WINDOW(
            "tries", 5, WEIR_MINUTES(1), .bucket = "auth", .by = WEIR_BY_IP),
        WEIR_TOKEN_BUCKET("tries", 5, 5, WEIR_MINUTES(1), .bucket = "auth"),
    };
    for (int i = 0; i < 4; i++) {
        const struct weir_rule list[] = { others[i], { 0 } };
        struct tables tables;
        init(
            &tables,
            "POST /login",
            WEIR_LIMITS(WEIR_FIXED_WINDOW("tries", 5, WEIR_MINUTES(1), .bucket = "auth")),
            "POST /token",
            list);
        refused(
            &tables,
            "endpoint \"POST /token\": limits[0] \"tries\": bucket: \"auth\" has a rule "
            "of this name with another algorithm, numbers or by in endpoint \"POST "
            "/login\": limits");
    }
}

Test(policy, refuses_unlimited_where_it_makes_no_sense)
{
    struct tables tables;
    const struct weir_rule mixed[] = { { .algorithm = WEIR_ALGORITHM_UNLIMITED },
                                       R("m"),
                                       { 0 } };
    init(&tables, "GET /a", mixed, NULL, NULL);
    refused(&tables, "endpoint \"GET /a\": limits: unlimited stands among other rules");
    const struct weir_rule last[] = { R("m"),
                                      { .algorithm = WEIR_ALGORITHM_UNLIMITED },
                                      { 0 } };
    init(&tables, "GET /a", last, NULL, NULL);
    refused(&tables, "endpoint \"GET /a\": limits: unlimited stands among other rules");
    init(&tables, "GET /a", NULL, NULL, NULL);
    tables.app.global_limits = WEIR_UNLIMITED;
    refused(&tables, "global_limits: can't be unlimited");
}
