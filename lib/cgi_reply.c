/* Makes the reply of a request of what a CGI program has written.
 *
 * The whole head is checked before any of it is taken over, so that a bad one leaves
 * nothing behind. Fields that are Weir's own (Status, Content-Length, those of one
 * connection) are read or dropped, never passed on as they are. */
#include "cgi_reply.h"

#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "field.h"
#include "response.h"

/* What a head says, beside its plain fields. */
struct meaning {
    int status;      /* 0: none was given */
    int64_t length;  /* of the body; -1: not given */
    unsigned fields; /* lines */
    bool content_type, location, retry_after;
    bool local; /* Location begins with one slash */
};

void weir__cgi_reply_init(struct weir__cgi_reply *reply, struct weir *w)
{
    reply->w = w;
    reply->why = NULL;
    reply->begun = reply->local = false;
    reply->body_bytes = 0;
    weir__cgi_head_init(&reply->head);
}

static bool is_named(const struct weir__pair *field, const char *name)
{
    return field->name_len == strlen(name) &&
           strncasecmp(field->name, name, field->name_len) == 0;
}

/* Three digits, and behind a blank a reason, which is not passed on (6.3.3). */
static bool read_status(const struct weir__pair *field, int *ret_status)
{
    const char *text = field->value;
    int status = 0;
    if (field->value_len < 3 || (field->value_len > 3 && text[3] != ' '))
        return false;
    for (unsigned i = 0; i < 3; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        status = status * 10 + (text[i] - '0');
    }
    if (status < 200 || status > 599)
        return false;
    *ret_status = status;
    return true;
}

static bool read_length(const struct weir__pair *field, int64_t *ret_length)
{
    char digits[24];
    if (field->value_len == 0 || field->value_len >= sizeof digits)
        return false;
    memcpy(digits, field->value, field->value_len);
    digits[field->value_len] = '\0';
    return weir__content_length_parse(digits, ret_length);
}

/* Marks a field that may stand once. False: it did already. */
static bool once(bool *seen)
{
    bool first = !*seen;
    *seen = true;
    return first;
}

/* What one field says. NULL, or why the head is bad. */
static const char *understand(const struct weir__pair *field, struct meaning *meaning)
{
    meaning->fields++;
    if (is_named(field, "Status")) {
        if (meaning->status != 0)
            return "Status stands twice";
        return read_status(field, &meaning->status) ? NULL : "Status is no status";
    }
    if (is_named(field, "Content-Length")) {
        if (meaning->length >= 0)
            return "Content-Length stands twice";
        return read_length(field, &meaning->length) ? NULL
                                                    : "Content-Length is no number";
    }
    if (is_named(field, "Content-Type"))
        return once(&meaning->content_type) ? NULL : "Content-Type stands twice";
    if (is_named(field, "Retry-After"))
        return once(&meaning->retry_after) ? NULL : "Retry-After stands twice";
    if (!is_named(field, "Location"))
        return NULL;
    meaning->local = field->value_len > 0 && field->value[0] == '/' &&
                     (field->value_len == 1 || field->value[1] != '/');
    return once(&meaning->location) ? NULL : "Location stands twice";
}

/* Reads the head without taking anything over. NULL, or why it is bad. */
static const char *check(const struct weir__cgi_head *head, struct meaning *ret_meaning)
{
    struct meaning meaning = { .length = -1 };
    struct weir__pair field;
    enum weir__cgi_line line;
    for (size_t at = 0;
         (line = weir__cgi_head_next(head, &at, &field)) != WEIR__CGI_LINE_END;) {
        const char *why = line == WEIR__CGI_LINE_BAD ? "a line of its head is no header"
                                                     : understand(&field, &meaning);
        if (why)
            return why;
    }
    /* At least one of CGI's own (6.2): else it is no CGI output. */
    if (meaning.status == 0 && !meaning.content_type && !meaning.location)
        return "its head has neither Content-Type nor Location nor Status";
    *ret_meaning = meaning;
    return NULL;
}

/* Whether an earlier line of the head has that name. */
static bool is_repeated(const struct weir__cgi_head *head, const struct weir__pair *field)
{
    struct weir__pair earlier;
    for (size_t at = 0;
         weir__cgi_head_next(head, &at, &earlier) == WEIR__CGI_LINE_FIELD &&
         earlier.name != field->name;)
        if (earlier.name_len == field->name_len &&
            strncasecmp(earlier.name, field->name, field->name_len) == 0)
            return true;
    return false;
}

/* One field becomes the response's: in place of what a filter had set, but beside an
 * earlier line of this head, and a cookie beside every other. */
static bool take_field(struct weir__cgi_reply *reply, const struct weir__pair *field)
{
    struct weir *w = reply->w;
    const char *name = weir__arena_copy(&w->arena, field->name, field->name_len);
    const char *value = weir__arena_copy(&w->arena, field->value, field->value_len);
    if (!name || !value)
        return false;
    if (field->value_len == 0 || weir__response_is_reserved(name))
        return true;
    if (is_named(field, "Set-Cookie") || is_repeated(&reply->head, field))
        return weir_add_header(w, name, value);
    return weir_set_header(w, name, value);
}

/* The head is whole. */
static void begin(struct weir__cgi_reply *reply)
{
    struct weir *w = reply->w;
    struct meaning meaning;
    struct weir__pair field;
    reply->why = check(&reply->head, &meaning);
    if (reply->why)
        return;
    for (size_t at = 0;
         weir__cgi_head_next(&reply->head, &at, &field) == WEIR__CGI_LINE_FIELD;) {
        if (!take_field(reply, &field)) {
            reply->why = "its head needs more memory than the request has";
            return;
        }
    }
    /* A Location without a Status is a redirect (6.2.3). */
    int plain = meaning.location ? 302 : 200;
    weir_set_status(w, meaning.status ? meaning.status : plain);
    w->body_length = meaning.length;
    reply->local = meaning.local && meaning.fields == 1;
    reply->begun = true;
}

/* A piece of the body, of which no more is passed on than the head has promised. */
static bool write_body(struct weir__cgi_reply *reply, const char *bytes, size_t len)
{
    struct weir *w = reply->w;
    if (len == 0)
        return true;
    size_t part = len;
    if (w->body_length >= 0 && (int64_t)part > w->body_length - reply->body_bytes)
        part = (size_t)(w->body_length - reply->body_bytes);
    reply->body_bytes += (int64_t)part;
    return weir_write(w, bytes, part);
}

bool weir__cgi_reply_write(struct weir__cgi_reply *reply, const void *bytes, size_t len)
{
    size_t used = 0;
    if (reply->why)
        return false;
    if (!reply->begun) {
        used = weir__cgi_head_feed(&reply->head, bytes, len);
        if (reply->head.state == WEIR__CGI_HEAD_TOO_LARGE)
            reply->why = "its head is larger than 8 KiB";
        else if (reply->head.state == WEIR__CGI_HEAD_WHOLE)
            begin(reply);
        if (reply->why)
            return false;
        if (!reply->begun)
            return !weir_gone(reply->w);
    }
    return write_body(reply, (const char *)bytes + used, len - used);
}

bool weir__cgi_reply_flush(struct weir__cgi_reply *reply)
{
    if (reply->why)
        return false;
    return reply->begun ? weir_flush(reply->w) : !weir_gone(reply->w);
}

/* Whether the body is as long as the head has said, where there is to be one. */
static bool is_whole(const struct weir__cgi_reply *reply)
{
    const struct weir *w = reply->w;
    return w->body_length < 0 || reply->body_bytes == w->body_length || w->head ||
           weir__status_is_bodiless(w->status);
}

static int refuse(struct weir__cgi_reply *reply, int status, const char *code)
{
    static struct weir__log_kind kind;
    struct weir *w = reply->w;
    weir__log_limited(&kind,
                      WEIR_LOG_ERROR,
                      "the program behind %s can't be answered for: %s",
                      w->endpoint ? w->endpoint->pattern : "a request",
                      reply->why);
    if (w->head_text)
        return status; /* too late: life.c breaks the reply off */
    w->body_length = -1;
    return weir_problem(w, status, code, NULL);
}

int weir__cgi_reply_end(struct weir__cgi_reply *reply)
{
    struct weir *w = reply->w;
    if (weir_gone(w))
        return 0;
    if (!reply->why && !reply->begun && reply->head.len == 0) {
        reply->why = "it wrote nothing";
        return refuse(reply, 500, "InternalError");
    }
    if (!reply->why && !reply->begun)
        reply->why = "it ended before its head did";
    if (!reply->why && !is_whole(reply))
        reply->why = "its body is shorter than its Content-Length";
    if (reply->why)
        return refuse(reply, 502, "BackendBadAnswer");
    w->local_redirect = reply->local && reply->body_bytes == 0;
    /* A program may leave out the body of a HEAD itself; how long it would have been is
     * then not known. */
    w->no_length = w->head && reply->body_bytes == 0 && w->body_length < 0;
    return 0;
}
