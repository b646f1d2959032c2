/* The record engine's bounds of memory, connections and descriptors, and how it ends. */
#include "bounds.h"

TestSuite(native_space, .init = init, .fini = finish, .timeout = 60);

/* ---- memory ----------------------------------------------------------------------- */

static int status_with_params(const struct fcgi_param *params)
{
    return fcgi_status(
        worker.path, &(struct fcgi_request){ .uri = "/hello", .params = params }, 5000);
}

Test(native_space, too_many_or_too_large_parameters_are_431)
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
Test(native_space, hostile_lengths_cost_no_memory)
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
Test(native_space, reading_stops_at_the_budget_and_goes_on_below_it)
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

/* ---- connections and descriptors -------------------------------------------------- */

/* Beyond what select() could watch. */
Test(native_space, more_than_a_thousand_connections_are_all_served)
{
    enum { MANY = 1100 };
    static struct fcgi_client open[MANY];
    start();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            if (round == 0)
                open[i] = connect_to_worker();
            cr_assert(fcgi_send_request(
                &open[i], &(struct fcgi_request){ .uri = "/plain", .keep_conn = true }));
            cr_assert_eq(read_status(&open[i]), 200);
        }
    }
    for (int i = 0; i < MANY; i++)
        fcgi_close(&open[i]);
}

Test(native_space, above_the_most_connections_newcomers_wait)
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

Test(native_space, a_shortage_of_descriptors_neither_ends_nor_spins_it)
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

/* ---- the end ---------------------------------------------------------------------- */

Test(native_space, an_idle_worker_ends_at_once)
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

Test(native_space, requests_in_flight_are_answered_before_the_end)
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

Test(native_space, a_handler_that_does_not_end_holds_the_end_up_to_the_drain_time)
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

Test(native_space, ends_when_its_parent_is_gone)
{
    start();
    int status;
    cr_expect_eq(get("/hello"), 200);
    close(worker.control_fd);
    cr_assert_eq(waitpid(worker.pid, &status, 0), worker.pid);
    cr_expect_eq(status, 0);
    worker.pid = 0;
}
