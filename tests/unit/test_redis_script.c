/* Questions packed for the scripts, answers unpacked. What the scripts do with them is
 * tested in a real Redis, by the programs in tests/store. */
#include "store/redis_script.h"

#include <criterion/criterion.h>
#include <endian.h>
#include <string.h>

#include "support/asks.h"

#define NOW_US INT64_C(1900000000123456)
#define NONCE 77

static struct rule_kit window, bucket;
static struct weir_store_ask ask;
static struct weir__redis_reply reply;
static struct weir__buf out;

static void set_up(void)
{
    kit_init(&window, (struct weir_rule)WEIR_FIXED_WINDOW("w", 5, WEIR_SECONDS(60)));
    kit_init(&bucket, (struct weir_rule)WEIR_TOKEN_BUCKET("b", 20, 7, WEIR_SECONDS(60)));
    memset(&ask, 0, sizeof ask);
    memset(&reply, 0, sizeof reply);
    weir__buf_init(&out, 0);
}

static void tear_down(void)
{
    weir__buf_finish(&out);
}

TestSuite(redis_script, .init = set_up, .fini = tear_down);

static void answer(const double *numbers, unsigned len)
{
    reply.kind = WEIR__REDIS_STRING;
    reply.len = len * sizeof *numbers;
    for (unsigned i = 0; i < len; i++) {
        uint64_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        bits = htole64(bits);
        memcpy(reply.bytes + i * sizeof bits, &bits, sizeof bits);
    }
}

#define ANSWER(...)                                                                      \
    answer((const double[]){ __VA_ARGS__ },                                              \
           sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double))

static bool contains(const char *text)
{
    return memmem(out.bytes, out.len, text, strlen(text)) != NULL;
}

Test(redis_script, one_rule_and_several_have_scripts_of_their_own)
{
    ask_add(&ask, &window, "user:42", 1);
    cr_assert(weir__redis_put_decide(&out, &ask, NONCE));
    cr_assert(contains(weir__redis_scripts[WEIR__REDIS_DECIDE_ONE].sha1));
    cr_assert(contains("$32\r\nrate_limit:{user:42}:GET /t:w:w1\r\n"));
    weir__buf_reset(&out, 0);
    ask_add(&ask, &bucket, "ip:198.51.100.7", 1);
    cr_assert(weir__redis_put_decide(&out, &ask, NONCE));
    cr_assert(contains(weir__redis_scripts[WEIR__REDIS_DECIDE_SEVERAL].sha1));
    cr_assert(contains("rate_limit:{ip:198.51.100.7}:GET /t:b:b1\r\n$16\r\n<ddddddd"));
}

Test(redis_script, an_admission_tells_what_is_left_and_what_was_charged)
{
    ask_add(&ask, &window, "user:42", 2);
    ANSWER(NONCE, NOW_US, 1, NOW_US + 1000, 3);
    cr_assert(weir__redis_read_decision(&ask, NONCE, &reply));
    cr_assert(ask.decision.allowed);
    cr_assert_eq(ask.decision.source, WEIR_SOURCE_REDIS);
    cr_assert_eq(ask.decision.rules[0].remaining, 0);
    cr_assert_eq(ask.decision.rules[0].full_us, 1000);
    cr_assert(ask.receipts[0].charged);
    cr_assert_eq(ask.receipts[0].mark[0], NOW_US + 1000);
    cr_assert_eq(ask.receipts[0].mark[1], 5);
}

Test(redis_script, a_refusal_of_one_rule_leaves_the_others_uncharged)
{
    ask_add(&ask, &window, "user:42", 1);
    ask_add(&ask, &bucket, "user:42", 1);
    ANSWER(NONCE, NOW_US, 0, NOW_US + 1000, 5, 0, 0);
    cr_assert(weir__redis_read_decision(&ask, NONCE, &reply));
    cr_assert_not(ask.decision.allowed);
    cr_assert_eq(ask.decision.rules[0].retry_us, 1000);
    cr_assert(ask.decision.rules[1].allowed);
    cr_assert_eq(ask.decision.rules[1].remaining, 20);
    cr_assert_eq(ask.decision.rules[1].cost, 1);
    cr_assert_not(ask.receipts[0].charged);
    cr_assert_not(ask.receipts[1].charged);
}

Test(redis_script, a_cost_that_no_wait_helps_charges_nobody)
{
    ask_add(&ask, &window, "user:42", 6);
    ask_add(&ask, &bucket, "user:42", 1);
    ANSWER(NONCE, NOW_US, 1, 0, 0, 0, 0);
    cr_assert(weir__redis_read_decision(&ask, NONCE, &reply));
    cr_assert_not(ask.decision.allowed);
    cr_assert(ask.decision.rules[0].never);
    cr_assert(ask.decision.rules[1].allowed);
    cr_assert_not(ask.receipts[1].charged);
}

/* Nothing of this may ever be read as "nothing used" or as "over the limit". */
Test(redis_script, what_is_no_answer_to_this_question_is_no_answer)
{
    ask_add(&ask, &window, "user:42", 1);
    const double bad[][5] = {
        { NONCE + 1, NOW_US, 1, 0, 0 },         /* another's */
        { NONCE, NOW_US, 0, 0, 0 },             /* a verdict that isn't ours */
        { NONCE, NOW_US, 1, NOW_US + 1000, 5 }, /* likewise */
        { NONCE, 0, 1, 0, 0 },                  /* no time */
        { NONCE, -1, 1, 0, 0 },
        { NONCE, NOW_US + 0.5, 1, 0, 0 },
        { NONCE, 1e300, 1, 0, 0 },
        { NONCE, 0.0 / 0.0, 1, 0, 0 },
        { NONCE, NOW_US, 1, 0, 4294967296.0 },
        { NONCE, NOW_US, 1, -1, 0 },
        { NONCE, NOW_US, 1, 0, 1.0 / 0.0 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        answer(bad[i], 5);
        ask.decision.rules_len = 99;
        cr_assert_not(weir__redis_read_decision(&ask, NONCE, &reply), "%zu", i);
        cr_assert_eq(ask.decision.rules_len, 99, "untouched");
    }
    ANSWER(NONCE, NOW_US, 1, 0);
    cr_assert_not(weir__redis_read_decision(&ask, NONCE, &reply), "too short");
    ANSWER(NONCE, NOW_US, 1, 0, 0, 0);
    cr_assert_not(weir__redis_read_decision(&ask, NONCE, &reply), "too long");
    ANSWER(NONCE, NOW_US, 1, 0, 0);
    cr_assert(weir__redis_read_decision(&ask, NONCE, &reply));
    reply.kind = WEIR__REDIS_ERROR;
    cr_assert_not(weir__redis_read_decision(&ask, NONCE, &reply), "an error");
}

Test(redis_script, a_refund_names_only_what_was_charged)
{
    ask_add(&ask, &window, "user:42", 0);
    ask_add(&ask, &bucket, "user:42", 1);
    ANSWER(NONCE, NOW_US, 1, 0, 0, 0, 0);
    cr_assert(weir__redis_read_decision(&ask, NONCE, &reply));
    cr_assert(weir__redis_put_refund(&out, &ask, NONCE));
    cr_assert(contains("GET /t:b:b1"));
    cr_assert_not(contains("GET /t:w:w1"));
    ANSWER(NONCE);
    cr_assert(weir__redis_is_refunded(&reply, NONCE));
    cr_assert_not(weir__redis_is_refunded(&reply, NONCE + 1));
}

Test(redis_script, a_key_that_would_not_fit_is_not_sent)
{
    char tail[2000];
    memset(tail, 'x', sizeof tail);
    tail[sizeof tail - 1] = '\0';
    ask_add(&ask, &window, "user:42", 1);
    ask.items[0].tail = tail;
    cr_assert_not(weir__redis_put_decide(&out, &ask, NONCE));
    cr_assert_eq(out.len, 0);
}
