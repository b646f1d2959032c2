/* Paths: what the normaliser gives has its form, is its own normal form, and is what the
 * decoded variant gives for it. */
#include "fuzz.h"

#include "base/hex.h"
#include "path.h"

static void must_be_normal(const char *path)
{
    size_t len = strlen(path);
    MUST(path[0] == '/');
    MUST(len == 1 || path[len - 1] != '/');
    MUST(!strstr(path, "//") && !strstr(path, "/./") && !strstr(path, "/../"));
    MUST(len < 2 || strcmp(path + len - 2, "/.") != 0);
    MUST(len < 3 || strcmp(path + len - 3, "/..") != 0);
    for (const char *at = path; *at; at++) {
        MUST((unsigned char)*at > 0x20 && (unsigned char)*at < 0x7f);
        MUST(!strchr(";?#\"<>\\^`{|}[]", *at));
        if (*at != '%')
            continue;
        int byte = weir__percent_value(at, path + len);
        MUST(byte > 0 && byte != '/' && byte != '.' && byte != '~');
        MUST(!(at[1] >= 'a' && at[1] <= 'f') && !(at[2] >= 'a' && at[2] <= 'f'));
    }
}

static void must_be_its_own_normal_form(const char *path)
{
    size_t len = strlen(path);
    char *copy = fuzz_copy(path, len), *again = malloc(WEIR__PATH_BYTES(len));
    const char *query = NULL;
    MUST(again && !weir__path_from_uri(copy, len, again, &query));
    MUST(strcmp(again, path) == 0);
    MUST(query == copy + len);
    free(copy);
    free(again);
}

/* Decodes once, as a web server does for SCRIPT_NAME. False where that loses a difference
 * (coded reserved characters) and the paths may differ. */
static bool decode_like_a_server(const char *path, char *ret_text)
{
    const char *end = path + strlen(path);
    while (path < end) {
        int byte = weir__percent_value(path, end);
        if (byte > 0 && strchr("!$&'()*+,;=:@", byte))
            return false;
        *ret_text++ = byte > 0 ? (char)byte : *path;
        path += byte > 0 ? 3 : 1;
    }
    *ret_text = '\0';
    return true;
}

static void must_come_back_from_cgi(const char *path)
{
    size_t len = strlen(path);
    char *text = malloc(len + 1), *again = malloc(WEIR__PATH_BYTES(len));
    MUST(text && again);
    if (decode_like_a_server(path, text)) {
        MUST(!weir__path_from_cgi(text, "", again));
        MUST(strcmp(again, path) == 0);
    }
    free(text);
    free(again);
}

/* One more parameter at the end of the path makes no other path. */
static void must_not_see_a_parameter(const uint8_t *uri, size_t size, const char *path)
{
    char *longer = malloc(size + 3), *again = malloc(WEIR__PATH_BYTES(size + 3));
    const char *query;
    MUST(longer && again);
    const uint8_t *question = size ? memchr(uri, '?', size) : NULL;
    size_t len = question ? (size_t)(question - uri) : size;
    if (len > 0 && uri[0] == '/') {
        memcpy(longer, uri, len);
        memcpy(longer + len, ";x=", 3);
        MUST(!weir__path_from_uri(longer, len + 3, again, &query));
        MUST(strcmp(again, path) == 0);
    }
    free(longer);
    free(again);
}

static void try_uri(const uint8_t *data, size_t size)
{
    char *uri = fuzz_copy(data, size), *path = malloc(WEIR__PATH_BYTES(size));
    const char *query = NULL;
    MUST(path);
    if (!weir__path_from_uri(uri, size, path, &query)) {
        MUST(query >= uri && query <= uri + size);
        must_be_normal(path);
        must_be_its_own_normal_form(path);
        must_come_back_from_cgi(path);
        must_not_see_a_parameter(data, size, path);
        char *text = malloc(strlen(path) + 1);
        MUST(text);
        weir__path_decode(path, strlen(path), text);
        free(text);
    }
    free(uri);
    free(path);
}

static void try_cgi(const uint8_t *data, size_t size)
{
    char *script_name = fuzz_text(&data, &size), *path_info = fuzz_text(&data, &size);
    char *path = malloc(WEIR__PATH_BYTES(strlen(script_name) + strlen(path_info)));
    MUST(path);
    if (!weir__path_from_cgi(script_name, path_info, path)) {
        must_be_normal(path);
        must_be_its_own_normal_form(path);
    }
    free(script_name);
    free(path_info);
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_uri(data, size);
    try_cgi(data, size);
    char *text = malloc(size + 1);
    MUST(text);
    weir__path_decode((const char *)data, size, text);
    free(text);
    return 0;
}
