/* The record engine's bounds of time and threads: peers that are silent, slow, deaf or
 * gone, requests that take too long. Times are short, and each test waits for what
 * happens, not for a time. */
#include "bounds.h"

TestSuite(native_time, .init = init, .fini = finish, .timeout = 60);

/* ---- peers that say nothing ------------------------------------------------------- */

Test(native_time, silent_peers_are_closed)
{
    worker.options.silent_unix_ms = 100;
    start();
    int64_t begin_us = fcgi_now_us();
    struct fcgi_client client = connect_to_worker();
    expect_closed_within(&client, begin_us, 100, 1500);
}

Test(native_time, idle_kept_connections_are_closed)
{
    worker.options.idle_ms = 150;
    start();
    int64_t begin_us = fcgi_now_us();
    struct fcgi_client client = begin("/hello");
    cr_expect_eq(read_status(&client), 200);
    expect_closed_within(&client, begin_us, 150, 1500);
}

Test(native_time, half_a_head_is_closed_whatever_part_of_it_there_is)
{
    static const size_t parts[] = { 1, 7, 16, 20, 60 };
    worker.options.head_ms = 150;
    start();
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int64_t begin_us = fcgi_now_us();
        struct fcgi_client client = begin_part(parts[i]);
        expect_closed_within(&client, begin_us, 150, 1500);
    }
    /* Also behind a request that was whole. */
    struct fcgi_client client = begin("/hello");
    cr_expect_eq(read_status(&client), 200);
    int64_t begin_us = fcgi_now_us();
    cr_assert(fcgi_send(&client, "\1", 1, 1000));
    expect_closed_within(&client, begin_us, 150, 1500);
}

/* What starts a request is 16 bytes: who sends fewer is treated as silent, not as one
 * whose parameters are on their way. */
Test(native_time, half_a_first_record_counts_as_silence)
{
    static const size_t parts[] = { 1, 7, 8, 15 };
    worker.options.silent_unix_ms = 100;
    start();
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int64_t begin_us = fcgi_now_us();
        struct fcgi_client client = begin_part(parts[i]);
        expect_closed_within(&client, begin_us, 100, 1500);
    }
    /* On a kept connection, which may idle for long, from its first byte on. */
    struct fcgi_client client = begin("/hello");
    cr_expect_eq(read_status(&client), 200);
    usleep(150000);
    int64_t begin_us = fcgi_now_us();
    cr_assert(fcgi_send(&client, "\1", 1, 1000));
    expect_closed_within(&client, begin_us, 100, 1500);
}

Test(native_time, a_dripping_head_gets_no_extra_time)
{
    worker.options.head_ms = 200;
    start();
    struct weir__buf bytes;
    weir__buf_init(&bytes, 0);
    fcgi_put_request(&bytes, &(struct fcgi_request){ .uri = "/hello" });
    int64_t begin_us = fcgi_now_us();
    struct fcgi_client client = connect_to_worker();
    size_t i = 0;
    while (i < bytes.len && fcgi_send(&client, bytes.bytes + i, 1, 100)) {
        usleep(20000);
        i++;
    }
    cr_expect_lt(i, 20);
    cr_expect_lt(fcgi_now_us() - begin_us, 1500000);
    fcgi_close(&client);
    weir__buf_finish(&bytes);
}

/* The one promise above all: whoever idles, stays silent or stops in the middle costs a
 * descriptor and no thread. */
Test(native_time, a_hundred_requests_pass_a_crowd_of_idle_and_silent_peers)
{
    enum { CROWD = 10 * 2 * 8 };
    static struct fcgi_client idle[CROWD], silent[CROWD];
    worker.options.silent_unix_ms = 1000;
    start();
    for (int i = 0; i < CROWD; i++) {
        idle[i] = begin("/hello");
        cr_assert_eq(read_status(&idle[i]), 200);
    }
    for (int i = 0; i < CROWD; i++)
        silent[i] = begin_part((size_t)(i % 2 ? 0 : 30));
    int64_t slowest_us = 0;
    for (int i = 0; i < 100; i++) {
        int64_t begin_us = fcgi_now_us();
        cr_assert_eq(get(i % 2 ? "/hello" : "/plain"), 200);
        int64_t took_us = fcgi_now_us() - begin_us;
        slowest_us = took_us > slowest_us ? took_us : slowest_us;
    }
    cr_expect_lt(slowest_us, 300000, "%ld us", (long)slowest_us);
    /* And the idle ones are still of use. */
    for (int i = 0; i < CROWD; i++) {
        cr_assert(fcgi_send_request(
            &idle[i], &(struct fcgi_request){ .uri = "/plain", .keep_conn = true }));
        cr_assert_eq(read_status(&idle[i]), 200);
        fcgi_close(&idle[i]);
        fcgi_close(&silent[i]);
    }
}

/* ---- threads ---------------------------------------------------------------------- */

Test(native_time, with_all_other_threads_stuck_refusals_and_nonblocking_ones_are_answered)
{
    enum { STUCK = 12 };
    struct fcgi_client stuck[STUCK];
    worker.options.threads = 4;
    start();
    for (int i = 0; i < STUCK; i++)
        stuck[i] = begin("/slow/400");
    wait_until(&shared->running, 3); /* and no more */
    for (int i = 0; i < 50; i++) {
        cr_expect_eq(get("/hello"), 200);
        cr_expect_eq(get("/nowhere"), 404);
    }
    cr_expect_eq(atomic_load(&shared->running), 3);
    for (int i = 0; i < STUCK; i++) {
        cr_expect_eq(read_status(&stuck[i]), 200);
        fcgi_close(&stuck[i]);
    }
}

Test(native_time, offloads_of_one_address_are_bounded)
{
    enum { MANY = 16 };
    struct fcgi_client clients[MANY];
    unsigned served = 0, refused = 0;
    worker.options.max_offloads_an_address = 2;
    start();
    for (int i = 0; i < MANY; i++)
        clients[i] = begin("/hello?offload=1");
    for (int i = 0; i < MANY; i++) {
        int status = read_status(&clients[i]);
        served += status == 200;
        refused += status == 503;
        fcgi_close(&clients[i]);
    }
    cr_expect_leq(atomic_load(&shared->most_steps), 2);
    cr_expect_geq(served, 2);
    cr_expect_eq(served + refused, MANY);
    cr_expect_eq(get("/hello?offload=1"), 200); /* they are counted out again */
}

Test(native_time, many_parked_requests_hold_no_thread)
{
    enum { PARKED = 200 };
    static struct fcgi_client parked[PARKED];
    worker.options.threads = 2;
    start();
    int64_t begin_us = fcgi_now_us();
    for (int i = 0; i < PARKED; i++)
        parked[i] = begin("/hello?wait=200");
    cr_expect_eq(get("/hello"), 200);
    for (int i = 0; i < PARKED; i++) {
        cr_expect_eq(read_status(&parked[i]), 200);
        fcgi_close(&parked[i]);
    }
    int64_t took_us = fcgi_now_us() - begin_us;
    cr_expect_geq(took_us, 200000);
    cr_expect_leq(took_us, 3000000, "%ld us", (long)took_us);
}

/* ---- the total time --------------------------------------------------------------- */

static void expect_504(struct fcgi_client *client)
{
    struct fcgi_reply reply;
    char type[64];
    cr_assert(fcgi_read_reply(client, 1, 5000, &reply));
    cr_expect_eq(reply.status, 504);
    cr_expect(fcgi_header(&reply, "Content-Type", type, sizeof type));
    cr_expect_str_eq(type, "application/problem+json");
    cr_expect_not_null(strstr(reply.body, "\"code\":\"RequestTimeout\""));
    cr_expect_leq(reply.took_us, 1500000, "%ld us", (long)reply.took_us);
    fcgi_reply_finish(&reply);
}

Test(native_time, a_handler_past_the_total_time_is_answered_over_its_head)
{
    worker.options.total_ms = 200;
    start();
    struct fcgi_client client = begin("/slow/2000");
    expect_504(&client);
    /* The connection goes on while that handler still runs, and its late answer is no
     * part of the next. */
    cr_expect_eq(atomic_load(&shared->running), 1);
    for (int i = 0; i < 50; i++) {
        cr_assert(fcgi_send_request(
            &client, &(struct fcgi_request){ .uri = "/hello", .keep_conn = true }));
        cr_expect_eq(read_status(&client), 200);
        usleep(15000);
    }
    wait_until(&shared->running, 0);
    wait_until(&shared->after, 51);
    fcgi_close(&client);
}

Test(native_time, requests_that_wait_for_a_thread_or_are_parked_get_504_too)
{
    worker.options.total_ms = 200;
    worker.options.threads = 2;
    start();
    struct fcgi_client first = begin("/slow/2000");
    wait_until(&shared->running, 1);
    struct fcgi_client queued = begin("/slow/1");
    struct fcgi_client parked = begin("/hello?wait=5000");
    struct fcgi_client unsent = connect_to_worker();
    cr_assert(fcgi_send_request(
        &unsent,
        &(struct fcgi_request){
            .method = "POST", .uri = "/length", .declared_len = 5, .no_stdin = true }));
    expect_504(&queued);
    expect_504(&parked);
    expect_504(&unsent);
    expect_504(&first);
    fcgi_close(&queued);
    fcgi_close(&parked);
    fcgi_close(&unsent);
    fcgi_close(&first);
}

/* ---- clients that go, or don't read ----------------------------------------------- */

Test(native_time, a_handler_learns_that_its_client_is_gone)
{
    start();
    for (unsigned i = 0; i < 10; i++) {
        struct fcgi_client client = connect_to_worker();
        bool keep = i % 2;
        if (keep) { /* watched from its first request on */
            cr_assert(fcgi_send_request(
                &client, &(struct fcgi_request){ .uri = "/hello", .keep_conn = true }));
            cr_assert_eq(read_status(&client), 200);
        }
        cr_assert(fcgi_send_request(
            &client, &(struct fcgi_request){ .uri = "/until_gone", .keep_conn = keep }));
        wait_until(&shared->running, 1);
        fcgi_close(&client);
        wait_until(&shared->running, 0);
        cr_expect_eq(atomic_load(&shared->gone), i + 1);
    }
    wait_until(&shared->after, 15);
}

Test(native_time, a_request_whose_client_left_before_is_not_run)
{
    worker.options.threads = 2;
    start();
    struct fcgi_client first = begin("/slow/200");
    wait_until(&shared->running, 1);
    struct fcgi_client client = begin("/until_gone"); /* waits for the thread */
    usleep(50000);
    fcgi_close(&client);
    cr_expect_eq(read_status(&first), 200);
    wait_until(&shared->after, 2);
    cr_expect_eq(atomic_load(&shared->gone), 0);
    fcgi_close(&first);
}

Test(native_time, a_peer_that_does_not_read_is_given_up_at_the_write_deadline)
{
    static const char *const uris[] = { "/stream", "/whole" };
    worker.options.write_ms = 200;
    worker.options.threads = 2;
    start();
    for (int i = 0; i < 2; i++) {
        struct fcgi_client client = begin(uris[i]);
        int64_t begin_us = fcgi_now_us();
        wait_until(&shared->after, (unsigned)i + 1);
        int64_t took_us = fcgi_now_us() - begin_us;
        cr_expect_geq(took_us, 150000, "%s %ld us", uris[i], (long)took_us);
        cr_expect_leq(took_us, 2000000, "%s %ld us", uris[i], (long)took_us);
        struct fcgi_reply reply;
        cr_expect_not(fcgi_read_reply(&client, 1, 2000, &reply));
        cr_expect(reply.closed);
        fcgi_reply_finish(&reply);
        fcgi_close(&client);
    }
    cr_expect_eq(atomic_load(&shared->unsent), 1);
    cr_expect_eq(get("/plain"), 200);
}

Test(native_time, a_client_gone_in_the_middle_of_an_answer_ends_it)
{
    start();
    for (unsigned i = 0; i < 6; i++) {
        struct fcgi_client client = begin(i % 2 ? "/stream" : "/whole");
        char some[1000];
        cr_assert_gt(recv(client.fd, some, sizeof some, 0), 0);
        fcgi_close(&client);
        wait_until(&shared->after, i + 1);
    }
    cr_expect_eq(atomic_load(&shared->unsent), 3);
    cr_expect_eq(get("/plain"), 200);
}

Test(native_time, lingering_ends_after_its_time_and_after_its_bytes)
{
    static char mib[1024 * 1024];
    worker.options.linger_ms = 200;
    start();
    struct fcgi_request refused = {
        .method = "POST", .uri = "/nowhere", .declared_len = 1000, .no_stdin = true
    };
    struct fcgi_client client = connect_to_worker();
    cr_assert(fcgi_send_request(&client, &refused));
    cr_expect_eq(read_status(&client), 404);
    int64_t begin_us = fcgi_now_us();
    /* Half-closed: the end is seen at once, but bytes are taken until the time is over.
     */
    cr_expect(fcgi_is_closed(&client, 100));
    while (fcgi_send(&client, mib, 1, 100))
        usleep(5000);
    int64_t took_us = fcgi_now_us() - begin_us;
    cr_expect_geq(took_us, 190000, "%ld us", (long)took_us);
    cr_expect_leq(took_us, 1500000, "%ld us", (long)took_us);
    fcgi_close(&client);
    cr_expect(worker_finish(&worker));

    worker.options.linger_ms = 20000;
    worker.options.linger_bytes = 4 * sizeof mib;
    start();
    client = connect_to_worker();
    cr_assert(fcgi_send_request(&client, &refused));
    cr_expect_eq(read_status(&client), 404);
    unsigned taken = 0;
    while (taken < 50 && fcgi_send(&client, mib, sizeof mib, 1000))
        taken++;
    cr_expect_geq(taken, 4);
    cr_expect_lt(taken, 8, "%u", taken);
    fcgi_close(&client);
}

/* ---- a worker that is of no use any more ------------------------------------------ */

Test(native_time, a_worker_whose_threads_are_all_stuck_ends)
{
    struct fcgi_client stuck[3];
    worker.options.threads = 4;
    worker.options.total_ms = 200;
    worker.options.drain_ms = 100;
    start();
    for (int i = 0; i < 3; i++)
        stuck[i] = begin("/slow/20000");
    for (int i = 0; i < 3; i++) {
        expect_504(&stuck[i]);
        fcgi_close(&stuck[i]);
    }
    cr_expect_eq(worker_wait(&worker), 0);
}
