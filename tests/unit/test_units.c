#include <criterion/criterion.h>

#include "process/units.h"

static const struct {
    enum weir__unit unit;
    const char *text;
    uint64_t number;
} good[] = {
    { WEIR__UNIT_COUNT, "0", 0 },
    { WEIR__UNIT_COUNT, "18446744073709551615", UINT64_MAX },
    { WEIR__UNIT_BYTES, "512", 512 },
    { WEIR__UNIT_BYTES, "64k", 65536 },
    { WEIR__UNIT_BYTES, "1M", 1048576 },
    { WEIR__UNIT_BYTES, "2G", UINT64_C(2147483648) },
    { WEIR__UNIT_TIME, "200ms", 200 },
    { WEIR__UNIT_TIME, "75s", 75000 },
};

static const struct {
    enum weir__unit unit;
    const char *text;
} bad[] = {
    { WEIR__UNIT_COUNT, "" },
    { WEIR__UNIT_COUNT, " 1" },
    { WEIR__UNIT_COUNT, "1 " },
    { WEIR__UNIT_COUNT, "-1" },
    { WEIR__UNIT_COUNT, "+1" },
    { WEIR__UNIT_COUNT, "0x10" },
    { WEIR__UNIT_COUNT, "1.5" },
    { WEIR__UNIT_COUNT, "18446744073709551616" },
    { WEIR__UNIT_COUNT, "1k" },
    { WEIR__UNIT_BYTES, "k" },
    { WEIR__UNIT_BYTES, "1K" },
    { WEIR__UNIT_BYTES, "1kk" },
    { WEIR__UNIT_BYTES, "1MiB" },
    { WEIR__UNIT_BYTES, "18014398509481984k" },
    { WEIR__UNIT_TIME, "1" },
    { WEIR__UNIT_TIME, "1m" },
    { WEIR__UNIT_TIME, "1.5s" },
    { WEIR__UNIT_TIME, "ms" },
    { WEIR__UNIT_TIME, "18446744073709552s" },
};

Test(units, reads_what_the_grammar_says)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t number = 77;
        cr_assert(
            weir__unit_parse(good[i].unit, good[i].text, &number), "%s", good[i].text);
        cr_expect(number == good[i].number, "%s", good[i].text);
    }
}

Test(units, tells_what_is_only_too_large_from_what_is_no_number)
{
    cr_expect(weir__unit_is_too_large(WEIR__UNIT_COUNT, "18446744073709551616"));
    cr_expect(weir__unit_is_too_large(WEIR__UNIT_BYTES, "18014398509481984k"));
    cr_expect(weir__unit_is_too_large(WEIR__UNIT_TIME, "99999999999999999999999s"));
    cr_expect_not(weir__unit_is_too_large(WEIR__UNIT_COUNT, "18446744073709551615"));
    cr_expect_not(weir__unit_is_too_large(WEIR__UNIT_TIME, "99999999999999999999999h"));
    cr_expect_not(weir__unit_is_too_large(WEIR__UNIT_TIME, "s"));
}

Test(units, refuses_everything_else_and_leaves_the_result_alone)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t number = 77;
        cr_expect_not(
            weir__unit_parse(bad[i].unit, bad[i].text, &number), "%s", bad[i].text);
        cr_expect_eq(number, 77);
    }
}

Test(units, writes_what_it_would_read_back)
{
    static const uint64_t numbers[] = {
        0, 1, 999, 1000, 1024, 1536, 65536, 5000000, UINT64_C(3) << 30, UINT64_MAX
    };
    for (int unit = WEIR__UNIT_COUNT; unit <= WEIR__UNIT_TIME; unit++) {
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            char text[32];
            uint64_t number = 77;
            weir__unit_format((enum weir__unit)unit, numbers[i], text, sizeof text);
            cr_assert(weir__unit_parse((enum weir__unit)unit, text, &number), "%s", text);
            cr_expect(number == numbers[i], "%s", text);
        }
    }
}

Test(units, writes_the_shortest_exact_form)
{
    char text[32];
    weir__unit_format(WEIR__UNIT_BYTES, 65536, text, sizeof text);
    cr_expect_str_eq(text, "64k");
    weir__unit_format(WEIR__UNIT_BYTES, 1000, text, sizeof text);
    cr_expect_str_eq(text, "1000");
    weir__unit_format(WEIR__UNIT_TIME, 60000, text, sizeof text);
    cr_expect_str_eq(text, "60s");
    weir__unit_format(WEIR__UNIT_TIME, 1500, text, sizeof text);
    cr_expect_str_eq(text, "1500ms");
}
