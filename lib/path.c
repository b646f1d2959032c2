/* The path normaliser: one pass that codes, then one that merges and resolves segments.
 *
 * Both happen in the caller's buffer. The order matters: unreserved characters are
 * decoded before dots are looked at (/%2e%2e/), parameters are cut before it too
 * (/..;x/), and nothing is decoded twice (%252e stays). This file must not know routes or
 * rules. */
#include "path.h"

#include "base/hex.h"
#include "base/utf8.h"

#include <string.h>

static bool is_unreserved(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte && strchr("-._~", byte));
}

/* What may stand raw in a segment (pchar, RFC 3986 section 3.3), and the slash between
 * them. The semicolon is missing: it never gets as far. */
static bool is_plain(unsigned char byte)
{
    return is_unreserved(byte) || (byte && strchr("/!$&'()*+,=:@", byte));
}

static bool is_control(unsigned char byte)
{
    return byte < 0x20 || byte == 0x7f;
}

static char *put_coded(char *to, unsigned char byte)
{
    static const char hex[] = "0123456789ABCDEF";
    to[0] = '%';
    to[1] = hex[byte >> 4];
    to[2] = hex[byte & 15];
    return to + 3;
}

/* Codes the %XX at text. *ret_error is set where it is a 400. */
static char *
put_triplet(char *to, const char *text, const char *end, const char **ret_error)
{
    int byte = weir__percent_value(text, end);
    if (byte < 0)
        *ret_error = "The path has a % without two hexadecimal digits behind it.";
    else if (byte == 0 || byte == '/')
        *ret_error = "The path has a coded slash or NUL in it.";
    else if (is_unreserved((unsigned char)byte))
        *to++ = (char)byte;
    else
        to = put_coded(to, (unsigned char)byte);
    return to;
}

/* Copies a path from a URI, coded as it must be, parameters cut; returns its end. */
static char *code_uri(char *to, const char *text, const char *end, const char **ret_error)
{
    bool in_parameter = false;
    while (text < end && !*ret_error) {
        unsigned char byte = (unsigned char)*text;
        char *from = to;
        if (is_control(byte))
            *ret_error = "The path has a control character in it.";
        else if (byte == '#')
            *ret_error = "The path has a # in it.";
        else if (byte == '%')
            to = put_triplet(to, text, end, ret_error);
        else if (is_plain(byte))
            *to++ = (char)byte;
        else if (byte != ';')
            to = put_coded(to, byte);
        in_parameter = byte == ';' || (in_parameter && byte != '/');
        if (in_parameter)
            to = from;
        text += byte == '%' ? 3 : 1;
    }
    return to;
}

/* The same for text that the server has decoded already. */
static char *code_decoded(char *to, const char *text)
{
    bool in_parameter = false;
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        in_parameter = byte == ';' || (in_parameter && byte != '/');
        if (in_parameter)
            continue;
        if (is_plain(byte))
            *to++ = (char)byte;
        else
            to = put_coded(to, byte);
    }
    return to;
}

/* Merges slashes, resolves dot segments and drops a trailing slash, in place: what is
 * written never overtakes what is read. The path starts with a slash. */
static void resolve(char *path, const char *end)
{
    const char *from = path;
    char *to = path;
    while (from < end) {
        while (from < end && *from == '/')
            from++;
        const char *segment = from;
        while (from < end && *from != '/')
            from++;
        size_t len = (size_t)(from - segment);
        if (len == 0 || (len == 1 && segment[0] == '.'))
            continue;
        if (len == 2 && segment[0] == '.' && segment[1] == '.') {
            while (to > path && *--to != '/')
                ;
            continue;
        }
        *to++ = '/';
        memmove(to, segment, len);
        to += len;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

/* Where the path starts: behind scheme and authority in absolute-form, else at the start.
 * NULL where the target has neither form. end is that of the path. */
static const char *path_start(const char *uri, const char *end)
{
    if (uri == end || *uri == '/')
        return uri;
    const char *at = uri;
    while (at < end && (is_unreserved((unsigned char)*at) || *at == '+'))
        at++;
    if (at == uri || end - at < 3 || memcmp(at, "://", 3) != 0)
        return NULL;
    const char *slash = memchr(at + 3, '/', (size_t)(end - at) - 3);
    return slash ? slash : end;
}

const char *
weir__path_from_uri(const char *uri, size_t len, char *ret_path, const char **ret_query)
{
    const char *error = NULL;
    const char *question = memchr(uri, '?', len);
    const char *end = question ? question : uri + len;
    const char *start = path_start(uri, end);
    if (!start)
        return "The request target is not a path.";
    ret_path[0] = '/';
    char *path_end = code_uri(ret_path + 1, start, end, &error);
    if (error)
        return error;
    resolve(ret_path, path_end);
    *ret_query = question ? question + 1 : uri + len;
    return NULL;
}

const char *
weir__path_from_cgi(const char *script_name, const char *path_info, char *ret_path)
{
    const char *first = *script_name ? script_name : path_info;
    if (*first && *first != '/')
        return "The script name is not a path.";
    ret_path[0] = '/';
    char *end = code_decoded(ret_path + 1, script_name);
    end = code_decoded(end, path_info);
    resolve(ret_path, end);
    return NULL;
}

bool weir__path_decode(const char *piece, size_t len, char *ret_text)
{
    const char *end = piece + len;
    char *to = ret_text;
    while (piece < end) {
        if (*piece != '%') {
            *to++ = *piece++;
            continue;
        }
        int byte = weir__percent_value(piece, end);
        if (byte < 0)
            return false;
        *to++ = (char)byte;
        piece += 3;
    }
    *to = '\0';
    size_t text_len = (size_t)(to - ret_text);
    return !memchr(ret_text, '\0', text_len) && weir__utf8_is_valid(ret_text, text_len);
}
