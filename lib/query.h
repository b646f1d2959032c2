/* Finding a value in a query string or a form body (application/x-www-form-urlencoded,
 * WHATWG URL Standard section 5.1, but strict). */
#ifndef WEIR_QUERY_H
#define WEIR_QUERY_H

#include <stdbool.h>

#include "base/span.h"

/* Finds the first pair whose name, decoded, is exactly name; *ret_value is its raw value,
 * empty where it has no `=`. Pairs with badly coded names are passed over. False where
 * there is none. Pure; any thread. */
bool weir__query_find(const char *query,
                      size_t query_len,
                      const char *name,
                      struct weir__span *ret_value);

/* Decodes a raw value: `+` is a blank, %XX a byte. ret_text needs raw.len + 1 bytes and
 * is NUL-ended. False (ret_text then holds nothing of use) for a `%` without two hex
 * digits, a NUL, or what isn't UTF-8. Pure; any thread. */
bool weir__query_decode(struct weir__span raw, char *ret_text);

#endif
