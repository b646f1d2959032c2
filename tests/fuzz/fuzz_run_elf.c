/* A program's file as weir-run reads it: whatever the bytes are, nothing outside of them
 * is read, and what is let through says libfcgi somewhere. */
#include "fuzz.h"

#include "../../tools/run_elf.h"

/* This program's own file, once. */
static const void *self(size_t *ret_len)
{
    static void *bytes;
    static size_t len;
    if (!bytes) {
        FILE *file = fopen("/proc/self/exe", "rb");
        MUST(file && fseek(file, 0, SEEK_END) == 0);
        len = (size_t)ftell(file);
        rewind(file);
        bytes = malloc(len);
        MUST(bytes && fread(bytes, 1, len, file) == len);
        fclose(file);
    }
    *ret_len = len;
    return bytes;
}

static bool has(const char *bytes, size_t len, const char *word)
{
    return memmem(bytes, len, word, strlen(word)) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t self_len = 0;
    const void *self_bytes = self(&self_len);
    char *bytes = fuzz_copy(data, size);
    const char *why = run_elf_hindrance(bytes, size, self_bytes, self_len);
    MUST(why || (has(bytes, size, "libfcgi") && has(bytes, size, "\177ELF")));
    /* Cut anywhere it is still no more than a file. */
    for (size_t len = size; len > 0; len /= 2)
        run_elf_hindrance(bytes, len, self_bytes, self_len);
    free(bytes);
    return 0;
}
