/* Handlers that run for one request at a time, in a real worker: who waits for them has
 * no thread, and whoever leaves the line holds up nobody. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcgiapp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/fcgi_client.h"
#include "support/worker_fixture.h"

#define LARGE_BYTES 20000000

/* ---- the app ----------------------------------------------------------------------- */

/* What the worker's process tells this one. */
static struct shared {
    atomic_uint running, most_running; /* of the handlers below */
    atomic_uint runs;
    atomic_uint held;  /* the handler of /held waits while this is set */
    atomic_uint taken; /* bytes of /large before the first write that failed */
} * shared;

static void enter(void)
{
    unsigned now = atomic_fetch_add(&shared->running, 1) + 1;
    if (now > atomic_load(&shared->most_running))
        atomic_store(&shared->most_running, now);
}

static void leave(void)
{
    atomic_fetch_add(&shared->runs, 1);
    atomic_fetch_sub(&shared->running, 1);
}

static void held(FCGX_Request *request)
{
    enter();
    for (int i = 0; i < 5000 && atomic_load(&shared->held); i++)
        usleep(1000);
    FCGX_PutS("Content-Type: text/plain\n\nheld", request->out);
    leave();
}

/* Waits for a second of its kind, for a while. */
static void together(FCGX_Request *request)
{
    enter();
    for (int i = 0; i < 2000 && atomic_load(&shared->most_running) < 2; i++)
        usleep(1000);
    FCGX_PutS("Content-Type: text/plain\n\ntogether", request->out);
    leave();
}

/* Goes on writing when that fails, as many programs do. */
static void large(FCGX_Request *request)
{
    static const char block[1000];
    enter();
    FCGX_PutS("Content-Type: application/octet-stream\n\n", request->out);
    for (int i = 0; i < LARGE_BYTES / 1000; i++)
        if (FCGX_PutStr(block, sizeof block, request->out) == (int)sizeof block)
            atomic_fetch_add(&shared->taken, sizeof block);
    leave();
}

static int native(struct weir *w)
{
    return weir_text(w, 200, "native");
}

static const struct weir_endpoint endpoints[] = {
    { "GET /held", .fcgx = held, .limits = WEIR_UNLIMITED },
    { "GET /together", .fcgx = together, .limits = WEIR_UNLIMITED, .parallel = true },
    { "GET /large", .fcgx = large, .limits = WEIR_UNLIMITED },
    { "GET /native", native, .limits = WEIR_UNLIMITED },
    { 0 },
};

static const struct weir_app app = { WEIR_ABI, .endpoints = endpoints };

/* ---- what the tests say ------------------------------------------------------------ */

enum { CLIENTS = 6 };

static struct worker_fixture worker;
static struct fcgi_client clients[CLIENTS];

static void init(void)
{
    shared = mmap(
        NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(shared, MAP_FAILED);
    worker_init(&worker);
    worker.options.threads = 3;
}

static void finish(void)
{
    cr_expect(worker_finish(&worker), "the worker must end in order");
}

TestSuite(line, .init = init, .fini = finish, .timeout = 60);

static void wait_until(atomic_uint *count, unsigned wanted)
{
    for (int i = 0; atomic_load(count) != wanted; i++) {
        cr_assert_lt(i, 5000, "%u", atomic_load(count));
        usleep(1000);
    }
}

static struct fcgi_client begin(const char *uri)
{
    struct fcgi_client client;
    cr_assert(fcgi_connect(&client, worker.path), "%s", strerror(errno));
    cr_assert(fcgi_send_request(&client,
                                &(struct fcgi_request){ .uri = uri, .keep_conn = true }));
    return client;
}

static int read_status(struct fcgi_client *client)
{
    struct fcgi_reply reply;
    fcgi_read_reply(client, 1, 10000, &reply);
    int status = reply.ended ? reply.status : 0;
    fcgi_reply_finish(&reply);
    fcgi_close(client);
    return status;
}

static int get(const char *uri)
{
    return fcgi_status(worker.path, &(struct fcgi_request){ .uri = uri }, 5000);
}

/* All clients ask for /held, of which the first runs until it is let go. */
static void start_line(void)
{
    cr_assert(worker_start(&worker, &app));
    atomic_store(&shared->held, 1);
    clients[0] = begin("/held");
    wait_until(&shared->running, 1);
    for (int i = 1; i < CLIENTS; i++)
        clients[i] = begin("/held");
    /* They are in line once the worker has read them: what comes later is answered. */
    for (int i = 0; i < 3; i++)
        cr_assert_eq(get("/native"), 200);
}

Test(line, one_request_at_a_time_and_all_of_them)
{
    start_line();
    atomic_store(&shared->held, 0);
    for (int i = 0; i < CLIENTS; i++)
        cr_expect_eq(read_status(&clients[i]), 200);
    cr_expect_eq(shared->most_running, 1u);
    cr_expect_eq(shared->runs, (unsigned)CLIENTS);
}

Test(line, those_who_wait_hold_no_thread)
{
    start_line();
    int64_t begin_us = fcgi_now_us();
    for (int i = 0; i < 20; i++)
        cr_expect_eq(get("/native"), 200);
    cr_expect_lt(fcgi_now_us() - begin_us, 2000000);
    cr_expect_eq(shared->runs, 0u);
    atomic_store(&shared->held, 0);
    for (int i = 0; i < CLIENTS; i++)
        cr_expect_eq(read_status(&clients[i]), 200);
}

Test(line, parallel_handlers_run_together)
{
    cr_assert(worker_start(&worker, &app));
    clients[0] = begin("/together");
    clients[1] = begin("/together");
    cr_expect_eq(read_status(&clients[0]), 200);
    cr_expect_eq(read_status(&clients[1]), 200);
    cr_expect_eq(shared->most_running, 2u);
}

Test(line, clients_that_leave_are_not_served)
{
    start_line();
    for (int i = 1; i < CLIENTS; i += 2)
        fcgi_close(&clients[i]);
    usleep(300000); /* a request is watched once it has taken a while */
    atomic_store(&shared->held, 0);
    for (int i = 0; i < CLIENTS; i += 2)
        cr_expect_eq(read_status(&clients[i]), 200);
    cr_expect_eq(shared->runs, (unsigned)CLIENTS / 2);
}

/* One more request asks for the handler that the line is before. */
static void expect_that_large_was_cut(void)
{
    wait_until(&shared->runs, 1);
    cr_expect_lt(shared->taken, (unsigned)LARGE_BYTES / 2);
    cr_expect_eq(get("/held"), 200);
}

Test(line, a_program_writes_no_more_to_a_client_that_left)
{
    char some[1000];
    cr_assert(worker_start(&worker, &app));
    clients[0] = begin("/large");
    cr_assert_gt(recv(clients[0].fd, some, sizeof some, 0), 0);
    fcgi_close(&clients[0]);
    expect_that_large_was_cut();
}

Test(line, a_program_waits_for_a_client_that_does_not_read_up_to_the_write_deadline)
{
    worker.options.write_ms = 200;
    cr_assert(worker_start(&worker, &app));
    int64_t begin_us = fcgi_now_us();
    clients[0] = begin("/large");
    expect_that_large_was_cut();
    cr_expect_geq(fcgi_now_us() - begin_us, 150000);
    fcgi_close(&clients[0]);
}

Test(line, time_over_in_line_is_a_504_and_the_line_goes_on)
{
    worker.options.total_ms = 300;
    start_line();
    for (int i = 0; i < CLIENTS; i++)
        cr_expect_eq(read_status(&clients[i]), 504);
    cr_expect_eq(shared->runs, 0u);
    struct fcgi_client next = begin("/held");
    atomic_store(&shared->held, 0);
    cr_expect_eq(read_status(&next), 200);
    wait_until(&shared->running, 0);
    cr_expect_eq(shared->runs, 2u); /* the overdue one and the last */
}

Test(line, is_served_to_its_end_when_the_worker_stops)
{
    start_line();
    worker_terminate(&worker);
    usleep(20000);
    atomic_store(&shared->held, 0);
    for (int i = 0; i < CLIENTS; i++)
        cr_expect_eq(read_status(&clients[i]), 200);
    cr_expect_eq(shared->runs, (unsigned)CLIENTS);
    cr_expect_eq(worker_wait(&worker), 0);
}

Test(line, many_rounds_lose_nobody)
{
    cr_assert(worker_start(&worker, &app));
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < CLIENTS; i++)
            clients[i] = begin("/held");
        for (int i = 0; i < CLIENTS; i++)
            cr_assert_eq(read_status(&clients[i]), 200);
    }
    cr_expect_eq(shared->most_running, 1u);
    cr_expect_eq(shared->runs, 100u * CLIENTS);
}
