/* Counts, sizes and times as people write them on a command line.
 *
 * Pure; any thread. Nothing is guessed: no sign, no blank, no fraction, and a time has
 * its unit. */
#ifndef WEIR_PROCESS_UNITS_H
#define WEIR_PROCESS_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir__unit {
    WEIR__UNIT_COUNT, /* "12" */
    WEIR__UNIT_BYTES, /* "512", "64k", "1M", "2G": powers of 1,024 */
    WEIR__UNIT_TIME   /* "200ms", "5s"; the number is milliseconds */
};

/* Reads the whole text. False where it is anything else or doesn't fit 64 bits. */
bool weir__unit_parse(enum weir__unit unit, const char *text, uint64_t *ret_number);

/* Whether the text is as the unit says and only its number doesn't fit 64 bits. */
bool weir__unit_is_too_large(enum weir__unit unit, const char *text);

/* Writes the number in its shortest exact form into text, NUL-ended and cut to size. */
void weir__unit_format(enum weir__unit unit, uint64_t number, char *text, size_t size);

/* What the unit looks like, for error texts: "a size such as 512, 64k or 1M". */
const char *weir__unit_example(enum weir__unit unit);

#endif
