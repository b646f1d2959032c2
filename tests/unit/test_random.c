#include "base/random.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

Test(random, bytes_differ_each_time)
{
    unsigned char one[300] = { 0 }, two[300] = { 0 };
    weir__random_bytes(one, sizeof one);
    weir__random_bytes(two, sizeof two);
    cr_assert_neq(memcmp(one, two, sizeof one), 0);
    cr_assert_neq(memcmp(one + 284, two + 284, 16), 0);
}

Test(random, below_stays_below_and_reaches_every_number)
{
    unsigned seen[7] = { 0 };
    for (int i = 0; i < 7000; i++) {
        uint64_t number = weir__random_below(7);
        cr_assert_lt(number, 7);
        seen[number]++;
    }
    for (int i = 0; i < 7; i++)
        cr_assert_gt(seen[i], 700);
    cr_assert_eq(weir__random_below(0), 0);
    cr_assert_eq(weir__random_below(1), 0);
}

Test(random, the_top_half_is_as_likely_as_the_bottom_half)
{
    unsigned top = 0;
    for (int i = 0; i < 4000; i++)
        top += weir__random_below(UINT64_C(3) << 62) >= UINT64_C(3) << 61;
    cr_assert_gt(top, 1700);
    cr_assert_lt(top, 2300);
}

Test(random, a_forked_child_draws_other_numbers)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    weir__random_below(10); /* seeds the parent */
    pid_t child = fork();
    if (child == 0) {
        uint64_t number = weir__random_below(UINT64_MAX);
        _exit(write(ends[1], &number, sizeof number) != sizeof number);
    }
    uint64_t theirs = 0, ours = weir__random_below(UINT64_MAX);
    cr_assert_eq(read(ends[0], &theirs, sizeof theirs), (ssize_t)sizeof theirs);
    waitpid(child, NULL, 0);
    cr_assert_neq(ours, theirs);
}
