#include <weir/store.h>

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "support/asks.h"

static struct weir_store *fake;
static struct rule_kit kit;

static void setup(void)
{
    fake = weir_fake_create();
    cr_assert_not_null(fake);
    kit_init(&kit, (struct weir_rule)WEIR_FIXED_WINDOW("w", 10, WEIR_SECONDS(60)));
}

static void teardown(void)
{
    weir_store_destroy(fake);
    weir_store_destroy(NULL);
}

TestSuite(fake, .init = setup, .fini = teardown);

static void push(struct weir_fake_answer answer)
{
    cr_assert(weir_fake_push(fake, &answer));
}

Test(fake, admits_as_if_nothing_were_used_when_its_script_is_over)
{
    struct weir_store_ask ask;
    struct weir_rule_answer answer = ask_one(fake, &kit, "user:1", 3, &ask);
    cr_expect(answer.allowed);
    cr_expect_eq(answer.remaining, 7);
    cr_expect_eq(answer.rule, &kit.rule);
    cr_expect_eq(ask.decision.source, WEIR_SOURCE_FAKE);
    cr_expect(ask.decision.allowed);
}

Test(fake, gives_the_scripted_answers_in_order)
{
    push((struct weir_fake_answer){ .kind = WEIR_FAKE_ALLOW, .remaining = 5 });
    push((struct weir_fake_answer){ .kind = WEIR_FAKE_REFUSE, .rule = 1, .retry_us = 9 });
    push((struct weir_fake_answer){ .kind = WEIR_FAKE_UNAVAILABLE });
    cr_expect_eq(ask_one(fake, &kit, "user:1", 1, NULL).remaining, 5);

    struct weir_store_ask ask = { .items_len = 0 };
    ask_add(&ask, &kit, "user:1", 1);
    ask_add(&ask, &kit, "user:1", 1);
    cr_expect_eq(fake->ops->decide(fake->self, &ask), WEIR_STORE_READY);
    cr_expect_not(ask.decision.allowed);
    cr_expect(ask.decision.rules[0].allowed);
    cr_expect_not(ask.decision.rules[1].allowed);
    cr_expect_eq(ask.decision.rules[1].retry_us, 9);
    cr_expect_eq(fake->ops->decide(fake->self, &ask), WEIR_STORE_UNAVAILABLE);
    cr_expect(ask_one(fake, &kit, "user:1", 1, NULL).allowed);
    for (int i = 0; i < 100; i++)
        push((struct weir_fake_answer){ .kind = WEIR_FAKE_ALLOW, .remaining = i });
    for (int i = 0; i < 100; i++)
        cr_expect_eq(ask_one(fake, &kit, "user:1", 1, NULL).remaining, i);
}

Test(fake, remembers_the_last_question)
{
    cr_expect_str_eq(weir_fake_subject(fake, 0), "");
    ask_one(fake, &kit, "user:1", 1, NULL);
    cr_expect_eq(weir_fake_asked(fake), 1);
    cr_expect_str_eq(weir_fake_subject(fake, 0), "user:1");
    cr_expect_str_eq(weir_fake_tail(fake, 0), "GET /t:w:w1");
    cr_expect_str_eq(weir_fake_subject(fake, 1), "");
    cr_expect_str_eq(weir_fake_tail(fake, 99), "");
}

Test(fake, counts_what_is_given_back_once)
{
    struct weir_store_ask ask;
    ask_one(fake, &kit, "user:1", 1, &ask);
    fake->ops->refund(fake->self, &ask);
    fake->ops->refund(fake->self, &ask);
    cr_expect_eq(weir_fake_refunded(fake), 1);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static bool is_answered;

static void on_done(struct weir_store_ask *ask)
{
    (void)ask;
    pthread_mutex_lock(&lock);
    is_answered = true;
    pthread_cond_signal(&answered);
    pthread_mutex_unlock(&lock);
}

Test(fake, answers_later_from_another_thread)
{
    push((struct weir_fake_answer){
        .kind = WEIR_FAKE_PENDING_ALLOW, .remaining = 4, .delay_us = 1000 });
    struct weir_store_ask ask = { .items_len = 0, .done = on_done };
    ask_add(&ask, &kit, "user:1", 1);
    cr_assert_eq(fake->ops->decide(fake->self, &ask), WEIR_STORE_PENDING);
    pthread_mutex_lock(&lock);
    while (!is_answered)
        pthread_cond_wait(&answered, &lock);
    pthread_mutex_unlock(&lock);
    cr_expect(ask.decision.allowed);
    cr_expect_eq(ask.decision.rules[0].remaining, 4);
}
