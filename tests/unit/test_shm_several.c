/* Several rules in one request over shared memory: all or nothing. */
#include <criterion/criterion.h>

#include "store/shm.h"
#include "store/shm_table.h"
#include "support/asks.h"
#include "support/rng.h"

static struct weir_store *store;
static struct rule_kit kits[WEIR_RULES_MAX];

static void setup(void)
{
    asks_stop_clock();
    store = weir_shm_create(&(struct weir_shm_options){ .entries = 1000 }, NULL);
    cr_assert_not_null(store);
}

static void teardown(void)
{
    struct weir_error error = { { 0 } };
    struct weir__shm_census census;
    cr_expect(
        weir__shm_verify(weir__shm_segment_of(store), &census, &error), "%s", error.text);
    cr_expect_eq(census.locks, 0);
    weir_store_destroy(store);
}

TestSuite(shm_several, .init = setup, .fini = teardown);

#define WINDOW(...) (struct weir_rule) WEIR_FIXED_WINDOW(__VA_ARGS__)
#define BUCKET(...) (struct weir_rule) WEIR_TOKEN_BUCKET(__VA_ARGS__)

/* Asks the first len kits for one caller. */
static struct weir_store_ask ask_all(unsigned len, int64_t cost)
{
    struct weir_store_ask ask = { .items_len = 0 };
    for (unsigned i = 0; i < len; i++)
        ask_add(&ask, &kits[i], i % 2 ? "ip:198.51.100.7" : "user:42", cost);
    cr_assert_eq(store->ops->decide(store->self, &ask), WEIR_STORE_READY);
    cr_assert_eq(ask.decision.rules_len, len);
    return ask;
}

/* A case from the field: rules were charged in turn with no roll-back. Ten accepted
 * requests emptied a budget of thirty, and the refusal named the wrong rule and wait. */
Test(shm_several, charges_nothing_where_one_rule_refuses)
{
    kit_init(&kits[0], WINDOW("a", 10, WEIR_SECONDS(60)));
    kit_init(&kits[1], WINDOW("b", 30, WEIR_SECONDS(1800)));
    for (int minute = 0; minute < 3; minute++) {
        int passed = 0;
        struct weir_store_ask ask;
        for (int i = 0; i < 31; i++) {
            ask = ask_all(2, 1);
            passed += ask.decision.allowed;
        }
        cr_expect_eq(passed, 10);
        cr_expect_not(ask.decision.rules[0].allowed);
        cr_expect_eq(ask.decision.rules[1].remaining, 20 - 10 * minute);
        asks_now_us += WEIR_SECONDS(60);
    }
    struct weir_store_ask ask = ask_all(2, 1);
    cr_expect_not(ask.decision.allowed);
    cr_expect(ask.decision.rules[0].allowed);
    cr_expect_eq(ask.decision.rules[0].remaining, 10);
    cr_expect_eq(ask.decision.rules[0].retry_us, 0);
    cr_expect_eq(ask.decision.rules[0].cost, 1);
    cr_expect_not(ask.decision.rules[1].allowed);
    cr_expect_eq(ask.decision.rules[1].retry_us, WEIR_SECONDS(1620));
    ask = ask_all(1, 10);
    cr_expect(ask.decision.allowed, "the first rule was charged by a refused request");
}

Test(shm_several, names_every_rule_that_refuses)
{
    kit_init(&kits[0], WINDOW("a", 1, WEIR_SECONDS(60)));
    kit_init(&kits[1], BUCKET("b", 1, 1, WEIR_SECONDS(90)));
    kit_init(&kits[2], WINDOW("c", 5, WEIR_SECONDS(60)));
    cr_expect(ask_all(3, 1).decision.allowed);
    struct weir_store_ask ask = ask_all(3, 1);
    cr_expect_not(ask.decision.allowed);
    cr_expect_not(ask.decision.rules[0].allowed);
    cr_expect_eq(ask.decision.rules[0].retry_us, WEIR_SECONDS(60));
    cr_expect_not(ask.decision.rules[1].allowed);
    cr_expect_eq(ask.decision.rules[1].retry_us, WEIR_SECONDS(90));
    cr_expect(ask.decision.rules[2].allowed);
    cr_expect_eq(ask.decision.rules[2].remaining, 4);

    ask = ask_all(3, 6);
    cr_expect(ask.decision.rules[2].never);
    cr_expect_not(ask.decision.rules[2].allowed);
}

Test(shm_several, makes_no_entry_for_a_rule_that_would_have_admitted)
{
    kit_init(&kits[0], WINDOW("a", WEIR_BLOCK, WEIR_SECONDS(60)));
    kit_init(&kits[1], WINDOW("b", 30, WEIR_SECONDS(1800)));
    cr_expect_not(ask_all(2, 1).decision.allowed);
    struct weir__shm_census census;
    cr_expect(weir__shm_verify(weir__shm_segment_of(store), &census, NULL));
    cr_expect_eq(census.entries, 0);
}

Test(shm_several, gives_all_rules_back)
{
    for (unsigned i = 0; i < WEIR_RULES_MAX; i++) {
        char name[2] = { (char)('a' + i), '\0' };
        kit_init(&kits[i], WINDOW(name, 5, WEIR_SECONDS(60)));
        kits[i].rule.name = "kept by the tail alone";
    }
    struct weir_store_ask ask = ask_all(WEIR_RULES_MAX, 3);
    cr_expect(ask.decision.allowed);
    store->ops->refund(store->self, &ask);
    cr_expect(ask_all(WEIR_RULES_MAX, 5).decision.allowed);
    cr_expect_not(ask_all(WEIR_RULES_MAX, 1).decision.allowed);
}

Test(shm_several, counts_twice_what_is_asked_twice)
{
    kit_init(&kits[0], WINDOW("a", 3, WEIR_SECONDS(60)));
    struct weir_store_ask ask = { .items_len = 0 };
    ask_add(&ask, &kits[0], "user:42", 1);
    ask_add(&ask, &kits[0], "user:42", 1);
    store->ops->decide(store->self, &ask);
    cr_expect(ask.decision.allowed);
    cr_expect_eq(ask_all(1, 0).decision.rules[0].remaining, 1);
    store->ops->decide(store->self, &ask);
    cr_expect_not(ask.decision.allowed);
    cr_expect_eq(ask_all(1, 0).decision.rules[0].remaining, 1);
}

/* What the store has to answer: all rules by the arithmetic alone, then the states of all
 * or of none. */
struct model {
    struct weir__limit_state states[4];
};

static bool model_ask(struct model *model,
                      unsigned len,
                      const int64_t *costs,
                      struct weir_rule_answer *ret_answers)
{
    struct weir__limit_state after[4], kept;
    bool allowed = true;
    for (unsigned i = 0; i < len; i++) {
        weir__limit_decide(&kits[i].limit,
                           model->states[i],
                           costs[i],
                           asks_now_us,
                           &after[i],
                           &ret_answers[i]);
        allowed = allowed && ret_answers[i].allowed;
    }
    for (unsigned i = 0; i < len; i++) {
        if (allowed)
            model->states[i] = after[i];
        else if (ret_answers[i].allowed) {
            weir__limit_decide(
                &kits[i].limit, model->states[i], 0, asks_now_us, &kept, &ret_answers[i]);
            ret_answers[i].allowed = true;
            ret_answers[i].retry_us = 0;
            ret_answers[i].cost = costs[i];
        }
    }
    return allowed;
}

Test(shm_several, decides_as_the_arithmetic_does_over_a_hundred_thousand_asks)
{
    kit_init(&kits[0], WINDOW("w", 20, WEIR_MILLISECONDS(50)));
    kit_init(&kits[1], BUCKET("b", 7, 7, WEIR_MILLISECONDS(13)));
    kit_init(&kits[2], WINDOW("x", 9, WEIR_MILLISECONDS(20)));
    kit_init(&kits[3], BUCKET("c", 30, 999, WEIR_SECONDS(1)));
    struct model model = { .states = { { 0, 0 } } };
    struct rng rng = { 7 };
    for (int i = 0; i < 100000; i++) {
        unsigned len = (unsigned)rng_between(&rng, 1, 4);
        int64_t costs[4];
        struct weir_rule_answer expected[4];
        struct weir_store_ask ask = { .items_len = 0 };
        for (unsigned r = 0; r < len; r++) {
            costs[r] = rng_between(&rng, 0, 4);
            ask_add(&ask, &kits[r], "user:42", costs[r]);
        }
        bool allowed = model_ask(&model, len, costs, expected);
        store->ops->decide(store->self, &ask);
        cr_assert_eq(ask.decision.allowed, allowed);
        for (unsigned r = 0; r < len; r++) {
            const struct weir_rule_answer *seen = &ask.decision.rules[r];
            cr_assert_eq(seen->allowed, expected[r].allowed);
            cr_assert_eq(seen->never, expected[r].never);
            cr_assert_eq(seen->cost, expected[r].cost);
            cr_assert_eq(seen->remaining, expected[r].remaining);
            cr_assert_eq(seen->retry_us, expected[r].retry_us);
            cr_assert_eq(seen->next_us, expected[r].next_us);
            cr_assert_eq(seen->full_us, expected[r].full_us);
        }
        asks_now_us += rng_between(&rng, 0, 2000);
    }
}
