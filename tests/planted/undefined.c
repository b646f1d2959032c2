/* A Criterion test that overflows an int. */
#include <criterion/criterion.h>
#include <limits.h>

Test(planted, is_undefined)
{
    volatile int most = INT_MAX;

    most = most + 1;
}
