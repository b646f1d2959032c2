/* 128-bit numbers for the arithmetic, and the few steps on them that must be quick: a
 * division in 128 bits costs more than all the rest of a decision. */
#ifndef WEIR_LIMIT_WIDE_H
#define WEIR_LIMIT_WIDE_H

#include <stdint.h>

__extension__ typedef __int128 weir__wide;

/* a / b, rounded down, for a of 0 or more and b above 0 whose quotient fits. */
static inline int64_t weir__wide_divide(weir__wide a, int64_t b)
{
    if (b == 1)
        return (int64_t)a;
    if (a >> 64 != 0)
        return (int64_t)(a / b);
    if ((uint64_t)a >> 32 == 0 && b >> 32 == 0)
        return (uint32_t)a / (uint32_t)b;
    return (int64_t)((uint64_t)a / (uint64_t)b);
}

/* used / budget in fifteenths, rounded down, 14 at most: four comparisons instead of a
 * division. used is 0 or more, budget above 0, both below 2^120. */
static inline unsigned weir__wide_fifteenths(weir__wide used, weir__wide budget)
{
    unsigned level = 0;
    for (unsigned bit = 8; bit > 0; bit /= 2)
        level += used * 15 >= budget * (level + bit) ? bit : 0;
    return level < 14 ? level : 14;
}

#endif
