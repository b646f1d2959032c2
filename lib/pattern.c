/* Reads patterns. A literal must be written as the normalised path of a request has it,
 * since an endpoint that no request can reach is a mistake; the message then says how.
 *
 * Nothing here matches anything: that is router.c. */
#include "pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "field.h"
#include "path.h"

#define LITERAL_MAX 255 /* bytes of one segment */

static bool is_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char byte = text[i];
        bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        if (!letter && !(byte >= '0' && byte <= '9') && byte != '_')
            return false;
    }
    return len > 0;
}

static bool
parse_method(const char *pattern, struct weir__span *ret, struct weir_error *ret_error)
{
    size_t len = strcspn(pattern, " ");
    bool upper = true;
    for (size_t i = 0; i < len; i++)
        upper = upper && !(pattern[i] >= 'a' && pattern[i] <= 'z');
    if (!weir__field_is_token(pattern, len) || !upper)
        return weir__error(
            ret_error,
            "endpoint \"%s\": begins with no method: write GET, POST, ... or "
            "* for any, in upper case",
            pattern);
    if (pattern[len] != ' ' || pattern[len + 1] != '/')
        return weir__error(ret_error,
                           "endpoint \"%s\": after the method come one blank and a path "
                           "that begins with /",
                           pattern);
    *ret = (struct weir__span){ pattern, len };
    return true;
}

static bool
check_literal(const char *pattern, struct weir__span text, struct weir_error *ret)
{
    if (text.len == 0)
        return weir__error(
            ret,
            "endpoint \"%s\": the path has an empty segment; it ends without "
            "a slash",
            pattern);
    if (text.len > LITERAL_MAX)
        return weir__error(ret, "endpoint \"%s\": a segment is too long", pattern);
    for (size_t i = 0; i < text.len; i++) {
        if (strchr("{}*", text.bytes[i]))
            return weir__error(ret,
                               "endpoint \"%s\": { } and * stand for whole segments: "
                               "/{name}/, or /* at the end",
                               pattern);
    }
    char slashed[LITERAL_MAX + 2] = "/", normal[WEIR__PATH_BYTES(LITERAL_MAX + 1)];
    const char *query, *why;
    memcpy(slashed + 1, text.bytes, text.len);
    why = weir__path_from_uri(slashed, text.len + 1, normal, &query);
    if (why)
        return weir__error(ret, "endpoint \"%s\": %s", pattern, why);
    if (strlen(normal) != text.len + 1 || memcmp(normal, slashed, text.len + 1) != 0)
        return weir__error(ret,
                           "endpoint \"%s\": no request matches \"%s\", since paths are "
                           "normalised: it is \"%s\"",
                           pattern,
                           slashed,
                           normal);
    return true;
}

/* The kind and text of the segment of len bytes at `text`. */
static bool parse_segment(const char *pattern,
                          const char *text,
                          size_t len,
                          struct weir__segment *ret,
                          struct weir_error *ret_error)
{
    struct weir__span span = { text, len };
    enum weir__segment_kind kind = WEIR__SEGMENT_LITERAL;
    if (len == 1 && text[0] == '*') {
        if (text[1] != '\0')
            return weir__error(
                ret_error, "endpoint \"%s\": * is not the last segment", pattern);
        kind = WEIR__SEGMENT_REST;
    } else if (len >= 2 && text[0] == '{' && text[len - 1] == '}') {
        span = (struct weir__span){ text + 1, len - 2 };
        if (!is_name(span.bytes, span.len))
            return weir__error(ret_error,
                               "endpoint \"%s\": {%.*s} needs a name of letters, digits "
                               "and _",
                               pattern,
                               (int)span.len,
                               span.bytes);
        kind = WEIR__SEGMENT_NAME;
    } else if (!check_literal(pattern, span, ret_error)) {
        return false;
    }
    *ret = (struct weir__segment){ kind, span };
    return true;
}

/* Names that capture must differ, and there is room for so many of them. */
static bool check_captures(const char *pattern,
                           const struct weir__pattern *parsed,
                           struct weir_error *ret_error)
{
    unsigned captures = 0;
    for (unsigned i = 0; i < parsed->segments_len; i++) {
        const struct weir__segment *one = &parsed->segments[i];
        captures += one->kind != WEIR__SEGMENT_LITERAL;
        for (unsigned j = 0; j < i && one->kind == WEIR__SEGMENT_NAME; j++) {
            const struct weir__segment *two = &parsed->segments[j];
            if (two->kind == WEIR__SEGMENT_NAME && two->text.len == one->text.len &&
                memcmp(two->text.bytes, one->text.bytes, one->text.len) == 0)
                return weir__error(ret_error,
                                   "endpoint \"%s\": the name {%.*s} stands twice",
                                   pattern,
                                   (int)one->text.len,
                                   one->text.bytes);
        }
    }
    if (captures > WEIR__CAPTURES_MAX)
        return weir__error(ret_error,
                           "endpoint \"%s\": more than %d names",
                           pattern,
                           WEIR__CAPTURES_MAX);
    return true;
}

bool weir__pattern_parse(const char *pattern,
                         struct weir__pattern *ret_pattern,
                         struct weir_error *ret_error)
{
    struct weir__pattern parsed = { .segments_len = 0 };
    if (!parse_method(pattern, &parsed.method, ret_error))
        return false;
    const char *at = pattern + parsed.method.len + 1; /* at a slash */
    while (at[0] == '/' && !(parsed.segments_len == 0 && at[1] == '\0')) {
        size_t len = strcspn(at + 1, "/");
        if (parsed.segments_len == WEIR__PATTERN_SEGMENTS_MAX)
            return weir__error(ret_error,
                               "endpoint \"%s\": more than %d segments",
                               pattern,
                               WEIR__PATTERN_SEGMENTS_MAX);
        if (!parse_segment(
                pattern, at + 1, len, &parsed.segments[parsed.segments_len++], ret_error))
            return false;
        at += 1 + len;
    }
    if (!check_captures(pattern, &parsed, ret_error))
        return false;
    *ret_pattern = parsed;
    return true;
}
