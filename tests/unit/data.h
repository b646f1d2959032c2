/* What data-driven tests share: a JSON file of tests/data, and bytes written as hex. */
#ifndef TESTS_UNIT_DATA_H
#define TESTS_UNIT_DATA_H

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Loads tests/data/<name>; the caller frees it with json_decref(). */
static inline json_t *data_load(const char *name)
{
    char path[1024];
    json_error_t error;
    snprintf(path, sizeof path, TEST_DATA "/%s", name);
    json_t *data = json_load_file(path, 0, &error);
    cr_assert_not_null(data, "%s:%d: %s", path, error.line, error.text);
    return data;
}

/* Decodes hex digits into new memory of exactly that size, so that a sanitizer sees a
 * read past its end. */
static inline unsigned char *data_bytes(const char *hex, size_t *ret_len)
{
    size_t len = strlen(hex) / 2;
    unsigned char *bytes = malloc(len ? len : 1);
    for (size_t i = 0; i < len; i++) {
        unsigned byte;
        cr_assert_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
        bytes[i] = (unsigned char)byte;
    }
    *ret_len = len;
    return bytes;
}

/* Asserts that bytes are what hex says. */
static inline void data_expect(const void *bytes, size_t len, const char *hex)
{
    size_t expected_len;
    unsigned char *expected = data_bytes(hex, &expected_len);
    cr_assert_eq(len, expected_len, "%zu bytes instead of %zu", len, expected_len);
    cr_assert_eq(memcmp(bytes, expected, len), 0, "other bytes than %s", hex);
    free(expected);
}

#endif
