/* One test for each rule of the chain: a filter or handler breaks it, lint reports it. */
#include "kit.h"

#include <signal.h>

#include <weir/filters/access_log.h>
#include <weir/filters/identity.h>
#include <weir/filters/lint.h>
#include <weir/filters/ratelimit.h>
#include <weir/filters/request_id.h>
#include <weir/filters/skeleton.h>

#include "lint_watch.h"

static unsigned reported[WEIR_BREACHES];
static char reporter[64]; /* who was reported last, "" for a handler */

static void report(void *arg, const char *filter, enum weir_breach breach)
{
    cr_assert_eq(arg, reported);
    reported[breach]++;
    snprintf(reporter, sizeof reporter, "%s", filter ? filter : "");
}

/* The filter under test, its hooks set by each test. */
static weir_step_fn *on_before, *on_commit;
static weir_after_fn *on_after;

static enum weir_verdict before(struct weir *w, const void *self, void *slot)
{
    return on_before ? on_before(w, self, slot) : WEIR_NEXT;
}

static enum weir_verdict commit(struct weir *w, const void *self, void *slot)
{
    return on_commit ? on_commit(w, self, slot) : WEIR_NEXT;
}

static void after(struct weir *w, const void *self, void *slot)
{
    if (on_after)
        on_after(w, self, slot);
}

static const struct weir_filter filter_rogue = {
    .name = "rogue",
    .slot_size = 5,
    .before = before,
    .commit = commit,
    .after = after,
};

static weir_handler_fn *on_request;

static int handler(struct weir *w)
{
    return on_request ? on_request(w) : weir_text(w, 200, "fine");
}

static const struct weir_endpoint endpoints[] = { { "GET /", handler }, { 0 } };

static const struct weir_use chain[] = {
    WEIR_USE(lint, .report = report, .arg = reported),
    { &filter_rogue, NULL },
    { NULL, NULL },
};

static void open_rogue(void)
{
    kit_open(endpoints, chain);
}

TestSuite(lint, .init = open_rogue, .fini = kit_close);

/* One request; it is answered, and the one thing reported is this breach. */
static void expect(enum weir_breach breach, const char *filter)
{
    kit_get("GET", "/");
    for (unsigned i = 0; i < WEIR_BREACHES; i++)
        cr_assert_eq(reported[i],
                     i == breach ? 1u : 0u,
                     "%s: %u times",
                     weir_breach_text((enum weir_breach)i),
                     reported[i]);
    cr_assert_str_eq(reporter, filter);
}

Test(lint, says_nothing_about_what_is_right)
{
    kit_get("GET", "/");
    for (unsigned i = 0; i < WEIR_BREACHES; i++)
        cr_assert_eq(reported[i], 0u, "%s", weir_breach_text((enum weir_breach)i));
    cr_assert(kit_sent_line("Status: 200 OK"));
}

static enum weir_verdict says_done(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self, (void)slot;
    return WEIR_DONE;
}

Test(lint, reports_done_without_a_status)
{
    on_before = says_done;
    expect(WEIR_BREACH_DONE_UNANSWERED, "rogue");
}

Test(lint, reports_done_in_a_commit)
{
    on_commit = says_done;
    expect(WEIR_BREACH_COMMIT_DONE, "rogue");
}

static enum weir_verdict answers_and_goes_on(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    weir_text(w, 403, "no");
    return WEIR_NEXT;
}

Test(lint, reports_next_after_an_answer)
{
    on_before = answers_and_goes_on;
    expect(WEIR_BREACH_NEXT_ANSWERED, "rogue");
}

static enum weir_verdict says_nonsense(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self, (void)slot;
    return (enum weir_verdict)4;
}

Test(lint, reports_a_verdict_that_is_none)
{
    on_before = says_nonsense;
    expect(WEIR_BREACH_VERDICT, "rogue");
}

static enum weir_verdict says_wait(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self, (void)slot;
    return WEIR_WAIT;
}

Test(lint, reports_a_wait_that_nobody_asked_for)
{
    on_before = says_wait;
    expect(WEIR_BREACH_WAIT_UNASKED, "rogue");
}

static enum weir_verdict next(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self, (void)slot;
    return WEIR_NEXT;
}

static enum weir_verdict forgets_its_wait(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    weir_offload(w, next);
    return WEIR_NEXT;
}

Test(lint, reports_a_wait_that_is_not_returned)
{
    on_before = forgets_its_wait;
    expect(WEIR_BREACH_WAIT_UNSAID, "rogue");
}

static enum weir_verdict waits_for_ever(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    return weir_wait(w, next, 0);
}

Test(lint, reports_a_wait_without_a_deadline)
{
    on_before = waits_for_ever;
    expect(WEIR_BREACH_WAIT_ENDLESS, "rogue");
}

static int waits_in_a_handler(struct weir *w)
{
    weir_wait(w, next, 1);
    return weir_text(w, 200, "fine");
}

Test(lint, reports_a_wait_in_a_handler)
{
    on_request = waits_in_a_handler;
    expect(WEIR_BREACH_WAIT_OUTSIDE, "");
}

static int says_999(struct weir *w)
{
    (void)w;
    return 999;
}

Test(lint, reports_a_status_out_of_range)
{
    on_request = says_999;
    expect(WEIR_BREACH_STATUS, "");
}

static enum weir_verdict injects(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    cr_assert_not(weir_set_header(w, "X-A", "1\r\nSet-Cookie: a=b"));
    return WEIR_NEXT;
}

Test(lint, reports_a_header_with_a_newline)
{
    on_commit = injects;
    expect(WEIR_BREACH_HEADER, "rogue");
}

static enum weir_verdict sets_length(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    cr_assert_not(weir_set_header(w, "Content-Length", "7"));
    return WEIR_NEXT;
}

Test(lint, reports_a_header_that_is_weirs_own)
{
    on_commit = sets_length;
    expect(WEIR_BREACH_HEADER, "rogue");
}

static void sets_header_late(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    cr_assert_not(weir_set_header(w, "X-Late", "1"));
}

Test(lint, reports_a_header_set_when_the_answer_has_left)
{
    on_after = sets_header_late;
    expect(WEIR_BREACH_LATE, "rogue");
}

static void writes_late(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    cr_assert_not(weir_write(w, "x", 1));
}

Test(lint, reports_a_body_written_when_the_answer_has_left)
{
    on_after = writes_late;
    expect(WEIR_BREACH_LATE, "rogue");
}

static int sets_header_behind_its_flush(struct weir *w)
{
    weir_flush(w);
    cr_assert_not(weir_set_header(w, "X-Late", "1"));
    return 200;
}

Test(lint, reports_a_header_set_behind_a_flush)
{
    on_request = sets_header_behind_its_flush;
    expect(WEIR_BREACH_LATE, "");
}

static int no_content_with_body(struct weir *w)
{
    return weir_text(w, 204, "body");
}

Test(lint, reports_a_body_with_204)
{
    on_request = no_content_with_body;
    expect(WEIR_BREACH_BODY, "");
}

static enum weir_verdict overruns(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self;
    memset(slot, 0, 6);
    return WEIR_NEXT;
}

Test(lint, reports_a_write_past_a_slot_even_of_zeros)
{
    on_before = overruns;
    expect(WEIR_BREACH_SLOT, "rogue");
}

static enum weir_verdict takes_its_time(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self, (void)slot;
    kit.now_us += WEIR_MILLISECONDS(51);
    return WEIR_NEXT;
}

static enum weir_verdict offloads_it(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    return weir_offload(w, takes_its_time);
}

Test(lint, reports_a_hook_that_keeps_its_thread)
{
    on_before = takes_its_time;
    expect(WEIR_BREACH_BLOCKED, "rogue");
}

Test(lint, lets_an_offload_take_its_time)
{
    on_before = offloads_it;
    kit_get("GET", "/");
    cr_assert_eq(reported[WEIR_BREACH_BLOCKED], 0u);
}

/* A transport that runs a request on two threads: the second comes while the first is
 * inside a hook. */
static enum weir_verdict is_run_again(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    const struct weir_filter *running = w->running;
    w->stage++;
    weir__life_run(w, false);
    w->running = running;
    return WEIR_NEXT;
}

static const struct weir_filter filter_other = { .name = "other", .before = next };

Test(lint, reports_two_hooks_at_the_same_time)
{
    kit_close();
    kit_open(endpoints,
             WEIR_CHAIN(WEIR_USE(lint, .report = report, .arg = reported),
                        { &filter_rogue, NULL },
                        { &filter_other, NULL }));
    on_before = is_run_again;
    kit_start("GET", "/");
    weir__life_run(&kit.w, false);
    cr_assert_eq(reported[WEIR_BREACH_CONCURRENT], 1u);
    cr_assert_str_eq(reporter, "other");
}

/* ---- rules that only a fault of the machine itself can break ----------------------- */

Test(lint, reports_hooks_out_of_order_or_twice)
{
    kit_get("GET", "/");
    kit.w.running = &filter_rogue;
    weir__lint_enter(&kit.w, WEIR__HOOK_AFTER, 1, true);
    cr_assert_eq(reported[WEIR_BREACH_ORDER], 1u, "after a second time");
    weir__lint_leave(&kit.w, WEIR__HOOK_AFTER, 1, false, WEIR_NEXT);
    weir__lint_enter(&kit.w, WEIR__HOOK_COMMIT, 1, true);
    cr_assert_eq(reported[WEIR_BREACH_ORDER], 2u, "commit of a filter further in");
}

Test(lint, reports_a_length_that_is_not_the_bodys)
{
    kit_start("GET", "/");
    cr_assert_eq(weir__life_run(&kit.w, false), WEIR__NEED_BODY);
    kit.w.head_text = "Status: 200 OK\r\nContent-Length: 9\r\n\r\n";
    kit.w.head_len = strlen(kit.w.head_text);
    cr_assert(weir__buf_append(&kit.w.out, "12345678", 8));
    weir__lint_answer(&kit.w);
    cr_assert_eq(reported[WEIR_BREACH_LENGTH], 1u);
    cr_assert(weir__buf_append(&kit.w.out, "9", 1));
    weir__lint_answer(&kit.w);
    cr_assert_eq(reported[WEIR_BREACH_LENGTH], 1u);
}

/* ---- the filters that ship ----------------------------------------------------------
 */

static bool nobody(struct weir *w, struct weir_caller *ret_caller)
{
    (void)w, (void)ret_caller;
    return false;
}

static void ignore(void *arg, const char *line)
{
    (void)arg, (void)line;
}

static int flushes(struct weir *w)
{
    weir_write(w, "first", 5);
    weir_flush(w);
    return weir_write(w, "second", 6) ? 200 : 500;
}

static const struct weir_rule two[] = { WEIR_FIXED_WINDOW("two", 2, WEIR_HOURS(1)),
                                        { 0 } };
static const struct weir_endpoint limited[] = {
    { "GET /two", handler, .limits = two },
    { "GET /flush", flushes, .limits = two },
    { 0 },
};
static const struct weir_use shipped[] = {
    WEIR_USE(lint, .abort = true),
    WEIR_USE(request_id),
    WEIR_USE(access_log, .write = ignore),
    WEIR_USE(identity, .session_user = nobody),
    WEIR_USE(ratelimit, .source = WEIR_ON),
    WEIR_USE(skeleton),
    { NULL, NULL },
};

Test(lint, has_nothing_to_say_about_the_filters_that_ship)
{
    kit_close();
    kit_open(limited, shipped);
    cr_assert_eq(kit_get("GET", "/two"), 200);
    cr_assert_eq(kit_get("HEAD", "/two"), 200);
    cr_assert_eq(kit_get("GET", "/two"), 429);
    cr_assert_eq(kit_get("HEAD", "/two"), 429);
    cr_assert_eq(kit_get("GET", "/flush"), 200);
    cr_assert_eq(kit_get("GET", "/nowhere"), 404);
    cr_assert_eq(kit_get("POST", "/two"), 405);
    cr_assert_eq(kit_get("GET", "/%00"), 400);
    cr_assert_eq(kit.offloads, 0);
}

/* ---- the filter's options ---------------------------------------------------------- */

Test(lint, can_end_a_test_at_the_first_breach, .signal = SIGABRT)
{
    kit_close();
    kit_open(endpoints,
             WEIR_CHAIN(WEIR_USE(lint, .abort = true), { &filter_rogue, NULL }));
    on_before = says_done;
    kit_get("GET", "/");
}

Test(lint, has_a_bound_of_its_own_for_blocking)
{
    kit_close();
    kit_open(endpoints,
             WEIR_CHAIN(WEIR_USE(lint, .report = report, .arg = reported, .block_ms = 60),
                        { &filter_rogue, NULL }));
    on_before = takes_its_time;
    kit_get("GET", "/");
    cr_assert_eq(reported[WEIR_BREACH_BLOCKED], 0u);
}

Test(lint, names_every_rule)
{
    for (unsigned i = 0; i < WEIR_BREACHES; i++)
        cr_assert_str_not_empty(weir_breach_text((enum weir_breach)i));
    cr_assert_str_not_empty(weir_breach_text(WEIR_BREACHES));
    cr_assert_eq(weir_breach_count(WEIR_BREACHES), 0u);
}
