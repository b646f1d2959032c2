/* Waits: whatever order wake, time-out and parking meet in, one resume. */
#include <criterion/criterion.h>

#include "life.h"
#include "wait.h"

static const struct weir_filter filter = { .name = "waiter" };
static unsigned resumed;
static unsigned armed;
static uint64_t armed_wait;

/* What the tests do while the request arms its time-out, before it has parked. */
static enum { NOTHING, WAKE, TIME_OUT } meanwhile;

static void count_resume(struct weir *w)
{
    (void)w;
    resumed++;
}

static void remember_arm(struct weir *w, uint64_t wait)
{
    armed++;
    armed_wait = wait;
    if (meanwhile == WAKE)
        weir_wake(w);
    if (meanwhile == TIME_OUT)
        weir__life_timeout(w, wait);
}

static const struct weir__transport_ops transport = {
    .name = "test",
    .resume = count_resume,
    .arm = remember_arm,
};

static enum weir_verdict then(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self, (void)slot;
    return WEIR_NEXT;
}

static struct weir request(void)
{
    resumed = armed = 0;
    meanwhile = NOTHING;
    return (struct weir){ .transport = &transport, .running = &filter };
}

Test(wait, parks_and_is_woken_once)
{
    struct weir w = request();
    weir__wait_init(&w);
    cr_assert_eq(weir_wait(&w, then, WEIR_SECONDS(1)), WEIR_WAIT);
    cr_assert(weir__wait_park(&w));
    cr_assert_eq(armed, 1u);
    weir_wake(&w);
    weir_wake(&w);
    weir__life_timeout(&w, armed_wait);
    cr_assert_eq(resumed, 1u);
    weir__wait_over(&w);
    cr_assert_not(weir_timed_out(&w));
}

Test(wait, ends_by_its_time_once)
{
    struct weir w = request();
    weir__wait_init(&w);
    weir_wait(&w, then, WEIR_SECONDS(1));
    cr_assert(weir__wait_park(&w));
    weir__life_timeout(&w, armed_wait);
    weir__life_timeout(&w, armed_wait);
    weir_wake(&w);
    cr_assert_eq(resumed, 1u);
    weir__wait_over(&w);
    cr_assert(weir_timed_out(&w));
}

Test(wait, does_not_park_when_woken_in_advance)
{
    struct weir w = request();
    weir__wait_init(&w);
    weir_wake(&w);
    weir_wait(&w, then, WEIR_SECONDS(1));
    cr_assert_not(weir__wait_park(&w));
    cr_assert_eq(resumed, 0u);
    cr_assert_not(weir_timed_out(&w));
    weir_wait(&w, then, WEIR_SECONDS(1));
    cr_assert(weir__wait_park(&w), "one wake ends one wait");
}

Test(wait, does_not_park_when_woken_while_it_arms)
{
    struct weir w = request();
    weir__wait_init(&w);
    meanwhile = WAKE;
    weir_wait(&w, then, WEIR_SECONDS(1));
    cr_assert_not(weir__wait_park(&w));
    cr_assert_eq(resumed, 0u);
    cr_assert_not(weir_timed_out(&w));
}

Test(wait, does_not_park_when_its_time_is_over_while_it_arms)
{
    struct weir w = request();
    weir__wait_init(&w);
    meanwhile = TIME_OUT;
    weir_wait(&w, then, WEIR_SECONDS(1));
    cr_assert_not(weir__wait_park(&w));
    cr_assert_eq(resumed, 0u);
    cr_assert(weir_timed_out(&w));
}

Test(wait, ignores_the_time_out_of_an_earlier_wait)
{
    struct weir w = request();
    weir__wait_init(&w);
    weir_wait(&w, then, WEIR_SECONDS(1));
    cr_assert(weir__wait_park(&w));
    uint64_t first = armed_wait;
    weir_wake(&w);
    weir__wait_over(&w);
    weir_wait(&w, then, WEIR_SECONDS(1));
    cr_assert(weir__wait_park(&w));
    weir__life_timeout(&w, first);
    cr_assert_eq(resumed, 1u);
    weir__life_timeout(&w, armed_wait);
    cr_assert_eq(resumed, 2u);
}

Test(wait, ignores_the_time_out_of_the_handles_last_request)
{
    struct weir w = request();
    weir__wait_init(&w);
    weir_wait(&w, then, WEIR_SECONDS(1));
    cr_assert(weir__wait_park(&w));
    uint64_t first = armed_wait;
    weir_wake(&w);
    weir__wait_over(&w);
    weir__wait_init(&w);
    weir_wait(&w, then, WEIR_SECONDS(1));
    cr_assert(weir__wait_park(&w));
    weir__life_timeout(&w, first);
    cr_assert_eq(resumed, 1u);
}

Test(wait, forgets_a_wake_that_nobody_waited_for)
{
    struct weir w = request();
    weir__wait_init(&w);
    weir_wake(&w);
    weir__wait_forget(&w);
    weir_wait(&w, then, WEIR_SECONDS(1));
    cr_assert(weir__wait_park(&w));
}

Test(wait, sits_in_the_thread_until_its_time_is_over)
{
    struct weir w = request();
    weir__wait_init(&w);
    weir_wait(&w, then, WEIR_MILLISECONDS(1));
    weir__wait_sit(&w);
    cr_assert(weir_timed_out(&w));
    cr_assert_eq(resumed, 0u);
    cr_assert_eq(armed, 0u);
}

Test(wait, does_not_sit_when_woken_in_advance)
{
    struct weir w = request();
    weir__wait_init(&w);
    weir_wake(&w);
    weir_wait(&w, then, WEIR_DAYS(1));
    weir__wait_sit(&w);
    cr_assert_not(weir_timed_out(&w));
}

Test(wait, needs_a_time_and_a_continuation)
{
    struct weir w = request();
    unsigned long before = weir_breach_count(WEIR_BREACH_WAIT_ENDLESS);
    cr_assert_eq(weir_wait(&w, then, 0), WEIR_FAIL);
    cr_assert_eq(weir_wait(&w, then, -1), WEIR_FAIL);
    cr_assert_eq(weir_wait(&w, NULL, 1), WEIR_FAIL);
    cr_assert_eq(weir_breach_count(WEIR_BREACH_WAIT_ENDLESS), before + 3);
}

Test(wait, is_only_for_hooks)
{
    struct weir w = request();
    w.running = NULL;
    unsigned long before = weir_breach_count(WEIR_BREACH_WAIT_OUTSIDE);
    cr_assert_eq(weir_wait(&w, then, 1), WEIR_FAIL);
    cr_assert_eq(weir_offload(&w, then), WEIR_FAIL);
    cr_assert_eq(weir_breach_count(WEIR_BREACH_WAIT_OUTSIDE), before + 2);
}
