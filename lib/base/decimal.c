/* Digits from the last to the first, then moved to where they belong. */
#include "base/decimal.h"

#include <string.h>

size_t weir__decimal(uint64_t number, char *ret_text)
{
    char digits[WEIR__DECIMAL_BYTES];
    char *first = digits + sizeof digits;
    *--first = '\0';
    do
        *--first = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    size_t len = (size_t)(digits + sizeof digits - 1 - first);
    memcpy(ret_text, first, len + 1);
    return len;
}
