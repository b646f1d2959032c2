/* What is refused about an app's tables at start, and what is made of them. */
#include <criterion/criterion.h>
#include <string.h>

#include "app.h"
#include "limit/policy.h"

static int hello(struct weir *w)
{
    (void)w;
    return 200;
}

static const struct weir_endpoint endpoints[] = { { "GET /hello", hello }, { 0 } };
static const struct weir__options options = { .shm_entries = 1024 };
static struct weir_error error;
static struct weir__app *app;

static bool create(const struct weir_app *declared, struct weir_store *store)
{
    memset(&error, 0, sizeof error);
    app = NULL;
    return weir__app_create(declared, &options, store, &app, &error);
}

static void expect_refused(const struct weir_app *declared, const char *text)
{
    cr_assert_not(create(declared, NULL));
    cr_assert(strstr(error.text, text), "\"%s\" has no \"%s\"", error.text, text);
    cr_assert_null(app);
}

Test(app, is_made_of_the_tables)
{
    cr_assert(create(&(struct weir_app){ WEIR_ABI, .endpoints = endpoints }, NULL),
              "%s",
              error.text);
    cr_assert_eq(app->endpoints_len, 1u);
    cr_assert_eq(app->stages_len, 2u);
    cr_assert_str_eq(app->store->ops->name, "shm");
    cr_assert_null(app->fallback);
    weir__app_destroy(app);
}

Test(app, refuses_another_layout)
{
    struct weir_app declared = { WEIR_ABI, .endpoints = endpoints };
    declared.abi.rule += 8;
    expect_refused(&declared, "struct weir_rule");
    declared = (struct weir_app){ .endpoints = endpoints };
    expect_refused(&declared, "WEIR_ABI is missing");
}

Test(app, refuses_an_app_without_endpoints)
{
    expect_refused(&(struct weir_app){ WEIR_ABI }, "no endpoints");
}

Test(app, refuses_an_endpoint_without_handler)
{
    static const struct weir_endpoint none[] = { { "GET /a", hello },
                                                 { .pattern = "GET /b" },
                                                 { 0 } };
    expect_refused(&(struct weir_app){ WEIR_ABI, .endpoints = none }, "GET /b");
}

Test(app, refuses_a_malformed_pattern)
{
    static const struct weir_endpoint bad[] = { { "/nomethod", hello }, { 0 } };
    expect_refused(&(struct weir_app){ WEIR_ABI, .endpoints = bad }, "/nomethod");
}

Test(app, refuses_a_rule_that_is_a_mistake)
{
    const struct weir_endpoint bad[] = {
        { "GET /a", hello, .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("minute", 5, 0)) },
        { 0 },
    };
    expect_refused(&(struct weir_app){ WEIR_ABI, .endpoints = bad }, "GET /a");
}

Test(app, refuses_a_chain_that_is_a_mistake)
{
    static const struct weir_filter needy = { .name = "needy", .needs = "help" };
    expect_refused(&(struct weir_app){ WEIR_ABI,
                                       .endpoints = endpoints,
                                       .chain = WEIR_CHAIN({ &needy, NULL }) },
                   "needy");
}

/* ---- stores ------------------------------------------------------------------------ */

static enum weir_store_result away(void *self, struct weir_store_ask *ask)
{
    (void)self, (void)ask;
    return WEIR_STORE_UNAVAILABLE;
}

static const struct weir_store_ops away_ops = { .name = "away", .decide = away };
static struct weir_store declared_store = { .ops = &away_ops };
static struct weir_store given_store = { .ops = &away_ops };

Test(app, keeps_shared_memory_beside_a_store_that_can_be_away)
{
    const struct weir_app declared = { WEIR_ABI,
                                       .endpoints = endpoints,
                                       .store = &declared_store };
    cr_assert(create(&declared, NULL), "%s", error.text);
    cr_assert_eq(app->store, &declared_store);
    cr_assert_str_eq(app->fallback->ops->name, "shm");
    weir__app_destroy(app);
    cr_assert(create(&declared, &given_store), "%s", error.text);
    cr_assert_eq(app->store, &given_store, "the given one wins");
    weir__app_destroy(app);
}

Test(app, can_be_destroyed_when_there_is_none)
{
    weir__app_destroy(NULL);
}
