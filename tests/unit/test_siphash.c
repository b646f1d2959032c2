#include "base/siphash.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* Key and message are 00 01 02 ...; results from OpenSSL's SIPHASH MAC of size 16. */
static const struct {
    size_t len;
    const char *hex;
} rows[] = {
    { 0, "a3817f04ba25a8e66df67214c7550293" },
    { 1, "da87c1d86b99af44347659119b22fc45" },
    { 15, "5493e99933b0a8117e08ec0f97cfc3d9" },
    { 64, "1eaf077dc0d4cd3f8cad4d383658a74b" },
};

Test(siphash, gives_the_reference_results)
{
    uint8_t key[16], message[64];
    for (unsigned i = 0; i < sizeof key; i++)
        key[i] = (uint8_t)i;
    for (unsigned i = 0; i < sizeof message; i++)
        message[i] = (uint8_t)i;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__hash128 hash = weir__siphash128(key, message, rows[i].len);
        char hex[33];
        for (unsigned byte = 0; byte < 16; byte++) {
            uint64_t half = byte < 8 ? hash.lo : hash.hi;
            snprintf(
                hex + 2 * byte, 3, "%02x", (unsigned)(half >> (8 * (byte % 8)) & 0xff));
        }
        cr_assert_str_eq(hex, rows[i].hex);
    }
}

Test(siphash, depends_on_the_key)
{
    uint8_t one[16] = { 1 }, two[16] = { 2 };
    cr_assert_neq(weir__siphash128(one, "x", 1).lo, weir__siphash128(two, "x", 1).lo);
    cr_assert_neq(weir__siphash128(one, "x", 1).hi, weir__siphash128(two, "x", 1).hi);
}
