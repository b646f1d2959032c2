/* The limits of WEIR_LIMIT and weir-run --limit: what the text says, and which texts say
 * nothing. */
#include "process/pull_limits.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void fcgx(struct FCGX_Request *request)
{
    (void)request;
}

static struct weir__pull_limits limits;
static struct weir_error error;

static bool parse(const char *text)
{
    limits = (struct weir__pull_limits){ 0 };
    error.text[0] = '\0';
    return weir__pull_limits_parse(text, fcgx, &limits, &error);
}

static const struct weir_endpoint *find(const char *pattern)
{
    for (const struct weir_endpoint *at = limits.endpoints; at->pattern; at++)
        if (strcmp(at->pattern, pattern) == 0)
            return at;
    return NULL;
}

static unsigned count(void)
{
    unsigned len = 0;
    while (limits.endpoints[len].pattern)
        len++;
    return len;
}

static void finish(void)
{
    weir__pull_limits_finish(&limits);
}

TestSuite(pull_limits, .fini = finish);

Test(pull_limits, sends_every_path_to_the_program_without_a_text)
{
    cr_assert(parse(" ;; "));
    cr_assert_eq(count(), 1u);
    cr_assert_str_eq(limits.endpoints[0].pattern, "* /*");
    cr_expect(limits.endpoints[0].fcgx == fcgx);
    cr_expect(limits.endpoints[0].parallel);
    cr_expect_null(limits.endpoints[0].limits);
    cr_expect_null(limits.defaults);
    cr_expect_not(limits.has_paths);
}

Test(pull_limits, reads_a_default)
{
    cr_assert(parse("100/60s"));
    cr_expect_eq(limits.defaults[0].algorithm, WEIR_ALGORITHM_FIXED_WINDOW);
    cr_expect_str_eq(limits.defaults[0].name, "limit");
    cr_expect_eq(limits.defaults[0].max, 100);
    cr_expect_eq(limits.defaults[0].window_us, 60000000);
    cr_expect_eq(limits.defaults[0].by, WEIR_BY_CALLER);
    cr_expect_eq(limits.defaults[0].abi, 1);
    cr_expect_eq(limits.defaults[1].algorithm, WEIR_ALGORITHM_NONE);
}

Test(pull_limits, reads_names_and_whom_a_rule_counts)
{
    cr_assert(parse("a=1/500ms@ip b=2/1s@all c=3/1s@caller"));
    cr_expect_str_eq(limits.defaults[0].name, "a");
    cr_expect_eq(limits.defaults[0].window_us, 500000);
    cr_expect_eq(limits.defaults[0].by, WEIR_BY_IP);
    cr_expect_eq(limits.defaults[1].by, WEIR_BY_EVERYBODY);
    cr_expect_str_eq(limits.defaults[2].name, "c");
    cr_expect_eq(limits.defaults[2].by, WEIR_BY_CALLER);
    cr_expect_eq(limits.defaults[3].algorithm, WEIR_ALGORITHM_NONE);
}

Test(pull_limits, reads_paths_and_lets_their_other_methods_through)
{
    cr_assert(parse("GET /a/{x} 1/1s;POST /a/{y} 2/1s\n; /b unlimited; 9/1s"));
    cr_expect_eq(count(), 5u);
    cr_expect_eq(find("GET /a/{x}")->limits[0].max, 1);
    cr_expect_eq(find("POST /a/{y}")->limits[0].max, 2);
    cr_expect_eq(find("* /b")->limits[0].algorithm, WEIR_ALGORITHM_UNLIMITED);
    cr_expect_null(find("* /a/{x}")->limits);
    cr_expect_null(find("* /*")->limits);
    cr_expect_eq(limits.defaults[0].max, 9);
    cr_expect(limits.has_paths);
}

Test(pull_limits, takes_a_limit_of_the_rest_as_it_is)
{
    cr_assert(parse("/* 5/1s"));
    cr_expect_eq(count(), 1u);
    cr_expect_eq(find("* /*")->limits[0].max, 5);
}

Test(pull_limits, refuses_what_it_does_not_know_and_quotes_it)
{
    static const char *const texts[][2] = {
        { "many", "\"many\"" },
        { "3", "\"3\"" },
        { "3/", "\"3/\"" },
        { "3/x", "\"3/x\"" },
        { "3/60", "\"3/60\"" },
        { "-1/60s", "\"-1/60s\"" },
        { "0x3/60s", "\"0x3/60s\"" },
        { "3.5/60s", "\"3.5/60s\"" },
        { "=3/60s", "\"=3/60s\"" },
        { "99999999999999999999/1s", "\"99999999999999999999/1s\"" },
        { "9223372036854775808/1s", "\"9223372036854775808/1s\"" },
        { "1/9223372036854775808ms", "ms\"" },
        { "3/60s@", "\"3/60s@\"" },
        { "3/60s@me", "\"3/60s@me\"" },
        { "GET 3/60s", "\"GET\"" },
        { "GET /a", "/a has no rule" },
        { "/a", "/a has no rule" },
        { "GET /a b 3/60s", "\"b\"" },
        { "3/60s; 4/60s", "two are without a path" },
        { "/a 1/1s 2/1s 3/1s 4/1s 5/1s 6/1s 7/1s 8/1s 9/1s", "more than 8 rules" },
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cr_expect_not(parse(texts[i][0]), "%s", texts[i][0]);
        cr_expect(strstr(error.text, texts[i][1]), "%s: %s", texts[i][0], error.text);
    }
}

Test(pull_limits, refuses_more_paths_than_there_is_room_for)
{
    static char text[300 * 24];
    size_t len = 0;
    for (int i = 0; i < 300; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "GET /p%d 1/1s;", i);
    cr_expect_not(parse(text));
    cr_expect(strstr(error.text, "more than 256 paths"), "%s", error.text);
}
