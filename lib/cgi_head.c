/* Collects a CGI head and takes its lines apart. One form of a line is taken, token,
 * colon, value: what two readers could read in two ways is no field.
 *
 * Gives no meaning to any name. */
#include "cgi_head.h"

#include <string.h>

#include "field.h"

void weir__cgi_head_init(struct weir__cgi_head *head)
{
    memset(head, 0, offsetof(struct weir__cgi_head, bytes));
}

/* The line under way, which has just got its LF, is empty. */
static bool is_empty_line(const struct weir__cgi_head *head)
{
    size_t len = head->len - 1 - head->line;
    return len == 0 || (len == 1 && head->bytes[head->line] == '\r');
}

size_t weir__cgi_head_feed(struct weir__cgi_head *head, const char *bytes, size_t len)
{
    size_t used = 0;
    while (used < len && head->state == WEIR__CGI_HEAD_OPEN) {
        const char *lf = memchr(bytes + used, '\n', len - used);
        size_t part = lf ? (size_t)(lf - bytes) + 1 - used : len - used;
        if (part > sizeof head->bytes - head->len) {
            head->state = WEIR__CGI_HEAD_TOO_LARGE;
            break;
        }
        memcpy(head->bytes + head->len, bytes + used, part);
        head->len += part;
        used += part;
        if (lf && is_empty_line(head))
            head->state = WEIR__CGI_HEAD_WHOLE;
        else if (lf)
            head->line = head->len;
    }
    return used;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Takes a line without its end apart. */
static bool split(const char *line, size_t len, struct weir__pair *ret_field)
{
    const char *colon = memchr(line, ':', len);
    size_t name_len = colon ? (size_t)(colon - line) : 0;
    if (!colon || !weir__field_is_token(line, name_len))
        return false;
    const char *value = colon + 1, *end = line + len;
    while (value < end && is_blank(*value))
        value++;
    while (end > value && is_blank(end[-1]))
        end--;
    if (!weir__field_is_value(value, (size_t)(end - value)))
        return false;
    *ret_field = (struct weir__pair){ .name = line,
                                      .value = value,
                                      .name_len = (unsigned)name_len,
                                      .value_len = (unsigned)(end - value) };
    return true;
}

enum weir__cgi_line weir__cgi_head_next(const struct weir__cgi_head *head,
                                        size_t *at,
                                        struct weir__pair *ret_field)
{
    if (*at >= head->line)
        return WEIR__CGI_LINE_END;
    const char *line = head->bytes + *at;
    const char *lf = memchr(line, '\n', head->len - *at);
    size_t len = (size_t)(lf - line);
    *at += len + 1;
    if (len > 0 && line[len - 1] == '\r')
        len--;
    return split(line, len, ret_field) ? WEIR__CGI_LINE_FIELD : WEIR__CGI_LINE_BAD;
}
