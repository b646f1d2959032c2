/* What is different over TCP: a peer that closed and one that shut its side look alike,
 * and a close with unread bytes resets the connection and may take the answer with it. */
#include "bounds.h"

static void init_tcp(void)
{
    init();
    worker.tcp = true;
}

TestSuite(native_tcp, .init = init_tcp, .fini = finish, .timeout = 60);

Test(native_tcp, answers_and_keeps_or_closes)
{
    start();
    struct fcgi_client client = connect_to_worker();
    for (int i = 0; i < 100; i++) {
        cr_assert(
            fcgi_send_request(&client,
                              &(struct fcgi_request){ .uri = i % 2 ? "/hello" : "/plain",
                                                      .keep_conn = i < 99 }));
        cr_assert_eq(read_status(&client), 200);
    }
    cr_expect(fcgi_is_closed(&client, 1000));
    fcgi_close(&client);
}

Test(native_tcp, silent_peers_are_closed)
{
    worker.options.silent_ms = 100;
    start();
    int64_t begin_us = fcgi_now_us();
    struct fcgi_client client = connect_to_worker();
    expect_closed_within(&client, begin_us, 100, 1500);
}

Test(native_tcp, a_refusal_of_a_large_upload_is_always_seen)
{
    enum { BODY = 20 * 1000 * 1000 };
    static char body[BODY];
    start();
    for (int i = 0; i < 20; i++) {
        struct weir__buf bytes;
        weir__buf_init(&bytes, 0);
        fcgi_put_request(
            &bytes,
            &(struct fcgi_request){
                .method = "POST", .uri = "/nowhere", .body = body, .body_len = BODY });
        struct fcgi_client client = connect_to_worker();
        cr_assert(fcgi_send(&client, bytes.bytes, bytes.len, 5000));
        cr_expect_eq(read_status(&client), 404);
        cr_expect(fcgi_is_closed(&client, 1000));
        fcgi_close(&client);
        weir__buf_finish(&bytes);
    }
}

Test(native_tcp, a_handler_learns_that_its_client_is_gone)
{
    start();
    for (unsigned i = 0; i < 4; i++) {
        struct fcgi_client client = begin("/until_gone");
        wait_until(&shared->running, 1);
        fcgi_close(&client);
        wait_until(&shared->running, 0);
        cr_expect_eq(atomic_load(&shared->gone), i + 1);
    }
}

/* Together with its request: it can't have given up already. */
Test(native_tcp, a_peer_that_shuts_its_side_with_the_request_is_answered)
{
    start();
    struct weir__buf bytes;
    weir__buf_init(&bytes, 0);
    fcgi_put_request(&bytes, &(struct fcgi_request){ .uri = "/hello" });
    for (int i = 0; i < 20; i++) {
        struct fcgi_client client = connect_to_worker();
        cr_assert(fcgi_send(&client, bytes.bytes, bytes.len, 1000));
        shutdown(client.fd, SHUT_WR);
        cr_expect_eq(read_status(&client), 200);
        fcgi_close(&client);
    }
    weir__buf_finish(&bytes);
}
