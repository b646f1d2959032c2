/* Requests from parameters: whatever they are, parsing says yes or why not; what it takes
 * is what the calls on a request promise. The input is texts that end with a NUL, each
 * NAME=VALUE; an empty one ends them, and what follows is the body. */
#include "fuzz.h"

#include "base/utf8.h"
#include "field.h"
#include "path.h"
#include "request.h"

#define PARAMS_MAX 64

static void must_hold(struct weir *w)
{
    char again[WEIR__PATH_BYTES(4096)];
    const char *query;
    size_t len = strlen(w->path);
    MUST(weir__field_is_token(w->method, strlen(w->method)));
    MUST(w->path[0] == '/' && (len == 1 || w->path[len - 1] != '/'));
    if (len <= 4096) {
        MUST(!weir__path_from_uri(w->path, len, again, &query));
        MUST(strcmp(again, w->path) == 0 && *query == '\0');
    }
    MUST(w->content_length >= -1);
    MUST(w->head == (strcmp(w->method, "HEAD") == 0));
}

/* What any filter or handler may ask. */
static void ask(struct weir *w)
{
    static const char *const names[] = {
        "Cookie", "X-Forwarded-For", "Content-Type", ""
    };
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = weir_header(w, names[i]);
        MUST(!value || *value);
    }
    const char *texts[] = { weir_query(w, "q"),
                            weir_form(w, "q"),
                            weir_body_string(w, "q") };
    for (unsigned i = 0; i < 3; i++)
        MUST(!texts[i] || weir__utf8_is_valid(texts[i], strlen(texts[i])));
    const char *cookie = weir_cookie(w, "sid");
    MUST(!cookie || (*cookie && !strchr(cookie, ';')));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *texts[PARAMS_MAX];
    struct weir__pair params[PARAMS_MAX];
    struct weir w = { .params = params, .method = "", .path = "", .query = "" };
    weir__arena_init(&w.arena, 1 << 20, 4096);
    while (size > 0 && w.params_len < PARAMS_MAX) {
        char *text = texts[w.params_len] = fuzz_text(&data, &size);
        size_t len = strlen(text), name_len = strcspn(text, "=");
        bool has_value = text[name_len] == '=';
        text[name_len] = '\0';
        params[w.params_len++] = (struct weir__pair){
            .name = text,
            .name_len = (unsigned)name_len,
            .value = has_value ? text + name_len + 1 : text + name_len,
            .value_len = (unsigned)(has_value ? len - name_len - 1 : 0),
        };
        if (len == 0)
            break;
    }
    char *body = malloc(size + 1);
    MUST(body);
    memcpy(body, data, size);
    body[size] = '\0';
    w.body = body;
    w.body_len = size;

    const char *detail = NULL;
    if (weir__request_parse(&w, &detail))
        must_hold(&w);
    else
        MUST(detail && *detail);
    ask(&w);
    weir__request_finish(&w);
    weir__arena_finish(&w.arena);
    free(body);
    for (unsigned i = 0; i < w.params_len; i++)
        free(texts[i]);
    return 0;
}
