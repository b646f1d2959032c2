/* The shared-memory store as one process sees it, on a clock that the test moves. What
 * happens between processes is in tests/store/. */
#include "store/shm.h"

#include <criterion/criterion.h>

#include "store/shm_table.h"
#include "support/asks.h"
#include "support/rng.h"

static struct weir_store *store;

static void setup(void)
{
    struct weir_error error = { { 0 } };
    asks_stop_clock();
    store = weir_shm_create(&(struct weir_shm_options){ .entries = 1000 }, &error);
    cr_assert_not_null(store, "%s", error.text);
}

static struct weir__shm_census verified(void)
{
    struct weir__shm_census census = { 0 };
    struct weir_error error = { { 0 } };
    cr_assert(
        weir__shm_verify(weir__shm_segment_of(store), &census, &error), "%s", error.text);
    return census;
}

static void teardown(void)
{
    verified();
    weir_store_destroy(store);
}

TestSuite(shm, .init = setup, .fini = teardown);

static struct rule_kit kit(struct weir_rule rule)
{
    struct rule_kit made;
    kit_init(&made, rule);
    return made;
}

#define WINDOW(...) kit((struct weir_rule)WEIR_FIXED_WINDOW(__VA_ARGS__))
#define BUCKET(...) kit((struct weir_rule)WEIR_TOKEN_BUCKET(__VA_ARGS__))

Test(shm, counts_each_caller_and_each_rule_apart)
{
    struct rule_kit a = WINDOW("a", 2, WEIR_SECONDS(60)), b = WINDOW("b", 2, 60000000);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(ask_one(store, &a, "user:1", 1, NULL).remaining, 1 - i);
        cr_expect_eq(ask_one(store, &a, "user:2", 1, NULL).remaining, 1 - i);
        cr_expect_eq(ask_one(store, &b, "user:1", 1, NULL).remaining, 1 - i);
    }
    struct weir_rule_answer answer = ask_one(store, &a, "user:1", 1, NULL);
    cr_expect_not(answer.allowed);
    cr_expect_eq(answer.retry_us, WEIR_SECONDS(60));
    cr_expect_eq(answer.rule, &a.rule);
    asks_now_us += WEIR_SECONDS(60) - 1;
    cr_expect_not(ask_one(store, &a, "user:1", 1, NULL).allowed);
    asks_now_us += 1;
    cr_expect(ask_one(store, &a, "user:1", 1, NULL).allowed);
}

Test(shm, tells_subject_and_tail_apart_wherever_the_border_is)
{
    struct rule_kit a = WINDOW("a", 1, WEIR_SECONDS(60));
    struct rule_kit b = a;
    memmove(b.tail + 1, b.tail, sizeof b.tail - 1);
    b.tail[0] = 'x';
    cr_expect(ask_one(store, &b, "user:1", 1, NULL).allowed);
    cr_expect(ask_one(store, &a, "user:1x", 1, NULL).allowed);
}

Test(shm, decides_as_the_arithmetic_does_over_ten_thousand_random_asks)
{
    struct rule_kit kits[2] = { WINDOW("w", 20, WEIR_MILLISECONDS(50)),
                                BUCKET("b", 7, 7, WEIR_MILLISECONDS(13)) };
    struct weir__limit_state states[2][8] = { 0 };
    struct rng rng = { 5 };
    for (int i = 0; i < 10000; i++) {
        int rule = (int)rng_between(&rng, 0, 1), caller = (int)rng_between(&rng, 0, 7);
        int64_t cost = rng_between(&rng, 0, 4);
        char subject[16];
        snprintf(subject, sizeof subject, "user:%d", caller);
        struct weir_rule_answer expected;
        weir__limit_decide(&kits[rule].limit,
                           states[rule][caller],
                           cost,
                           asks_now_us,
                           &states[rule][caller],
                           &expected);
        struct weir_rule_answer seen = ask_one(store, &kits[rule], subject, cost, NULL);
        cr_assert_eq(seen.allowed, expected.allowed);
        cr_assert_eq(seen.never, expected.never);
        cr_assert_eq(seen.cost, expected.cost);
        cr_assert_eq(seen.remaining, expected.remaining);
        cr_assert_eq(seen.retry_us, expected.retry_us);
        cr_assert_eq(seen.next_us, expected.next_us);
        cr_assert_eq(seen.full_us, expected.full_us);
        asks_now_us += rng_between(&rng, 0, 2000);
    }
}

Test(shm, keeps_no_entry_for_what_only_asks_or_can_never_pass)
{
    struct rule_kit a = WINDOW("a", 2, WEIR_SECONDS(60)),
                    blocked = WINDOW("blocked", WEIR_BLOCK, WEIR_SECONDS(60));
    cr_expect(ask_one(store, &a, "user:1", 0, NULL).allowed);
    cr_expect_not(ask_one(store, &a, "user:1", 3, NULL).allowed);
    cr_expect_not(ask_one(store, &blocked, "user:1", 1, NULL).allowed);
    cr_expect_eq(verified().entries, 0);
}

/* Whoever asks for too much at once is not being refused: the entry must not become one
 * that never goes. */
Test(shm, marks_a_counter_as_refused_only_where_its_budget_is_used)
{
    struct rule_kit a = WINDOW("a", 30, WEIR_SECONDS(60));
    ask_one(store, &a, "user:1", 2, NULL);
    cr_expect_eq(verified().levels[1], 1);
    cr_expect(ask_one(store, &a, "user:1", 31, NULL).never);
    cr_expect_eq(verified().levels[1], 1);
    cr_expect_not(ask_one(store, &a, "user:1", 29, NULL).allowed);
    cr_expect_eq(verified().levels[15], 1);
    cr_expect_eq(ask_one(store, &a, "user:1", 28, NULL).remaining, 0);
    cr_expect_eq(verified().levels[15], 1);
}

Test(shm, gives_back_what_a_decision_took_and_only_once)
{
    struct rule_kit kits[2] = { WINDOW("w", 5, WEIR_SECONDS(60)),
                                BUCKET("b", 5, 1, WEIR_SECONDS(1)) };
    for (int i = 0; i < 2; i++) {
        struct weir_store_ask ask;
        ask_one(store, &kits[i], "user:1", 1, NULL);
        cr_expect_eq(ask_one(store, &kits[i], "user:1", 3, &ask).remaining, 1);
        store->ops->refund(store->self, &ask);
        cr_expect_eq(ask_one(store, &kits[i], "user:1", 0, NULL).remaining, 4);
        store->ops->refund(store->self, &ask);
        cr_expect_eq(ask_one(store, &kits[i], "user:1", 0, NULL).remaining, 4);
    }
}

Test(shm, gives_back_nothing_for_a_refusal_or_in_a_window_that_has_rolled_on)
{
    struct rule_kit a = WINDOW("a", 2, WEIR_SECONDS(60));
    struct weir_store_ask ask, refused;
    ask_one(store, &a, "user:1", 2, &ask);
    ask_one(store, &a, "user:1", 1, &refused);
    store->ops->refund(store->self, &refused);
    cr_expect_not(ask_one(store, &a, "user:1", 1, NULL).allowed);
    asks_now_us += WEIR_SECONDS(60);
    cr_expect_eq(ask_one(store, &a, "user:1", 2, NULL).remaining, 0);
    store->ops->refund(store->self, &ask);
    cr_expect_not(ask_one(store, &a, "user:1", 1, NULL).allowed);
}

Test(shm, serves_within_one_window_after_the_clock_stepped_back)
{
    struct rule_kit a = WINDOW("a", 5, WEIR_SECONDS(60));
    ask_one(store, &a, "user:1", 5, NULL);
    asks_now_us -= WEIR_HOURS(1);
    cr_expect_eq(ask_one(store, &a, "user:1", 1, NULL).retry_us, WEIR_SECONDS(60));
    asks_now_us += WEIR_SECONDS(60) - 1;
    cr_expect_eq(ask_one(store, &a, "user:1", 1, NULL).retry_us, 1);
    asks_now_us += 1;
    cr_expect(ask_one(store, &a, "user:1", 1, NULL).allowed);
}

/* A case from the field: each reload gave fresh budgets, or a shortened window left
 * callers waiting for the old length. Here the rule changes while its counter lives. */
Test(shm, keeps_counters_when_a_rule_changes)
{
    struct rule_kit a = WINDOW("a", 5, WEIR_SECONDS(3600));
    ask_one(store, &a, "user:1", 4, NULL);
    struct rule_kit reloaded = WINDOW("a", 5, WEIR_SECONDS(3600));
    cr_expect_eq(ask_one(store, &reloaded, "user:1", 1, NULL).remaining, 0);
    cr_expect_not(ask_one(store, &reloaded, "user:1", 1, NULL).allowed);
    struct rule_kit shorter = WINDOW("a", 5, WEIR_SECONDS(60));
    cr_expect_eq(ask_one(store, &shorter, "user:1", 1, NULL).retry_us, WEIR_SECONDS(60));
    asks_now_us += WEIR_SECONDS(60);
    cr_expect(ask_one(store, &shorter, "user:1", 1, NULL).allowed);
}

Test(shm, takes_keys_of_any_length)
{
    struct rule_kit a = WINDOW("a", 1, WEIR_SECONDS(60));
    char longest[3000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    cr_expect(ask_one(store, &a, longest, 1, NULL).allowed);
    cr_expect_not(ask_one(store, &a, longest, 1, NULL).allowed);
    cr_expect(ask_one(store, &a, longest + 1, 1, NULL).allowed);
}

/* A case from the field: 5 in 600 s, V has used them up, a hundred times as many others
 * come as the table holds, and V gets a new budget. */
Test(shm, keeps_refusing_a_caller_through_a_flood_of_a_hundred_times_its_size)
{
    struct rule_kit a = WINDOW("a", 5, WEIR_SECONDS(600));
    for (int i = 0; i < 5; i++)
        cr_expect(ask_one(store, &a, "ip:198.51.100.7", 1, NULL).allowed);
    for (int i = 0; i < 100000; i++) {
        char subject[32];
        snprintf(
            subject, sizeof subject, "ip:10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
        cr_assert(ask_one(store, &a, subject, 1, NULL).allowed);
        asks_now_us += 100;
    }
    struct weir_rule_answer answer = ask_one(store, &a, "ip:198.51.100.7", 1, NULL);
    cr_expect_not(answer.allowed);
    cr_expect_eq(answer.retry_us, WEIR_SECONDS(590));
    cr_expect(ask_one(store, &a, "ip:203.0.113.9", 1, NULL).allowed);

    struct weir__shm_census full = verified();
    cr_expect_eq(full.entries, 1005);
    cr_expect_eq(full.levels[15], 1);
    asks_now_us += WEIR_SECONDS(600) + 1;
    cr_expect_eq(verified().expired, 1005);
    cr_expect_eq(ask_one(store, &a, "ip:198.51.100.7", 1, NULL).remaining, 4);
}

Test(shm, counts_newcomers_together_where_all_others_are_being_refused)
{
    struct rule_kit one = WINDOW("one", 1, WEIR_SECONDS(600)),
                    a = WINDOW("a", 5, WEIR_SECONDS(600));
    char subject[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(subject, sizeof subject, "user:%d", i);
        ask_one(store, &one, subject, 1, NULL);
    }
    struct weir__shm_census full = verified();
    cr_expect_eq(full.levels[15], 1005 + 1, "all ways, and one overflow counter");

    /* Five pass in all, whoever they are; then the wait is told. */
    int passed = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(subject, sizeof subject, "user:new%d", i);
        passed += ask_one(store, &a, subject, 1, NULL).allowed;
    }
    cr_expect_eq(passed, 5);
    struct weir_store_ask ask;
    cr_expect_not(ask_one(store, &a, "user:late", 1, NULL).allowed);
    asks_now_us += WEIR_SECONDS(600) + 1;
    cr_expect_eq(ask_one(store, &a, "user:late", 2, &ask).remaining, 3);
    store->ops->refund(store->self, &ask);
    cr_expect_eq(ask_one(store, &a, "user:late", 0, NULL).remaining, 5);
}

Test(shm, gives_back_to_the_overflow_counter_what_was_taken_there)
{
    struct rule_kit one = WINDOW("one", 1, WEIR_SECONDS(600)),
                    a = WINDOW("a", 5, WEIR_SECONDS(600));
    char subject[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(subject, sizeof subject, "user:%d", i);
        ask_one(store, &one, subject, 1, NULL);
    }
    struct weir_store_ask ask;
    cr_expect_eq(ask_one(store, &a, "user:x", 3, &ask).remaining, 2);
    cr_expect_eq(ask_one(store, &a, "user:y", 1, NULL).remaining, 1);
    store->ops->refund(store->self, &ask);
    cr_expect_eq(ask_one(store, &a, "user:z", 1, NULL).remaining, 3);
}

/* ---- windows with an anchor -------------------------------------------------------- */

static int64_t wall_us;

static int64_t wall_clock(void)
{
    return wall_us;
}

static struct weir_store *anchored_store(int64_t now_wall_us)
{
    struct weir_error error = { { 0 } };
    wall_us = now_wall_us;
    weir__clock_replace(asks_clock, wall_clock);
    struct weir_store *made = weir_shm_create(NULL, &error);
    cr_assert_not_null(made, "%s", error.text);
    return made;
}

Test(shm, a_window_with_an_anchor_ends_when_the_wall_clock_says)
{
    struct rule_kit day = WINDOW("day", 1, WEIR_DAYS(1), .anchor = WEIR_ANCHOR_CLOCK);
    struct weir_store *own = anchored_store(WEIR_DAYS(20000) + WEIR_HOURS(23));
    cr_expect(ask_one(own, &day, "user:1", 1, NULL).allowed);
    wall_us += WEIR_HOURS(1) - 1;
    cr_expect_eq(ask_one(own, &day, "user:1", 1, NULL).retry_us, 1);
    asks_now_us += WEIR_DAYS(3); /* no clock of this rule */
    cr_expect_eq(ask_one(own, &day, "user:1", 1, NULL).retry_us, 1);
    wall_us += 1;
    cr_expect_eq(ask_one(own, &day, "user:1", 1, NULL).full_us, WEIR_DAYS(1));
    weir_store_destroy(own);
}

Test(shm, a_window_with_an_anchor_outlives_steps_of_the_wall_clock)
{
    struct rule_kit month = kit((struct weir_rule)WEIR_CALENDAR_MONTH("m", 1));
    struct weir_store *own = anchored_store(WEIR_DAYS(20000));
    struct weir_store_ask ask;
    cr_expect(ask_one(own, &month, "user:1", 1, &ask).allowed);
    wall_us -= WEIR_DAYS(400);
    struct weir_rule_answer answer = ask_one(own, &month, "user:1", 1, NULL);
    cr_expect_not(answer.allowed);
    cr_expect_leq(answer.retry_us, WEIR_DAYS(31));
    wall_us = WEIR_DAYS(19999) + 1 + answer.retry_us;
    cr_expect(ask_one(own, &month, "user:1", 1, NULL).allowed);
    weir_store_destroy(own);
}

Test(shm, gives_back_to_a_window_with_an_anchor)
{
    struct rule_kit month = kit((struct weir_rule)WEIR_CALENDAR_MONTH("m", 1));
    struct weir_store *own = anchored_store(WEIR_DAYS(20000));
    struct weir_store_ask ask;
    cr_expect(ask_one(own, &month, "user:1", 1, &ask).allowed);
    own->ops->refund(own->self, &ask);
    cr_expect(ask_one(own, &month, "user:1", 1, NULL).allowed);
    weir_store_destroy(own);
}
