/* What a header field may be, and what CGI calls it. Checks only: a value that fails is
 * refused by the caller, never mended, since mended is how headers get smuggled. */
#include "field.h"

#include <string.h>

static bool is_alphanumeric(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9');
}

bool weir__field_is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_alphanumeric(text[i]) &&
            (text[i] == '\0' || !strchr("!#$%&'*+-.^_`|~", text[i])))
            return false;
    return len > 0;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

bool weir__field_is_value(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
            return false;
    }
    return len == 0 || (!is_blank(text[0]) && !is_blank(text[len - 1]));
}

bool weir__field_cgi_name(const char *name, char *ret_cgi_name, size_t size)
{
    char cgi[256] = "HTTP_";
    const size_t prefix = sizeof "HTTP_" - 1, room = sizeof cgi - sizeof "HTTP_";
    size_t len = strlen(name);
    if (len > room || !weir__field_is_token(name, len))
        return false;
    for (size_t i = 0; i < len; i++) {
        char byte = name[i];
        if (byte >= 'a' && byte <= 'z')
            byte = (char)(byte - 'a' + 'A');
        cgi[prefix + i] = byte == '-' ? '_' : byte;
    }
    const char *whole = cgi;
    if (strcmp(cgi + prefix, "CONTENT_TYPE") == 0 ||
        strcmp(cgi + prefix, "CONTENT_LENGTH") == 0)
        whole = cgi + prefix; /* RFC 3875 sections 4.1.2, 4.1.3: these have no prefix */
    size_t whole_len = strlen(whole);
    if (whole_len >= size)
        return false;
    memcpy(ret_cgi_name, whole, whole_len + 1);
    return true;
}

const char *weir__field_joint(const char *cgi_name)
{
    if (strcmp(cgi_name, "HTTP_COOKIE") == 0)
        return "; ";
    return strncmp(cgi_name, "HTTP_", 5) == 0 ? ", " : NULL;
}

bool weir__content_length_parse(const char *text, int64_t *ret_bytes)
{
    if (!text || !*text) {
        *ret_bytes = -1;
        return true;
    }
    if (strlen(text) > 18) /* 10^18 - 1 fits into an int64_t */
        return false;
    int64_t bytes = 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        bytes = bytes * 10 + (*text - '0');
    }
    *ret_bytes = bytes;
    return true;
}
