/* Builds the head of a CGI response (RFC 3875 section 6.3): Status first, since
 * lighttpd's authorizer drops what stands before it, then the CGI fields, then the
 * others; CR LF throughout.
 *
 * Every field was checked when it was set; nothing is checked, dropped or mended here. */
#include "response.h"

#include <string.h>
#include <strings.h>

#include "base/decimal.h"

#define DEFAULT_TYPE "text/plain; charset=utf-8"
#define UNKNOWN_PHRASE "Unknown Status"

/* By class and number within it. */
static const char *const phrases[6][52] = {
    [2] = { [0] = "OK",
            [1] = "Created",
            [2] = "Accepted",
            [3] = "Non-Authoritative Information",
            [4] = "No Content",
            [5] = "Reset Content",
            [6] = "Partial Content",
            [7] = "Multi-Status",
            [8] = "Already Reported",
            [26] = "IM Used" },
    [3] = { [0] = "Multiple Choices",
            [1] = "Moved Permanently",
            [2] = "Found",
            [3] = "See Other",
            [4] = "Not Modified",
            [5] = "Use Proxy",
            [7] = "Temporary Redirect",
            [8] = "Permanent Redirect" },
    [4] = { [0] = "Bad Request",
            [1] = "Unauthorized",
            [2] = "Payment Required",
            [3] = "Forbidden",
            [4] = "Not Found",
            [5] = "Method Not Allowed",
            [6] = "Not Acceptable",
            [7] = "Proxy Authentication Required",
            [8] = "Request Timeout",
            [9] = "Conflict",
            [10] = "Gone",
            [11] = "Length Required",
            [12] = "Precondition Failed",
            [13] = "Content Too Large",
            [14] = "URI Too Long",
            [15] = "Unsupported Media Type",
            [16] = "Range Not Satisfiable",
            [17] = "Expectation Failed",
            [21] = "Misdirected Request",
            [22] = "Unprocessable Content",
            [23] = "Locked",
            [24] = "Failed Dependency",
            [25] = "Too Early",
            [26] = "Upgrade Required",
            [28] = "Precondition Required",
            [29] = "Too Many Requests",
            [31] = "Request Header Fields Too Large",
            [51] = "Unavailable For Legal Reasons" },
    [5] = { [0] = "Internal Server Error",
            [1] = "Not Implemented",
            [2] = "Bad Gateway",
            [3] = "Service Unavailable",
            [4] = "Gateway Timeout",
            [5] = "HTTP Version Not Supported",
            [6] = "Variant Also Negotiates",
            [7] = "Insufficient Storage",
            [8] = "Loop Detected",
            [11] = "Network Authentication Required" },
};

const char *weir__status_phrase(int status)
{
    if (status < 200 || status > 599 || status % 100 > 51)
        return "";
    const char *phrase = phrases[status / 100][status % 100];
    return phrase ? phrase : "";
}

bool weir__status_is_bodiless(int status)
{
    return status == 204 || status == 304;
}

static char *put_field(char *to, const char *name, const char *value)
{
    return stpcpy(stpcpy(stpcpy(stpcpy(to, name), ": "), value), "\r\n");
}

/* CGI's own fields go before the others, each once. */
static bool is_cgi_field(const struct weir__pair *field)
{
    return strcasecmp(field->name, "Content-Type") == 0 ||
           strcasecmp(field->name, "Location") == 0;
}

static char *put_fields(char *to, const struct weir *w, bool cgi_fields)
{
    for (unsigned i = 0; i < w->fields_len; i++) {
        if (is_cgi_field(&w->fields[i]) == cgi_fields)
            to = put_field(to, w->fields[i].name, w->fields[i].value);
    }
    return to;
}

static char *put_length(char *to, uint64_t length)
{
    char digits[WEIR__DECIMAL_BYTES];
    weir__decimal(length, digits);
    return put_field(to, "Content-Length", digits);
}

/* Room for the head whatever it says. */
static size_t head_bytes(const struct weir *w)
{
    size_t bytes = sizeof "Status: 000 Request Header Fields Too Large\r\n" +
                   sizeof "Content-Type: " DEFAULT_TYPE "\r\n" +
                   sizeof "Content-Length: 18446744073709551615\r\n\r\n";
    for (unsigned i = 0; i < w->fields_len; i++)
        bytes += w->fields[i].name_len + w->fields[i].value_len + strlen(": \r\n");
    return bytes;
}

/* The length that the head is to say; -1: none. */
static int64_t length_of(const struct weir *w, bool whole)
{
    if (w->no_length || weir__status_is_bodiless(w->status))
        return -1;
    if (!whole || (w->head && w->out.len == 0 && w->body_length >= 0))
        return w->body_length;
    return (int64_t)w->out.len;
}

/* A redirect within the web server is one only while it says nothing else (RFC 3875
 * section 6.2.2). A cookie weighs more: with it the client is redirected. */
static bool is_local_redirect(const struct weir *w)
{
    return w->local_redirect && w->status == 302 && w->out.len == 0 &&
           !weir_response_header(w, "Set-Cookie");
}

bool weir__response_build_head(struct weir *w, bool whole)
{
    if (w->status == 0)
        w->status = 200;
    char *head = weir__arena_alloc(&w->arena, head_bytes(w));
    if (!head)
        return false;
    if (is_local_redirect(w)) {
        char *last = put_fields(head, w, true);
        w->head_text = head;
        w->head_len = (size_t)(stpcpy(last, "\r\n") - head);
        return true;
    }
    const char *phrase = weir__status_phrase(w->status);
    bool bodiless = weir__status_is_bodiless(w->status);
    char *end = stpcpy(head, "Status: ");
    end += weir__decimal((uint64_t)w->status, end); /* three digits: 200 to 599 */
    end = stpcpy(stpcpy(end, " "), *phrase ? phrase : UNKNOWN_PHRASE);
    end = stpcpy(end, "\r\n");
    if (!bodiless && (w->out.len > 0 || !whole) &&
        !weir_response_header(w, "Content-Type"))
        end = put_field(end, "Content-Type", DEFAULT_TYPE);
    end = put_fields(end, w, true);
    int64_t length = length_of(w, whole);
    if (length >= 0)
        end = put_length(end, (uint64_t)length);
    end = put_fields(end, w, false);
    end = stpcpy(end, "\r\n");
    w->head_text = head;
    w->head_len = (size_t)(end - head);
    return true;
}
