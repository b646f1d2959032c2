/* The machine: which hooks run, in which order, and what is answered in their place. */
#include "kit.h"

/* ---- a filter that does as it is told ---------------------------------------------- */

static struct script {
    enum weir_verdict before, commit;
    int status;              /* set by before where not 0 */
    weir_step_fn *on_before; /* instead of before */
    weir_step_fn *on_commit;
} scripts[3]; /* of the filters a, b, c */

static unsigned continued;
static int seen_status;
static bool seen_unserved;

static enum weir_verdict step(struct weir *w, const void *self, void *slot)
{
    const struct script *script = self;
    if (script->on_before)
        return script->on_before(w, self, slot);
    if (script->status)
        weir_problem(w, script->status, "Scripted", NULL);
    return script->before;
}

static enum weir_verdict commit(struct weir *w, const void *self, void *slot)
{
    const struct script *script = self;
    return script->on_commit ? script->on_commit(w, self, slot) : script->commit;
}

static void after(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    seen_status = w->status;
    seen_unserved = w->unserved;
}

#define START(name_, index_)                                                             \
    static bool name_(const struct weir_app *app,                                        \
                      const void *options,                                               \
                      void **ret_self,                                                   \
                      struct weir_error *ret_error)                                      \
    {                                                                                    \
        (void)app, (void)options, (void)ret_error;                                       \
        *ret_self = &scripts[index_];                                                    \
        return true;                                                                     \
    }
START(start_a, 0)
START(start_b, 1)
START(start_c, 2)

static const struct weir_filter filter_a = {
    .name = "a", .start = start_a, .before = step, .commit = commit, .after = after
};
static const struct weir_filter filter_b = {
    .name = "b", .start = start_b, .before = step, .commit = commit, .after = after
};
static const struct weir_filter filter_c = {
    .name = "c", .start = start_c, .before = step, .commit = commit, .after = after
};
static const struct weir_use abc[] = {
    { &filter_a, NULL }, { &filter_b, NULL }, { &filter_c, NULL }, { NULL, NULL }
};

/* ---- handlers ---------------------------------------------------------------------- */

static unsigned handled;

static int hello(struct weir *w)
{
    handled++;
    return weir_text(w, 200, "hello");
}

static int says_zero(struct weir *w)
{
    (void)w;
    return 0;
}

static int says_zero_after_202(struct weir *w)
{
    weir_set_status(w, 202);
    return 0;
}

static int says_nonsense(struct weir *w)
{
    weir_set_header(w, "X-Half", "1");
    weir_text(w, 200, "half");
    return 99;
}

static int flushes(struct weir *w)
{
    handled++;
    weir_set_header(w, "X-Early", "1");
    weir_write(w, "first", 5);
    bool flushed = weir_flush(w);
    bool written = weir_write(w, "second", 6);
    return flushed && written ? 200 : 500;
}

static int fails_late(struct weir *w)
{
    weir_write(w, "first", 5);
    weir_flush(w);
    return 500;
}

static int no_content_with_body(struct weir *w)
{
    return weir_text(w, 204, "body");
}

static int is_dropped(struct weir *w)
{
    atomic_store(&w->dropped, true);
    return weir_text(w, 200, "too late");
}

static const struct weir_endpoint endpoints[] = {
    { "GET /hello", hello },
    { "POST /hello", hello },
    { "GET /quick", hello, .nonblocking = true },
    { "GET /zero", says_zero },
    { "GET /202", says_zero_after_202 },
    { "GET /nonsense", says_nonsense },
    { "GET /flush", flushes },
    { "GET /late", fails_late },
    { "GET /204", no_content_with_body },
    { "GET /dropped", is_dropped },
    { 0 },
};

static void open_abc(void)
{
    memset(scripts, 0, sizeof scripts);
    handled = continued = 0;
    seen_status = 0;
    seen_unserved = false;
    kit_open(endpoints, abc);
}

TestSuite(life, .init = open_abc, .fini = kit_close);

#define ALL_HOOKS                                                                        \
    "a.before b.before c.before c.commit b.commit a.commit c.after b.after a.after "

/* ---- order ------------------------------------------------------------------------- */

Test(life, runs_commit_and_after_in_reverse)
{
    cr_assert_eq(kit_get("GET", "/hello"), 200);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    cr_assert_str_eq(kit_sent_body(), "hello");
    cr_assert(kit.ended);
}

Test(life, runs_only_the_hooks_of_filters_entered_when_one_answers)
{
    scripts[1].before = WEIR_DONE;
    scripts[1].status = 403;
    cr_assert_eq(kit_get("GET", "/hello"), 403);
    cr_assert_str_eq(kit.hooks, "a.before b.before b.commit a.commit b.after a.after ");
    cr_assert_eq(handled, 0u);
}

Test(life, answers_500_when_a_filter_fails)
{
    scripts[1].before = WEIR_FAIL;
    cr_assert_eq(kit_get("GET", "/hello"), 500);
    cr_assert_str_eq(kit.hooks, "a.before b.before b.commit a.commit b.after a.after ");
    cr_assert(strstr(kit_sent_body(), "\"code\":\"InternalError\""));
}

Test(life, answers_500_when_done_has_no_status)
{
    scripts[0].before = WEIR_DONE;
    cr_assert_eq(kit_get("GET", "/hello"), 500);
    cr_assert_eq(weir_breach_count(WEIR_BREACH_DONE_UNANSWERED), 1u);
}

Test(life, answers_500_to_a_verdict_that_is_none)
{
    scripts[0].before = (enum weir_verdict)17;
    cr_assert_eq(kit_get("GET", "/hello"), 500);
    cr_assert_eq(weir_breach_count(WEIR_BREACH_VERDICT), 1u);
}

Test(life, runs_after_once_even_if_ended_twice)
{
    kit_get("GET", "/hello");
    weir__life_end(&kit.w);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
}

Test(life, starts_a_handle_anew)
{
    scripts[1].before = WEIR_DONE;
    scripts[1].status = 403;
    kit_get("GET", "/hello");
    scripts[1] = (struct script){ 0 };
    cr_assert_eq(kit_get("GET", "/hello"), 200);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
}

/* ---- handlers ---------------------------------------------------------------------- */

Test(life, asks_for_a_thread_for_a_handler_that_may_block)
{
    kit_get("GET", "/hello");
    cr_assert_eq(kit.threads, 1u);
    kit_get("GET", "/quick");
    cr_assert_eq(kit.threads, 0u);
    cr_assert_eq(handled, 2u);
}

Test(life, asks_for_the_body_of_an_endpoint_only)
{
    kit_get("POST", "/hello");
    cr_assert_eq(kit.bodies, 1u);
    kit_get("POST", "/nowhere");
    cr_assert_eq(kit.bodies, 0u);
}

Test(life, takes_200_or_the_status_set_for_zero)
{
    cr_assert_eq(kit_get("GET", "/zero"), 200);
    cr_assert_eq(kit_get("GET", "/202"), 202);
}

Test(life, answers_500_to_a_status_that_is_none)
{
    cr_assert_eq(kit_get("GET", "/nonsense"), 500);
    cr_assert(kit_sent_line("Status: 500 Internal Server Error"));
    cr_assert_null(strstr(kit.sent, "half"));
    cr_assert_null(strstr(kit.sent, "X-Half"));
    cr_assert_eq(weir_breach_count(WEIR_BREACH_STATUS), 1u);
}

Test(life, sends_the_fields_of_a_get_and_no_body_for_head)
{
    kit_get("HEAD", "/hello");
    cr_assert(kit_sent_line("Content-Length: 5"));
    cr_assert_str_eq(kit_sent_body(), "");
    cr_assert_eq(kit.w.sent_bytes, 0u);
}

Test(life, drops_a_body_that_may_not_be)
{
    cr_assert_eq(kit_get("GET", "/204"), 204);
    cr_assert_str_eq(kit_sent_body(), "");
    cr_assert_null(strstr(kit.sent, "Content-Length"));
    cr_assert_eq(weir_breach_count(WEIR_BREACH_BODY), 1u);
}

/* ---- without an endpoint ----------------------------------------------------------- */

Test(life, answers_404_behind_the_chain)
{
    cr_assert_eq(kit_get("GET", "/nowhere"), 404);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    cr_assert_eq(kit.w.endpoint_index, WEIR__ENDPOINT_UNMATCHED);
    cr_assert_eq(kit.threads, 0u);
}

Test(life, answers_405_with_the_methods_behind_the_chain)
{
    cr_assert_eq(kit_get("DELETE", "/hello"), 405);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    cr_assert(strstr(kit.sent, "Allow: "));
    cr_assert(strstr(kit.sent, "POST"));
}

Test(life, answers_options_behind_the_chain)
{
    cr_assert_eq(kit_get("OPTIONS", "/hello"), 204);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    cr_assert(strstr(kit.sent, "Allow: "));
}

Test(life, answers_400_behind_the_chain)
{
    cr_assert_eq(kit_get("GET", "/hello%2Fx"), 400);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    cr_assert(strstr(kit_sent_body(), "\"code\":\"BadRequest\""));
}

Test(life, lets_an_authorizer_pass_without_body_or_handler)
{
    static const char *const paths[] = { "/hello", "/nowhere" };
    for (unsigned i = 0; i < 2; i++) {
        kit_request("POST", paths[i]);
        kit.w.authorizer = true;
        kit_begin();
        cr_assert(kit_run());
        cr_assert_eq(kit.w.status, 200);
        cr_assert_str_eq(kit_sent_body(), "");
        cr_assert_eq(kit.bodies, 0u);
        cr_assert_eq(kit.threads, 0u);
        cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    }
    cr_assert_eq(handled, 0u);
}

Test(life, lets_a_filter_refuse_to_an_authorizer)
{
    scripts[2].before = WEIR_DONE;
    scripts[2].status = 429;
    kit_request("GET", "/hello");
    kit.w.authorizer = true;
    kit_begin();
    cr_assert(kit_run());
    cr_assert_eq(kit.w.status, 429);
    cr_assert_str_neq(kit_sent_body(), "");
}

/* ---- waits ------------------------------------------------------------------------- */

static enum weir_verdict goes_on(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self, (void)slot;
    continued++;
    return WEIR_NEXT;
}

static enum weir_verdict waits(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    return weir_wait(w, goes_on, WEIR_SECONDS(1));
}

static enum weir_verdict waits_again(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    continued++;
    return weir_wait(w, goes_on, WEIR_SECONDS(1));
}

static enum weir_verdict waits_twice(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    return weir_wait(w, waits_again, WEIR_SECONDS(1));
}

static enum weir_verdict says_timed_out(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    continued += weir_timed_out(w);
    return WEIR_NEXT;
}

static enum weir_verdict waits_for_time(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    return weir_wait(w, says_timed_out, WEIR_SECONDS(1));
}

static enum weir_verdict wakes_and_waits(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    weir_wake(w);
    return weir_wait(w, goes_on, WEIR_SECONDS(1));
}

Test(life, parks_and_goes_on_behind_the_wait)
{
    scripts[1].on_before = waits;
    kit_start("GET", "/hello");
    cr_assert_not(kit_run());
    cr_assert_eq(kit.w.wait_until_us, kit.now_us + WEIR_SECONDS(1));
    cr_assert_eq(continued, 0u);
    weir_wake(&kit.w);
    cr_assert_eq(kit.resumes, 1u);
    cr_assert(kit_run());
    cr_assert_eq(continued, 1u);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
}

Test(life, may_wait_again)
{
    scripts[1].on_before = waits_twice;
    kit_start("GET", "/hello");
    cr_assert_not(kit_run());
    weir_wake(&kit.w);
    cr_assert_not(kit_run());
    weir_wake(&kit.w);
    cr_assert_eq(kit.resumes, 2u);
    cr_assert(kit_run());
    cr_assert_eq(continued, 2u);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
}

Test(life, tells_a_wait_that_its_time_was_over)
{
    scripts[1].on_before = waits_for_time;
    kit_start("GET", "/hello");
    cr_assert_not(kit_run());
    weir__life_timeout(&kit.w, kit.armed);
    cr_assert(kit_run());
    cr_assert_eq(continued, 1u);
}

Test(life, does_not_park_when_woken_in_advance)
{
    scripts[1].on_before = wakes_and_waits;
    kit_start("GET", "/hello");
    cr_assert(kit_run());
    cr_assert_eq(kit.resumes, 0u);
    cr_assert_eq(continued, 1u);
}

static enum weir_verdict only_wakes(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    weir_wake(w);
    return WEIR_NEXT;
}

Test(life, does_not_take_one_filters_wake_for_anothers)
{
    scripts[0].on_before = only_wakes;
    scripts[1].on_before = waits;
    kit_start("GET", "/hello");
    cr_assert_not(kit_run());
    weir_wake(&kit.w);
    cr_assert(kit_run());
}

static enum weir_verdict says_wait(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self, (void)slot;
    return WEIR_WAIT;
}

Test(life, answers_500_to_a_wait_that_nobody_asked_for)
{
    scripts[0].on_before = says_wait;
    cr_assert_eq(kit_get("GET", "/hello"), 500);
    cr_assert_eq(weir_breach_count(WEIR_BREACH_WAIT_UNASKED), 1u);
}

static enum weir_verdict waits_and_says_next(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    weir_wait(w, goes_on, 1);
    return WEIR_NEXT;
}

Test(life, answers_500_to_a_wait_that_is_not_returned)
{
    scripts[0].on_before = waits_and_says_next;
    cr_assert_eq(kit_get("GET", "/hello"), 500);
    cr_assert_eq(weir_breach_count(WEIR_BREACH_WAIT_UNSAID), 1u);
    cr_assert_eq(continued, 0u);
}

/* ---- offloads ---------------------------------------------------------------------- */

static enum weir_verdict counts_offload(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self, (void)slot;
    cr_assert_eq(kit.offloads, 1);
    continued++;
    return WEIR_NEXT;
}

static enum weir_verdict offloads(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    return weir_offload(w, counts_offload);
}

Test(life, asks_for_a_thread_for_an_offload)
{
    scripts[1].on_before = offloads;
    kit_get("GET", "/quick");
    cr_assert_eq(kit.threads, 1u);
    cr_assert_eq(continued, 1u);
    cr_assert_eq(kit.offloads, 0);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
}

Test(life, offloads_at_once_on_a_thread_that_may_block)
{
    scripts[1].on_before = offloads;
    kit_start("GET", "/hello");
    cr_assert_eq(weir__life_run(&kit.w, true), WEIR__NEED_BODY);
    cr_assert_eq(continued, 1u);
    cr_assert(kit_run());
}

Test(life, refuses_when_too_many_offloads_are_in_flight)
{
    scripts[1].on_before = offloads;
    kit.offloads = kit.offloads_max = 4;
    cr_assert_eq(kit_get("GET", "/hello"), 503);
    cr_assert(strstr(kit_sent_body(), "\"code\":\"Overloaded\""));
    cr_assert(kit_sent_line("Retry-After: 1"));
    cr_assert_eq(kit.offloads, 4);
    cr_assert(seen_unserved);
    cr_assert_str_eq(kit.hooks, "a.before b.before b.commit a.commit b.after a.after ");
}

Test(life, gives_the_place_of_an_abandoned_offload_back)
{
    scripts[1].on_before = offloads;
    kit_start("GET", "/hello");
    cr_assert_eq(weir__life_run(&kit.w, false), WEIR__NEED_THREAD);
    cr_assert_eq(kit.offloads, 1);
    weir__life_abandon(&kit.w, 504, "RequestTimeout", NULL);
    cr_assert(kit_run());
    cr_assert_eq(kit.offloads, 0);
    cr_assert_eq(continued, 0u);
    cr_assert_eq(kit.w.status, 504);
}

/* ---- commit ------------------------------------------------------------------------ */

static enum weir_verdict sets_header(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    weir_set_header(w, "X-Commit", "1");
    return WEIR_NEXT;
}

Test(life, lets_commit_edit_the_head)
{
    scripts[0].on_commit = sets_header;
    kit_get("GET", "/nowhere");
    cr_assert(kit_sent_line("X-Commit: 1"));
}

Test(life, parks_in_a_commit)
{
    scripts[1].on_commit = waits;
    kit_start("GET", "/hello");
    cr_assert_not(kit_run());
    cr_assert_eq(kit.sent_len, 0u);
    weir_wake(&kit.w);
    cr_assert(kit_run());
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    cr_assert_str_eq(kit_sent_body(), "hello");
}

Test(life, answers_500_when_a_commit_fails_and_still_asks_the_others)
{
    scripts[1].commit = WEIR_FAIL;
    scripts[0].on_commit = sets_header;
    cr_assert_eq(kit_get("GET", "/hello"), 500);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    cr_assert(kit_sent_line("X-Commit: 1"));
    cr_assert_null(strstr(kit.sent, "hello"));
}

Test(life, answers_500_when_a_commit_says_done)
{
    scripts[1].commit = WEIR_DONE;
    cr_assert_eq(kit_get("GET", "/hello"), 500);
    cr_assert_eq(weir_breach_count(WEIR_BREACH_COMMIT_DONE), 1u);
}

static enum weir_verdict allows_caches(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    weir_set_header(w, "Cache-Control", "public, max-age=300");
    return WEIR_NEXT;
}

static enum weir_verdict forbids_caches(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    w->no_store = true;
    return WEIR_NEXT;
}

Test(life, does_not_let_an_outer_commit_undo_no_store)
{
    scripts[1].on_commit = forbids_caches;
    scripts[0].on_commit = allows_caches;
    kit_get("GET", "/hello");
    cr_assert(kit_sent_line("Cache-Control: no-store"));
    cr_assert_null(strstr(kit.sent, "max-age"));
}

/* ---- the first flush --------------------------------------------------------------- */

Test(life, commits_at_the_first_flush)
{
    scripts[0].on_commit = sets_header;
    cr_assert_eq(kit_get("GET", "/flush"), 200);
    cr_assert(kit_sent_line("X-Commit: 1"));
    cr_assert(kit_sent_line("X-Early: 1"));
    cr_assert_str_eq(kit_sent_body(), "firstsecond");
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    cr_assert_eq(kit.w.sent_bytes, 11u);
    cr_assert(kit.ended);
}

Test(life, sits_in_a_commits_wait_inside_a_handler)
{
    scripts[0].on_commit = wakes_and_waits;
    cr_assert_eq(kit_get("GET", "/flush"), 200);
    cr_assert_eq(continued, 1u);
    cr_assert_eq(kit.resumes, 0u);
    cr_assert_str_eq(kit_sent_body(), "firstsecond");
}

static enum weir_verdict flushes_too(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    cr_assert_not(weir_flush(w));
    return WEIR_NEXT;
}

Test(life, sends_nothing_from_a_commit_inside_a_handler)
{
    scripts[1].on_commit = flushes_too;
    cr_assert_eq(kit_get("GET", "/flush"), 200);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    cr_assert_str_eq(kit_sent_body(), "firstsecond");
}

Test(life, voids_a_handlers_output_when_its_commit_fails)
{
    scripts[1].commit = WEIR_FAIL;
    cr_assert_eq(kit_get("GET", "/flush"), 500);
    cr_assert(strstr(kit_sent_body(), "InternalError"));
    cr_assert_null(strstr(kit.sent, "first"));
    cr_assert_null(strstr(kit.sent, "second"));
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    cr_assert(kit.ended);
}

Test(life, tears_a_reply_whose_handler_fails_after_the_flush)
{
    kit_get("GET", "/late");
    cr_assert(kit_sent_line("Status: 200 OK"));
    cr_assert_not(kit.ended);
    cr_assert_eq(weir_breach_count(WEIR_BREACH_LATE), 1u);
}

/* ---- abandoned, gone, dropped ------------------------------------------------------ */

Test(life, answers_without_hooks_when_abandoned_before_it_began)
{
    kit_request("GET", "/hello");
    weir__life_abandon(&kit.w, 431, "HeadersTooLarge", NULL);
    cr_assert(kit_run());
    cr_assert(kit_sent_line("Status: 431 Request Header Fields Too Large"));
    cr_assert_str_eq(kit.hooks, "");
}

Test(life, answers_for_a_body_that_is_too_large)
{
    kit_start("POST", "/hello");
    cr_assert_eq(weir__life_run(&kit.w, false), WEIR__NEED_BODY);
    weir__life_abandon(&kit.w, 413, "PayloadTooLarge", NULL);
    cr_assert(kit_run());
    cr_assert(kit_sent_line("Status: 413 Content Too Large"));
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    cr_assert_eq(handled, 0u);
    cr_assert(seen_unserved);
}

Test(life, keeps_what_a_malformed_body_was_charged)
{
    kit_start("POST", "/hello");
    cr_assert_eq(weir__life_run(&kit.w, false), WEIR__NEED_BODY);
    weir__life_abandon(&kit.w, 400, "BadRequest", NULL);
    cr_assert(kit_run());
    cr_assert_not(seen_unserved);
}

Test(life, does_not_go_on_with_an_abandoned_wait)
{
    scripts[1].on_before = waits;
    kit_start("GET", "/hello");
    cr_assert_not(kit_run());
    weir_wake(&kit.w);
    weir__life_abandon(&kit.w, 504, "RequestTimeout", NULL);
    cr_assert(kit_run());
    cr_assert_eq(continued, 0u);
    cr_assert(kit_sent_line("Status: 504 Gateway Timeout"));
    cr_assert_str_eq(kit.hooks, "a.before b.before b.commit a.commit b.after a.after ");
}

Test(life, keeps_what_was_charged_once_the_handler_ran)
{
    scripts[1].on_commit = waits;
    kit_start("GET", "/hello");
    cr_assert_not(kit_run());
    weir_wake(&kit.w);
    weir__life_abandon(&kit.w, 504, "RequestTimeout", NULL);
    cr_assert(kit_run());
    cr_assert(kit_sent_line("Status: 504 Gateway Timeout"));
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
    cr_assert_eq(handled, 1u);
    cr_assert_not(seen_unserved);
}

Test(life, starts_no_handler_for_a_client_that_is_gone)
{
    kit_start("POST", "/hello");
    cr_assert_eq(weir__life_run(&kit.w, false), WEIR__NEED_BODY);
    atomic_store(&kit.w.gone, true);
    cr_assert(kit_run());
    cr_assert_eq(handled, 0u);
    cr_assert_eq(seen_status, 499);
    cr_assert_not(seen_unserved);
    cr_assert_str_eq(kit.hooks, ALL_HOOKS);
}

Test(life, leaves_the_answer_to_a_transport_that_has_given_one)
{
    kit_get("GET", "/dropped");
    cr_assert_eq(kit.sent_len, 0u);
    cr_assert_eq(seen_status, 504);
    cr_assert_str_eq(kit.hooks, "a.before b.before c.before c.after b.after a.after ");
}

Test(life, runs_the_after_hooks_of_a_request_that_is_ended_early)
{
    kit_start("POST", "/hello");
    cr_assert_eq(weir__life_run(&kit.w, false), WEIR__NEED_BODY);
    weir__life_end(&kit.w);
    cr_assert_str_eq(kit.hooks, "a.before b.before c.before c.after b.after a.after ");
}

/* ---- memory ------------------------------------------------------------------------ */

static int eats_all(struct weir *w)
{
    while (weir_alloc(w, 1))
        ;
    return 200;
}

static const struct weir_endpoint hungry[] = { { "GET /", eats_all }, { 0 } };

Test(life_memory, always_has_an_answer, .fini = kit_close)
{
    static const struct weir_use none[] = { { NULL, NULL } };
    kit_open(hungry, none);
    kit_get("GET", "/");
    cr_assert(kit_sent_line("Status: 500 Internal Server Error"));
    cr_assert(kit_sent_line("Content-Length: 90"));
    cr_assert_eq(strlen(kit_sent_body()), 90u);
}

static const struct weir_filter filter_slot;

static enum weir_verdict looks_at_slot(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self;
    int *number = slot;
    cr_assert_eq(*number, 0);
    *number = 42;
    return WEIR_NEXT;
}

static void looks_again(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self;
    cr_assert_eq(*(int *)slot, 42);
    continued++;
}

static const struct weir_filter filter_slot = {
    .name = "slot",
    .slot_size = sizeof(int),
    .before = looks_at_slot,
    .after = looks_again,
};

Test(life_memory, zeroes_a_slot_for_each_request, .fini = kit_close)
{
    static const struct weir_use chain[] = { { &filter_slot, NULL }, { NULL, NULL } };
    kit_open(endpoints, chain);
    kit_get("GET", "/hello");
    kit_get("GET", "/hello");
    cr_assert_eq(continued, 2u);
}
