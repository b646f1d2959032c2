/* One table of suffixes for each unit, read by the parser and by the writer. A number
 * that is not exactly what the grammar says is refused, never rounded or cut. */
#include "process/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct suffix {
    const char *text;
    uint64_t factor;
};

struct unit {
    const char *example;
    struct suffix suffixes[5]; /* smallest first, ended by one without text */
};

static const struct unit units[] = {
    [WEIR__UNIT_COUNT] = { "a number such as 8", { { "", 1 } } },
    [WEIR__UNIT_BYTES] = { "a size such as 512, 64k or 1M",
                           { { "", 1 },
                             { "k", UINT64_C(1) << 10 },
                             { "M", UINT64_C(1) << 20 },
                             { "G", UINT64_C(1) << 30 } } },
    [WEIR__UNIT_TIME] = { "a time such as 200ms or 5s", { { "ms", 1 }, { "s", 1000 } } },
};

/* Reads the whole text; *ret_fits says whether its number fits. False: not the unit's
 * grammar. */
static bool
read_text(enum weir__unit unit, const char *text, uint64_t *ret_number, bool *ret_fits)
{
    uint64_t number = 0;
    bool fits = true;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        unsigned digit = (unsigned)(*p - '0');
        fits = fits && number <= (UINT64_MAX - digit) / 10;
        number = number * 10 + digit;
    }
    if (p == text)
        return false;
    for (const struct suffix *suffix = units[unit].suffixes; suffix->text; suffix++) {
        if (strcmp(p, suffix->text) != 0)
            continue;
        *ret_fits = fits && number <= UINT64_MAX / suffix->factor;
        *ret_number = number * suffix->factor;
        return true;
    }
    return false;
}

bool weir__unit_parse(enum weir__unit unit, const char *text, uint64_t *ret_number)
{
    uint64_t number;
    bool fits;
    if (!read_text(unit, text, &number, &fits) || !fits)
        return false;
    *ret_number = number;
    return true;
}

bool weir__unit_is_too_large(enum weir__unit unit, const char *text)
{
    uint64_t number;
    bool fits;
    return read_text(unit, text, &number, &fits) && !fits;
}

void weir__unit_format(enum weir__unit unit, uint64_t number, char *text, size_t size)
{
    const struct suffix *best = units[unit].suffixes;
    for (const struct suffix *suffix = best; suffix->text; suffix++)
        if (number != 0 && number % suffix->factor == 0)
            best = suffix;
    snprintf(text, size, "%" PRIu64 "%s", number / best->factor, best->text);
}

const char *weir__unit_example(enum weir__unit unit)
{
    return units[unit].example;
}
