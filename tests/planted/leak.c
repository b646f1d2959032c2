/* A Criterion test that leaks. Criterion counts it as passed: only LeakSanitizer's report
 * file gives it away. */
#include <criterion/criterion.h>
#include <stdlib.h>

static void *volatile last;

Test(planted, leaks)
{
    last = malloc(100);
    last = NULL;
}
