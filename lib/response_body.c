/* The app's calls on the body of what goes out, and whole answers.
 *
 * Only the body of a handler that may block leaves from here, a piece at a time; all
 * others are collected until the chain is through. */
#include "response.h"

#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#include "base/log.h"
#include "life.h"

/* ---- the body ---------------------------------------------------------------------- */

/* A non-blocking handler must not wait for its client, so that its body is collected like
 * a hook's. */
static bool may_send(const struct weir *w)
{
    return w->in_handler && !w->nonblocking;
}

/* Hands to the transport what there is, the head first. */
static bool push(struct weir *w)
{
    if (!w->head_text && !weir__life_commit_now(w))
        return false;
    if (w->head || weir__status_is_bodiless(w->status))
        w->out.len = 0;
    size_t bytes = w->out.len;
    if (weir_gone(w) || !w->transport->send(w))
        return false;
    w->sent_bytes += bytes;
    return true;
}

bool weir_write(struct weir *w, const void *bytes, size_t len)
{
    if (weir_gone(w) || w->sealed)
        return false;
    if (w->head_text && !w->in_handler)
        return weir__response_is_open(w);
    if (!may_send(w))
        return weir__buf_append(&w->out, bytes, len);
    const char *from = bytes;
    while (len > 0) {
        size_t room =
            w->out.len < WEIR__OUT_HIGH_WATER ? WEIR__OUT_HIGH_WATER - w->out.len : 0;
        size_t part = len < room ? len : room;
        if (!weir__buf_append(&w->out, from, part))
            return false;
        from += part;
        len -= part;
        if (w->out.len >= WEIR__OUT_HIGH_WATER && !push(w))
            return false;
    }
    return true;
}

bool weir_flush(struct weir *w)
{
    return may_send(w) && !weir_gone(w) && !w->sealed && push(w);
}

/* ---- whole answers ----------------------------------------------------------------- */

int weir__response_end(struct weir *w, int status, bool written)
{
    if (written || w->head_text || weir_gone(w))
        return status;
    return weir_problem(w, 500, "InternalError", NULL);
}

static int answer(struct weir *w, int status, const char *content_type, const char *body)
{
    bool written = weir__response_begin(w, status, content_type) &&
                   weir_write(w, body, strlen(body));
    return weir__response_end(w, status, written);
}

int weir_text(struct weir *w, int status, const char *text)
{
    return answer(w, status, "text/plain; charset=utf-8", text);
}

int weir_html(struct weir *w, int status, const char *html)
{
    return answer(w, status, "text/html; charset=utf-8", html);
}

static int write_piece(const char *bytes, size_t len, void *w)
{
    return weir_write(w, bytes, len) ? 0 : -1;
}

int weir_json(struct weir *w, int status, const char *format, ...)
{
    static struct weir__log_kind bad_format;
    json_error_t error;
    va_list args;
    va_start(args, format);
    json_t *value = json_vpack_ex(&error, 0, format, args);
    va_end(args);
    if (!value)
        weir__log_limited(&bad_format,
                          WEIR_LOG_ERROR,
                          "weir_json \"%s\" in %s: %s",
                          format,
                          w->endpoint ? w->endpoint->pattern : "a filter",
                          error.text);
    bool written =
        value && weir__response_begin(w, status, "application/json") &&
        json_dump_callback(value, write_piece, w, JSON_COMPACT | JSON_ENCODE_ANY) == 0;
    json_decref(value);
    return weir__response_end(w, status, written);
}
