/* The record engine and its offloads under clients of every kind at once: those that ask
 * and read, those that abort, leave, fall silent, don't read, and those whose requests
 * take too long. All in one process, so that ThreadSanitizer sees both sides of
 * everything. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "app.h"
#include "check.h"
#include "process/worker.h"
#include "support/fcgi_client.h"

enum { ROUNDS = 120, TOTAL_MS = 600 };

/* ---- the app ---------------------------------------------------------------------- */

static atomic_uint before_calls, after_calls, wakers;

static int hello(struct weir *w)
{
    return weir_text(w, 200, "hello");
}

static int slow(struct weir *w)
{
    usleep(2000);
    return weir_text(w, 200, weir_gone(w) ? "gone" : "slow");
}

static int too_slow(struct weir *w)
{
    usleep((TOTAL_MS + 200) * 1000);
    return weir_text(w, 200, "late");
}

static int large(struct weir *w)
{
    static const char kib[1024];
    for (int i = 0; i < 2000; i++)
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

static enum weir_verdict woken(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    return weir_timed_out(w) ? WEIR_FAIL : WEIR_NEXT;
}

static enum weir_verdict timed_out(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    return weir_timed_out(w) ? WEIR_NEXT : WEIR_FAIL;
}

static enum weir_verdict offloaded(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    usleep(500);
    return weir_query(w, "then") ? weir_wait(w, timed_out, WEIR_MILLISECONDS(1))
                                 : WEIR_NEXT;
}

static void *wake_later(void *w)
{
    usleep(300);
    weir_wake(w);
    atomic_fetch_sub(&wakers, 1);
    return NULL;
}

static enum weir_verdict detour(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    const char *how = weir_query(w, "how");
    atomic_fetch_add(&before_calls, 1);
    CHECK(weir_thread() >= 0);
    if (!how)
        return WEIR_NEXT;
    if (strcmp(how, "offload") == 0)
        return weir_offload(w, offloaded);
    if (strcmp(how, "time") == 0)
        return weir_wait(w, timed_out, WEIR_MILLISECONDS(2));
    pthread_t waker;
    atomic_fetch_add(&wakers, 1);
    CHECK(pthread_create(&waker, NULL, wake_later, w) == 0);
    pthread_detach(waker);
    return weir_wait(w, woken, WEIR_SECONDS(20));
}

/* Who wakes requests from threads of his own ends them before his worker ends. */
static void end_wakers(struct weir_worker *worker)
{
    (void)worker;
    while (atomic_load(&wakers) > 0)
        usleep(1000);
}

static void after(struct weir *w, const void *self, void *slot)
{
    (void)w, (void)self, (void)slot;
    atomic_fetch_add(&after_calls, 1);
}

struct weir_detour {
    size_t size;
    int abi;
};
static const struct weir_filter weir_filter_detour = {
    .name = "detour",
    .options_size = sizeof(struct weir_detour),
    .before = detour,
    .after = after,
};

static const struct weir_endpoint endpoints[] = {
    { "GET /hello", hello, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "GET /plain", hello, .limits = WEIR_UNLIMITED },
    { "GET /slow", slow, .limits = WEIR_UNLIMITED },
    { "GET /too_slow", too_slow, .limits = WEIR_UNLIMITED },
    { "GET /large", large, .limits = WEIR_UNLIMITED },
    { "POST /length", length, .limits = WEIR_UNLIMITED },
    { 0 },
};

static const struct weir_app declared = { WEIR_ABI,
                                          .endpoints = endpoints,
                                          .worker_stop = end_wakers,
                                          .chain = WEIR_CHAIN(WEIR_USE(detour)) };

/* ---- the clients ------------------------------------------------------------------ */

static char path[64];

static struct fcgi_client open_client(void)
{
    struct fcgi_client client;
    CHECK(fcgi_connect(&client, path));
    return client;
}

static void expect(struct fcgi_client *client, int status, const char *body)
{
    struct fcgi_reply reply;
    if (!fcgi_read_reply(client, 1, 20000, &reply))
        fprintf(stderr,
                "status %d, %zu bytes, closed %d\n",
                reply.status,
                reply.out.len,
                reply.closed);
    CHECK(reply.ended);
    CHECK(reply.status == status || reply.status == 504);
    CHECK(!body || reply.status == 504 || strcmp(reply.body, body) == 0);
    fcgi_reply_finish(&reply);
}

static void ask(struct fcgi_client *client, const char *uri, int status, const char *body)
{
    CHECK(fcgi_send_request(client,
                            &(struct fcgi_request){ .uri = uri, .keep_conn = true }));
    expect(client, status, body);
}

/* Reads all that it asks for, on one connection. */
static void good_client(void)
{
    static const char text[20000];
    struct fcgi_client client = open_client();
    for (int i = 0; i < ROUNDS; i++) {
        ask(&client, "/hello", 200, "hello");
        ask(&client, "/plain?how=offload", 200, "hello");
        ask(&client, "/plain?how=offload&then=1", 200, "hello");
        ask(&client, "/slow?how=wake", 200, "slow");
        ask(&client, "/hello?how=time", 200, "hello");
        ask(&client, "/nowhere", 404, NULL);
        CHECK(fcgi_send_request(&client,
                                &(struct fcgi_request){ .method = "POST",
                                                        .uri = "/length?how=offload",
                                                        .keep_conn = true,
                                                        .body = text,
                                                        .body_len = sizeof text }));
        expect(&client, 200, "20000");
        if (i % 20 == 0)
            ask(&client, "/large", 200, NULL);
    }
    fcgi_close(&client);
}

/* A new connection for each; leaves at any moment. */
static void leaving_client(void)
{
    static const char *const uris[] = {
        "/slow", "/large", "/hello?how=wake", "/plain", "/slow?how=offload"
    };
    for (int i = 0; i < 4 * ROUNDS; i++) {
        struct fcgi_client client = open_client();
        CHECK(fcgi_send_request(
            &client, &(struct fcgi_request){ .uri = uris[i % 5], .keep_conn = i % 2 }));
        usleep((useconds_t)(i % 7) * 200);
        fcgi_close(&client);
    }
}

/* Aborts in the middle and asks again on the same connection; then times out. */
static void aborting_client(void)
{
    static const unsigned char abort_1[] = {
        1, WEIR__FCGI_ABORT_REQUEST, 0, 1, 0, 0, 0, 0
    };
    static const char *const uris[] = { "/slow", "/hello?how=wake", "/slow?how=offload" };
    struct fcgi_client client = open_client();
    for (int i = 0; i < ROUNDS; i++) {
        struct fcgi_reply reply;
        CHECK(fcgi_send_request(
            &client, &(struct fcgi_request){ .uri = uris[i % 3], .keep_conn = true }));
        usleep((useconds_t)(i % 5) * 300);
        CHECK(fcgi_send(&client, abort_1, sizeof abort_1, 1000));
        CHECK(fcgi_read_reply(&client, 1, 20000, &reply)); /* whole, or aborted */
        fcgi_reply_finish(&reply);
        if (i % 40 == 0)
            ask(&client, "/too_slow", 504, NULL);
    }
    fcgi_close(&client);
}

/* Asks for much and doesn't read. */
static void deaf_client(void)
{
    for (int i = 0; i < 4; i++) {
        struct fcgi_client client = open_client(), silent = open_client();
        CHECK(fcgi_send_request(&client, &(struct fcgi_request){ .uri = "/large" }));
        usleep(400000);
        fcgi_close(&client);
        fcgi_close(&silent);
    }
}

static void *run_client(void *arg)
{
    void (*client)(void) = *(void (**)(void))arg;
    client();
    return NULL;
}

/* ---- the worker ------------------------------------------------------------------- */

static int listen_unix(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(fd, 4096) == 0);
    return fd;
}

static void *run_worker(void *config)
{
    CHECK(weir__worker_run(config) == 0);
    return NULL;
}

int main(void)
{
    static void (*const clients[])(void) = {
        good_client, good_client, leaving_client, aborting_client, deaf_client
    };
    enum { KINDS = sizeof clients / sizeof clients[0] };
    static const bool is_unix = true;
    char folder[] = "/tmp/weir-engine-XXXXXX";
    struct weir_error error = { 0 };
    struct weir__options options;
    struct weir__app *app;
    int pair[2];
    weir__options_defaults(&options);
    options.shm_entries = 1024;
    options.threads = 4;
    options.total_ms = TOTAL_MS;
    options.write_ms = 300;
    options.max_offloads_an_address = 64;
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s", folder);
    int listen_fd = listen_unix();
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) ==
          0);
    CHECK(weir__app_create(&declared, &options, NULL, &app, &error));
    struct weir__worker_config config = { .app = app,
                                          .listen_fds = &listen_fd,
                                          .listen_unix = &is_unix,
                                          .listen_len = 1,
                                          .control_fd = pair[1] };
    pthread_t worker, threads[KINDS];
    CHECK(pthread_create(&worker, NULL, run_worker, &config) == 0);
    for (int i = 0; i < KINDS; i++)
        CHECK(pthread_create(
                  &threads[i], NULL, run_client, (void *)(uintptr_t)&clients[i]) == 0);
    for (int i = 0; i < KINDS; i++)
        pthread_join(threads[i], NULL);
    close(pair[0]); /* the parent is gone: it drains */
    pthread_join(worker, NULL);
    CHECK(atomic_load(&before_calls) == atomic_load(&after_calls));
    weir__app_destroy(app);
    close(pair[1]);
    close(listen_fd);
    unlink(path);
    rmdir(folder);
    return 0;
}
