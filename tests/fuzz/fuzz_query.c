/* Query strings: a value that is found lies in the query, and what it decodes to, coded
 * anew, decodes to the same. The input is a name, a NUL, the query. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = fuzz_text(&data, &size), *query = fuzz_copy(data, size);
    struct weir__span value;
    if (weir__query_find(query, size, name, &value)) {
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
