/* Header fields: their grammar (RFC 9110 section 5) and their CGI names (RFC 3875).
 *
 * Pure; any thread. */
#ifndef WEIR_FIELD_H
#define WEIR_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A token (RFC 9110 section 5.6.2): what a field's name must be. Not empty. */
bool weir__field_is_token(const char *text, size_t len);

/* A field's value (5.5): no control character but a tab inside, no blank or tab at either
 * end. May be empty, and may hold bytes from 0x80 on. */
bool weir__field_is_value(const char *text, size_t len);

/* Writes the CGI name of a header: "User-Agent" is HTTP_USER_AGENT, but "Content-Type"
 * and "Content-Length" are CONTENT_TYPE and CONTENT_LENGTH. False where name is no token
 * or the result doesn't fit into size bytes with its NUL. */
bool weir__field_cgi_name(const char *name, char *ret_cgi_name, size_t size);

/* What stands between the values of a parameter that came more than once: "; " for
 * HTTP_COOKIE (RFC 9113 section 8.2.3), ", " for the other HTTP_ names (RFC 3875 section
 * 4.1.18); NULL for names that may not repeat. */
const char *weir__field_joint(const char *cgi_name);

/* Reads CONTENT_LENGTH (RFC 3875 section 4.1.2): up to 18 digits; NULL or empty is none,
 * -1. False for anything else: a sign, a blank, a list, hex. */
bool weir__content_length_parse(const char *text, int64_t *ret_bytes);

#endif
