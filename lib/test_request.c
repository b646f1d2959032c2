/* Plays the web server: what a request line, headers and a body are as CGI parameters.
 *
 * Nothing is judged here: a test must be able to send what a server would not. */
#include "test_request.h"

#include <stdio.h>
#include <string.h>

#include "field.h"

#define CGI_NAME_BYTES 256
#define PARAMS_OF_OURS 16

struct builder {
    struct weir__arena *arena;
    struct weir__pair *params;
    unsigned len, capacity;
    const char *error; /* the first one */
};

static unsigned count_lines(const char *text)
{
    unsigned lines = text ? 1 : 0;
    for (; text && *text; text++)
        lines += *text == '\n';
    return lines;
}

static void add(struct builder *to,
                const char *name,
                size_t name_len,
                const char *value,
                size_t value_len)
{
    const char *name_copy = weir__arena_copy(to->arena, name, name_len);
    const char *value_copy = weir__arena_copy(to->arena, value, value_len);
    if (to->len == to->capacity || !name_copy || !value_copy) {
        to->error = "out of memory";
        return;
    }
    to->params[to->len++] = (struct weir__pair){ .name = name_copy,
                                                 .value = value_copy,
                                                 .name_len = (unsigned)name_len,
                                                 .value_len = (unsigned)value_len };
}

/* What follows from the request, unless the test has said otherwise. */
static void add_default(struct builder *to, const char *name, const char *value)
{
    for (unsigned i = 0; i < to->len; i++) {
        if (strcmp(to->params[i].name, name) == 0)
            return;
    }
    add(to, name, strlen(name), value, strlen(value));
}

/* Lines of a name, a separator and a value. */
static void add_lines(struct builder *to,
                      const char *lines,
                      char separator,
                      void (*add_line)(struct builder *to,
                                       const char *name,
                                       size_t name_len,
                                       const char *value,
                                       size_t value_len))
{
    while (lines && *lines && !to->error) {
        size_t len = strcspn(lines, "\n");
        const char *middle = memchr(lines, separator, len);
        if (middle)
            add_line(to,
                     lines,
                     (size_t)(middle - lines),
                     middle + 1,
                     len - (size_t)(middle - lines) - 1);
        else if (len > 0)
            to->error = separator == ':' ? "a header line has no colon"
                                         : "a parameter has no equals sign";
        lines += len + (lines[len] == '\n');
    }
}

/* A header under its CGI name. */
static void add_header(struct builder *to,
                       const char *name,
                       size_t name_len,
                       const char *value,
                       size_t value_len)
{
    char http_name[CGI_NAME_BYTES], cgi_name[CGI_NAME_BYTES];
    snprintf(http_name, sizeof http_name, "%.*s", (int)name_len, name);
    if (name_len >= sizeof http_name ||
        !weir__field_cgi_name(http_name, cgi_name, sizeof cgi_name)) {
        to->error = "a header's name is no token";
        return;
    }
    for (; value_len > 0 && *value == ' '; value_len--)
        value++;
    add(to, cgi_name, strlen(cgi_name), value, value_len);
}

static void add_request_line(struct builder *to, const struct weir_test_request *request)
{
    const char *target = request->target ? request->target : "/";
    const char *query = strchr(target, '?');
    const char *method = request->body && !request->authorizer ? "POST" : "GET";
    add_default(to, "REQUEST_METHOD", request->method ? request->method : method);
    add_default(to, "REQUEST_URI", target);
    add_default(to, "QUERY_STRING", query ? query + 1 : "");
    add_default(to, "SERVER_PROTOCOL", "HTTP/1.1");
    add_default(to, "GATEWAY_INTERFACE", "CGI/1.1");
    add_default(to, "SERVER_NAME", "localhost");
    add_default(to, "SERVER_PORT", "80");
    add_default(to, "REMOTE_ADDR", "127.0.0.1");
}

const char *weir__test_params(const struct weir_test_request *request,
                              size_t body_len,
                              struct weir__arena *arena,
                              struct weir__pair **ret_params,
                              unsigned *ret_params_len)
{
    unsigned capacity =
        PARAMS_OF_OURS + count_lines(request->headers) + count_lines(request->params);
    struct builder to = { .arena = arena, .capacity = capacity };
    to.params = weir__arena_alloc(arena, capacity * sizeof to.params[0]);
    if (!to.params)
        return "out of memory";
    add_lines(&to, request->params, '=', add);
    add_request_line(&to, request);
    add_lines(&to, request->headers, ':', add_header);
    if (request->body && !request->authorizer) {
        char length[24];
        snprintf(length, sizeof length, "%zu", body_len);
        add_default(&to, "CONTENT_LENGTH", length);
        const char *text = request->body;
        bool json = body_len > 0 && (text[0] == '{' || text[0] == '[');
        add_default(&to,
                    "CONTENT_TYPE",
                    json ? "application/json" : "application/x-www-form-urlencoded");
    }
    if (to.error)
        return to.error;
    *ret_params = to.params;
    *ret_params_len = to.len;
    return NULL;
}
