#include <weir/weir.h>

#include <criterion/criterion.h>
#include <string.h>

Test(caller, types_have_their_words)
{
    cr_expect_str_eq(weir_caller_type_name(WEIR_CALLER_NONE), "none");
    cr_expect_str_eq(weir_caller_type_name(WEIR_CALLER_USER), "user");
    cr_expect_str_eq(weir_caller_type_name(WEIR_CALLER_KEY), "key");
    cr_expect_str_eq(weir_caller_type_name(WEIR_CALLER_IP), "ip");
    cr_expect_str_eq(weir_caller_type_name(WEIR_CALLER_REMOTE_USER), "remote_user");
    cr_expect_str_eq(weir_caller_type_name((enum weir_caller_type)99), "none");
}

Test(caller, a_user_has_an_id_of_1_to_255_bytes)
{
    struct weir_caller caller = { .type = WEIR_CALLER_IP, .id_len = 1, .id = "x" };
    char id[WEIR_CALLER_ID_MAX + 2];
    memset(id, 'a', sizeof id);
    id[WEIR_CALLER_ID_MAX + 1] = '\0';
    cr_expect_not(weir_caller_user(&caller, NULL));
    cr_expect_not(weir_caller_user(&caller, ""));
    cr_expect_not(weir_caller_user(&caller, id));
    cr_expect_eq(caller.type, WEIR_CALLER_IP);
    cr_expect_str_eq(caller.id, "x");

    id[WEIR_CALLER_ID_MAX] = '\0';
    cr_assert(weir_caller_user(&caller, id));
    cr_expect_eq(caller.type, WEIR_CALLER_USER);
    cr_expect_eq(caller.id_len, WEIR_CALLER_ID_MAX);
    cr_expect_str_eq(caller.id, id);
}
