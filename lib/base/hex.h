/* Hexadecimal digits, and the percent-coding that is made of them. */
#ifndef WEIR_BASE_HEX_H
#define WEIR_BASE_HEX_H

/* The value of a hex digit in either case, -1 for another character. Pure; any thread. */
static inline int weir__hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

/* The byte that the three characters %XX at text stand for, -1 where they don't: text
 * ends at end. Pure; any thread. */
static inline int weir__percent_value(const char *text, const char *end)
{
    if (end - text < 3 || text[0] != '%')
        return -1;
    int high = weir__hex_value(text[1]), low = weir__hex_value(text[2]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

#endif
