/* Tests of weir/test.h, and with it of the transport in memory: as an app's own tests
 * would look, and what they can't see. */
#include <weir/test.h>

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the app under test ------------------------------------------------------------ */

static char trace[256]; /* what the app's own functions were called for */

static void note(const char *word)
{
    if (strlen(trace) + strlen(word) + 2 < sizeof trace)
        strcat(strcat(trace, *trace ? " " : ""), word);
}

static int hello(struct weir *w)
{
    return weir_json(w, 200, "{s:s}", "hello", weir_path(w, "name"));
}

static int echo(struct weir *w)
{
    size_t len;
    const char *body = weir_body(w, &len);
    weir_set_header(w, "Content-Type", "application/octet-stream");
    weir_add_header(w, "X-Method", weir_method(w));
    weir_write(w, body, len);
    return 200;
}

static int show(struct weir *w)
{
    const char *agent = weir_header(w, "User-Agent"),
               *type = weir_header(w, "Content-Type");
    return weir_text(w,
                     200,
                     weir_printf(w,
                                 "%s %s %s %s %s %s",
                                 weir_request_path(w),
                                 weir_remote_ip(w),
                                 agent ? agent : "-",
                                 type ? type : "-",
                                 weir_query(w, "q") ? weir_query(w, "q") : "-",
                                 (const char *)weir_worker_get(weir_worker(w))));
}

static int stream(struct weir *w)
{
    for (int i = 0; i < 3; i++) {
        if (!weir_write(w, "0123456789", 10) || !weir_flush(w)) {
            note("client-gone");
            return 0;
        }
    }
    weir_write(w, "end", 3);
    return 200;
}

static int half(struct weir *w)
{
    weir_write(w, "half", 4);
    weir_flush(w);
    return 500;
}

static const struct weir_endpoint endpoints[] = {
    { "GET /hello/{name}", hello },
    { "* /echo", echo },
    { "GET /show", show },
    { "GET /stream", stream },
    { "GET /half", half },
    { "GET /limited",
      show,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("minute", 2, WEIR_MINUTES(1))) },
    { 0 },
};

/* A filter that waits or is offloaded when the request asks for it. */
static enum weir_verdict waited(struct weir *w, const void *self, void *slot)
{
    (void)self;
    (void)slot;
    note(weir_timed_out(w) ? "timed-out" : "woken");
    return WEIR_NEXT;
}

static enum weir_verdict offloaded(struct weir *w, const void *self, void *slot)
{
    (void)w;
    (void)self;
    (void)slot;
    note("offloaded");
    return WEIR_NEXT;
}

static enum weir_verdict pauser_before(struct weir *w, const void *self, void *slot)
{
    (void)self;
    (void)slot;
    if (weir_header(w, "X-Wait"))
        return weir_wait(w, waited, WEIR_SECONDS(30));
    if (weir_header(w, "X-Offload"))
        return weir_offload(w, offloaded);
    return WEIR_NEXT;
}

static enum weir_verdict quiet_step(struct weir *w, const void *self, void *slot)
{
    (void)w;
    (void)self;
    (void)slot;
    return WEIR_NEXT;
}

static void quiet_after(struct weir *w, const void *self, void *slot)
{
    (void)self;
    (void)slot;
    note(weir_gone(w) ? "after-gone" : "after");
}

static const struct weir_filter pauser = { .name = "pauser",
                                           .before = pauser_before,
                                           .after = quiet_after };
static const struct weir_filter quiet = { .name = "quiet",
                                          .before = quiet_step,
                                          .commit = quiet_step };

static bool start(struct weir_error *ret_error)
{
    (void)ret_error;
    note("start");
    return true;
}

static bool worker_start(struct weir_worker *worker)
{
    note("worker-start");
    weir_worker_set(worker, (void *)"database");
    return true;
}

static void worker_stop(struct weir_worker *worker)
{
    (void)worker;
    note("worker-stop");
}

static bool thread_start(struct weir_worker *worker)
{
    (void)worker;
    note("thread-start");
    return true;
}

static void thread_stop(struct weir_worker *worker)
{
    (void)worker;
    note("thread-stop");
}

static const struct weir_use chain[] = { { &quiet, NULL },
                                         { &pauser, NULL },
                                         { NULL, NULL } };
static const struct weir_app app = { WEIR_ABI,
                                     .endpoints = endpoints,
                                     .chain = chain,
                                     .start = start,
                                     .worker_start = worker_start,
                                     .worker_stop = worker_stop,
                                     .thread_start = thread_start,
                                     .thread_stop = thread_stop };

static struct weir_test *t;

static void create(const char *const *arguments)
{
    struct weir_error error = { "" };
    struct weir_test_options options = { .arguments = arguments };
    t = weir_test_create(&app, &options, &error);
    cr_assert_not_null(t, "%s", error.text);
    trace[0] = '\0';
}

static void setup(void)
{
    create(NULL);
}

static void teardown(void)
{
    weir_test_destroy(t);
}

TestSuite(mem, .init = setup, .fini = teardown);

/* ---- requests and replies ---------------------------------------------------------- */

Test(mem, a_request_in_memory_gets_a_reply_in_memory)
{
    struct weir_test_reply *r = weir_test_get(t, "/hello/r%C3%A9n%C3%A9?x=1", NULL);
    cr_expect_eq(r->status, 200);
    cr_expect_str_eq(r->body, "{\"hello\":\"r\xc3\xa9n\xc3\xa9\"}");
    cr_expect_eq(r->body_len, strlen(r->body));
    cr_expect_str_eq(r->head,
                     "Status: 200 OK\r\n"
                     "Content-Type: application/json\r\n"
                     "Content-Length: 18\r\n"
                     "\r\n");
    cr_expect(r->complete);
    cr_expect_eq(r->flushes, 0);
    cr_expect_eq(r->waits, 0);
    cr_expect_str_eq(weir_test_header(r, "content-TYPE"), "application/json");
    cr_expect_str_eq(weir_test_header(r, "Status"), "200 OK");
    cr_expect_null(weir_test_header(r, "Content"));
    cr_expect_null(weir_test_header(r, "X-None"));
}

Test(mem, replies_stay_until_the_test_ends)
{
    struct weir_test_reply *one = weir_test_get(t, "/hello/one", NULL);
    struct weir_test_reply *two = weir_test_get(t, "/hello/two", NULL);
    cr_expect_str_eq(one->body, "{\"hello\":\"one\"}");
    cr_expect_str_eq(two->body, "{\"hello\":\"two\"}");
}

Test(mem, unknown_paths_and_methods_are_answered_by_the_chain)
{
    struct weir_test_reply *r = weir_test_get(t, "/none", NULL);
    cr_expect_eq(r->status, 404);
    cr_expect_not_null(strstr(r->body, "\"code\":\"NotFound\""));
    cr_expect_str_eq(r->hooks, "before:quiet before:pauser commit:quiet after:pauser");
    r = weir_test_post(t, "/show", NULL, "x=1");
    cr_expect_eq(r->status, 405);
    cr_expect_str_eq(weir_test_header(r, "Allow"), "GET, HEAD, OPTIONS");
    r = weir_test_get(t, "/%zz", NULL);
    cr_expect_eq(r->status, 400);
}

Test(mem, a_head_request_gets_gets_head)
{
    struct weir_test_request request = { .method = "HEAD", .target = "/hello/x" };
    struct weir_test_reply *get = weir_test_get(t, "/hello/x", NULL);
    struct weir_test_reply *head = weir_test_send(t, &request);
    cr_expect_str_eq(head->head, get->head);
    cr_expect_eq(head->body_len, 0);
    cr_expect(head->complete);
}

Test(mem, headers_and_parameters_reach_the_handler)
{
    struct weir_test_request request = {
        .target = "//show/?q=a+b",
        .headers = "User-Agent: one\nuser-agent:two\n",
        .params = "REMOTE_ADDR=::ffff:192.0.2.1\nCONTENT_TYPE=text/x",
    };
    struct weir_test_reply *r = weir_test_send(t, &request);
    cr_expect_str_eq(r->body, "/show 192.0.2.1 one, two text/x a b database");
    request = (struct weir_test_request){ .target = "/show", .params = "REMOTE_ADDR=" };
    r = weir_test_send(t, &request);
    cr_expect_str_eq(r->body, "/show  - - - database");
    r = weir_test_get(t, "/show", NULL);
    cr_expect_str_eq(r->body, "/show 127.0.0.1 - - - database");
}

Test(mem, a_request_that_cannot_be_sent_says_why)
{
    struct weir_test_reply *r = weir_test_get(t, "/show", "no colon");
    cr_expect_eq(r->status, 0);
    cr_expect_not_null(strstr(r->log, "no colon"));
    cr_expect_null(weir_test_header(r, "Status"));
    r = weir_test_get(t, "/show", "bad name: x");
    cr_expect_not_null(strstr(r->log, "no token"));
    struct weir_test_request request = { .params = "HTTPS" };
    cr_expect_not_null(strstr(weir_test_send(t, &request)->log, "equals sign"));
    cr_expect_str_eq(trace, "");
}

/* ---- bodies ------------------------------------------------------------------------ */

Test(mem, a_body_comes_in_pieces_of_any_size)
{
    static const char body[] = "one\0two three";
    for (size_t piece = 0; piece < sizeof body + 2; piece++) {
        struct weir_test_request request = { .target = "/echo",
                                             .body = body,
                                             .body_len = sizeof body - 1,
                                             .piece_bytes = piece };
        struct weir_test_reply *r = weir_test_send(t, &request);
        cr_expect_eq(r->body_len, sizeof body - 1);
        cr_expect_arr_eq(r->body, body, sizeof body - 1);
        cr_expect_str_eq(weir_test_header(r, "X-Method"), "POST");
    }
}

Test(mem, a_body_past_its_bound_is_a_413)
{
    weir_test_destroy(t);
    create((const char *const[]){ "--max-body", "10", NULL });
    cr_expect_eq(weir_test_post(t, "/echo", NULL, "0123456789")->status, 200);
    struct weir_test_reply *r = weir_test_post(t, "/echo", NULL, "0123456789x");
    cr_expect_eq(r->status, 413);
    cr_expect_not_null(strstr(r->body, "PayloadTooLarge"));
    struct weir_test_request request = { .target = "/echo",
                                         .body = "0123456789x",
                                         .piece_bytes = 3 };
    cr_expect_eq(weir_test_send(t, &request)->status, 413);
}

Test(mem, headers_past_their_bounds_are_a_431)
{
    char header[10001] = "X: ";
    memset(header + 3, 'x', 9000);
    struct weir_test_reply *r = weir_test_get(t, "/show", header);
    cr_expect_eq(r->status, 431);
    cr_expect_str_eq(r->hooks, "");
    header[3 + 8192] = '\0';
    cr_expect_eq(weir_test_get(t, "/show", header)->status, 200);

    char many[300 * 5 + 1] = "";
    for (int i = 0; i < 300; i++)
        strcat(many, "A: 1\n");
    cr_expect_eq(weir_test_get(t, "/show", many)->status, 431);
}

/* ---- streaming, and clients that go ------------------------------------------------ */

Test(mem, a_streamed_body_arrives_whole)
{
    struct weir_test_reply *r = weir_test_get(t, "/stream", NULL);
    cr_expect_eq(r->status, 200);
    cr_expect_str_eq(r->body, "012345678901234567890123456789end");
    cr_expect_eq(r->flushes, 3);
    cr_expect(r->complete);
    cr_expect_null(weir_test_header(r, "Content-Length"));
}

Test(mem, a_client_may_go_after_any_byte)
{
    size_t whole = strlen(weir_test_get(t, "/stream", NULL)->head) + 33;
    for (size_t bytes = 1; bytes <= whole; bytes++) {
        trace[0] = '\0';
        struct weir_test_request request = { .target = "/stream",
                                             .gone_after_bytes = bytes };
        struct weir_test_reply *r = weir_test_send(t, &request);
        cr_expect_eq(strlen(r->head) + r->body_len, bytes);
        cr_expect_not(r->complete);
        cr_expect_not_null(strstr(trace, "after-gone"), "%zu: %s", bytes, trace);
    }
    cr_expect_str_eq(trace, "after-gone", "the handler was through by then");
}

Test(mem, a_client_that_is_gone_from_the_start_reaches_no_handler)
{
    struct weir_test_request request = { .target = "/stream", .gone = true };
    struct weir_test_reply *r = weir_test_send(t, &request);
    cr_expect_eq(r->status, 0);
    cr_expect_str_eq(r->head, "");
    cr_expect_str_eq(trace, "after-gone");
}

Test(mem, an_answer_that_breaks_off_is_not_complete)
{
    struct weir_test_reply *r = weir_test_get(t, "/half", NULL);
    cr_expect_eq(r->status, 200);
    cr_expect_str_eq(r->body, "half");
    cr_expect_not(r->complete);
    cr_expect_not_null(strstr(r->log, "changed an answer that was complete"));
}

/* ---- waits and offloads ------------------------------------------------------------ */

Test(mem, a_wait_that_times_out_moves_the_clock)
{
    int64_t before_us = weir_test_now_us(t);
    struct weir_test_request request = { .target = "/hello/x",
                                         .headers = "X-Wait: 1",
                                         .wait = WEIR_TEST_TIME_OUT };
    struct weir_test_reply *r = weir_test_send(t, &request);
    cr_expect_eq(r->status, 200);
    cr_expect_eq(r->waits, 1);
    cr_expect_str_eq(trace, "timed-out after");
    cr_expect_eq(weir_test_now_us(t) - before_us, WEIR_SECONDS(30));
}

static void wake_now(struct weir *w, void *arg)
{
    cr_expect_str_eq(arg, "the argument");
    weir_wake(w);
}

Test(mem, a_test_can_wake_what_waits)
{
    int64_t before_us = weir_test_now_us(t);
    struct weir_test_request request = { .target = "/hello/x",
                                         .headers = "X-Wait: 1",
                                         .wait = WEIR_TEST_TIME_OUT,
                                         .waiting = wake_now,
                                         .arg = (void *)"the argument" };
    struct weir_test_reply *r = weir_test_send(t, &request);
    cr_expect_eq(r->status, 200);
    cr_expect_str_eq(trace, "woken after");
    cr_expect_eq(weir_test_now_us(t), before_us);
}

static void *wake(void *w)
{
    weir_wake(w);
    return NULL;
}

static pthread_t waker;

static void wake_from_a_thread(struct weir *w, void *arg)
{
    (void)arg;
    cr_assert_eq(pthread_create(&waker, NULL, wake, w), 0);
}

Test(mem, another_thread_can_wake_what_waits)
{
    struct weir_test_request request = { .target = "/hello/x",
                                         .headers = "X-Wait: 1",
                                         .waiting = wake_from_a_thread };
    struct weir_test_reply *r = weir_test_send(t, &request);
    pthread_join(waker, NULL);
    cr_expect_eq(r->status, 200);
    cr_expect_str_eq(trace, "woken after");
}

Test(mem, offloads_run_in_the_calling_thread)
{
    struct weir_test_reply *r = weir_test_get(t, "/hello/x", "X-Offload: 1");
    cr_expect_eq(r->status, 200);
    cr_expect_eq(r->waits, 0);
    cr_expect_str_eq(trace, "offloaded after");
}

Test(mem, too_many_offloads_are_a_503)
{
    struct weir_test_request request = { .target = "/hello/x",
                                         .headers = "X-Offload: 1",
                                         .no_offload = true };
    struct weir_test_reply *r = weir_test_send(t, &request);
    cr_expect_eq(r->status, 503);
    cr_expect_not_null(strstr(r->body, "\"code\":\"Overloaded\""));
    cr_expect_str_eq(weir_test_header(r, "Retry-After"), "1");
    cr_expect_str_eq(trace, "after");
}

/* ---- start, stop, roles ------------------------------------------------------------ */

Test(mem, the_app_is_started_and_stopped_like_a_worker)
{
    weir_test_destroy(t);
    trace[0] = '\0';
    t = weir_test_create(&app, NULL, NULL);
    cr_expect_str_eq(trace, "start worker-start thread-start");
    trace[0] = '\0';
    weir_test_destroy(t);
    cr_expect_str_eq(trace, "thread-stop worker-stop");
    t = NULL;
}

Test(mem, an_app_with_a_mistake_is_refused_with_a_text)
{
    static const struct weir_endpoint bad[] = { { "GET nowhere", hello }, { 0 } };
    struct weir_app mistaken = app;
    struct weir_error error = { "" };
    mistaken.endpoints = bad;
    weir_test_destroy(t);
    t = weir_test_create(&mistaken, NULL, &error);
    cr_expect_null(t);
    cr_expect_not_null(strstr(error.text, "GET nowhere"));

    const char *const arguments[] = { "--no-such-option", "1", NULL };
    struct weir_test_options options = { .arguments = arguments };
    error.text[0] = '\0';
    cr_expect_null(weir_test_create(&app, &options, &error));
    cr_expect_not_null(strstr(error.text, "no-such-option"));
}

static bool refuse(struct weir_worker *worker)
{
    (void)worker;
    return false;
}

Test(mem, a_worker_that_refuses_to_start_is_stopped_no_further)
{
    struct weir_app reluctant = app;
    reluctant.worker_start = refuse;
    weir_test_destroy(t);
    trace[0] = '\0';
    t = weir_test_create(&reluctant, NULL, NULL);
    cr_expect_null(t);
    cr_expect_str_eq(trace, "start");
}

Test(mem, an_authorizer_is_answered_without_a_body)
{
    struct weir_test_request request = { .target = "/hello/x",
                                         .authorizer = true,
                                         .body = "ignored" };
    struct weir_test_reply *r = weir_test_send(t, &request);
    cr_expect_eq(r->status, 200);
    cr_expect_eq(r->body_len, 0);
    cr_expect_eq(strncmp(r->head, "Status: 200 OK\r\n", 16), 0);
    cr_expect_str_eq(trace, "after");
}

Test(mem, the_clock_stands_still_until_it_is_moved)
{
    int64_t before_us = weir_test_now_us(t);
    usleep(2000);
    cr_expect_eq(weir_test_now_us(t), before_us);
    weir_test_advance(t, WEIR_SECONDS(7));
    weir_test_advance(t, -5);
    cr_expect_eq(weir_test_now_us(t), before_us + WEIR_SECONDS(7));
}
