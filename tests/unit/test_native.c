/* The record engine's manners: what web servers send, and what they never should. A
 * worker in a process of its own, and the raw client. Its bounds are
 * test_native_bounds.c's. */
#include <criterion/criterion.h>

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/fcgi_client.h"
#include "support/worker_fixture.h"

/* ---- the app ---------------------------------------------------------------------- */

static int hello(struct weir *w)
{
    return weir_text(w, 200, "hello");
}

/* What the app saw of the request. */
static int echo(struct weir *w)
{
    size_t len;
    const char *body = weir_body(w, &len);
    const char *forwarded = weir_header(w, "X-Forwarded-For");
    unsigned sum = 0;
    for (size_t i = 0; i < len; i++)
        sum += (unsigned char)body[i];
    return weir_text(w,
                     200,
                     weir_printf(w,
                                 "%s %s [%s] %s %zu %u",
                                 weir_method(w),
                                 weir_request_path(w),
                                 forwarded ? forwarded : "",
                                 weir_remote_ip(w),
                                 len,
                                 sum));
}

static int slow(struct weir *w)
{
    usleep((useconds_t)atoi(weir_path(w, "ms")) * 1000);
    return weir_text(w, 200, "slow");
}

/* So many KiB. */
static int large(struct weir *w)
{
    static char kib[1024];
    memset(kib, 'x', sizeof kib);
    for (int n = atoi(weir_path(w, "kib")); n > 0; n--)
        if (!weir_write(w, kib, sizeof kib))
            return 500;
    return 200;
}

static const struct weir_endpoint endpoints[] = {
    { "GET /hello", hello, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "GET /plain", hello, .limits = WEIR_UNLIMITED },
    { "* /echo", echo, .limits = WEIR_UNLIMITED },
    { "GET /slow/{ms}", slow, .limits = WEIR_UNLIMITED },
    { "GET /large/{kib}", large, .limits = WEIR_UNLIMITED },
    { "GET /whole/{kib}", large, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "POST /once",
      hello,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("once", 1, WEIR_DAYS(1))) },
    { 0 },
};

static const struct weir_app app = { WEIR_ABI, .endpoints = endpoints };

static struct worker_fixture worker;

static void init(void)
{
    worker_init(&worker);
    cr_assert(worker_start(&worker, &app));
}

static void finish(void)
{
    cr_expect(worker_finish(&worker), "the worker must end in order");
}

TestSuite(native, .init = init, .fini = finish, .timeout = 60);

/* ---- what the tests say ----------------------------------------------------------- */

static struct fcgi_client connect_to_worker(void)
{
    struct fcgi_client client;
    cr_assert(fcgi_connect(&client, worker.path), "%s", strerror(errno));
    return client;
}

/* One reply for request id, which must have that status, and that body where not NULL. */
static void
expect_reply_to(struct fcgi_client *client, uint16_t id, int status, const char *body)
{
    struct fcgi_reply reply;
    cr_assert(fcgi_read_reply(client, id, 5000, &reply), "no END_REQUEST for %u", id);
    cr_expect(reply.stdout_ended);
    cr_expect_eq(reply.end.protocol_status, WEIR__FCGI_REQUEST_COMPLETE);
    cr_expect_eq(reply.status, status, "%d %s", reply.status, reply.body);
    if (body)
        cr_expect_str_eq(reply.body, body);
    fcgi_reply_finish(&reply);
}

static void expect_reply(struct fcgi_client *client, int status, const char *body)
{
    expect_reply_to(client, 1, status, body);
}

static void send_request(struct fcgi_client *client, const struct fcgi_request *request)
{
    cr_assert(fcgi_send_request(client, request));
}

static void send_bytes(struct fcgi_client *client, const void *bytes, size_t len)
{
    cr_assert(fcgi_send(client, bytes, len, 5000));
}

/* A request that shows that the connection goes on. */
static void expect_next(struct fcgi_client *client)
{
    send_request(client, &(struct fcgi_request){ .uri = "/hello", .keep_conn = true });
    expect_reply(client, 200, "hello");
}

static void expect_closed(struct fcgi_client *client)
{
    cr_expect(fcgi_is_closed(client, 3000), "the connection must be closed");
    fcgi_close(client);
}

/* ---- requests --------------------------------------------------------------------- */

Test(native, answers_a_request_and_closes)
{
    for (int i = 0; i < 200; i++) {
        struct fcgi_client client = connect_to_worker();
        send_request(&client,
                     &(struct fcgi_request){ .uri = i % 2 ? "/hello" : "/plain" });
        expect_reply(&client, 200, "hello");
        expect_closed(&client);
    }
}

Test(native, keeps_a_connection_for_many_requests)
{
    struct fcgi_client client = connect_to_worker();
    for (int i = 0; i < 1000; i++) {
        send_request(&client,
                     &(struct fcgi_request){ .uri = i % 2 ? "/hello" : "/plain",
                                             .keep_conn = true });
        expect_reply(&client, 200, "hello");
    }
    fcgi_close(&client);
}

Test(native, reads_a_request_that_comes_byte_by_byte)
{
    struct fcgi_client client = connect_to_worker();
    struct weir__buf bytes;
    weir__buf_init(&bytes, 0);
    fcgi_put_request(&bytes,
                     &(struct fcgi_request){ .method = "POST",
                                             .uri = "/echo",
                                             .keep_conn = true,
                                             .body = "abc",
                                             .body_len = 3 });
    for (size_t i = 0; i < bytes.len; i++)
        send_bytes(&client, bytes.bytes + i, 1);
    expect_reply(&client, 200, "POST /echo [] 198.51.100.7 3 294");
    expect_next(&client);
    fcgi_close(&client);
    weir__buf_finish(&bytes);
}

Test(native, gives_the_app_a_whole_body)
{
    size_t len = 1024 * 1024;
    char *body = malloc(len);
    memset(body, 1, len);
    struct fcgi_client client = connect_to_worker();
    for (int i = 0; i < 3; i++) {
        send_request(&client,
                     &(struct fcgi_request){ .method = "POST",
                                             .uri = "/echo",
                                             .keep_conn = true,
                                             .body = body,
                                             .body_len = len });
        expect_reply(&client, 200, "POST /echo [] 198.51.100.7 1048576 1048576");
    }
    fcgi_close(&client);
    free(body);
}

Test(native, answers_head_without_a_body)
{
    struct fcgi_client client = connect_to_worker();
    send_request(&client, &(struct fcgi_request){ .method = "HEAD", .uri = "/hello" });
    expect_reply(&client, 200, "");
    expect_closed(&client);
}

static void expect_large_replies(const char *uri, size_t kib)
{
    struct fcgi_client client = connect_to_worker();
    struct fcgi_reply reply;
    for (int i = 0; i < 2; i++) {
        send_request(&client, &(struct fcgi_request){ .uri = uri, .keep_conn = true });
        usleep(20000); /* until the socket is full */
        cr_assert(fcgi_read_reply(&client, 1, 5000, &reply));
        cr_expect_eq(reply.status, 200);
        cr_expect_eq(reply.body_len, kib * 1024, "%zu", reply.body_len);
        for (size_t k = 0; k < reply.body_len; k++)
            cr_assert_eq(reply.body[k], 'x');
        fcgi_reply_finish(&reply);
    }
    fcgi_close(&client);
}

Test(native, streams_a_large_answer)
{
    expect_large_replies("/large/20000", 20000);
}

Test(native, sends_a_large_whole_answer_as_there_is_room)
{
    expect_large_replies("/whole/4000", 4000);
}

/* Around the size of a record, where padding and the last record's length are easy to get
 * wrong. */
Test(native, frames_answers_of_every_length_near_a_record)
{
    struct fcgi_client client = connect_to_worker();
    for (int kib = 62; kib < 67; kib++) {
        char uri[32];
        struct fcgi_reply reply;
        snprintf(uri, sizeof uri, "/whole/%d", kib);
        send_request(&client, &(struct fcgi_request){ .uri = uri, .keep_conn = true });
        cr_assert(fcgi_read_reply(&client, 1, 5000, &reply));
        cr_expect_eq(reply.body_len, (size_t)kib * 1024);
        fcgi_reply_finish(&reply);
    }
    fcgi_close(&client);
}

Test(native, answers_a_peer_that_has_shut_its_side)
{
    struct fcgi_client client = connect_to_worker();
    send_request(&client, &(struct fcgi_request){ .uri = "/slow/50", .keep_conn = true });
    shutdown(client.fd, SHUT_WR);
    expect_reply(&client, 200, "slow");
    expect_closed(&client);
}

/* ---- roles ------------------------------------------------------------------------ */

Test(native, an_authorizer_never_waits_for_stdin)
{
    struct fcgi_client client = connect_to_worker();
    for (int i = 0; i < 2; i++) {
        send_request(&client,
                     &(struct fcgi_request){ .role = WEIR__FCGI_AUTHORIZER,
                                             .method = "POST",
                                             .uri = "/echo",
                                             .keep_conn = true,
                                             .declared_len = 77,
                                             .no_stdin = true });
        expect_reply(&client, 200, "");
    }
    fcgi_close(&client);
    client = connect_to_worker();
    send_request(&client,
                 &(struct fcgi_request){
                     .role = WEIR__FCGI_AUTHORIZER, .uri = "/hello", .no_stdin = true });
    expect_reply(&client, 200, "");
    expect_closed(&client);
}

Test(native, refuses_an_unknown_role_and_keeps_the_connection)
{
    struct fcgi_client client = connect_to_worker();
    struct fcgi_reply reply;
    for (unsigned role = 3; role < 10; role += 6) {
        send_request(
            &client,
            &(struct fcgi_request){ .role = role, .uri = "/", .keep_conn = true });
        cr_assert(fcgi_read_reply(&client, 1, 5000, &reply));
        cr_expect_eq(reply.end.protocol_status, WEIR__FCGI_UNKNOWN_ROLE);
        cr_expect_eq(reply.out.len, 0);
        fcgi_reply_finish(&reply);
    }
    expect_next(&client);
    send_request(&client, &(struct fcgi_request){ .role = 3, .uri = "/" });
    cr_assert(fcgi_read_reply(&client, 1, 5000, &reply));
    fcgi_reply_finish(&reply);
    expect_closed(&client);
}

/* ---- management records ----------------------------------------------------------- */

static void put_values_query(struct weir__buf *buf, unsigned times)
{
    static const struct weir__pair names[] = { { "FCGI_MAX_CONNS", "", 14, 0 },
                                               { "FCGI_MPXS_CONNS", "", 15, 0 },
                                               { "FCGI_MAX_REQS", "", 13, 0 },
                                               { "FCGI_OTHER", "", 10, 0 } };
    struct weir__buf content;
    weir__buf_init(&content, 0);
    for (unsigned i = 0; i < times; i++)
        for (unsigned k = 0; k < 4; k++)
            cr_assert(weir__fcgi_append_pair(&content, &names[k]));
    cr_assert(weir__fcgi_append_stream(
        buf, WEIR__FCGI_GET_VALUES, 0, content.bytes, content.len));
    weir__buf_finish(&content);
}

static void expect_values(struct fcgi_client *client)
{
    struct fcgi_reply reply;
    cr_expect_not(fcgi_read_reply(client, 1, 200, &reply));
    cr_expect_not(reply.closed);
    cr_expect_gt(reply.management.len, WEIR__FCGI_HEADER_BYTES);
    cr_expect_lt(reply.management.len, 80);
    cr_expect_eq(reply.management.bytes[1], WEIR__FCGI_GET_VALUES_RESULT);
    fcgi_reply_finish(&reply);
}

Test(native, answers_get_values_at_once_however_often_a_name_is_asked)
{
    struct fcgi_client client = connect_to_worker();
    struct weir__buf query;
    weir__buf_init(&query, 0);
    put_values_query(&query, 4);
    send_bytes(&client, query.bytes, query.len);
    expect_values(&client);
    expect_next(&client);
    /* Also while a handler runs. */
    send_request(&client,
                 &(struct fcgi_request){ .uri = "/slow/400", .keep_conn = true });
    send_bytes(&client, query.bytes, query.len);
    expect_values(&client);
    expect_reply(&client, 200, "slow");
    fcgi_close(&client);
    weir__buf_finish(&query);
}

/* ---- aborts ----------------------------------------------------------------------- */

static const unsigned char abort_1[] = { 1, WEIR__FCGI_ABORT_REQUEST, 0, 1, 0, 0, 0, 0 };

/* The end must come at once, and the connection go on. */
static void expect_aborted(struct fcgi_client *client)
{
    struct fcgi_reply reply;
    send_bytes(client, abort_1, sizeof abort_1);
    cr_assert(fcgi_read_reply(client, 1, 5000, &reply));
    cr_expect_eq(reply.end.protocol_status, WEIR__FCGI_REQUEST_COMPLETE);
    cr_expect_lt(reply.took_us, 700000, "%ld", (long)reply.took_us);
    fcgi_reply_finish(&reply);
    expect_next(client);
}

Test(native, an_abort_ends_the_request_at_once_wherever_it_is)
{
    struct fcgi_client client = connect_to_worker();
    struct weir__buf bytes;
    weir__buf_init(&bytes, 0);
    /* within the parameters */
    fcgi_put_request(&bytes,
                     &(struct fcgi_request){ .uri = "/hello", .keep_conn = true });
    send_bytes(&client, bytes.bytes, 16);
    expect_aborted(&client);
    /* before the body's end */
    send_request(&client,
                 &(struct fcgi_request){ .method = "POST",
                                         .uri = "/echo",
                                         .keep_conn = true,
                                         .no_stdin = true,
                                         .declared_len = 10 });
    usleep(20000);
    expect_aborted(&client);
    /* in the handler */
    send_request(&client,
                 &(struct fcgi_request){ .uri = "/slow/1500", .keep_conn = true });
    usleep(20000);
    expect_aborted(&client);
    /* no request is there */
    send_bytes(&client, abort_1, sizeof abort_1);
    expect_next(&client);
    fcgi_close(&client);
    weir__buf_finish(&bytes);
}

/* ---- bodies ----------------------------------------------------------------------- */

Test(native, refuses_a_body_that_is_too_large_or_not_as_long_as_declared)
{
    static char body[1024 * 1024 + 1];
    struct fcgi_request request = {
        .method = "POST", .uri = "/echo", .body = body, .body_len = sizeof body
    };
    cr_expect_eq(fcgi_status(worker.path, &request, 5000), 413);
    request.declared_len = 5; /* lies */
    cr_expect_eq(fcgi_status(worker.path, &request, 5000), 413);
    request.body_len = 4;
    cr_expect_eq(fcgi_status(worker.path, &request, 5000), 400);
    request.body_len = 6;
    cr_expect_eq(fcgi_status(worker.path, &request, 5000), 400);
    request.body_len = 5;
    cr_expect_eq(fcgi_status(worker.path, &request, 5000), 200);
}

Test(native, refuses_a_declared_length_above_the_cap_before_the_body_comes)
{
    struct fcgi_client client = connect_to_worker();
    struct fcgi_reply reply;
    send_request(&client,
                 &(struct fcgi_request){ .method = "POST",
                                         .uri = "/echo",
                                         .declared_len = 1 << 30,
                                         .no_stdin = true });
    cr_assert(fcgi_read_reply(&client, 1, 1000, &reply));
    cr_expect_eq(reply.status, 413);
    cr_expect_lt(reply.took_us, 500000);
    fcgi_reply_finish(&reply);
    fcgi_close(&client);
}

/* As a front does that writes and reads at the same time: 20 MB, until it has an answer
 * and the end of the connection. */
static void upload(bool keep_conn)
{
    enum { BODY = 20 * 1000 * 1000 };
    struct weir__buf bytes;
    static char body[BODY];
    weir__buf_init(&bytes, 0);
    fcgi_put_request(&bytes,
                     &(struct fcgi_request){ .method = "POST",
                                             .uri = "/once",
                                             .keep_conn = keep_conn,
                                             .body = body,
                                             .body_len = BODY });
    struct fcgi_client client = connect_to_worker(); /* now: silence is short-lived */
    send_bytes(&client, bytes.bytes, bytes.len);
    expect_reply(&client, 429, NULL);
    if (keep_conn)
        expect_next(&client);
    else
        cr_expect(fcgi_is_closed(&client, 1000));
    fcgi_close(&client);
    weir__buf_finish(&bytes);
}

Test(native, a_refusal_of_a_large_upload_is_always_seen)
{
    cr_expect_eq(fcgi_status(worker.path,
                             &(struct fcgi_request){ .method = "POST", .uri = "/once" },
                             5000),
                 200);
    for (int i = 0; i < 10; i++) {
        upload(false);
        upload(true);
    }
}

Test(native, takes_a_new_request_as_the_end_of_a_refused_body)
{
    struct fcgi_client client = connect_to_worker();
    struct weir__buf bytes;
    static char body[50000];
    for (int i = 0; i < 3; i++) {
        weir__buf_init(&bytes, 0);
        fcgi_put_request(&bytes,
                         &(struct fcgi_request){ .method = "POST",
                                                 .uri = "/nowhere",
                                                 .keep_conn = true,
                                                 .body = body,
                                                 .body_len = sizeof body });
        /* All but the last record, which ends STDIN, and then the next request. */
        send_bytes(&client, bytes.bytes, bytes.len - WEIR__FCGI_HEADER_BYTES);
        expect_reply(&client, 404, NULL);
        expect_next(&client);
        weir__buf_finish(&bytes);
    }
    fcgi_close(&client);
}

/* A body that looks like records is a body, however early it was refused. */
Test(native, a_request_inside_of_a_refused_body_is_not_run)
{
    struct weir__buf smuggled;
    weir__buf_init(&smuggled, 0);
    for (int i = 0; i < 100; i++)
        fcgi_put_request(&smuggled,
                         &(struct fcgi_request){ .uri = "/hello", .keep_conn = true });
    for (int keep = 0; keep < 2; keep++) {
        struct fcgi_client client = connect_to_worker();
        struct fcgi_reply reply;
        send_request(&client,
                     &(struct fcgi_request){ .method = "POST",
                                             .uri = "/nowhere",
                                             .keep_conn = keep,
                                             .body = smuggled.bytes,
                                             .body_len = smuggled.len });
        expect_reply(&client, 404, NULL);
        cr_expect_not(fcgi_read_reply(&client, 1, 100, &reply));
        cr_expect_eq(reply.out.len, 0);
        cr_expect_eq(reply.closed, !keep);
        fcgi_reply_finish(&reply);
        if (keep)
            expect_next(&client);
        fcgi_close(&client);
    }
    weir__buf_finish(&smuggled);
}

/* ---- broken protocol -------------------------------------------------------------- */

static void put_record(struct weir__buf *buf,
                       unsigned version,
                       unsigned type,
                       unsigned id,
                       unsigned declared,
                       unsigned padding)
{
    const unsigned char header[] = {
        (unsigned char)version,         (unsigned char)type,
        (unsigned char)(id >> 8),       (unsigned char)id,
        (unsigned char)(declared >> 8), (unsigned char)declared,
        (unsigned char)padding,         0
    };
    cr_assert(weir__buf_append(buf, header, sizeof header));
}

/* Every type, in every state of a connection, with odd ids and lengths: the worker lives,
 * and whatever it does with that connection, the next one is served. */
Test(native, lives_through_a_grid_of_malformed_records)
{
    static const char zeros[1024];
    static const unsigned lengths[] = { 0, 1, 7, 8, 9, 600, 65535 };
    struct weir__buf begin;
    weir__buf_init(&begin, 0);
    fcgi_put_request(&begin, &(struct fcgi_request){ .uri = "/echo", .keep_conn = true });
    const size_t states[] = { 0, 16, 40, begin.len - 8, begin.len };
    for (unsigned state = 0; state < 5; state++) {
        for (unsigned type = 0; type < 14; type++) {
            for (unsigned k = 0; k < 7; k++) {
                struct fcgi_client client = connect_to_worker();
                struct weir__buf bytes;
                weir__buf_init(&bytes, 0);
                cr_assert(weir__buf_append(&bytes, begin.bytes, states[state]));
                put_record(&bytes, 1, type, (type + k) % 3, lengths[k], 255 * (k % 2));
                cr_assert(weir__buf_append(&bytes, zeros, sizeof zeros));
                send(client.fd, bytes.bytes, bytes.len, MSG_NOSIGNAL);
                fcgi_close(&client);
                weir__buf_finish(&bytes);
            }
        }
    }
    struct fcgi_client client = connect_to_worker();
    expect_next(&client);
    fcgi_close(&client);
    weir__buf_finish(&begin);
}

Test(native, closes_at_what_is_no_sequence_of_records)
{
    struct weir__buf bytes, request;
    weir__buf_init(&request, 0);
    fcgi_put_request(&request, &(struct fcgi_request){ .uri = "/slow/100" });
    static const struct {
        unsigned version, type, id, len;
    } records[] = {
        { 2, WEIR__FCGI_STDIN, 1, 0 },         /* another version */
        { 1, WEIR__FCGI_BEGIN_REQUEST, 0, 8 }, /* id 0 */
        { 1, WEIR__FCGI_PARAMS, 1, 0 },        /* behind their end */
    };
    for (unsigned i = 0; i < sizeof records / sizeof records[0]; i++) {
        struct fcgi_client client = connect_to_worker();
        weir__buf_init(&bytes, 0);
        cr_assert(weir__buf_append(&bytes, request.bytes, request.len));
        put_record(&bytes,
                   records[i].version,
                   records[i].type,
                   records[i].id,
                   records[i].len,
                   0);
        cr_assert(weir__buf_append(&bytes, "\0\1\0\0\0\0\0\0", records[i].len));
        send_bytes(&client, bytes.bytes, bytes.len);
        expect_closed(&client);
        weir__buf_finish(&bytes);
    }
    /* A second BEGIN of the same request. */
    struct fcgi_client client = connect_to_worker();
    send_bytes(&client, request.bytes, request.len);
    send_bytes(&client, request.bytes, 16);
    expect_closed(&client);
    weir__buf_finish(&request);
}

/* ---- the vectors ------------------------------------------------------------------ */

static size_t from_hex(const char *hex, unsigned char *ret_bytes)
{
    size_t len = strlen(hex) / 2;
    for (size_t i = 0; i < len; i++) {
        unsigned byte;
        cr_assert_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
        ret_bytes[i] = (unsigned char)byte;
    }
    return len;
}

static bool contains(const struct weir__buf *seen, const unsigned char *bytes, size_t len)
{
    return len > 0 && seen->len >= len && memmem(seen->bytes, seen->len, bytes, len);
}

/* Everything that comes within the time or until the close. */
static void read_all(struct fcgi_client *client, struct weir__buf *ret_seen)
{
    char bytes[4096];
    struct timeval patience = { .tv_usec = 300000 };
    setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (ssize_t len; (len = recv(client->fd, bytes, sizeof bytes, 0)) > 0;)
        cr_assert(weir__buf_append(ret_seen, bytes, (size_t)len));
}

/* A request was answered: the empty STDOUT and the END_REQUEST of id 1. */
static bool is_answered(const struct weir__buf *seen)
{
    static const unsigned char end[] = { 1, 6, 0, 1, 0, 0, 0, 0, 1, 3, 0, 1,
                                         0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    return contains(seen, end, sizeof end);
}

static void play(const json_t *vector)
{
    unsigned char bytes[1024], wanted[64];
    const char *name = json_string_value(json_object_get(vector, "name"));
    const char *input = json_string_value(json_object_get(vector, "input_hex"));
    const json_t *expect = json_object_get(vector, "expect");
    const char *first = json_string_value(json_object_get(expect, "first_record_hex"));
    const char *part = json_string_value(json_object_get(expect, "contains_hex"));
    struct weir__buf seen;
    struct fcgi_client client = connect_to_worker();
    weir__buf_init(&seen, 0);
    send_bytes(&client, bytes, from_hex(input, bytes));
    read_all(&client, &seen);
    if (first) {
        size_t len = from_hex(first, wanted);
        cr_expect(seen.len >= len && memcmp(seen.bytes, wanted, len) == 0, "%s", name);
    }
    if (part)
        cr_expect(contains(&seen, wanted, from_hex(part, wanted)), "%s", name);
    if (strcmp(name, "bad version byte") == 0)
        cr_expect_eq(seen.len, 0, "%s", name);
    else if (!strstr(name, "50,000-byte body")) /* whose body the tests above play */
        cr_expect(is_answered(&seen), "%s", name);
    weir__buf_finish(&seen);
    fcgi_close(&client);
}

Test(native, does_what_the_vectors_say)
{
    json_t *file = json_load_file(TEST_DATA "/fastcgi-vectors.json", 0, NULL);
    size_t index, played = 0;
    json_t *vector;
    cr_assert_not_null(file);
    json_array_foreach(json_object_get(file, "vectors"), index, vector)
    {
        const char *input = json_string_value(json_object_get(vector, "input_hex"));
        if (!input || !*input)
            continue; /* the codec's */
        play(vector);
        played++;
    }
    cr_expect_geq(played, 9);
    json_decref(file);
}

Test(native, joins_a_header_that_comes_twice_and_refuses_another_parameter_that_does)
{
    static const struct fcgi_param twice[] = { { "HTTP_X_FORWARDED_FOR", "6.6.6.6" },
                                               { "HTTP_X_FORWARDED_FOR", "203.0.113.9" },
                                               { 0 } };
    static const struct fcgi_param forged[] = { { "REMOTE_ADDR", "127.0.0.1" }, { 0 } };
    static const struct fcgi_param hidden[] = { { "REMOTE_ADDR=6.6.6.6", "x" }, { 0 } };
    struct fcgi_client client = connect_to_worker();
    send_request(&client, &(struct fcgi_request){ .uri = "/echo", .params = twice });
    expect_reply(&client, 200, "GET /echo [6.6.6.6, 203.0.113.9] 198.51.100.7 0 0");
    fcgi_close(&client);
    cr_expect_eq(fcgi_status(worker.path,
                             &(struct fcgi_request){ .uri = "/echo", .params = forged },
                             5000),
                 400);
    cr_expect_eq(fcgi_status(worker.path,
                             &(struct fcgi_request){ .uri = "/echo", .params = hidden },
                             5000),
                 400);
}

/* A second request on a connection that carries one already. */
Test(native, does_not_multiplex_and_says_so)
{
    struct fcgi_client client = connect_to_worker();
    struct fcgi_reply reply;
    send_request(&client,
                 &(struct fcgi_request){ .uri = "/slow/200", .keep_conn = true });
    send_request(&client,
                 &(struct fcgi_request){ .id = 2, .uri = "/hello", .keep_conn = true });
    cr_assert(fcgi_read_reply(&client, 2, 100, &reply));
    cr_expect_eq(reply.end.protocol_status, WEIR__FCGI_CANT_MPX_CONN);
    fcgi_reply_finish(&reply);
    expect_reply(&client, 200, "slow");
    fcgi_close(&client);
}
