#include "base/sha256.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *hex_of(const void *bytes, size_t len)
{
    static char text[2 * WEIR__SHA256_BYTES + 1];
    uint8_t digest[WEIR__SHA256_BYTES];
    weir__sha256(bytes, len, digest);
    for (int i = 0; i < WEIR__SHA256_BYTES; i++)
        sprintf(text + 2 * i, "%02x", digest[i]);
    return text;
}

/* The examples that NIST publishes with FIPS 180-4, and lengths around a block's end. */
Test(sha256, gives_the_digests_of_the_standard)
{
    static const char two_blocks[] =
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    cr_expect_str_eq(hex_of("", 0),
                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    cr_expect_str_eq(hex_of("abc", 3),
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    cr_expect_str_eq(hex_of(two_blocks, strlen(two_blocks)),
                     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    cr_expect_str_eq(hex_of(million, 1000000),
                     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    cr_expect_str_eq(hex_of(million, 55),
                     "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    cr_expect_str_eq(hex_of(million, 56),
                     "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    cr_expect_str_eq(hex_of(million, 64),
                     "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    free(million);
}
