#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdio.h>

#include "base/decimal.h"

Test(decimal, writes_what_printf_writes)
{
    uint64_t numbers[] = { 0, 1, 9, 10, 11, 99, 100, UINT32_MAX, UINT64_MAX };
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[WEIR__DECIMAL_BYTES], wanted[32];
        int len = snprintf(wanted, sizeof wanted, "%" PRIu64, numbers[i]);
        cr_expect_eq(weir__decimal(numbers[i], text), (size_t)len);
        cr_expect_str_eq(text, wanted);
    }
}
