#include <weir/limiter.h>

#include <criterion/criterion.h>
#include <string.h>

#include "support/asks.h"

static const struct weir_rule *const five =
    WEIR_LIMITS(WEIR_FIXED_WINDOW("five", 5, WEIR_SECONDS(60)));

static struct weir_limiter *
made(struct weir_store *store, const struct weir_rule *limits, int64_t timeout_us)
{
    struct weir_error error = { { 0 } };
    struct weir_limiter *limiter =
        weir_limiter_create(&(struct weir_limiter_options){ .store = store,
                                                            .bucket = "jobs",
                                                            .limits = limits,
                                                            .timeout_us = timeout_us },
                            &error);
    cr_assert_not_null(limiter, "%s", error.text);
    return limiter;
}

static struct weir_caller user(const char *id)
{
    struct weir_caller caller;
    cr_assert(weir_caller_user(&caller, id));
    return caller;
}

Test(limiter, counts_callers_in_shared_memory)
{
    struct weir_store *store = weir_shm_create(NULL, NULL);
    struct weir_limiter *limiter = made(store, five, 0);
    struct weir_caller one = user("1"), two = user("2");
    struct weir_decision decision;
    asks_stop_clock();
    for (int i = 0; i < 5; i++)
        cr_expect(weir_limit_decide(
            limiter, &(struct weir_limit_query){ .caller = &one }, &decision));
    cr_expect_not(weir_limit_decide(
        limiter, &(struct weir_limit_query){ .caller = &one }, &decision));
    cr_expect_eq(decision.rules[0].retry_us, WEIR_SECONDS(60));
    cr_expect_eq(decision.source, WEIR_SOURCE_SHM);
    cr_expect(weir_limit_decide(
        limiter, &(struct weir_limit_query){ .caller = &two, .cost = 5 }, &decision));
    cr_expect_not(weir_limit_decide(
        limiter, &(struct weir_limit_query){ .caller = &two, .peek = true }, &decision));
    weir_limiter_destroy(limiter);
    weir_limiter_destroy(NULL);
    weir_store_destroy(store);
}

Test(limiter, names_its_keys_by_bucket_rule_and_whom_it_counts)
{
    struct weir_store *fake = weir_fake_create();
    struct weir_limiter *limiter = made(
        fake,
        WEIR_LIMITS(WEIR_FIXED_WINDOW("a", 5, 1000),
                    WEIR_TOKEN_BUCKET("b", 5, 1, 1000, .by = WEIR_BY_IP, .cost = 3),
                    WEIR_FIXED_WINDOW(
                        "c", 5, 1000, .by = WEIR_BY_EVERYBODY, .bucket = "all-mail")),
        0);
    struct weir_caller one = user("1");
    struct weir_decision decision;
    cr_expect(weir_limit_decide(
        limiter,
        &(struct weir_limit_query){ .caller = &one, .ip = "198.51.100.7" },
        &decision));
    cr_expect_str_eq(weir_fake_subject(fake, 0), "user:1");
    cr_expect_str_eq(weir_fake_subject(fake, 1), "ip:198.51.100.7");
    cr_expect_str_eq(weir_fake_subject(fake, 2), "all");
    cr_expect_str_eq(weir_fake_tail(fake, 0), "jobs:a:w1");
    cr_expect_str_eq(weir_fake_tail(fake, 1), "jobs:b:b1");
    cr_expect_str_eq(weir_fake_tail(fake, 2), "all-mail:c:w1");
    cr_expect_eq(decision.rules[0].cost, 1);
    cr_expect_eq(decision.rules[1].cost, 3);

    cr_expect(weir_limit_decide(limiter, &(struct weir_limit_query){ 0 }, &decision));
    cr_expect_str_eq(weir_fake_subject(fake, 0), "none");
    cr_expect_str_eq(weir_fake_subject(fake, 1), "none");
    weir_limiter_destroy(limiter);
    weir_store_destroy(fake);
}

static void push(struct weir_store *fake, enum weir_fake_kind kind, int64_t delay_us)
{
    struct weir_fake_answer answer = { .kind = kind,
                                       .remaining = 3,
                                       .delay_us = delay_us };
    cr_assert(weir_fake_push(fake, &answer));
}

Test(limiter, waits_for_an_answer_that_comes_later)
{
    struct weir_store *fake = weir_fake_create();
    struct weir_limiter *limiter = made(fake, five, WEIR_SECONDS(20));
    struct weir_decision decision;
    push(fake, WEIR_FAKE_PENDING_ALLOW, 2000);
    cr_expect(weir_limit_decide(limiter, &(struct weir_limit_query){ 0 }, &decision));
    cr_expect_eq(decision.source, WEIR_SOURCE_FAKE);
    cr_expect_eq(decision.rules[0].remaining, 3);
    cr_expect_eq(weir_fake_refunded(fake), 0);
    weir_limiter_destroy(limiter);
    weir_store_destroy(fake);
}

/* The answer comes when nobody waits any more, even when the limiter is gone. */
Test(limiter, gives_back_what_an_answer_took_that_came_too_late)
{
    struct weir_store *fake = weir_fake_create();
    struct weir_limiter *limiter = made(fake, five, 1000);
    struct weir_decision decision;
    push(fake, WEIR_FAKE_PENDING_ALLOW, 50000);
    cr_expect(weir_limit_decide(limiter, &(struct weir_limit_query){ 0 }, &decision));
    cr_expect_eq(decision.source, WEIR_SOURCE_ALLOW);
    cr_expect_eq(decision.rules_len, 0);
    weir_limiter_destroy(limiter);
    while (weir_fake_refunded(fake) == 0)
        ;
    weir_store_destroy(fake);
}

Test(limiter, lets_the_rules_say_what_holds_without_an_answer)
{
    struct weir_store *fake = weir_fake_create();
    struct weir_limiter *open = made(fake, five, 0),
                        *closed = made(
                            fake,
                            WEIR_LIMITS(WEIR_FIXED_WINDOW("a", 5, 1000),
                                        WEIR_FIXED_WINDOW(
                                            "b", 5, 1000, .on_store_error = WEIR_DENY)),
                            0);
    struct weir_decision decision;
    push(fake, WEIR_FAKE_UNAVAILABLE, 0);
    push(fake, WEIR_FAKE_UNAVAILABLE, 0);
    cr_expect(weir_limit_decide(open, &(struct weir_limit_query){ 0 }, &decision));
    cr_expect_eq(decision.source, WEIR_SOURCE_ALLOW);
    cr_expect_not(weir_limit_decide(closed, &(struct weir_limit_query){ 0 }, &decision));
    cr_expect_eq(decision.source, WEIR_SOURCE_DENY);
    cr_expect_not(decision.allowed);
    weir_limiter_destroy(open);
    weir_limiter_destroy(closed);
    weir_store_destroy(fake);
}

static int64_t any_cost(struct weir *w)
{
    (void)w;
    return 1;
}

static void refused(struct weir_limiter_options options, const char *text)
{
    struct weir_error error = { { 0 } };
    cr_expect_null(weir_limiter_create(&options, &error));
    cr_expect_str_eq(error.text, text);
}

Test(limiter, names_what_is_wrong_with_its_options)
{
    struct weir_store *fake = weir_fake_create();
    refused((struct weir_limiter_options){ .bucket = "b", .limits = five },
            "limiter: store: missing");
    refused((struct weir_limiter_options){ .store = fake, .limits = five },
            "limiter: bucket: not 1 to 64 of [A-Za-z0-9._-]");
    refused(
        (struct weir_limiter_options){ .store = fake, .bucket = "a b", .limits = five },
        "limiter: bucket: not 1 to 64 of [A-Za-z0-9._-]");
    refused((struct weir_limiter_options){ .store = fake, .bucket = "b" },
            "limiter: limits: missing");
    refused(
        (struct weir_limiter_options){
            .store = fake, .bucket = "b", .limits = five, .timeout_us = -1 },
        "limiter: timeout_us: negative");
    refused((struct weir_limiter_options){ .store = fake,
                                           .bucket = "b",
                                           .limits = WEIR_LIMITS(
                                               WEIR_FIXED_WINDOW("x", -2, 1000)) },
            "limits[0] \"x\": max: -2 is negative (0 or WEIR_BLOCK refuses all)");
    refused((struct weir_limiter_options){ .store = fake,
                                           .bucket = "b",
                                           .limits = WEIR_UNLIMITED },
            "limits: unlimited stands among other rules");
    refused((struct weir_limiter_options){ .store = fake,
                                           .bucket = "b",
                                           .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW(
                                               "x", 2, 1000, .cost_fn = any_cost)) },
            "limiter: limits[0] \"x\": cost_fn: there is no request");
    weir_store_destroy(fake);
}
