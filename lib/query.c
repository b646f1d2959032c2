/* One value out of a query string or form body, found without a table of all of them and
 * decoded only when it is the one. A `%` that isn't followed by two hex digits is an
 * error here, not data: what filters read must be what the app reads. */
#include "query.h"

#include "base/hex.h"
#include "base/utf8.h"

#include <string.h>

/* The byte that stands at *at, which is moved behind it; -1 for bad coding. */
static int next_byte(const char **at, const char *end)
{
    char byte = *(*at)++;
    if (byte == '+')
        return ' ';
    if (byte != '%')
        return (unsigned char)byte;
    int value = weir__percent_value(*at - 1, end);
    *at += value < 0 ? 0 : 2;
    return value;
}

/* Whether the coded text from at to end is name. */
static bool is_name(const char *at, const char *end, const char *name)
{
    while (at < end) {
        int byte = next_byte(&at, end);
        if (byte <= 0 || byte != (unsigned char)*name)
            return false;
        name++;
    }
    return *name == '\0';
}

bool weir__query_find(const char *query,
                      size_t query_len,
                      const char *name,
                      struct weir__span *ret_value)
{
    const char *end = query + query_len;
    while (query < end) {
        const char *ampersand = memchr(query, '&', (size_t)(end - query));
        const char *pair_end = ampersand ? ampersand : end;
        const char *equals = memchr(query, '=', (size_t)(pair_end - query));
        const char *name_end = equals ? equals : pair_end;
        if (pair_end > query && is_name(query, name_end, name)) {
            const char *value = equals ? equals + 1 : pair_end;
            *ret_value = (struct weir__span){ value, (size_t)(pair_end - value) };
            return true;
        }
        query = pair_end + (ampersand ? 1 : 0);
    }
    return false;
}

bool weir__query_decode(struct weir__span raw, char *ret_text)
{
    const char *at = raw.bytes, *end = raw.bytes + raw.len;
    char *to = ret_text;
    while (at < end) {
        int byte = next_byte(&at, end);
        if (byte <= 0)
            return false;
        *to++ = (char)byte;
    }
    *to = '\0';
    return weir__utf8_is_valid(ret_text, (size_t)(to - ret_text));
}
