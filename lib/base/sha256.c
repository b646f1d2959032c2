/* SHA-256 as FIPS 180-4 section 6.2 has it, in one call over bytes that are all there.
 * For names and look-ups, which are short: it is written to be read, not to be fast. */
#include "base/sha256.h"

#include <string.h>

#define BLOCK 64

/* Section 4.2.2: the fractions of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
    0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
    0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
    0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
    0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
};

static uint32_t rotr(uint32_t word, int bits)
{
    return word >> bits | word << (32 - bits);
}

static uint32_t read_be(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
           bytes[3];
}

static void write_be(uint8_t *ret_bytes, uint64_t word, int len)
{
    for (int i = 0; i < len; i++)
        ret_bytes[i] = (uint8_t)(word >> 8 * (len - 1 - i));
}

/* The message schedule of a block, section 6.2.2 step 1. */
static void expand(const uint8_t *block, uint32_t ret_words[64])
{
    for (int i = 0; i < 16; i++)
        ret_words[i] = read_be(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t near = ret_words[i - 2], far = ret_words[i - 15];
        uint32_t small1 = rotr(near, 17) ^ rotr(near, 19) ^ near >> 10;
        uint32_t small0 = rotr(far, 7) ^ rotr(far, 18) ^ far >> 3;
        ret_words[i] = small1 + ret_words[i - 7] + small0 + ret_words[i - 16];
    }
}

static void take_block(uint32_t hash[8], const uint8_t *block)
{
    uint32_t words[64], v[8];
    expand(block, words);
    memcpy(v, hash, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t big1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
        uint32_t choice = (e & v[5]) ^ (~e & v[6]);
        uint32_t one = v[7] + big1 + choice + round_constants[i] + words[i];
        uint32_t big0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
        uint32_t majority = (a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += one;
        v[0] = one + big0 + majority;
    }
    for (int i = 0; i < 8; i++)
        hash[i] += v[i];
}

void weir__sha256(const void *bytes, size_t len, uint8_t ret_digest[WEIR__SHA256_BYTES])
{
    uint32_t hash[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    const uint8_t *at = bytes;
    size_t left = len;
    for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
        take_block(hash, at);

    /* Section 5.1.1: a bit 1, zeros, and the length in bits end the last block. */
    uint8_t last[2 * BLOCK] = { 0 };
    size_t last_len = left < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    if (left > 0)
        memcpy(last, at, left);
    last[left] = 0x80;
    write_be(last + last_len - 8, (uint64_t)len * 8, 8);
    for (size_t i = 0; i < last_len; i += BLOCK)
        take_block(hash, last + i);
    for (int i = 0; i < 8; i++)
        write_be(ret_digest + 4 * i, hash[i], 4);
}
