/* SHA-256 (FIPS 180-4): a name for bytes that nobody can make another text for. */
#ifndef WEIR_BASE_SHA256_H
#define WEIR_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define WEIR__SHA256_BYTES 32

/* Pure; any thread. */
void weir__sha256(const void *bytes, size_t len, uint8_t ret_digest[WEIR__SHA256_BYTES]);

#endif
