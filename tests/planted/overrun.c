/* A Criterion test that writes one byte past the end of its memory. */
#include <criterion/criterion.h>
#include <stdlib.h>

Test(planted, overruns)
{
    volatile size_t size = 10;
    volatile char *memory = malloc(size);

    memory[size] = 'x';
    free((void *)memory);
}
