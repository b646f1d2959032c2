/* The filter to copy does what it says. */
#include "kit.h"

#include <weir/filters/skeleton.h>

static int hello(struct weir *w)
{
    return weir_text(w, 200, "hello");
}

static const struct weir_endpoint endpoints[] = { { "GET /", hello }, { 0 } };
static const struct weir_use plain[] = { WEIR_USE(skeleton), { NULL, NULL } };
static const struct weir_use own[] = { WEIR_USE(skeleton, .value = "mine"),
                                       { NULL, NULL } };
static const struct weir_use bad[] = { WEIR_USE(skeleton, .value = "a\nb"),
                                       { NULL, NULL } };

Test(skeleton, adds_a_header_to_every_answer, .fini = kit_close)
{
    kit_open(endpoints, plain);
    kit_get("GET", "/");
    cr_assert(kit_sent_line("Weir-Skeleton: hello"));
    kit_get("GET", "/nowhere");
    cr_assert(kit_sent_line("Weir-Skeleton: hello"));
}

Test(skeleton, takes_the_value_from_its_options, .fini = kit_close)
{
    kit_open(endpoints, own);
    kit_get("GET", "/");
    cr_assert(kit_sent_line("Weir-Skeleton: mine"));
}

Test(skeleton, refuses_to_start_with_a_value_that_is_none)
{
    static const struct weir__options options = { .shm_entries = 1024 };
    const struct weir_app declared = { WEIR_ABI, .endpoints = endpoints, .chain = bad };
    struct weir_error error = { "" };
    struct weir__app *app = NULL;
    cr_assert_not(weir__app_create(&declared, &options, NULL, &app, &error));
    cr_assert_str_eq(error.text, "skeleton: value holds a newline");
}
