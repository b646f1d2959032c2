/* Cookies: what is found is what a plain reading of every byte finds; it lies in the
 * header and keeps the grammar; the header twice over gives the same result as once. The
 * input is a name, a NUL, the header. */
#include "fuzz.h"

#include <stdbool.h>

#include "cookie.h"

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* The plain reading: at each byte, whether a cookie of that name begins here. */
static enum weir__cookie_result plain_find(const char *header,
                                           size_t size,
                                           const char *name,
                                           struct weir__span *ret_value)
{
    struct weir__span found = { NULL, 0 };
    size_t name_len = strlen(name);
    for (size_t begin = 0; begin < size; begin++) {
        size_t at = begin, last;
        if (begin > 0 && header[begin - 1] != ';')
            continue;
        while (at < size && is_blank(header[at]))
            at++;
        if (size - at < name_len || memcmp(header + at, name, name_len) != 0)
            continue;
        for (at += name_len; at < size && is_blank(header[at]);)
            at++;
        if (at == size || header[at++] != '=')
            continue;
        while (at < size && is_blank(header[at]))
            at++;
        for (last = at; last < size && header[last] != ';';)
            last++;
        while (last > at && is_blank(header[last - 1]))
            last--;
        if (found.bytes &&
            (found.len != last - at || memcmp(found.bytes, header + at, found.len) != 0))
            return WEIR__COOKIE_AMBIGUOUS;
        found = (struct weir__span){ header + at, last - at };
    }
    *ret_value = found;
    return found.bytes ? WEIR__COOKIE_FOUND : WEIR__COOKIE_ABSENT;
}

/* A name that isn't a token could be read in two ways: with blanks or `=` in it. */
static void must_be_the_plain_one(const char *header,
                                  size_t size,
                                  const char *name,
                                  enum weir__cookie_result result,
                                  struct weir__span value)
{
    struct weir__span plain = { NULL, 0 };
    if (!*name || strpbrk(name, " \t=;"))
        return;
    enum weir__cookie_result expected = plain_find(header, size, name, &plain);
    if (expected != WEIR__COOKIE_FOUND) {
        MUST(result == expected);
        return;
    }
    MUST(result == WEIR__COOKIE_FOUND || result == WEIR__COOKIE_BAD);
    MUST(result == WEIR__COOKIE_BAD ||
         (value.bytes == plain.bytes && value.len == plain.len));
    /* Not too strict either: letters and digits are always a value. */
    bool simple = true;
    for (size_t i = 0; i < plain.len; i++)
        simple = simple &&
                 strchr("abcdefghijklmnopqrstuvwxyz0123456789", plain.bytes[i]) &&
                 plain.bytes[i];
    MUST(!simple || result == WEIR__COOKIE_FOUND);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = fuzz_text(&data, &size), *header = fuzz_copy(data, size);
    struct weir__span value = { NULL, 0 }, again = { NULL, 0 };
    enum weir__cookie_result result = weir__cookie_find(header, size, name, &value);
    if (result == WEIR__COOKIE_FOUND) {
        MUST(value.bytes >= header && value.bytes + value.len <= header + size);
        for (size_t i = 0; i < value.len; i++)
            MUST(value.bytes[i] > ' ' && value.bytes[i] < 0x7f &&
                 !strchr(",;\\", value.bytes[i]));
    } else {
        MUST(!value.bytes);
    }
    must_be_the_plain_one(header, size, name, result, value);

    size_t twice_len = 2 * size + 2;
    char *twice = malloc(twice_len);
    MUST(twice);
    if (size > 0) {
        memcpy(twice, header, size);
        memcpy(twice + size + 2, header, size);
    }
    memcpy(twice + size, "; ", 2);
    MUST(weir__cookie_find(twice, twice_len, name, &again) == result);
    MUST(again.len == value.len);
    MUST(value.len == 0 || memcmp(again.bytes, value.bytes, value.len) == 0);
    free(twice);
    free(header);
    free(name);
    return 0;
}
