/* A lookup in the Cookie header that never guesses: whole names only, and no choice
 * between two values of one name, since filter and app could choose differently.
 * It decodes nothing: the standard knows no coding of cookie values. */
#include "cookie.h"

#include <stdbool.h>
#include <string.h>

static struct weir__span trim(const char *start, const char *end)
{
    while (start < end && (*start == ' ' || *start == '\t'))
        start++;
    while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (struct weir__span){ start, (size_t)(end - start) };
}

static bool equal(struct weir__span one, struct weir__span two)
{
    return one.len == two.len && memcmp(one.bytes, two.bytes, one.len) == 0;
}

/* cookie-octet: printable ASCII without blank, quote, comma, semicolon and backslash. */
static bool is_octet(char byte)
{
    return byte > 0x20 && byte < 0x7f && byte != '"' && byte != ',' && byte != ';' &&
           byte != '\\';
}

/* cookie-value: octets, or octets between two quotes. */
static bool is_value(struct weir__span value)
{
    if (value.len >= 2 && value.bytes[0] == '"' && value.bytes[value.len - 1] == '"')
        value = (struct weir__span){ value.bytes + 1, value.len - 2 };
    for (size_t i = 0; i < value.len; i++)
        if (!is_octet(value.bytes[i]))
            return false;
    return true;
}

enum weir__cookie_result weir__cookie_find(const char *header,
                                           size_t header_len,
                                           const char *name,
                                           struct weir__span *ret_value)
{
    struct weir__span wanted = { name, strlen(name) };
    struct weir__span found = { NULL, 0 };
    const char *end = header + header_len;
    while (header < end) {
        const char *semicolon = memchr(header, ';', (size_t)(end - header));
        const char *pair_end = semicolon ? semicolon : end;
        const char *equals = memchr(header, '=', (size_t)(pair_end - header));
        if (equals && equal(trim(header, equals), wanted)) {
            struct weir__span value = trim(equals + 1, pair_end);
            if (found.bytes && !equal(found, value))
                return WEIR__COOKIE_AMBIGUOUS;
            found = value;
        }
        header = pair_end + (semicolon ? 1 : 0);
    }
    if (!found.bytes)
        return WEIR__COOKIE_ABSENT;
    if (!is_value(found))
        return WEIR__COOKIE_BAD;
    *ret_value = found;
    return WEIR__COOKIE_FOUND;
}
