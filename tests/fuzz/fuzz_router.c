/* Patterns and a path: the tree finds what a plain search over all patterns finds. The
 * input is a method, up to eight patterns and a path, each ended by a NUL. */
#include "fuzz.h"

#include "path.h"
#include "pattern.h"
#include "router.h"

#define PATTERNS_MAX 8

/* Whether the pattern matches; *ret_kinds gets the kind of each segment, which orders the
 * patterns that do: the smallest text wins. */
static bool
matches(const struct weir__pattern *pattern, const char *path, char *ret_kinds)
{
    const char *rest = strcmp(path, "/") == 0 ? "" : path;
    unsigned i = 0;
    for (; i < pattern->segments_len; i++) {
        const struct weir__segment *segment = &pattern->segments[i];
        size_t len = rest[0] == '/' ? strcspn(rest + 1, "/") : 0;
        ret_kinds[i] = (char)('a' + (int)segment->kind);
        if (segment->kind == WEIR__SEGMENT_REST) {
            rest += strlen(rest);
        } else if (rest[0] != '/' ||
                   (segment->kind == WEIR__SEGMENT_LITERAL &&
                    (len != segment->text.len ||
                     memcmp(rest + 1, segment->text.bytes, len) != 0))) {
            return false;
        } else {
            rest += 1 + len;
        }
    }
    ret_kinds[i] = '\0';
    return rest[0] == '\0';
}

/* How well the pattern's method serves: 0 not at all. */
static int service(struct weir__span method, const char *asked)
{
    if (method.len == strlen(asked) && memcmp(method.bytes, asked, method.len) == 0)
        return 3;
    if (strcmp(asked, "HEAD") == 0 && method.len == 3 &&
        memcmp(method.bytes, "GET", 3) == 0)
        return 2;
    return method.len == 1 && method.bytes[0] == '*' ? 1 : 0;
}

/* The plain search: the index, -1 for no path, -2 for no method. */
static int
search(const struct weir_endpoint *endpoints, const char *method, const char *path)
{
    char best[WEIR__PATTERN_SEGMENTS_MAX + 1] = "z";
    int found = -1, best_service = 0;
    for (int i = 0; endpoints[i].pattern; i++) {
        struct weir__pattern pattern;
        char kinds[WEIR__PATTERN_SEGMENTS_MAX + 1];
        MUST(weir__pattern_parse(endpoints[i].pattern, &pattern, NULL));
        if (!matches(&pattern, path, kinds))
            continue;
        int serves = service(pattern.method, method), order = strcmp(kinds, best);
        if (serves == 0) {
            found = found == -1 ? -2 : found;
        } else if (order < 0 || (order == 0 && serves > best_service)) {
            strcpy(best, kinds);
            best_service = serves;
            found = i;
        }
    }
    return found;
}

static void compare(const struct weir_endpoint *endpoints,
                    const struct weir__router *router,
                    const char *method,
                    const char *path)
{
    struct weir__arena arena;
    struct weir__capture captures[WEIR__CAPTURES_MAX];
    unsigned captures_len = 0;
    size_t endpoint = SIZE_MAX;
    const char *allow = NULL;
    weir__arena_init(&arena, 65536, 4096);
    int expected = search(endpoints, method, path);
    enum weir__route route = weir__router_find(
        router, method, path, &arena, &endpoint, captures, &captures_len, &allow);
    MUST((route == WEIR__ROUTE_NO_PATH) == (expected == -1));
    MUST((route == WEIR__ROUTE_NO_METHOD) == (expected == -2));
    MUST((allow != NULL) == (expected == -2));
    if (expected >= 0)
        MUST(endpoint == (size_t)expected);
    for (unsigned i = 0; i < captures_len; i++)
        MUST(captures[i].text >= path &&
             captures[i].text + captures[i].text_len <= path + strlen(path));
    weir__arena_finish(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *method = fuzz_text(&data, &size);
    char *texts[PATTERNS_MAX];
    struct weir_endpoint endpoints[PATTERNS_MAX + 1] = { { .pattern = NULL } };
    unsigned len = 0;
    for (; len < PATTERNS_MAX && size > 0 && memchr(data, '\0', size); len++) {
        texts[len] = fuzz_text(&data, &size);
        endpoints[len].pattern = texts[len];
    }
    char *path = malloc(WEIR__PATH_BYTES(size));
    const char *query;
    struct weir__router *router = NULL;
    struct weir_error error = { "" };
    MUST(path);
    if (!weir__router_create(endpoints, &router, &error))
        MUST(error.text[0] && !router);
    else if (!weir__path_from_uri((const char *)data, size, path, &query))
        compare(endpoints, router, method, path);
    weir__router_destroy(router);
    free(path);
    for (unsigned i = 0; i < len; i++)
        free(texts[i]);
    free(method);
    return 0;
}
