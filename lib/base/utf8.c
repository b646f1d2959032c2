/* UTF-8 by the table of RFC 3629 section 4: each first byte says how many follow and in
 * which range the second must lie, which alone shuts out overlong forms, surrogates and
 * numbers that are too large. */
#include "base/utf8.h"

/* How many bytes follow first (1 to 3) and the bounds of the second; 0 for a byte that
 * can't be first. ASCII isn't asked about. */
static unsigned
following(unsigned char first, unsigned char *ret_low, unsigned char *ret_high)
{
    *ret_low = 0x80;
    *ret_high = 0xbf;
    if (first >= 0xc2 && first <= 0xdf)
        return 1;
    if (first >= 0xe0 && first <= 0xef) {
        if (first == 0xe0)
            *ret_low = 0xa0;
        if (first == 0xed)
            *ret_high = 0x9f;
        return 2;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        if (first == 0xf0)
            *ret_low = 0x90;
        if (first == 0xf4)
            *ret_high = 0x8f;
        return 3;
    }
    return 0;
}

bool weir__utf8_is_valid(const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = at + len;
    while (at < end) {
        unsigned char low, high;
        if (*at < 0x80) {
            at++;
            continue;
        }
        unsigned count = following(*at, &low, &high);
        if (count == 0 || (size_t)(end - at) <= count || at[1] < low || at[1] > high)
            return false;
        for (unsigned i = 2; i <= count; i++)
            if (at[i] < 0x80 || at[i] > 0xbf)
                return false;
        at += count + 1;
    }
    return true;
}
