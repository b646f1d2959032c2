/* Query strings: the pair that is found is the first of that name in a plain reading,
 * which decodes every pair; the value lies in the query; what it decodes to, coded anew,
 * decodes to the same. The input is a name, a NUL, the query. */
#include "fuzz.h"

#include "base/utf8.h"
#include "query.h"

/* Codes every byte of text; the result is NUL-ended. */
static char *code_all(const char *text)
{
    size_t len = strlen(text);
    char *coded = malloc(3 * len + 1);
    MUST(coded);
    for (size_t i = 0; i < len; i++)
        sprintf(coded + 3 * i, "%%%02x", (unsigned char)text[i]);
    coded[3 * len] = '\0';
    return coded;
}

static void must_decode_again(const char *name, const char *text)
{
    char *coded_name = code_all(name), *coded_text = code_all(text);
    size_t size = strlen(coded_name) + strlen(coded_text) + 8;
    char *query = malloc(size), *again = malloc(size);
    struct weir__span value;
    MUST(query && again);
    int len = snprintf(query, size, "%s=%s&", coded_name, coded_text);
    MUST(weir__query_find(query, (size_t)len, name, &value));
    MUST(weir__query_decode(value, again));
    MUST(strcmp(again, text) == 0);
    free(coded_name);
    free(coded_text);
    free(query);
    free(again);
}

static int digit(char byte)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF", *at;
    at = byte ? strchr(digits, byte) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* Decodes into text; false for bad coding and for NUL. */
static bool plain_decode(const char *from, size_t len, char *text)
{
    for (size_t i = 0; i < len; i++) {
        int byte = from[i] == '+' ? ' ' : (unsigned char)from[i];
        if (from[i] == '%') {
            if (len - i < 3 || digit(from[i + 1]) < 0 || digit(from[i + 2]) < 0)
                return false;
            byte = digit(from[i + 1]) * 16 + digit(from[i + 2]);
            i += 2;
        }
        if (byte == 0)
            return false;
        *text++ = (char)byte;
    }
    *text = '\0';
    return true;
}

/* The plain reading: where the value of the first pair of that name begins, NULL: none.
 */
static const char *
plain_find(const char *query, size_t size, const char *name, size_t *ret_len)
{
    char *text = malloc(size + 1);
    const char *found = NULL;
    MUST(text);
    for (size_t begin = 0, end; begin <= size && !found; begin = end + 1) {
        size_t name_end = begin;
        for (end = begin; end < size && query[end] != '&';)
            end++;
        while (name_end < end && query[name_end] != '=')
            name_end++;
        if (end == begin || !plain_decode(query + begin, name_end - begin, text) ||
            strcmp(text, name) != 0)
            continue;
        found = query + (name_end < end ? name_end + 1 : end);
        *ret_len = (size_t)(query + end - found);
    }
    free(text);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = fuzz_text(&data, &size), *query = fuzz_copy(data, size);
    struct weir__span value;
    size_t plain_len = 0;
    const char *plain = plain_find(query, size, name, &plain_len);
    bool is_there = weir__query_find(query, size, name, &value);
    MUST(is_there == (plain != NULL));
    if (is_there) {
        MUST(value.bytes == plain && value.len == plain_len);
        MUST(value.bytes >= query && value.bytes + value.len <= query + size);
        char *text = malloc(value.len + 1);
        MUST(text);
        if (weir__query_decode(value, text)) {
            MUST(weir__utf8_is_valid(text, strlen(text)));
            must_decode_again(name, text);
        }
        free(text);
    }
    free(query);
    free(name);
    return 0;
}
