/* What the fuzz targets share. A target is one function over bytes; libFuzzer drives it,
 * or replay.c with the seeds. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Holds whatever the build type, unlike assert. */
#define MUST(condition_)                                                                 \
    do {                                                                                 \
        if (!(condition_)) {                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition_);             \
            abort();                                                                     \
        }                                                                                \
    } while (0)

/* A copy in memory of exactly that size, so that a read past its end is seen. */
static inline void *fuzz_copy(const void *bytes, size_t len)
{
    void *copy = malloc(len ? len : 1);
    MUST(copy);
    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

/* A text of the bytes up to the first NUL; *data and *size move behind it. */
static inline char *fuzz_text(const uint8_t **data, size_t *size)
{
    const uint8_t *nul = *size ? memchr(*data, '\0', *size) : NULL;
    size_t len = nul ? (size_t)(nul - *data) : *size;
    char *text = malloc(len + 1);
    MUST(text);
    if (len > 0)
        memcpy(text, *data, len);
    text[len] = '\0';
    size_t used = len + (nul ? 1 : 0);
    *data += used;
    *size -= used;
    return text;
}

/* The sizes into which content is cut: 1 to 256, from the byte that stands at `at` in the
 * input, over and over. */
static inline size_t fuzz_cut(const uint8_t *cuts, size_t cuts_len, size_t turn)
{
    return cuts_len ? (size_t)cuts[turn % cuts_len] + 1 : 1;
}

#endif
