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

bool weir__unit_parse(enum weir__unit unit, const char *text, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        unsigned digit = (unsigned)(*p - '0');
        if (number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    if (p == text)
        return false;
    for (const struct suffix *suffix = units[unit].suffixes; suffix->text; suffix++) {
        if (strcmp(p, suffix->text) != 0)
            continue;
        if (number > UINT64_MAX / suffix->factor)
            return false;
        *ret_number = number * suffix->factor;
        return true;
    }
    return false;
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
