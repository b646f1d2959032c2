/* The app's calls on what came in, over the parameters that a transport has filled in.
 *
 * They look things up anew each time: a request has a few dozen parameters, and most
 * handlers ask for few of them. How they were parsed is request_parse.c's, what goes out
 * response.c's. */
#include "request.h"

#include <jansson.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "cookie.h"
#include "field.h"
#include "path.h"
#include "query.h"

#define CGI_NAME_BYTES 256

/* Past so many values a JSON body isn't parsed: a value takes some 100 bytes of memory
 * where it took two in the body, and that memory is not the request's. */
#define JSON_VALUES_MAX 16384

/* ---- parameters and headers -------------------------------------------------------- */

static bool is_named(const struct weir__pair *pair, const char *name, size_t name_len)
{
    return pair->name_len == name_len && memcmp(pair->name, name, name_len) == 0;
}

const char *weir__request_param(const struct weir *w, const char *name, size_t name_len)
{
    for (unsigned i = 0; i < w->params_len; i++) {
        if (is_named(&w->params[i], name, name_len) && w->params[i].value_len > 0)
            return w->params[i].value;
    }
    return NULL;
}

const char *weir_param(const struct weir *w, const char *name)
{
    return weir__request_param(w, name, strlen(name));
}

/* The values of a parameter that came `count` times, in order. NULL when memory is short.
 */
static const char *
joined(struct weir *w, const char *name, size_t bytes, const char *joint)
{
    char *text = weir__arena_alloc(&w->arena, bytes), *end = text;
    size_t name_len = strlen(name);
    for (unsigned i = 0; text && i < w->params_len; i++) {
        const struct weir__pair *param = &w->params[i];
        if (!is_named(param, name, name_len) || param->value_len == 0)
            continue;
        if (end > text)
            end = stpcpy(end, joint);
        end = mempcpy(end, param->value, param->value_len);
    }
    if (text)
        *end = '\0';
    return text;
}

const char *weir_header(struct weir *w, const char *name)
{
    char cgi_name[CGI_NAME_BYTES];
    if (!weir__field_cgi_name(name, cgi_name, sizeof cgi_name))
        return NULL;
    const char *first = NULL, *joint = weir__field_joint(cgi_name);
    size_t cgi_name_len = strlen(cgi_name), bytes = 1;
    unsigned count = 0;
    for (unsigned i = 0; i < w->params_len; i++) {
        const struct weir__pair *param = &w->params[i];
        if (!is_named(param, cgi_name, cgi_name_len) || param->value_len == 0)
            continue;
        if (!first)
            first = param->value;
        bytes += param->value_len + 2;
        count++;
    }
    return count > 1 && joint ? joined(w, cgi_name, bytes, joint) : first;
}

const char *weir_cookie(struct weir *w, const char *name)
{
    const char *header = weir_header(w, "Cookie");
    struct weir__span value;
    if (!header ||
        weir__cookie_find(header, strlen(header), name, &value) != WEIR__COOKIE_FOUND)
        return NULL;
    return value.len > 0 ? weir__arena_copy(&w->arena, value.bytes, value.len) : NULL;
}

/* ---- the request line -------------------------------------------------------------- */

const char *weir_method(const struct weir *w)
{
    return w->method;
}

const char *weir_request_path(const struct weir *w)
{
    return w->path;
}

/* Replaces the piece of the path by its decoded text. */
static bool decode_capture(struct weir__arena *arena, struct weir__capture *capture)
{
    char *text = weir__arena_alloc(arena, (size_t)capture->text_len + 1);
    if (!text || !weir__path_decode(capture->text, capture->text_len, text))
        return false;
    capture->text = text;
    capture->text_len = (unsigned)strlen(text);
    capture->decoded = true;
    return true;
}

const char *weir_path(const struct weir *w, const char *name)
{
    size_t name_len = strlen(name);
    for (unsigned i = 0; i < w->captures_len; i++) {
        const struct weir__capture *capture = &w->captures[i];
        if (capture->name_len != name_len || memcmp(capture->name, name, name_len) != 0)
            continue;
        /* Const is a promise to the app: what it sees of the request stays the same. */
        struct weir *mutable = (struct weir *)w;
        if (!capture->decoded && !decode_capture(&mutable->arena, &mutable->captures[i]))
            return NULL;
        return capture->text;
    }
    return NULL;
}

/* A pair of a query or a form. */
static const char *
find_pair(struct weir *w, const char *text, size_t text_len, const char *name)
{
    struct weir__span raw;
    if (!weir__query_find(text, text_len, name, &raw))
        return NULL;
    char *value = weir__arena_alloc(&w->arena, raw.len + 1);
    return value && weir__query_decode(raw, value) ? value : NULL;
}

const char *weir_query(struct weir *w, const char *name)
{
    return find_pair(w, w->query, strlen(w->query), name);
}

/* ---- the body ---------------------------------------------------------------------- */

const char *weir_body(const struct weir *w, size_t *ret_len)
{
    if (ret_len)
        *ret_len = w->body_len;
    return w->body ? w->body : "";
}

/* Whether CONTENT_TYPE is that media type, with parameters or without. */
static bool is_of_type(const struct weir *w, const char *type)
{
    const char *content_type = weir_param(w, "CONTENT_TYPE");
    size_t len = strlen(type);
    if (!content_type || strncasecmp(content_type, type, len) != 0)
        return false;
    return content_type[len] == '\0' || strchr("; \t", content_type[len]);
}

const char *weir_form(struct weir *w, const char *name)
{
    if (w->body_len == 0 || !is_of_type(w, "application/x-www-form-urlencoded"))
        return NULL;
    return find_pair(w, w->body, w->body_len, name);
}

/* Counts what may begin a value, outside strings: never less than there are. */
static bool json_is_small(const char *text, size_t len)
{
    size_t values = 1;
    bool in_string = false;
    for (size_t i = 0; i < len && values <= JSON_VALUES_MAX; i++) {
        if (text[i] == '"')
            in_string = !in_string;
        else if (in_string)
            i += text[i] == '\\';
        else
            values +=
                text[i] == ',' || text[i] == ':' || text[i] == '[' || text[i] == '{';
    }
    return values <= JSON_VALUES_MAX;
}

/* The body as a JSON object, parsed once; json_null() stands for one that is none.
 * jansson itself bounds the depth, and refuses \u0000 and what isn't UTF-8. A name that
 * comes twice means different things to different readers, so nothing to us. */
static const json_t *body_object(struct weir *w)
{
    if (!w->body_json && json_is_small(w->body, w->body_len)) {
        json_error_t error;
        w->body_json = json_loadb(w->body, w->body_len, JSON_REJECT_DUPLICATES, &error);
    }
    if (!w->body_json)
        w->body_json = json_null();
    return w->body_json;
}

const char *weir_body_string(struct weir *w, const char *member)
{
    if (w->body_len == 0)
        return NULL;
    return json_string_value(json_object_get(body_object(w), member));
}

void weir__request_finish(struct weir *w)
{
    json_decref(w->body_json);
    w->body_json = NULL;
}

/* ---- who asks, and the rest -------------------------------------------------------- */

const char *weir_remote_ip(const struct weir *w)
{
    return w->remote_text;
}

const struct weir_caller *weir_caller(const struct weir *w)
{
    return &w->caller;
}

const char *weir_endpoint_pattern(const struct weir *w)
{
    return w->endpoint ? w->endpoint->pattern : NULL;
}

struct weir_worker *weir_worker(const struct weir *w)
{
    return w->worker;
}

/* A request whose answer was given over the handler's head has no client either. */
bool weir_gone(const struct weir *w)
{
    return atomic_load(&w->gone) || atomic_load(&w->dropped);
}

void *weir_alloc(struct weir *w, size_t bytes)
{
    return weir__arena_alloc(&w->arena, bytes);
}

void *weir_zalloc(struct weir *w, size_t bytes)
{
    return weir__arena_zalloc(&w->arena, bytes);
}

char *weir_printf(struct weir *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = weir__arena_printf(&w->arena, NULL, format, args);
    va_end(args);
    return text;
}
