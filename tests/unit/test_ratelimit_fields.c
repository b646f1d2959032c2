#include "ratelimit_fields.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

#include "support/ratelimit_judge.h"

static const struct weir_rule minute = WEIR_FIXED_WINDOW("minute", 100, WEIR_MINUTES(1));
static const struct weir_rule half = WEIR_FIXED_WINDOW("half", 5, WEIR_MILLISECONDS(500));
static const struct weir_rule burst = WEIR_TOKEN_BUCKET("burst", 20, 4, WEIR_SECONDS(1));
static const struct weir_rule thirds =
    WEIR_TOKEN_BUCKET("thirds", 10, 3, WEIR_SECONDS(1));
static const struct weir_rule huge =
    WEIR_TOKEN_BUCKET("huge", 4000000000, 3999999999, WEIR_DAYS(366));
static const struct weir_rule block = { .algorithm = WEIR_ALGORITHM_FIXED_WINDOW,
                                        .name = "block",
                                        .max = WEIR_BLOCK };

static struct weir_decision decision_of(const struct weir_rule_answer *answers,
                                        unsigned len)
{
    struct weir_decision decision = { .allowed = true,
                                      .source = WEIR_SOURCE_SHM,
                                      .rules_len = len };
    for (unsigned i = 0; i < len; i++) {
        decision.rules[i] = answers[i];
        decision.allowed = decision.allowed && answers[i].allowed;
    }
    return decision;
}

/* Texts that were written are judged by the way. */
static const char *judged(const char *text, const char *fault)
{
    cr_assert_null(fault, "%s: %s", text, fault);
    return text;
}

static struct sf_list parsed;

static const char *policy_of(const struct weir_decision *decision)
{
    static char text[WEIR__RATELIMIT_FIELD_BYTES];
    strcpy(text, "untouched");
    if (weir__ratelimit_policy(decision, text))
        return judged(text, judge_policy(text, &parsed));
    cr_assert_str_eq(text, "untouched");
    return NULL;
}

static const char *later_state_of(const struct weir_decision *decision, int64_t later_us)
{
    static char text[WEIR__RATELIMIT_FIELD_BYTES];
    strcpy(text, "untouched");
    if (weir__ratelimit_state(decision, later_us, text))
        return judged(text, judge_state(text, &parsed));
    cr_assert_str_eq(text, "untouched");
    return NULL;
}

static const char *state_of(const struct weir_decision *decision)
{
    return later_state_of(decision, 0);
}

static const char *policy_draft_06_of(const struct weir_decision *decision)
{
    static char text[WEIR__RATELIMIT_FIELD_BYTES];
    strcpy(text, "untouched");
    if (weir__ratelimit_policy_draft_06(decision, text))
        return judged(text, judge_policy_draft_06(text, &parsed));
    cr_assert_str_eq(text, "untouched");
    return NULL;
}

/* "100 99 59999001", or "" where the trio is left out. */
static const char *trio_of(const struct weir_decision *decision)
{
    static char text[128];
    struct weir__ratelimit_trio trio = { -1, -1, -1 };
    text[0] = '\0';
    if (weir__ratelimit_trio(decision, 0, &trio))
        snprintf(text,
                 sizeof text,
                 "%lld %lld %lld",
                 (long long)trio.limit,
                 (long long)trio.remaining,
                 (long long)trio.reset_us);
    else
        cr_assert_eq(trio.limit + trio.remaining + trio.reset_us, -3);
    return text;
}

static struct weir_decision one(struct weir_rule_answer answer)
{
    return decision_of(&answer, 1);
}

Test(ratelimit_fields, an_allowed_answer_has_units_left_and_the_time_to_the_next)
{
    struct weir_decision decision = one((struct weir_rule_answer){ .rule = &minute,
                                                                   .allowed = true,
                                                                   .cost = 1,
                                                                   .remaining = 99,
                                                                   .next_us = 59999001 });
    cr_assert_str_eq(policy_of(&decision), "\"minute\";q=100;w=60");
    cr_assert_str_eq(state_of(&decision), "\"minute\";r=99;t=60");
    cr_assert_eq(weir__retry_after(&decision, 0), 0);
}

Test(ratelimit_fields, several_rules_make_one_list_in_their_order)
{
    const struct weir_rule_answer answers[] = {
        { .rule = &minute, .allowed = true, .cost = 1, .remaining = 3, .next_us = 1 },
        { .rule = &burst,
          .allowed = true,
          .cost = 1,
          .remaining = 19,
          .next_us = 250000 },
    };
    struct weir_decision decision = decision_of(answers, 2);
    cr_assert_str_eq(policy_of(&decision), "\"minute\";q=100;w=60, \"burst\";q=20;w=5");
    cr_assert_str_eq(state_of(&decision), "\"minute\";r=3;t=1, \"burst\";r=19;t=1");
}

Test(ratelimit_fields, windows_are_whole_seconds_rounded_up_and_never_zero)
{
    const struct weir_rule_answer answers[] = {
        { .rule = &half, .allowed = true, .remaining = 4, .next_us = 400000 },
        { .rule = &thirds, .allowed = true, .remaining = 9, .next_us = 333334 },
        { .rule = &huge, .allowed = true, .remaining = 3999999999, .next_us = 7906 },
    };
    struct weir_decision decision = decision_of(answers, 3);
    cr_assert_str_eq(policy_of(&decision),
                     "\"half\";q=5;w=1, \"thirds\";q=10;w=4, "
                     "\"huge\";q=4000000000;w=31622401");
}

/* A third of a microsecond over a second is over a second. */
Test(ratelimit_fields, the_time_in_which_a_bucket_fills_is_rounded_from_its_fraction)
{
    static const struct weir_rule rule = WEIR_TOKEN_BUCKET("b", 1, 3, 3000001);
    struct weir_decision decision =
        one((struct weir_rule_answer){ .rule = &rule, .allowed = true, .remaining = 1 });
    cr_assert_str_eq(policy_of(&decision), "\"b\";q=1;w=2");
}

Test(ratelimit_fields, a_refusal_for_lack_of_units_says_the_wait_of_its_cost)
{
    struct weir_decision decision = one((struct weir_rule_answer){ .rule = &burst,
                                                                   .cost = 10,
                                                                   .remaining = 0,
                                                                   .retry_us = 2400001,
                                                                   .next_us = 150000,
                                                                   .full_us = 4900001 });
    cr_assert_str_eq(state_of(&decision), "\"burst\";r=0;t=3");
    cr_assert_eq(weir__retry_after(&decision, 0), 3);
}

Test(ratelimit_fields, a_refusal_with_units_left_says_the_time_to_the_next_unit)
{
    struct weir_decision decision = one((struct weir_rule_answer){ .rule = &burst,
                                                                   .cost = 10,
                                                                   .remaining = 3,
                                                                   .retry_us = 1750000,
                                                                   .next_us = 250000,
                                                                   .full_us = 4250000 });
    cr_assert_str_eq(state_of(&decision), "\"burst\";r=3;t=1");
    cr_assert_eq(weir__retry_after(&decision, 0), 2);
}

Test(ratelimit_fields, the_last_units_of_a_bucket_say_when_the_same_cost_passes_again)
{
    struct weir_decision decision = one((struct weir_rule_answer){ .rule = &burst,
                                                                   .allowed = true,
                                                                   .cost = 10,
                                                                   .remaining = 0,
                                                                   .next_us = 250000,
                                                                   .full_us = 5000000 });
    cr_assert_str_eq(state_of(&decision), "\"burst\";r=0;t=3");
    decision.rules[0].cost = 1;
    cr_assert_str_eq(state_of(&decision), "\"burst\";r=0;t=1");
}

Test(ratelimit_fields, nothing_used_has_no_next_unit)
{
    struct weir_decision decision = one(
        (struct weir_rule_answer){ .rule = &minute, .allowed = true, .remaining = 100 });
    cr_assert_str_eq(state_of(&decision), "\"minute\";r=100");
}

Test(ratelimit_fields, units_left_stay_between_zero_and_the_quota)
{
    const struct weir_rule_answer answers[] = {
        { .rule = &minute, .allowed = true, .remaining = 101, .next_us = 1 },
        { .rule = &half, .allowed = true, .remaining = -1, .next_us = 1 },
    };
    struct weir_decision decision = decision_of(answers, 2);
    cr_assert_str_eq(state_of(&decision), "\"minute\";r=100;t=1, \"half\";r=0;t=1");
}

Test(ratelimit_fields, a_blocking_rule_has_quota_zero_and_no_wait)
{
    struct weir_decision decision =
        one((struct weir_rule_answer){ .rule = &block, .cost = 1, .never = true });
    cr_assert_str_eq(policy_of(&decision), "\"block\";q=0");
    cr_assert_str_eq(state_of(&decision), "\"block\";r=0");
    cr_assert_eq(weir__retry_after(&decision, 0), 0);
}

Test(ratelimit_fields, retry_after_is_the_longest_wait_of_the_rules_that_refused)
{
    const struct weir_rule_answer answers[] = {
        { .rule = &minute, .cost = 1, .retry_us = 3000000 },
        { .rule = &burst, .cost = 1, .retry_us = 3000001 },
        { .rule = &half, .allowed = true, .cost = 1, .next_us = 9000000 },
    };
    struct weir_decision decision = decision_of(answers, 3);
    cr_assert_eq(weir__retry_after(&decision, 0), 4);
    decision.rules[0].never = true;
    cr_assert_eq(weir__retry_after(&decision, 0), 0);
}

Test(ratelimit_fields, retry_after_is_at_least_one_second)
{
    struct weir_decision decision =
        one((struct weir_rule_answer){ .rule = &minute, .cost = 1, .retry_us = 0 });
    cr_assert_eq(weir__retry_after(&decision, 0), 1);
    decision.rules[0].retry_us = 8000;
    cr_assert_eq(weir__retry_after(&decision, 0), 1);
}

Test(ratelimit_fields, are_left_out_where_the_store_was_away)
{
    struct weir_decision decision = one(
        (struct weir_rule_answer){ .rule = &minute, .allowed = true, .remaining = 99 });
    const enum weir_source away[] = { WEIR_SOURCE_NONE,
                                      WEIR_SOURCE_ALLOW,
                                      WEIR_SOURCE_DENY };
    for (unsigned i = 0; i < 3; i++) {
        decision.source = away[i];
        cr_assert_null(policy_of(&decision));
        cr_assert_null(state_of(&decision));
        cr_assert_null(policy_draft_06_of(&decision));
        cr_assert_str_eq(trio_of(&decision), "");
    }
    decision.source = WEIR_SOURCE_DENY;
    decision.allowed = false;
    cr_assert_eq(weir__retry_after(&decision, 0), 1);
}

Test(ratelimit_fields, are_left_out_where_no_rule_applied)
{
    struct weir_decision decision = { .allowed = true, .source = WEIR_SOURCE_SHM };
    cr_assert_null(policy_of(&decision));
    cr_assert_null(state_of(&decision));
}

Test(ratelimit_fields, of_one_name_only_the_tightest_rule_stands)
{
    static const struct weir_rule global =
        WEIR_FIXED_WINDOW("minute", 1000, WEIR_MINUTES(1));
    const struct weir_rule_answer answers[] = {
        { .rule = &global, .allowed = true, .remaining = 900, .next_us = 5000000 },
        { .rule = &minute, .allowed = true, .remaining = 7, .next_us = 5000000 },
        { .rule = &minute, .allowed = true, .remaining = 7, .next_us = 9000000 },
    };
    struct weir_decision decision = decision_of(answers, 3);
    cr_assert_str_eq(policy_of(&decision), "\"minute\";q=100;w=60");
    cr_assert_str_eq(state_of(&decision), "\"minute\";r=7;t=5");
    decision.rules[0].allowed = decision.allowed = false;
    decision.rules[0].retry_us = 1;
    cr_assert_str_eq(policy_of(&decision), "\"minute\";q=1000;w=60");
}

Test(ratelimit_fields, have_room_for_eight_rules_of_the_longest_form)
{
    char names[WEIR_RULES_MAX][65];
    struct weir_rule rules[WEIR_RULES_MAX];
    struct weir_rule_answer answers[WEIR_RULES_MAX];
    for (unsigned i = 0; i < WEIR_RULES_MAX; i++) {
        memset(names[i], 'a' + (int)i, 64);
        names[i][64] = '\0';
        rules[i] = huge;
        rules[i].name = names[i];
        answers[i] = (struct weir_rule_answer){ .rule = &rules[i],
                                                .remaining = 0,
                                                .retry_us = WEIR_DAYS(3660) };
    }
    struct weir_decision decision = decision_of(answers, WEIR_RULES_MAX);
    cr_assert_not_null(policy_of(&decision));
    cr_assert_not_null(state_of(&decision));
    cr_assert_not_null(policy_draft_06_of(&decision));
}

/* ---- the older forms --------------------------------------------------------------- */

Test(ratelimit_fields, the_old_policy_is_quotas_with_their_windows)
{
    const struct weir_rule_answer answers[] = {
        { .rule = &minute, .allowed = true, .remaining = 3, .next_us = 1 },
        { .rule = &block, .allowed = true },
        { .rule = &burst, .allowed = true, .remaining = 19, .next_us = 250000 },
    };
    struct weir_decision decision = decision_of(answers, 3);
    cr_assert_str_eq(policy_draft_06_of(&decision), "100;w=60, 20;w=5");
}

/* It has no form without a window. */
Test(ratelimit_fields, the_old_policy_is_left_out_where_no_rule_has_a_window)
{
    struct weir_decision decision =
        one((struct weir_rule_answer){ .rule = &block, .cost = 1, .never = true });
    cr_assert_null(policy_draft_06_of(&decision));
}

Test(ratelimit_fields, a_trio_shows_the_rule_with_the_least_left)
{
    const struct weir_rule_answer answers[] = {
        { .rule = &minute, .allowed = true, .remaining = 30, .next_us = 59000000 },
        { .rule = &burst, .allowed = true, .remaining = 19, .next_us = 250000 },
        { .rule = &huge, .allowed = true, .remaining = 20, .next_us = 1 },
    };
    struct weir_decision decision = decision_of(answers, 3);
    cr_assert_str_eq(trio_of(&decision), "20 19 250000");
    decision.rules[0].remaining = 18;
    cr_assert_str_eq(trio_of(&decision), "100 18 59000000");
}

Test(ratelimit_fields, of_equals_a_trio_shows_what_refused_then_the_longest_wait)
{
    const struct weir_rule_answer answers[] = {
        { .rule = &minute, .allowed = true, .remaining = 0, .next_us = 59000000 },
        { .rule = &thirds, .allowed = true, .remaining = 0, .next_us = 60000000 },
        { .rule = &burst, .remaining = 0, .cost = 1, .retry_us = 250000 },
    };
    struct weir_decision decision = decision_of(answers, 2);
    cr_assert_str_eq(trio_of(&decision), "10 0 60000000");
    decision = decision_of(answers, 3);
    cr_assert_str_eq(trio_of(&decision), "20 0 1000000");
}

/* Clients come again by Reset, and the other rule would refuse them until then. */
Test(ratelimit_fields, the_reset_of_a_refusal_is_its_retry_after)
{
    const struct weir_rule_answer answers[] = {
        { .rule = &minute, .cost = 9, .remaining = 2, .retry_us = 5, .next_us = 5 },
        { .rule = &burst, .cost = 9, .remaining = 3, .retry_us = 1500001, .next_us = 1 },
    };
    struct weir_decision decision = decision_of(answers, 2);
    cr_assert_eq(weir__retry_after(&decision, 0), 2);
    cr_assert_str_eq(trio_of(&decision), "100 2 2000000");
}

Test(ratelimit_fields, a_trio_is_left_out_where_no_wait_helps)
{
    const struct weir_rule_answer answers[] = {
        { .rule = &minute, .cost = 101, .never = true, .remaining = 100 },
        { .rule = &burst, .cost = 1, .retry_us = 250000 },
    };
    struct weir_decision decision = decision_of(answers, 2);
    cr_assert_str_eq(trio_of(&decision), "");
    decision = one((struct weir_rule_answer){ .rule = &block, .cost = 1, .never = true });
    cr_assert_str_eq(trio_of(&decision), "");
}

Test(ratelimit_fields, nothing_used_resets_at_once)
{
    struct weir_decision decision = one(
        (struct weir_rule_answer){ .rule = &minute, .allowed = true, .remaining = 100 });
    cr_assert_str_eq(trio_of(&decision), "100 100 0");
}

/* An algorithm that isn't known better may have to let all its units pass. */
Test(ratelimit_fields, a_windows_last_units_say_when_any_cost_passes_again)
{
    struct weir_decision decision = one((struct weir_rule_answer){
        .rule = &minute, .allowed = true, .cost = 10, .next_us = 1, .full_us = 9000000 });
    cr_assert_str_eq(state_of(&decision), "\"minute\";r=0;t=9");
    cr_assert_str_eq(trio_of(&decision), "100 0 9000000");
}

/* ---- jitter ------------------------------------------------------------------------ */

Test(ratelimit_fields, jitter_makes_all_times_of_a_refusal_later_by_the_same)
{
    struct weir_decision decision = one((struct weir_rule_answer){
        .rule = &minute, .cost = 1, .retry_us = 3000000, .next_us = 3000000 });
    struct weir__ratelimit_trio trio;
    cr_assert_eq(weir__retry_after(&decision, 1000000), 4);
    cr_assert_eq(weir__retry_after(&decision, 1), 4);
    cr_assert_str_eq(later_state_of(&decision, 1000000), "\"minute\";r=0;t=4");
    cr_assert(weir__ratelimit_trio(&decision, 1000000, &trio));
    cr_assert_eq(trio.reset_us, 4000000);
    decision.rules[0].retry_us = 0;
    cr_assert_eq(weir__retry_after(&decision, 1000000), 2, "later than the least of 1");
    decision.rules[0].never = true;
    cr_assert_eq(weir__retry_after(&decision, 1000000), 0);
    decision = (struct weir_decision){ .source = WEIR_SOURCE_DENY };
    cr_assert_eq(weir__retry_after(&decision, 1000000), 2);
}

Test(ratelimit_fields, jitter_leaves_what_was_let_through_alone)
{
    struct weir_decision decision = one((struct weir_rule_answer){
        .rule = &minute, .allowed = true, .cost = 1, .next_us = 3000000 });
    cr_assert_eq(weir__retry_after(&decision, 1000000), 0);
    cr_assert_str_eq(later_state_of(&decision, 1000000), "\"minute\";r=0;t=3");
    cr_assert_not(weir__retry_is_a_guess(&decision));
}

/* ---- the vectors ------------------------------------------------------------------- */

/* Rows whose values one of ours can have: no pk, a window, seconds above 0. */
static bool row_fits(json_t *value)
{
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item)
    {
        if (json_object_get(item, "pk_hex"))
            return false;
    }
    return true;
}

static struct weir_rule_answer
answer_of(json_t *item, struct weir_rule *rule, bool is_policy)
{
    json_t *window = json_object_get(item, "w");
    *rule = (struct weir_rule){
        .algorithm = WEIR_ALGORITHM_FIXED_WINDOW,
        .name = json_string_value(json_object_get(item, "name")),
        .max = is_policy ? json_integer_value(json_object_get(item, "q")) : 1000000,
        .window_us = window ? WEIR_SECONDS(json_integer_value(window)) : 0,
    };
    return (struct weir_rule_answer){
        .rule = rule,
        .allowed = true,
        .remaining = json_integer_value(json_object_get(item, "r")),
        .next_us = WEIR_SECONDS(json_integer_value(json_object_get(item, "t"))),
    };
}

Test(ratelimit_fields, give_the_bytes_of_the_vectors)
{
    json_t *file = json_load_file(TEST_DATA "/sf-ratelimit.json", 0, NULL);
    size_t i, ran = 0;
    json_t *row;
    json_array_foreach(json_object_get(file, "serialise"), i, row)
    {
        const char *field = json_string_value(json_object_get(row, "field"));
        const char *expect = json_string_value(json_object_get(row, "expect"));
        json_t *value = json_object_get(row, "value"), *item;
        bool is_policy = strcmp(field, "RateLimit-Policy") == 0;
        /* A negative r is clamped before it is written, as the row's name asks. */
        if (!row_fits(value) || (!is_policy && !expect))
            continue;
        struct weir_rule rules[WEIR_RULES_MAX];
        struct weir_decision decision = { .allowed = true, .source = WEIR_SOURCE_SHM };
        size_t at;
        json_array_foreach(value, at, item)
        {
            decision.rules[decision.rules_len++] = answer_of(item, &rules[at], is_policy);
        }
        const char *got = is_policy ? policy_of(&decision) : state_of(&decision);
        if (expect)
            cr_expect_str_eq(got ? got : "", expect);
        else
            cr_expect_null(got, "%s", json_string_value(json_object_get(row, "name")));
        ran++;
    }
    cr_assert_eq(ran, 9);
    json_decref(file);
}

/* Serialises what a row of the structured-field suite parses to. */
static void check_item(json_t *row, size_t *ran)
{
    json_t *expected = json_array_get(json_object_get(row, "expected"), 0);
    json_t *form = json_object_get(row, "canonical");
    if (!form)
        form = json_object_get(row, "raw");
    const char *text = json_string_value(json_array_get(form, 0));
    char got[512] = "";
    size_t len = 0;
    if (json_is_string(expected)) {
        cr_expect(weir__sf_string(got,
                                  sizeof got,
                                  &len,
                                  json_string_value(expected),
                                  json_string_length(expected)));
    } else if (json_is_integer(expected)) {
        cr_expect(weir__sf_integer(got, sizeof got, &len, json_integer_value(expected)));
    } else {
        return;
    }
    cr_expect_str_eq(got, text);
    cr_expect_eq(len, strlen(text));
    ++*ran;
}

Test(ratelimit_fields, write_strings_and_integers_as_the_structured_field_suite_does)
{
    const char *files[] = { TEST_DATA "/structured-fields/string.json",
                            TEST_DATA "/structured-fields/number.json" };
    size_t ran = 0;
    for (unsigned i = 0; i < 2; i++) {
        json_t *rows = json_load_file(files[i], 0, NULL), *row;
        size_t at;
        json_array_foreach(rows, at, row)
        {
            check_item(row, &ran);
        }
        json_decref(rows);
    }
    cr_assert_eq(ran, 15);
}

Test(ratelimit_fields, refuse_what_structured_fields_cannot_hold)
{
    static const char *const strings[] = { "f\xc3\xbc", "\t", " \n ", "\x7f", "\r" };
    char text[32] = "kept";
    size_t len = 4;
    for (unsigned i = 0; i < sizeof strings / sizeof strings[0]; i++)
        cr_expect_not(
            weir__sf_string(text, sizeof text, &len, strings[i], strlen(strings[i])));
    cr_expect_not(weir__sf_string(text, sizeof text, &len, "a\0b", 3));
    cr_expect_not(weir__sf_integer(text, sizeof text, &len, 1000000000000000));
    cr_expect_not(weir__sf_integer(text, sizeof text, &len, -1000000000000000));
    cr_expect_not(weir__sf_integer(text, 8, &len, 1234));
    cr_expect_str_eq(text, "kept");
    cr_expect_eq(len, 4);
    cr_expect(weir__sf_integer(text, 8, &len, 123));
    cr_expect(weir__sf_integer(text, sizeof text, &len, 999999999999999));
    cr_expect_str_eq(text, "kept123999999999999999");
}
