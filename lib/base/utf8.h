/* UTF-8 (RFC 3629): is it any? */
#ifndef WEIR_BASE_UTF8_H
#define WEIR_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Whether all of text is UTF-8: no overlong form, no surrogate, nothing over U+10FFFF, no
 * character cut at the end. NUL counts as a character. Pure; any thread. */
bool weir__utf8_is_valid(const char *text, size_t len);

#endif
