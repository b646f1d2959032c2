/* The tests' own parser of structured fields, by the suite of its working group and by
 * what the RateLimit fields have of it. */
#include "support/structured.h"

#include <criterion/criterion.h>
#include <jansson.h>

#include "support/ratelimit_judge.h"

/* All lines of a row as one, which is how a list in several of them is read. */
static void join(json_t *lines, char ret_text[4096])
{
    size_t i;
    json_t *line;
    ret_text[0] = '\0';
    json_array_foreach(lines, i, line)
    {
        if (i > 0)
            strcat(ret_text, ", ");
        strcat(ret_text, json_string_value(line));
    }
}

/* The octets of base 32 (RFC 4648 section 6), as the suite writes them. */
static size_t octets_of(const char *base32, char *ret_octets)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    unsigned bits = 0, bits_len = 0;
    size_t len = 0;
    for (; *base32 && *base32 != '='; base32++) {
        bits = bits << 5 | (unsigned)(strchr(digits, *base32) - digits);
        bits_len += 5;
        if (bits_len >= 8)
            ret_octets[len++] = (char)(bits >> (bits_len -= 8));
    }
    return len;
}

static bool is_text(const struct sf_value *value, enum sf_type type, const char *text)
{
    return value->type == type && strcmp(value->text, text) == 0;
}

static bool is_value(const struct sf_value *value, json_t *expected)
{
    const char *type = json_string_value(json_object_get(expected, "__type"));
    const char *text = json_string_value(json_object_get(expected, "value"));
    char octets[SF_TEXT_MAX];
    if (json_is_boolean(expected))
        return value->type == SF_BOOLEAN && value->number == json_is_true(expected);
    if (json_is_integer(expected))
        return value->type == SF_INTEGER && value->number == json_integer_value(expected);
    if (json_is_real(expected)) {
        double thousandths = json_real_value(expected) * 1000;
        return value->type == SF_DECIMAL &&
               value->number == (int64_t)(thousandths + (thousandths < 0 ? -0.5 : 0.5));
    }
    if (json_is_string(expected))
        return is_text(value, SF_STRING, json_string_value(expected));
    if (strcmp(type, "token") == 0)
        return is_text(value, SF_TOKEN, text);
    return value->type == SF_BYTES && value->len == octets_of(text, octets) &&
           memcmp(value->text, octets, value->len) == 0;
}

/* expected is [value, [[key, value], ...]]. */
static bool is_item(const struct sf_item *item, json_t *expected)
{
    json_t *params = json_array_get(expected, 1), *param;
    size_t i;
    if (!is_value(&item->value, json_array_get(expected, 0)) ||
        item->params_len != json_array_size(params))
        return false;
    json_array_foreach(params, i, param)
    {
        const char *key = json_string_value(json_array_get(param, 0));
        const struct sf_value *value = sf_param(item, key);
        if (!value || !is_value(value, json_array_get(param, 1)))
            return false;
    }
    return true;
}

static bool is_list(const struct sf_list *list, json_t *expected)
{
    bool same = list->len == json_array_size(expected);
    for (unsigned i = 0; same && i < list->len; i++)
        same = is_item(&list->items[i], json_array_get(expected, i));
    return same;
}

static void check_row(json_t *row)
{
    static struct sf_list list;
    char text[4096];
    const char *name = json_string_value(json_object_get(row, "name"));
    const char *type = json_string_value(json_object_get(row, "header_type"));
    bool as_list = strcmp(type, "list") == 0;
    json_t *expected = json_object_get(row, "expected");
    join(json_object_get(row, "raw"), text);
    bool parsed = as_list ? sf_parse_list(text, strlen(text), &list)
                          : sf_parse_item(text, strlen(text), &list.items[0]);
    if (json_is_true(json_object_get(row, "must_fail")))
        cr_expect_not(parsed, "%s: %s", name, text);
    else if (!json_is_true(json_object_get(row, "can_fail")))
        cr_expect(parsed, "%s: %s", name, text);
    if (parsed && expected)
        cr_expect(as_list ? is_list(&list, expected) : is_item(&list.items[0], expected),
                  "%s: %s",
                  name,
                  text);
}

Test(structured, reads_the_suite_of_its_working_group)
{
    static const char *const files[] = { "string", "number", "binary", "param-list" };
    size_t ran = 0;
    for (unsigned i = 0; i < 4; i++) {
        char path[512];
        snprintf(path, sizeof path, TEST_DATA "/structured-fields/%s.json", files[i]);
        json_t *rows = json_load_file(path, 0, NULL), *row;
        size_t at;
        json_array_foreach(rows, at, row)
        {
            check_row(row);
            ran++;
        }
        json_decref(rows);
    }
    cr_assert_eq(ran, 14 + 37 + 15 + 20);
}

/* pk, which Weir doesn't send, is a parameter that the judge takes for a mistake. */
Test(structured, judges_the_vectors_of_the_fields)
{
    static struct sf_list list;
    json_t *file = json_load_file(TEST_DATA "/sf-ratelimit.json", 0, NULL), *row;
    size_t i, ran = 0;
    json_array_foreach(json_object_get(file, "parse"), i, row)
    {
        const char *raw = json_string_value(json_object_get(row, "raw"));
        const char *field = json_string_value(json_object_get(row, "field"));
        bool is_policy = strcmp(field, "RateLimit-Policy") == 0;
        bool sf_valid = json_is_true(json_object_get(row, "sf_valid"));
        bool field_valid = json_is_true(json_object_get(row, "field_valid"));
        cr_expect_eq(sf_parse_list(raw, strlen(raw), &list), sf_valid, "%s", raw);
        const char *fault =
            is_policy ? judge_policy(raw, &list) : judge_state(raw, &list);
        if (!strstr(raw, ";pk="))
            cr_expect_eq(fault == NULL, field_valid, "%s: %s", raw, fault);
        ran++;
    }
    cr_assert_eq(ran, 10);
    json_decref(file);
}

Test(structured, judges_what_no_draft_allows)
{
    static struct sf_list list, states;
    cr_expect_null(judge_policy("\"a\";q=1;qu=\"concurrent-requests\"", &list));
    cr_expect_not_null(judge_policy("\"a\";q=1;qu=\"request\"", &list));
    cr_expect_not_null(judge_policy("\"a\";q=1;w=0", &list));
    cr_expect_not_null(judge_policy("\"a\";w=1", &list));
    cr_expect_not_null(judge_policy("a;q=1", &list));
    cr_expect_not_null(judge_policy("", &list));
    cr_expect_not_null(judge_policy("\"a\";q=1, \"a\";q=2", &list));
    cr_expect_not_null(judge_state("\"a\";r=-1", &list));
    cr_expect_not_null(judge_state("\"a\";r=0;t=1.0", &list));
    cr_expect_null(judge_policy_draft_06("100;w=60, 100;w=60", &list));
    cr_expect_not_null(judge_policy_draft_06("100", &list));
    cr_expect_not_null(judge_policy_draft_06("\"a\";q=1;w=60", &list));
    cr_assert_null(judge_policy("\"a\";q=1, \"b\";q=2", &list));
    cr_assert_null(judge_state("\"a\";r=1, \"b\";r=2", &states));
    cr_expect_null(judge_pair(&list, &states));
    cr_assert_null(judge_state("\"a\";r=1, \"b\";r=3", &states));
    cr_expect_not_null(judge_pair(&list, &states));
    cr_assert_null(judge_state("\"b\";r=1, \"a\";r=1", &states));
    cr_expect_not_null(judge_pair(&list, &states));
}
