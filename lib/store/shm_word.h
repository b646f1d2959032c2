/* One counter of the shared table as one 128-bit word, and the few atomic steps on it.
 *
 *   hi: tag 42 | time, upper 22        lo: time, lower 28 | value 32 | level 4
 *
 * tag   names the counter within its bucket, never 0 for one in use
 * time  state.time_us in microseconds since the segment's epoch, 50 bits (35 years)
 * value state.value
 * level how much of the budget was used at the last change (weir__limit_level)
 *
 * A word with tag 0 is a hole: hi is 0 and lo is a number that no other hole of the
 * bucket ever had or will have. The tag lies in one half, so that it is never read torn;
 * all else is read by a guess (two loads) that a compare-and-swap must confirm. Locks in
 * shared memory don't survive a killed or stopped owner, this does. */
#ifndef WEIR_STORE_SHM_WORD_H
#define WEIR_STORE_SHM_WORD_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "limit/limit.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "The shared-memory store needs a little-endian machine"
#endif
#if !defined(__aarch64__) && !defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)
#error                                                                                   \
    "The shared-memory store needs a 128-bit compare-and-swap: x86-64 built with -mcx16, or AArch64"
#endif

#define WEIR__WORD_TAG_BITS 42
#define WEIR__WORD_TIME_BITS 50
#define WEIR__WORD_TIME_MAX ((INT64_C(1) << WEIR__WORD_TIME_BITS) - 1)
#define WEIR__LEVEL_REFUSED 15U

struct weir__word {
    alignas(16) uint64_t lo;
    uint64_t hi;
};

static inline bool weir__word_equal(struct weir__word a, struct weir__word b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

/* Puts desired where expected stands; false where anything else stands there. A full
 * barrier. */
static inline bool weir__word_swap(struct weir__word *at,
                                   struct weir__word expected,
                                   struct weir__word desired)
{
#ifdef __aarch64__
    /* GCC has no inline form of the 16-byte builtin here. A pair that was read torn only
     * looks unequal, which a caller takes as a lost race; equal is proven by the store.
     */
    uint64_t lo, hi;
    uint32_t lost;
    do {
        __asm__ volatile("ldaxp %0, %1, %2" : "=&r"(lo), "=&r"(hi) : "Q"(*at) : "memory");
        if (lo != expected.lo || hi != expected.hi) {
            __asm__ volatile("clrex\n\tdmb ish" : : : "memory");
            return false;
        }
        __asm__ volatile("stlxp %w0, %2, %3, %1"
                         : "=&r"(lost), "=Q"(*at)
                         : "r"(desired.lo), "r"(desired.hi)
                         : "memory");
    } while (lost); /* cppcheck-suppress uninitvar ; the stlxp above sets it */
    __asm__ volatile("dmb ish" : : : "memory");
    return true;
#else
    __extension__ typedef unsigned __int128 __attribute__((may_alias)) whole;
    return __sync_bool_compare_and_swap((whole *)(void *)at,
                                        (whole)expected.hi << 64 | expected.lo,
                                        (whole)desired.hi << 64 | desired.lo);
#endif
}

static inline uint64_t weir__word_load_hi(const struct weir__word *at)
{
    return __atomic_load_n(&at->hi, __ATOMIC_ACQUIRE);
}

/* Both halves with nothing seen to change between them. Still a guess that only
 * weir__word_swap() confirms, but good enough to look at. */
static inline struct weir__word weir__word_guess(const struct weir__word *at)
{
    struct weir__word word;
    do {
        word.hi = weir__word_load_hi(at);
        word.lo = __atomic_load_n(&at->lo, __ATOMIC_ACQUIRE);
    } while (weir__word_load_hi(at) != word.hi);
    return word;
}

/* Never torn, at the price of a compare-and-swap. */
static inline struct weir__word weir__word_read(struct weir__word *at)
{
    struct weir__word word;
    do
        word = weir__word_guess(at);
    while (!weir__word_swap(at, word, word));
    return word;
}

static inline uint64_t weir__word_tag(uint64_t hi)
{
    return hi >> (64 - WEIR__WORD_TAG_BITS);
}

static inline struct weir__limit_state weir__word_state(struct weir__word word)
{
    return (struct weir__limit_state){
        .time_us = (int64_t)((word.hi & 0x3fffff) << 28 | word.lo >> 36),
        .value = (int64_t)(word.lo >> 4 & 0xffffffff),
    };
}

static inline unsigned weir__word_level(struct weir__word word)
{
    return (unsigned)(word.lo & 15);
}

static inline struct weir__word
weir__word_make(uint64_t tag, struct weir__limit_state state, unsigned level)
{
    int64_t time_us =
        state.time_us < WEIR__WORD_TIME_MAX ? state.time_us : WEIR__WORD_TIME_MAX;
    return (struct weir__word){
        .lo = (uint64_t)time_us << 36 | (uint64_t)state.value << 4 | level,
        .hi = tag << (64 - WEIR__WORD_TAG_BITS) | (uint64_t)time_us >> 28,
    };
}

#endif
