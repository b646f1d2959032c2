#include "field.h"

#include <criterion/criterion.h>
#include <string.h>

Test(field, a_name_is_a_token)
{
    const char *token = "!#$%&'*+-.^_`|~09AZaz";
    cr_assert(weir__field_is_token(token, strlen(token)));
    cr_assert_not(weir__field_is_token("", 0));
    for (int byte = 0; byte < 256; byte++) {
        char text[3] = { 'a', (char)byte, 'b' };
        bool expected = byte > 0 && byte < 0x80 && strchr(token, byte);
        expected = expected || (byte >= 'a' && byte <= 'z') ||
                   (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
        cr_assert_eq(weir__field_is_token(text, 3), expected, "byte %d", byte);
    }
}

Test(field, a_value_has_no_controls_and_no_blanks_at_its_ends)
{
    cr_assert(weir__field_is_value("", 0));
    cr_assert(weir__field_is_value("a", 1));
    cr_assert(weir__field_is_value("a b\tc", 5));
    cr_assert(weir__field_is_value("caf\xc3\xa9\xff", 6));
    cr_assert_not(weir__field_is_value(" a", 2));
    cr_assert_not(weir__field_is_value("a ", 2));
    cr_assert_not(weir__field_is_value("\ta", 2));
    cr_assert_not(weir__field_is_value("a\t", 2));
    cr_assert_not(weir__field_is_value(" ", 1));
    for (int byte = 0; byte < 256; byte++) {
        char text[3] = { 'a', (char)byte, 'b' };
        bool expected = (byte >= 0x20 && byte != 0x7f) || byte == '\t';
        cr_assert_eq(weir__field_is_value(text, 3), expected, "byte %d", byte);
    }
}

static const char *cgi_name_of(const char *name)
{
    static char cgi[64];
    strcpy(cgi, "untouched");
    return weir__field_cgi_name(name, cgi, sizeof cgi) ? cgi : NULL;
}

Test(field, a_header_has_a_cgi_name)
{
    cr_assert_str_eq(cgi_name_of("User-Agent"), "HTTP_USER_AGENT");
    cr_assert_str_eq(cgi_name_of("x-b3-traceid"), "HTTP_X_B3_TRACEID");
    cr_assert_str_eq(cgi_name_of("Cookie"), "HTTP_COOKIE");
    cr_assert_str_eq(cgi_name_of("Content-Type"), "CONTENT_TYPE");
    cr_assert_str_eq(cgi_name_of("CONTENT-LENGTH"), "CONTENT_LENGTH");
    cr_assert_str_eq(cgi_name_of("Content-Types"), "HTTP_CONTENT_TYPES");
    cr_assert_null(cgi_name_of(""));
    cr_assert_null(cgi_name_of("a b"));
    cr_assert_null(cgi_name_of("a:"));
}

Test(field, a_cgi_name_that_does_not_fit_is_refused)
{
    char cgi[11] = "untouched", name[300];
    cr_assert(weir__field_cgi_name("abcde", cgi, sizeof cgi));
    cr_assert_str_eq(cgi, "HTTP_ABCDE");
    cr_assert_not(weir__field_cgi_name("abcdef", cgi, sizeof cgi));
    cr_assert_str_eq(cgi, "HTTP_ABCDE");
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    cr_assert_not(weir__field_cgi_name(name, name, sizeof name));
}

Test(field, repeated_parameters_are_joined_by_their_name)
{
    cr_assert_str_eq(weir__field_joint("HTTP_COOKIE"), "; ");
    cr_assert_str_eq(weir__field_joint("HTTP_X_FORWARDED_FOR"), ", ");
    cr_assert_str_eq(weir__field_joint("HTTP_COOKIE2"), ", ");
    cr_assert_null(weir__field_joint("REMOTE_ADDR"));
    cr_assert_null(weir__field_joint("CONTENT_LENGTH"));
    cr_assert_null(weir__field_joint("HTTPS"));
}

static int64_t length_of(const char *text)
{
    int64_t bytes = -7;
    return weir__content_length_parse(text, &bytes) ? bytes : -7;
}

Test(field, a_content_length_is_digits_or_nothing)
{
    cr_assert_eq(length_of(NULL), -1);
    cr_assert_eq(length_of(""), -1);
    cr_assert_eq(length_of("0"), 0);
    cr_assert_eq(length_of("007"), 7);
    cr_assert_eq(length_of("1048576"), 1048576);
    cr_assert_eq(length_of("999999999999999999"), INT64_C(999999999999999999));
    static const char *const bad[] = { "+5",
                                       "-5",
                                       " 5",
                                       "5 ",
                                       "5,5",
                                       "0x5",
                                       "5.0",
                                       "a",
                                       "9999999999999999999",
                                       "18446744073709551617",
                                       "\xd9\xa5" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_eq(length_of(bad[i]), -7, "%s", bad[i]);
}
