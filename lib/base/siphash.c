/* SipHash-2-4 with the 128-bit result of its reference: the same state and rounds as the
 * 64-bit form, with 0xee put in where that has 0xff, and a second half after 0xdd.
 * Reads its input byte by byte in little-endian order, whatever the machine's. */
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotl(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static void sip_rounds(struct state *s, int count)
{
    for (int i = 0; i < count; i++) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = rotl(s->v1, 13) ^ s->v0;
        s->v3 = rotl(s->v3, 16) ^ s->v2;
        s->v0 = rotl(s->v0, 32);
        s->v2 += s->v1;
        s->v0 += s->v3;
        s->v1 = rotl(s->v1, 17) ^ s->v2;
        s->v3 = rotl(s->v3, 21) ^ s->v0;
        s->v2 = rotl(s->v2, 32);
    }
}

static void take_word(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    sip_rounds(s, 2);
    s->v0 ^= word;
}

/* Eight bytes as a little-endian number. */
static uint64_t read_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return le64toh(word);
}

/* Fewer than eight. */
static uint64_t read_rest(const uint8_t *bytes, size_t len)
{
    uint64_t word = 0;
    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

struct weir__hash128
weir__siphash128(const uint8_t key[16], const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    uint64_t k0 = read_word(key), k1 = read_word(key + 8);
    struct state s = {
        .v0 = k0 ^ UINT64_C(0x736f6d6570736575),
        .v1 = k1 ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
        .v2 = k0 ^ UINT64_C(0x6c7967656e657261),
        .v3 = k1 ^ UINT64_C(0x7465646279746573),
    };
    size_t left = len;
    for (; left >= 8; left -= 8, at += 8)
        take_word(&s, read_word(at));
    take_word(&s, (uint64_t)(len & 0xff) << 56 | read_rest(at, left));

    struct weir__hash128 hash;
    s.v2 ^= 0xee;
    sip_rounds(&s, 4);
    hash.lo = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
    s.v1 ^= 0xdd;
    sip_rounds(&s, 4);
    hash.hi = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
    return hash;
}
