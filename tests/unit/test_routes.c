#include <criterion/criterion.h>

#include <stdlib.h>

#include "process/routes.h"

static int answer(struct weir *w)
{
    (void)w;
    return 200;
}

static int64_t cost_of(struct weir *w)
{
    (void)w;
    return 1;
}

static void expect_print(const struct weir_app *app, const char *expected)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    weir__routes_print(out, app);
    fclose(out);
    cr_expect_str_eq(text, expected);
    free(text);
}

Test(routes, every_endpoint_is_listed_with_its_limits)
{
    static const struct weir_rule minute_and_burst[] = {
        WEIR_FIXED_WINDOW("minute", 100, WEIR_MINUTES(1)),
        WEIR_TOKEN_BUCKET("burst", 20, 4, WEIR_SECONDS(1), .cost = 2),
        WEIR_FIXED_WINDOW("day", 9, WEIR_DAYS(1), .anchor = WEIR_ANCHOR_CLOCK),
        WEIR_CALENDAR_MONTH("month", 99),
        WEIR_SLIDING_COUNTER("any", 9, WEIR_SECONDS(30)),
        { 0 },
    };
    static const struct weir_rule login[] = {
        WEIR_FIXED_WINDOW("login",
                          5,
                          WEIR_MILLISECONDS(1500),
                          .by = WEIR_BY_IP,
                          .bucket = "auth",
                          .on_store_error = WEIR_DENY),
        { 0 },
    };
    static const struct weir_rule blocked[] = {
        WEIR_FIXED_WINDOW("off",
                          WEIR_BLOCK,
                          WEIR_SECONDS(1),
                          .by = WEIR_BY_EVERYBODY,
                          .on_store_error = WEIR_ALLOW),
        { 0 },
    };
    static const struct weir_rule everything[] = {
        WEIR_FIXED_WINDOW("all", 600, 1234567, .cost_fn = cost_of),
        { 0 },
    };
    const struct weir_endpoint endpoints[] = {
        { "GET /api/weather/{city}", answer, .limits = minute_and_burst },
        { "POST /api/login", answer, .limits = login },
        { "* /old/*", answer, .limits = blocked },
        { "GET /health", answer, .limits = WEIR_UNLIMITED, .nonblocking = true },
        { "GET /", answer },
        { 0 },
    };
    const struct weir_app app = { .endpoints = endpoints,
                                  .default_limits = everything,
                                  .global_limits = login };
    expect_print(
        &app,
        "GET /api/weather/{city}\n"
        "    minute: fixed window, 100 in 60s, by caller\n"
        "    burst: token bucket of 20, 4 back in 1s, by caller, cost 2\n"
        "    day: fixed window, 9 in 86400s by the clock, by caller\n"
        "    month: fixed window, 99 in a calendar month, by caller\n"
        "    any: sliding counter, 9 in 30s, by caller\n"
        "POST /api/login\n"
        "    login: fixed window, 5 in 1500ms, by IP, bucket \"auth\"; store away: deny\n"
        "* /old/*\n"
        "    off: blocked, for everybody together; store away: allow\n"
        "GET /health (nonblocking)\n"
        "    unlimited\n"
        "GET /\n"
        "    the default rules\n"
        "default rules, counted for each endpoint, and for unknown paths together\n"
        "    all: fixed window, 600 in 1234567us, by caller, cost worked out for each "
        "request\n"
        "global rules, beside every endpoint's own\n"
        "    login: fixed window, 5 in 1500ms, by IP, bucket \"auth\"; store away: "
        "deny\n");
}

Test(routes, an_app_without_rules_says_so)
{
    const struct weir_endpoint endpoints[] = { { "GET /", answer }, { 0 } };
    expect_print(&(struct weir_app){ .endpoints = endpoints }, "GET /\n    none\n");
}
