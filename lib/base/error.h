/* Error text for people: what is wrong in a start-up table, a file or an option.
 *
 * The first error wins, so that the message names the cause and not its echo. */
#ifndef WEIR_BASE_ERROR_H
#define WEIR_BASE_ERROR_H

#include <weir/weir.h>

/* Writes the text, printf style, unless ret_error is NULL or already holds a text.
 * Always returns false, so that a check can end with `return weir__error(...)`.
 * Not for several threads on one struct. */
bool weir__error(struct weir_error *ret_error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
