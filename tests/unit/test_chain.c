/* What is refused about a chain at start, and what start and stop may count on. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include <weir/filters/identity.h>
#include <weir/filters/ratelimit.h>

#include "chain.h"

static struct weir__app app;
static struct weir_app declared;
static struct weir_error error;

static bool start_chain(const struct weir_use *chain)
{
    declared = (struct weir_app){ WEIR_ABI, .chain = chain };
    memset(&app, 0, sizeof app);
    memset(&error, 0, sizeof error);
    app.declared = &declared;
    return weir__chain_start(&app, &error);
}

static void expect_refused(const struct weir_use *chain, const char *text)
{
    cr_assert_not(start_chain(chain));
    cr_assert(strstr(error.text, text), "\"%s\" has no \"%s\"", error.text, text);
    cr_assert_eq(app.stages_len, 0u);
}

static const struct weir_filter filter_giver = { .name = "giver",
                                                 .provides = "x word y" };
static const struct weir_filter filter_taker = { .name = "taker", .needs = "word" };
static const struct weir_filter filter_near = { .name = "near", .provides = "words wor" };

Test(chain, has_a_default_order)
{
    cr_assert(start_chain(NULL));
    cr_assert_eq(app.stages_len, 2u);
    cr_assert_str_eq(app.stages[0].filter->name, "identity");
    cr_assert_str_eq(app.stages[1].filter->name, "ratelimit");
    cr_assert(app.limited);
    weir__chain_stop(&app);
}

Test(chain, takes_what_is_provided_before)
{
    cr_assert(start_chain(WEIR_CHAIN({ &filter_giver, NULL }, { &filter_taker, NULL })));
    cr_assert_not(app.limited);
}

Test(chain, refuses_what_is_provided_behind)
{
    expect_refused(WEIR_CHAIN({ &filter_taker, NULL }, { &filter_giver, NULL }),
                   "taker needs \"word\": put it behind giver");
    expect_refused(WEIR_CHAIN(WEIR_USE(ratelimit), WEIR_USE(identity)),
                   "ratelimit needs \"caller\": put it behind identity");
}

Test(chain, refuses_what_nobody_provides)
{
    expect_refused(WEIR_CHAIN({ &filter_near, NULL }, { &filter_taker, NULL }),
                   "taker needs \"word\", and no filter before it");
}

Test(chain, refuses_a_filter_twice)
{
    expect_refused(WEIR_CHAIN({ &filter_giver, NULL }, { &filter_giver, NULL }),
                   "giver stands twice");
}

Test(chain, refuses_a_name_that_is_none)
{
    static const struct weir_filter nameless = { .name = NULL };
    static const struct weir_filter capital = { .name = "Session" };
    static const struct weir_filter empty = { .name = "" };
    expect_refused(WEIR_CHAIN({ &nameless, NULL }), "filter 1");
    expect_refused(WEIR_CHAIN({ &capital, NULL }), "\"Session\"");
    expect_refused(WEIR_CHAIN({ &empty, NULL }), "filter 1");
}

Test(chain, refuses_options_of_another_size)
{
    static const struct weir_identity other = { .size = sizeof other + 8 };
    expect_refused(WEIR_CHAIN({ &weir_filter_identity, &other }), "different headers");
    expect_refused(WEIR_CHAIN({ &weir_filter_identity, NULL }), "WEIR_USE()");
}

Test(chain, refuses_more_filters_than_it_has_room_for)
{
    static struct weir_filter filters[WEIR__STAGES_MAX + 1];
    static char names[WEIR__STAGES_MAX + 1][8];
    struct weir_use chain[WEIR__STAGES_MAX + 2] = { { NULL, NULL } };
    for (unsigned i = 0; i <= WEIR__STAGES_MAX; i++) {
        names[i][0] = (char)('a' + i / 26);
        names[i][1] = (char)('a' + i % 26);
        filters[i].name = names[i];
        chain[i].filter = &filters[i];
    }
    expect_refused(chain, "one too many");
    chain[WEIR__STAGES_MAX].filter = NULL;
    cr_assert(start_chain(chain));
}

Test(chain, refuses_a_slot_that_is_too_large)
{
    static const struct weir_filter large = { .name = "large", .slot_size = 1 << 20 };
    expect_refused(WEIR_CHAIN({ &large, NULL }), "slot of large");
}

Test(chain, gives_every_slot_a_place_of_its_own_aligned_for_any_type)
{
    static const struct weir_filter odd = { .name = "odd", .slot_size = 5 };
    static const struct weir_filter even = { .name = "even", .slot_size = 64 };
    cr_assert(start_chain(WEIR_CHAIN({ &odd, NULL }, { &even, NULL })));
    cr_assert_eq(app.stages[0].slot_offset % _Alignof(max_align_t), 0u);
    cr_assert_eq(app.stages[1].slot_offset % _Alignof(max_align_t), 0u);
    cr_assert_geq(app.stages[1].slot_offset, app.stages[0].slot_offset + 5);
    cr_assert_geq(app.slots_bytes, app.stages[1].slot_offset + 64);
}

/* ---- start and stop ---------------------------------------------------------------- */

static char events[128];

static bool starts(const struct weir_app *its_app,
                   const void *options,
                   void **ret_self,
                   struct weir_error *ret_error)
{
    (void)ret_error;
    cr_assert_eq(its_app, &declared);
    strcat(events, "+");
    *ret_self = (void *)(uintptr_t)options;
    return true;
}

static bool starts_without_self(const struct weir_app *its_app,
                                const void *options,
                                void **ret_self,
                                struct weir_error *ret_error)
{
    (void)its_app, (void)options, (void)ret_self, (void)ret_error;
    strcat(events, "+");
    return true;
}

static bool refuses(const struct weir_app *its_app,
                    const void *options,
                    void **ret_self,
                    struct weir_error *ret_error)
{
    (void)its_app, (void)options, (void)ret_self, (void)ret_error;
    strcat(events, "!");
    return false;
}

static void stops(void *self)
{
    strcat(events, self ? self : "-");
}

static const struct weir_filter filter_one = { .name = "one",
                                               .start = starts,
                                               .stop = stops };
static const struct weir_filter filter_two = { .name = "two",
                                               .start = starts_without_self,
                                               .stop = stops };
static const struct weir_filter filter_bad = { .name = "bad",
                                               .start = refuses,
                                               .stop = stops };

Test(chain, stops_in_reverse_with_what_start_made)
{
    cr_assert(start_chain(WEIR_CHAIN({ &filter_one, "1" }, { &filter_two, "2" })));
    cr_assert_str_eq(app.stages[0].self, "1");
    cr_assert_str_eq(app.stages[1].self, "2", "without a self of its own: its options");
    weir__chain_stop(&app);
    cr_assert_str_eq(events, "++-1");
}

Test(chain, stops_what_was_started_when_a_start_fails)
{
    expect_refused(WEIR_CHAIN({ &filter_one, "1" },
                              { &filter_two, "2" },
                              { &filter_bad, "3" },
                              { &filter_giver, NULL }),
                   "bad refused to start");
    cr_assert_str_eq(events, "++!-1");
}

/* ---- the options of filters -------------------------------------------------------- */

static bool no_session(struct weir *w, struct weir_caller *ret_caller)
{
    (void)w, (void)ret_caller;
    return false;
}

Test(chain, refuses_an_ipv6_prefix_out_of_range)
{
    expect_refused(WEIR_CHAIN(WEIR_USE(identity, .ipv6_prefix = 31)), "ipv6_prefix");
    expect_refused(WEIR_CHAIN(WEIR_USE(identity, .ipv6_prefix = 129)), "ipv6_prefix");
    cr_assert(start_chain(WEIR_CHAIN(WEIR_USE(identity, .ipv6_prefix = 128))));
}

Test(chain, refuses_a_session_cookie_that_nobody_checks)
{
    expect_refused(WEIR_CHAIN(WEIR_USE(identity, .session_cookie = "sid")),
                   "session_cookie");
    cr_assert(start_chain(WEIR_CHAIN(
        WEIR_USE(identity, .session_user = no_session, .session_cookie = "sid"))));
}

Test(chain, refuses_a_deadline_out_of_range)
{
    expect_refused(WEIR_CHAIN(WEIR_USE(identity), WEIR_USE(ratelimit, .deadline_us = -1)),
                   "deadline_us");
    expect_refused(WEIR_CHAIN(WEIR_USE(identity),
                              WEIR_USE(ratelimit, .deadline_us = WEIR_MINUTES(1))),
                   "deadline_us");
}
