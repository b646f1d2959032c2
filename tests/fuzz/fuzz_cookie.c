/* Cookies: a value that is found lies in the header and keeps the grammar; the header
 * twice over gives the same result as once. The input is a name, a NUL, the header. */
#include "fuzz.h"

#include "cookie.h"

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
