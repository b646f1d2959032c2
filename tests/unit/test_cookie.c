#include "cookie.h"

#include "data.h"

static enum weir__cookie_result
find(const char *header, const char *name, struct weir__span *ret_value)
{
    static char *exact; /* without a NUL behind it */
    size_t len = strlen(header);
    free(exact);
    exact = malloc(len ? len : 1);
    memcpy(exact, header, len);
    return weir__cookie_find(exact, len, name, ret_value);
}

/* What a row of the table means for a lookup that never guesses. */
static enum weir__cookie_result expected_of(json_t *row)
{
    if (json_is_true(json_object_get(row, "ambiguous")))
        return WEIR__COOKIE_AMBIGUOUS;
    if (json_array_size(json_object_get(row, "values")) == 0)
        return WEIR__COOKIE_ABSENT;
    if (json_array_size(json_object_get(row, "values_with_only_cookie_octets")) == 0)
        return WEIR__COOKIE_BAD;
    return WEIR__COOKIE_FOUND;
}

Test(cookie, finds_what_the_table_says)
{
    json_t *data = data_load("cookies.json"), *row;
    size_t i;
    json_array_foreach(json_object_get(data, "rows"), i, row)
    {
        const char *header = json_string_value(json_object_get(row, "HTTP_COOKIE"));
        const char *name = json_string_value(json_object_get(row, "name"));
        json_t *values = json_object_get(row, "values");
        struct weir__span value = { NULL, 0 };
        cr_assert_eq(find(header, name, &value), expected_of(row), "%s", header);
        if (expected_of(row) == WEIR__COOKIE_FOUND) {
            json_t *expected = json_array_get(values, 0);
            cr_assert_eq(value.len, json_string_length(expected));
            cr_assert_eq(memcmp(value.bytes, json_string_value(expected), value.len), 0);
        } else {
            cr_assert_null(value.bytes);
        }
    }
    cr_assert_eq(i, 15);
    json_decref(data);
}

static void expect(const char *header, const char *expected)
{
    struct weir__span value;
    cr_assert_eq(find(header, "sid", &value), WEIR__COOKIE_FOUND, "%s", header);
    cr_assert_eq(value.len, strlen(expected), "%s", header);
    cr_assert_eq(memcmp(value.bytes, expected, value.len), 0, "%s", header);
}

Test(cookie, odd_forms_have_one_fixed_result)
{
    struct weir__span value = { NULL, 0 };
    expect("sid=B;;; =; x", "B");
    expect("a=1;sid=B;b=2", "B");
    expect("sid=\"B\"", "\"B\"");
    expect("sid=", "");
    expect("\tsid\t=\tB\t", "B");
    cr_assert_eq(find("sid=; sid=B", "sid", &value), WEIR__COOKIE_AMBIGUOUS);
    cr_assert_eq(find("sid=ab; sid=a", "sid", &value), WEIR__COOKIE_AMBIGUOUS);
    cr_assert_eq(find("sid=a; sid=ab", "sid", &value), WEIR__COOKIE_AMBIGUOUS);
    cr_assert_eq(find("SID=B", "sid", &value), WEIR__COOKIE_ABSENT);
    cr_assert_eq(find("sid", "sid", &value), WEIR__COOKIE_ABSENT);
    cr_assert_eq(find(";", "sid", &value), WEIR__COOKIE_ABSENT);
    cr_assert_null(value.bytes);
}

Test(cookie, bytes_outside_the_grammar_make_a_value_bad)
{
    static const char *const bad[] = { "sid=a b",  "sid=a,b",    "sid=a\\b", "sid=a\"b",
                                       "sid=\"a",  "sid=\"a\"b", "sid=\"",   "sid=a\x7f",
                                       "sid=a\tb", "sid=\"a,b\"" };
    struct weir__span value;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_eq(find(bad[i], "sid", &value), WEIR__COOKIE_BAD, "%s", bad[i]);
    cr_assert_eq(weir__cookie_find("sid=a\0b", 7, "sid", &value), WEIR__COOKIE_BAD);
}
