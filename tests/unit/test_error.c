#include "base/error.h"

#include <criterion/criterion.h>
#include <string.h>

Test(error, the_first_one_wins)
{
    struct weir_error error = { .text = "" };
    cr_assert_not(weir__error(&error, "line %d", 7));
    cr_assert_not(weir__error(&error, "its echo"));
    cr_assert_str_eq(error.text, "line 7");
}

Test(error, nobody_need_listen)
{
    cr_assert_not(weir__error(NULL, "%s", "text"));
}

Test(error, a_long_text_is_cut)
{
    struct weir_error error = { .text = "" };
    weir__error(&error, "%1000s", "x");
    cr_assert_eq(strlen(error.text), sizeof error.text - 1);
}
