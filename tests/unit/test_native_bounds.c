/* The record engine's bounds: time, memory, descriptors, threads. Times are as short as
 * the system's scheduling allows, and each test waits for what happens, not for a time.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fcgi_client.h"
#include "support/worker_fixture.h"

/* ---- the app --------------------------------------------------------------------------
 */

/* What the worker's process tells this one. */
static struct shared {
    atomic_uint running; /* handlers */
    atomic_uint gone;    /* handlers that have learnt that their client is */
    atomic_uint unsent;  /* handlers whose write failed */
    atomic_uint after;   /* after hooks */
    atomic_uint steps;   /* offloads in flight */
    atomic_uint most_steps;
    atomic_int last_status; /* seen by an after hook */
} * shared;

static int hello(struct weir *w)
{
    return weir_text(w, 200, "hello");
}

static int slow(struct weir *w)
{
    atomic_fetch_add(&shared->running, 1);
    usleep((useconds_t)atoi(weir_path(w, "ms")) * 1000);
    atomic_fetch_sub(&shared->running, 1);
    return weir_text(w, 200, "slow");
}

static int until_gone(struct weir *w)
{
    atomic_fetch_add(&shared->running, 1);
    for (int i = 0; i < 5000 && !weir_gone(w); i++)
        usleep(1000);
    if (weir_gone(w))
        atomic_fetch_add(&shared->gone, 1);
    atomic_fetch_sub(&shared->running, 1);
    return weir_text(w, 200, "late");
}

static int stream(struct weir *w)
{
    static char kib[1024];
    for (int n = 0; n < 30000; n++) {
        if (!weir_write(w, kib, sizeof kib)) {
            atomic_fetch_add(&shared->unsent, 1);
            return 500;
        }
    }
    return 200;
}

static int whole(struct weir *w)
{
    static char kib[1024];
    for (int n = 0; n < 4000; n++)
        if (!weir_write(w, kib, sizeof kib))
            return 500;
    return 200;
}

static int length(struct weir *w)
{
    size_t len;
    weir_body(w, &len);
    return weir_text(w, 200, weir_printf(w, "%zu", len));
}

static enum weir_verdict offloaded(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot, (void)w;
    unsigned now = atomic_fetch_add(&shared->steps, 1) + 1;
    if (now > atomic_load(&shared->most_steps))
        atomic_store(&shared->most_steps, now);
    usleep(100000);
    atomic_fetch_sub(&shared->steps, 1);
    return WEIR_NEXT;
}

static enum weir_verdict waited(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    return weir_timed_out(w) ? WEIR_NEXT : WEIR_FAIL;
}

/* Offloads, parks or passes, as the query says. */
static enum weir_verdict detour(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    const char *ms = weir_query(w, "wait");
    if (ms)
        return weir_wait(w, waited, WEIR_MILLISECONDS(atoi(ms)));
    if (weir_query(w, "offload"))
        return weir_offload(w, offloaded);
    return WEIR_NEXT;
}

static void count_after(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    atomic_store(&shared->last_status, weir_status(w));
    atomic_fetch_add(&shared->after, 1);
}

struct weir_detour {
    size_t size;
    int abi;
};
static const struct weir_filter weir_filter_detour = {
    .name = "detour",
    .options_size = sizeof(struct weir_detour),
    .before = detour,
    .after = count_after,
};

static const struct weir_endpoint endpoints[] = {
    { "GET /hello", hello, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "GET /plain", hello, .limits = WEIR_UNLIMITED },
    { "GET /slow/{ms}", slow, .limits = WEIR_UNLIMITED },
    { "GET /until_gone", until_gone, .limits = WEIR_UNLIMITED },
    { "GET /stream", stream, .limits = WEIR_UNLIMITED },
    { "GET /whole", whole, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "POST /length", length, .limits = WEIR_UNLIMITED },
    { 0 },
};

static const struct weir_app app = { WEIR_ABI,
                                     .endpoints = endpoints,
                                     .chain = WEIR_CHAIN(WEIR_USE(detour)) };

/* ---- what the tests say ---------------------------------------------------------------
 */

static struct worker_fixture worker;

static void init(void)
{
    struct rlimit limit;
    shared = mmap(
        NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(shared, MAP_FAILED);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    worker_init(&worker);
}

static void finish(void)
{
    cr_expect(worker_finish(&worker), "the worker must end in order");
}

TestSuite(native_bounds, .init = init, .fini = finish, .timeout = 60);

static void start(void)
{
    cr_assert(worker_start(&worker, &app));
}

static struct fcgi_client connect_to_worker(void)
{
    struct fcgi_client client;
    cr_assert(fcgi_connect(&client, worker.path), "%s", strerror(errno));
    return client;
}

/* Sends a GET of that path on a kept connection. */
static struct fcgi_client begin(const char *uri)
{
    struct fcgi_client client = connect_to_worker();
    cr_assert(fcgi_send_request(&client,
                                &(struct fcgi_request){ .uri = uri, .keep_conn = true }));
    return client;
}

/* The first so many bytes of a request. */
static struct fcgi_client begin_part(size_t len)
{
    struct fcgi_client client = connect_to_worker();
    struct weir__buf bytes;
    weir__buf_init(&bytes, 0);
    fcgi_put_request(&bytes,
                     &(struct fcgi_request){ .uri = "/hello", .keep_conn = true });
    cr_assert(fcgi_send(&client, bytes.bytes, len, 1000));
    weir__buf_finish(&bytes);
    return client;
}

static int read_status(struct fcgi_client *client)
{
    struct fcgi_reply reply;
    fcgi_read_reply(client, 1, 5000, &reply);
    int status = reply.ended ? reply.status : 0;
    fcgi_reply_finish(&reply);
    return status;
}

static int get(const char *uri)
{
    return fcgi_status(worker.path, &(struct fcgi_request){ .uri = uri }, 5000);
}

static void wait_until(atomic_uint *count, unsigned wanted)
{
    for (int i = 0; atomic_load(count) != wanted; i++) {
        cr_assert_lt(i, 5000, "%u", atomic_load(count));
        usleep(1000);
    }
}

/* Closed after at least and at most so many milliseconds from begin_us on. */
static void expect_closed_within(struct fcgi_client *client,
                                 int64_t begin_us,
                                 int64_t least_ms,
                                 int64_t most_ms)
{
    cr_expect(fcgi_is_closed(client, 5000));
    int64_t took_us = fcgi_now_us() - begin_us;
    cr_expect_geq(took_us, least_ms * 1000, "%ld us", (long)took_us);
    cr_expect_leq(took_us, most_ms * 1000, "%ld us", (long)took_us);
    fcgi_close(client);
}

/* ---- peers that say nothing -----------------------------------------------------------
 */

Test(native_bounds, silent_peers_are_closed)
{
    worker.options.silent_unix_ms = 100;
    start();
    int64_t begin_us = fcgi_now_us();
    struct fcgi_client client = connect_to_worker();
    expect_closed_within(&client, begin_us, 100, 1500);
}

Test(native_bounds, idle_kept_connections_are_closed)
{
    worker.options.idle_ms = 150;
    start();
    int64_t begin_us = fcgi_now_us();
    struct fcgi_client client = begin("/hello");
    cr_expect_eq(read_status(&client), 200);
    expect_closed_within(&client, begin_us, 150, 1500);
}

Test(native_bounds, half_a_head_is_closed_whatever_part_of_it_there_is)
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

Test(native_bounds, a_dripping_head_gets_no_extra_time)
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
Test(native_bounds, a_hundred_requests_pass_a_crowd_of_idle_and_silent_peers)
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

/* ---- threads --------------------------------------------------------------------------
 */

Test(native_bounds,
     with_all_other_threads_stuck_refusals_and_nonblocking_ones_are_answered)
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

Test(native_bounds, offloads_of_one_address_are_bounded)
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

Test(native_bounds, many_parked_requests_hold_no_thread)
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

/* ---- the total time -------------------------------------------------------------------
 */

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

Test(native_bounds, a_handler_past_the_total_time_is_answered_over_its_head)
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

Test(native_bounds, requests_that_wait_for_a_thread_or_are_parked_get_504_too)
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

/* ---- clients that go, or don't read ---------------------------------------------------
 */

Test(native_bounds, a_handler_learns_that_its_client_is_gone)
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

Test(native_bounds, a_request_whose_client_left_before_is_not_run)
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

Test(native_bounds, a_peer_that_does_not_read_is_given_up_at_the_write_deadline)
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

Test(native_bounds, a_client_gone_in_the_middle_of_an_answer_ends_it)
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

Test(native_bounds, lingering_ends_after_its_time_and_after_its_bytes)
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

/* ---- memory ---------------------------------------------------------------------------
 */

static int status_with_params(const struct fcgi_param *params)
{
    return fcgi_status(
        worker.path, &(struct fcgi_request){ .uri = "/hello", .params = params }, 5000);
}

Test(native_bounds, too_many_or_too_large_parameters_are_431)
{
    static struct fcgi_param params[290];
    static char value[9000];
    start();
    for (int i = 0; i < 260; i++)
        params[i] = (struct fcgi_param){ "HTTP_X", "x" };
    cr_expect_eq(status_with_params(params), 431);
    params[200] = (struct fcgi_param){ 0 };
    cr_expect_eq(status_with_params(params), 200);
    memset(value, 'v', sizeof value - 1);
    params[0] = (struct fcgi_param){ "HTTP_Y", value };
    cr_expect_eq(status_with_params(params), 431);
    value[8000] = '\0';
    cr_expect_eq(status_with_params(params), 200);
    for (int i = 0; i < 10; i++)
        params[i] = params[0];
    cr_expect_eq(status_with_params(params), 431);
}

/* Lengths near 2^31 are refused when they are declared, and nothing is kept for them. */
Test(native_bounds, hostile_lengths_cost_no_memory)
{
    static const unsigned char lengths[][8] = {
        { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
        { 0xc0, 0, 0, 0, 0xc0, 0, 0, 0 },
        { 0x80, 0, 0x20, 1, 0, 'x', 'y', 'z' },
    };
    start();
    for (unsigned i = 0; i < 3; i++) {
        struct fcgi_client client = begin_part(16);
        unsigned char record[WEIR__FCGI_HEADER_BYTES + 8];
        weir__fcgi_put_header(record, WEIR__FCGI_PARAMS, 1, 8);
        memcpy(record + WEIR__FCGI_HEADER_BYTES, lengths[i], 8);
        cr_assert(fcgi_send(&client, record, sizeof record, 1000));
        /* A flood of what was announced, then the end of it. */
        static char content[60000];
        struct weir__buf rest;
        weir__buf_init(&rest, 0);
        for (int k = 0; k < 20; k++)
            cr_assert(weir__fcgi_append_stream(
                &rest, WEIR__FCGI_PARAMS, 1, content, sizeof content));
        cr_assert(fcgi_send(&client, rest.bytes, rest.len, 2000));
        static const unsigned char ends[] = { 1, 4, 0, 1, 0, 0, 0, 0,
                                              1, 5, 0, 1, 0, 0, 0, 0 };
        cr_assert(fcgi_send(&client, ends, sizeof ends, 1000));
        cr_expect_eq(read_status(&client), 431);
        fcgi_close(&client);
        weir__buf_finish(&rest);
    }
    cr_expect_eq(get("/plain"), 200);
}

/* With the budget used up by half-sent bodies nothing more is read; once they are over,
 * all goes on. */
Test(native_bounds, reading_stops_at_the_budget_and_goes_on_below_it)
{
    enum { HOLDERS = 10 };
    static char half[600 * 1024];
    struct fcgi_client holders[HOLDERS];
    worker.options.max_buffered_bytes = 4 * 1024 * 1024;
    worker.options.silent_unix_ms = 10000;
    start();
    for (int i = 0; i < HOLDERS; i++) {
        struct weir__buf bytes;
        holders[i] = connect_to_worker();
        weir__buf_init(&bytes, 0);
        fcgi_put_request(&bytes,
                         &(struct fcgi_request){ .method = "POST",
                                                 .uri = "/length",
                                                 .keep_conn = true,
                                                 .body = half,
                                                 .body_len = sizeof half });
        /* All but the end; where it doesn't get rid of it, the budget is used up. */
        fcgi_send(&holders[i], bytes.bytes, bytes.len - WEIR__FCGI_HEADER_BYTES, 100);
        weir__buf_finish(&bytes);
    }
    struct fcgi_client late = begin("/hello");
    struct fcgi_reply reply;
    cr_expect_not(fcgi_read_reply(&late, 1, 200, &reply), "past the budget");
    fcgi_reply_finish(&reply);
    for (int i = 0; i < HOLDERS; i++)
        fcgi_close(&holders[i]);
    cr_expect_eq(read_status(&late), 200);
    fcgi_close(&late);
}

/* ---- connections and descriptors ------------------------------------------------------
 */

Test(native_bounds, above_the_most_connections_newcomers_wait)
{
    struct fcgi_client open[8];
    worker.options.max_connections = 8;
    worker.options.silent_unix_ms = 10000;
    start();
    for (int i = 0; i < 8; i++) {
        open[i] = begin("/hello");
        cr_expect_eq(read_status(&open[i]), 200);
    }
    struct fcgi_client late = begin("/hello");
    struct fcgi_reply reply;
    cr_expect_not(fcgi_read_reply(&late, 1, 100, &reply));
    fcgi_reply_finish(&reply);
    fcgi_close(&open[3]);
    cr_expect_eq(read_status(&late), 200);
    fcgi_close(&late);
    for (int i = 0; i < 8; i++)
        fcgi_close(&open[i]);
    for (int i = 0; i < 50; i++)
        cr_expect_eq(get("/hello"), 200);
}

static double cpu_seconds(pid_t pid)
{
    char name[64], text[1024];
    unsigned long user = 0, system = 0;
    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(name, "r");
    cr_assert_not_null(file);
    cr_assert_not_null(fgets(text, sizeof text, file));
    fclose(file);
    sscanf(strrchr(text, ')') + 2,
           "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
           &user,
           &system);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

Test(native_bounds, a_shortage_of_descriptors_neither_ends_nor_spins_it)
{
    enum { MANY = 60 };
    struct fcgi_client clients[MANY];
    worker.max_descriptors = 40;
    worker.options.silent_unix_ms = 10000;
    start();
    for (int i = 0; i < MANY; i++)
        clients[i] = connect_to_worker();
    usleep(100000);
    double before = cpu_seconds(worker.pid);
    usleep(500000);
    cr_expect_lt(cpu_seconds(worker.pid) - before, 0.05);
    for (int i = 0; i < MANY; i++)
        fcgi_close(&clients[i]);
    int64_t begin_us = fcgi_now_us();
    cr_expect_eq(get("/plain"), 200);
    cr_expect_lt(fcgi_now_us() - begin_us, 1000000);
}

/* ---- the end --------------------------------------------------------------------------
 */

Test(native_bounds, an_idle_worker_ends_at_once)
{
    struct fcgi_client idle[50];
    start();
    for (int i = 0; i < 50; i++) {
        idle[i] = begin("/hello");
        cr_expect_eq(read_status(&idle[i]), 200);
    }
    int64_t begin_us = fcgi_now_us();
    cr_expect_eq(worker_stop(&worker), 0);
    cr_expect_lt(fcgi_now_us() - begin_us, 1500000);
    for (int i = 0; i < 50; i++) {
        cr_expect(fcgi_is_closed(&idle[i], 100));
        fcgi_close(&idle[i]);
    }
}

Test(native_bounds, requests_in_flight_are_answered_before_the_end)
{
    struct fcgi_client running[12];
    worker.options.threads = 4;
    start();
    for (int i = 0; i < 10; i++)
        running[i] = begin("/slow/100");
    running[10] = begin("/hello?wait=150");
    running[11] = begin("/hello?offload=1");
    wait_until(&shared->running, 3);
    int64_t begin_us = fcgi_now_us();
    worker_terminate(&worker);
    for (int i = 0; i < 12; i++) {
        cr_expect_eq(read_status(&running[i]), 200);
        cr_expect(fcgi_is_closed(&running[i], 1000));
        fcgi_close(&running[i]);
    }
    cr_expect_eq(worker_wait(&worker), 0);
    cr_expect_lt(fcgi_now_us() - begin_us, 3000000);
}

Test(native_bounds, a_handler_that_does_not_end_holds_the_end_up_to_the_drain_time)
{
    worker.options.drain_ms = 200;
    start();
    struct fcgi_client client = begin("/slow/5000");
    wait_until(&shared->running, 1);
    int64_t begin_us = fcgi_now_us();
    cr_expect_eq(worker_stop(&worker), 0);
    int64_t took_us = fcgi_now_us() - begin_us;
    cr_expect_geq(took_us, 200000);
    cr_expect_lt(took_us, 2500000, "%ld us", (long)took_us);
    fcgi_close(&client);
}

Test(native_bounds, ends_when_its_parent_is_gone)
{
    start();
    int status;
    cr_expect_eq(get("/hello"), 200);
    close(worker.control_fd);
    cr_assert_eq(waitpid(worker.pid, &status, 0), worker.pid);
    cr_expect_eq(status, 0);
    worker.pid = 0;
}

Test(native_bounds, a_worker_whose_threads_are_all_stuck_ends)
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
