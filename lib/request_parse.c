/* From the parameters of a web server to method, path, query, length and address.
 *
 * What can be read in two ways is refused here, once, so that no filter and no handler
 * has to choose. Forwarding headers are not looked at: whom to believe is the identity
 * filter's. */
#include "request.h"

#include <string.h>

#include "field.h"
#include "path.h"

#define METHOD_BYTES_MAX 32
#define MARKS 512 /* bits for names seen, a power of two */

static const char *value_of(const struct weir *w, const char *name)
{
    return weir__request_param(w, name, strlen(name));
}

/* Whether a NUL cuts either text short: what stands behind it would be seen by some
 * readers only. */
static bool is_whole(const struct weir__pair *param)
{
    return !memchr(param->name, '\0', param->name_len) &&
           !memchr(param->value, '\0', param->value_len);
}

/* Whether an earlier parameter of that name has another value. Empty is absent. */
static bool is_contradicted(const struct weir *w, unsigned index)
{
    const struct weir__pair *later = &w->params[index];
    for (unsigned i = 0; i < index; i++) {
        const struct weir__pair *earlier = &w->params[i];
        if (earlier->name_len == later->name_len &&
            memcmp(earlier->name, later->name, later->name_len) == 0 &&
            earlier->value_len > 0 &&
            (earlier->value_len != later->value_len ||
             memcmp(earlier->value, later->value, later->value_len) != 0))
            return true;
    }
    return false;
}

/* A bit for a name: equal names have equal bits, so that only where a bit is taken
 * already the names have to be compared. */
static unsigned mark_of(const struct weir__pair *param)
{
    unsigned hash = param->name_len;
    for (unsigned i = 0; i < param->name_len; i++)
        hash = hash * 31 + (unsigned char)param->name[i];
    return hash % MARKS;
}

static bool check_params(const struct weir *w, const char **ret_detail)
{
    uint64_t marks[MARKS / 64] = { 0 };
    for (unsigned i = 0; i < w->params_len; i++) {
        const struct weir__pair *param = &w->params[i];
        if (!is_whole(param)) {
            *ret_detail = "A header or parameter has a NUL in it.";
            return false;
        }
        if (param->value_len == 0 || weir__field_joint(param->name))
            continue;
        unsigned mark = mark_of(param);
        uint64_t bit = UINT64_C(1) << mark % 64;
        if ((marks[mark / 64] & bit) && is_contradicted(w, i)) {
            *ret_detail = "A parameter came twice, with two values.";
            return false;
        }
        marks[mark / 64] |= bit;
    }
    return true;
}

static bool parse_method(struct weir *w, const char **ret_detail)
{
    const char *method = value_of(w, "REQUEST_METHOD");
    size_t len = method ? strlen(method) : 0;
    if (!method || len > METHOD_BYTES_MAX || !weir__field_is_token(method, len)) {
        *ret_detail = "The method is missing or malformed.";
        return false;
    }
    w->method = method;
    w->head = strcmp(method, "HEAD") == 0;
    return true;
}

static char *path_room(struct weir *w, size_t bytes)
{
    return weir__arena_alloc(&w->arena, WEIR__PATH_BYTES(bytes));
}

/* Fills in path and, from a URI, query. Returns why it is a 400, or NULL. */
static const char *
normalise(struct weir *w, const char **ret_path, const char **ret_query)
{
    const char *uri = value_of(w, "REQUEST_URI"), *why = "The path is too long.";
    const char *script_name = value_of(w, "SCRIPT_NAME");
    const char *path_info = value_of(w, "PATH_INFO");
    script_name = script_name ? script_name : "";
    path_info = path_info ? path_info : "";
    char *path =
        path_room(w, uri ? strlen(uri) : strlen(script_name) + strlen(path_info));
    if (path && uri)
        why = weir__path_from_uri(uri, strlen(uri), path, ret_query);
    else if (path)
        why = weir__path_from_cgi(script_name, path_info, path);
    *ret_path = path;
    return why;
}

/* Whether weir_path() will find text in every segment. */
static bool is_text(struct weir *w, const char *path)
{
    if (!strchr(path, '%'))
        return true;
    size_t len = strlen(path);
    char *decoded = weir__arena_alloc(&w->arena, len + 1);
    return decoded && weir__path_decode(path, len, decoded);
}

static bool parse_target(struct weir *w, const char **ret_detail)
{
    const char *path, *query = "", *why = normalise(w, &path, &query);
    if (!why && !is_text(w, path))
        why = "The path is not UTF-8.";
    if (why) {
        *ret_detail = why;
        return false;
    }
    const char *declared = value_of(w, "QUERY_STRING");
    w->path = path;
    w->query = declared ? declared : query;
    return true;
}

static bool parse_length(struct weir *w, const char **ret_detail)
{
    if (!weir__content_length_parse(value_of(w, "CONTENT_LENGTH"), &w->content_length)) {
        *ret_detail = "The content length is malformed.";
        return false;
    }
    return true;
}

/* The peer of the web server. Anything but an address ("unix:", "@") is none. */
static void parse_remote(struct weir *w)
{
    const char *text = value_of(w, "REMOTE_ADDR");
    struct weir__addr addr;
    if (!text || !weir__addr_parse(text, strlen(text), WEIR__ADDR_ZONE_ALLOWED, &addr))
        return;
    w->remote = addr;
    weir__addr_text(&addr, w->remote_text);
}

bool weir__request_parse(struct weir *w, const char **ret_detail)
{
    /* Each is read even where an earlier one is malformed: a 400 has a caller and a
     * method too. The first fault is told. */
    const char *details[4] = { NULL };
    parse_remote(w);
    bool ok = check_params(w, &details[0]);
    ok = parse_method(w, &details[1]) && ok;
    ok = parse_target(w, &details[2]) && ok;
    ok = parse_length(w, &details[3]) && ok;
    for (unsigned i = 0; !ok && i < 4; i++) {
        if (details[i]) {
            *ret_detail = details[i];
            break;
        }
    }
    return ok;
}
