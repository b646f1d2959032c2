#include "query.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The decoded value of name in query, "(none)" or "(bad)". */
static const char *value_of(const char *query, const char *name)
{
    static char text[200];
    struct weir__span raw;
    size_t len = strlen(query);
    char *exact = malloc(len ? len : 1); /* without a NUL behind it */
    memcpy(exact, query, len);
    const char *result = "(none)";
    if (weir__query_find(exact, len, name, &raw))
        result = weir__query_decode(raw, text) ? text : "(bad)";
    free(exact);
    return result;
}

Test(query, finds_whole_names)
{
    cr_assert_str_eq(value_of("a=1&b=2", "a"), "1");
    cr_assert_str_eq(value_of("a=1&b=2", "b"), "2");
    cr_assert_str_eq(value_of("ab=1&ba=2", "a"), "(none)");
    cr_assert_str_eq(value_of("a=1", "ab"), "(none)");
    cr_assert_str_eq(value_of("A=1", "a"), "(none)");
    cr_assert_str_eq(value_of("x=a=1", "a"), "(none)");
    cr_assert_str_eq(value_of("", "a"), "(none)");
    cr_assert_str_eq(value_of("&&&", "a"), "(none)");
}

Test(query, the_first_of_a_name_counts)
{
    cr_assert_str_eq(value_of("a=1&a=2", "a"), "1");
    cr_assert_str_eq(value_of("a=%zz&a=2", "a"), "(bad)");
}

Test(query, a_value_may_be_empty_or_hold_an_equals_sign)
{
    cr_assert_str_eq(value_of("a=", "a"), "");
    cr_assert_str_eq(value_of("a", "a"), "");
    cr_assert_str_eq(value_of("b&a&c", "a"), "");
    cr_assert_str_eq(value_of("a=b=c", "a"), "b=c");
    cr_assert_str_eq(value_of("&a=1&", "a"), "1");
    cr_assert_str_eq(value_of("=1&a=2", ""), "1");
    cr_assert_str_eq(value_of("a=1&&b=2", ""), "(none)");
}

Test(query, names_and_values_are_decoded)
{
    cr_assert_str_eq(value_of("n%61me=x", "name"), "x");
    cr_assert_str_eq(value_of("full+name=x", "full name"), "x");
    cr_assert_str_eq(value_of("a=b+c%20d%2B%26%3d", "a"), "b c d+&=");
    cr_assert_str_eq(value_of("a=%C3%a9", "a"), "\xc3\xa9");
    cr_assert_str_eq(value_of("a=%2541", "a"), "%41");
    cr_assert_str_eq(value_of("\xc3\xa9=1", "\xc3\xa9"), "1");
}

Test(query, bad_coding_is_no_value)
{
    static const char *const bad[] = { "a=%",   "a=%4",        "a=%4&b=1", "a=%g1",
                                       "a=%1g", "a=%00",       "a=1%00",   "a=%FF",
                                       "a=%C3", "a=%ED%A0%80", "a=\xff",   "a=%C0%80" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_str_eq(value_of(bad[i], "a"), "(bad)", "%s", bad[i]);
    cr_assert_str_eq(value_of("%=1&%zz=2&a%=3&a%00=4&a=5", "a"), "5");
    struct weir__span raw = { "a\0b", 3 };
    char text[4];
    cr_assert_not(weir__query_decode(raw, text));
}
