/* Numbers as text without printf, which is slow for what it does here: each request
 * writes some ten of them. */
#ifndef WEIR_BASE_DECIMAL_H
#define WEIR_BASE_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

#define WEIR__DECIMAL_BYTES 21 /* for any number, with its NUL */

/* Writes the digits and a NUL; returns how many digits. Any thread. */
size_t weir__decimal(uint64_t number, char *ret_text);

#endif
