/* SipHash-2-4 with a 128-bit result, keyed (Aumasson and Bernstein, 2012). The key is a
 * secret, so that nobody outside can choose names that collide. */
#ifndef WEIR_BASE_SIPHASH_H
#define WEIR_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct weir__hash128 {
    uint64_t lo, hi;
};

/* Pure; any thread. */
struct weir__hash128
weir__siphash128(const uint8_t key[16], const void *bytes, size_t len);

#endif
