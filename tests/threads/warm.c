/* A warmed worker allocates nothing: every call of malloc and its kin in its threads is
 * counted while requests go through the whole default chain, limited in shared memory,
 * allowed and refused, over kept connections and over new ones.
 *
 * The counting takes malloc's place, so a build with a sanitizer, which does so too, only
 * runs the requests. The bodies of weir_json() are made by jansson, which allocates; that
 * is shown and not bound. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <weir/filters/access_log.h>
#include <weir/filters/identity.h>
#include <weir/filters/ratelimit.h>
#include <weir/filters/request_id.h>

#include "app.h"
#include "check.h"
#include "process/worker.h"
#include "support/fcgi_client.h"

enum { WARM = 600, ROUNDS = 2000, AT_ONCE = 7 };

/* ---- the count -------------------------------------------------------------------- */

static atomic_ulong allocations;
static _Thread_local bool is_client; /* what the test itself allocates */

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||               \
    __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

#ifndef SANITIZED
/* What glibc's malloc(3) calls itself; a program's own malloc takes its place. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t len, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static void count(void)
{
    if (!is_client)
        atomic_fetch_add(&allocations, 1);
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t len, size_t size)
{
    count();
    return __libc_calloc(len, size);
}

void *realloc(void *memory, size_t size)
{
    count();
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    count();
    return __libc_memalign(alignment, size);
}
#endif

/* ---- the app ---------------------------------------------------------------------- */

static int text(struct weir *w)
{
    return weir_text(w, 200, "hello");
}

/* What a handler of some substance does, all in the request's arena. */
static int busy(struct weir *w)
{
    const char *q = weir_query(w, "q"), *sid = weir_cookie(w, "sid");
    weir_set_header(w, "X-Seen", weir_printf(w, "%s/%s", q ? q : "", sid ? sid : ""));
    return weir_text(
        w, 200, weir_printf(w, "%s from %s", weir_request_path(w), weir_remote_ip(w)));
}

/* Long enough that several meet; an answer as large as any. */
static int hold(struct weir *w)
{
    usleep(50000);
    return weir_text(w, 200, weir_printf(w, "%1024s", "held"));
}

static int json(struct weir *w)
{
    return weir_json(w, 200, "{s:s}", "city", "Aachen");
}

static void drop(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

static const struct weir_endpoint endpoints[] = {
    { "GET /unlimited", text, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "GET /nonblocking",
      text,
      .nonblocking = true,
      .limits = WEIR_LIMITS(WEIR_TOKEN_BUCKET("burst", 1000000, 1000, WEIR_SECONDS(1))) },
    { "GET /blocking",
      busy,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("day", 1000000, WEIR_DAYS(1)),
                            WEIR_TOKEN_BUCKET("burst", 1000000, 1000, WEIR_SECONDS(1))) },
    { "POST /body",
      text,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("day", 1000000, WEIR_DAYS(1))) },
    { "GET /refused",
      text,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("day", 1, WEIR_DAYS(1))) },
    { "POST /hold", hold, .limits = WEIR_UNLIMITED },
    { "GET /json", json, .limits = WEIR_UNLIMITED },
    { 0 },
};

static const struct weir_app declared = {
    WEIR_ABI,
    .endpoints = endpoints,
    .chain = WEIR_CHAIN(WEIR_USE(request_id),
                        WEIR_USE(access_log, .write = drop),
                        WEIR_USE(identity),
                        WEIR_USE(ratelimit)),
};

static const struct {
    const char *method, *uri;
    int status;
    bool is_bound;
} cases[] = {
    { "GET", "/unlimited", 200, true },
    { "GET", "/nonblocking", 200, true },
    { "GET", "/blocking?q=a%20b", 200, true },
    { "POST", "/body", 200, true },
    { "GET", "/refused", 429, true },
    { "GET", "/nowhere", 404, true },
    { "GET", "/json", 200, false },
};

/* ---- the client ------------------------------------------------------------------- */

static char path[96];
static const char body[3000];

static struct fcgi_client open_client(void)
{
    struct fcgi_client client;
    CHECK(fcgi_connect(&client, path));
    return client;
}

/* As many requests; each on a connection of its own, or all on one. Returns how many
 * allocations the worker's threads made meanwhile. */
static unsigned long ask(unsigned which, int rounds, bool keep)
{
    bool posts = strcmp(cases[which].method, "POST") == 0;
    const struct fcgi_param params[] = { { "HTTP_COOKIE", "theme=dark; sid=4711" },
                                         { "HTTP_USER_AGENT", "steady/1.0" },
                                         { NULL, NULL } };
    const struct fcgi_request request = { .method = cases[which].method,
                                          .uri = cases[which].uri,
                                          .keep_conn = keep,
                                          .body = posts ? body : NULL,
                                          .body_len = posts ? sizeof body : 0,
                                          .params = params };
    struct fcgi_client client = open_client();
    unsigned long before = atomic_load(&allocations);
    for (int i = 0; i < rounds; i++) {
        struct fcgi_reply reply;
        CHECK(fcgi_send_request(&client, &request));
        CHECK(fcgi_read_reply(&client, 1, 20000, &reply));
        /* The first of those that are refused afterwards isn't. */
        CHECK(reply.status == cases[which].status || (i == 0 && reply.status == 200));
        fcgi_reply_finish(&reply);
        if (!keep) {
            fcgi_close(&client);
            client = open_client();
        }
    }
    fcgi_close(&client);
    return atomic_load(&allocations) - before;
}

/* A request that comes before the one ahead of it is put away takes another from the
 * pool: there are to be as many as ever meet, each with what bodies and answers take. */
static void fill_pools(void)
{
    struct fcgi_client clients[AT_ONCE];
    const struct fcgi_request request = {
        .method = "POST", .uri = "/hold", .body = body, .body_len = sizeof body
    };
    for (int i = 0; i < AT_ONCE; i++) {
        clients[i] = open_client();
        CHECK(fcgi_send_request(&clients[i], &request));
    }
    for (int i = 0; i < AT_ONCE; i++) {
        struct fcgi_reply reply;
        CHECK(fcgi_read_reply(&clients[i], 1, 20000, &reply));
        CHECK(reply.status == 200);
        fcgi_reply_finish(&reply);
        fcgi_close(&clients[i]);
    }
}

static int ask_all(void)
{
    int failures = 0;
    for (int i = 0; i < 3; i++)
        fill_pools();
    for (int keep = 1; keep >= 0; keep--) {
        for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            ask(i, WARM, keep);
            unsigned long made = ask(i, ROUNDS, keep);
            bool fails = made > 0 && cases[i].is_bound;
            failures += fails;
            printf("%s %-18s %d, %s: %lu allocations in %d requests%s\n",
                   cases[i].method,
                   cases[i].uri,
                   cases[i].status,
                   keep ? "kept" : "new connections",
                   made,
                   ROUNDS,
                   fails ? ", not so: 0" : "");
        }
    }
    return failures;
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
    static const bool is_unix = true;
    char folder[] = "/tmp/weir-warm-XXXXXX";
    struct weir_error error = { 0 };
    struct weir__options options;
    struct weir__app *app;
    int pair[2];
    is_client = true;
    weir__options_defaults(&options);
    options.shm_entries = 1024;
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
    pthread_t worker;
    CHECK(pthread_create(&worker, NULL, run_worker, &config) == 0);
    int failures = ask_all();
    close(pair[0]); /* the parent is gone: it drains */
    pthread_join(worker, NULL);
    weir__app_destroy(app);
    close(pair[1]);
    close(listen_fd);
    unlink(path);
    rmdir(folder);
    return failures ? 1 : 0;
}
