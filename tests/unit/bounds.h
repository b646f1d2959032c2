/* An app whose requests take time, block, park, stream or are long, its worker, and what
 * the tests of the record engine's bounds say to it. */
#ifndef TESTS_UNIT_BOUNDS_H
#define TESTS_UNIT_BOUNDS_H

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

/* ---- the app ---------------------------------------------------------------------- */

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

static inline int hello(struct weir *w)
{
    return weir_text(w, 200, "hello");
}

static inline int slow(struct weir *w)
{
    atomic_fetch_add(&shared->running, 1);
    usleep((useconds_t)atoi(weir_path(w, "ms")) * 1000);
    atomic_fetch_sub(&shared->running, 1);
    return weir_text(w, 200, "slow");
}

static inline int until_gone(struct weir *w)
{
    atomic_fetch_add(&shared->running, 1);
    for (int i = 0; i < 5000 && !weir_gone(w); i++)
        usleep(1000);
    if (weir_gone(w))
        atomic_fetch_add(&shared->gone, 1);
    atomic_fetch_sub(&shared->running, 1);
    return weir_text(w, 200, "late");
}

static inline int stream(struct weir *w)
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

static inline int whole(struct weir *w)
{
    static char kib[1024];
    for (int n = 0; n < 4000; n++)
        if (!weir_write(w, kib, sizeof kib))
            return 500;
    return 200;
}

static inline int length(struct weir *w)
{
    size_t len;
    weir_body(w, &len);
    return weir_text(w, 200, weir_printf(w, "%zu", len));
}

static inline enum weir_verdict offloaded(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot, (void)w;
    unsigned now = atomic_fetch_add(&shared->steps, 1) + 1;
    if (now > atomic_load(&shared->most_steps))
        atomic_store(&shared->most_steps, now);
    usleep(100000);
    atomic_fetch_sub(&shared->steps, 1);
    return WEIR_NEXT;
}

static inline enum weir_verdict waited(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    return weir_timed_out(w) ? WEIR_NEXT : WEIR_FAIL;
}

/* Offloads, parks or passes, as the query says. */
static inline enum weir_verdict detour(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    const char *ms = weir_query(w, "wait");
    if (ms)
        return weir_wait(w, waited, WEIR_MILLISECONDS(atoi(ms)));
    if (weir_query(w, "offload"))
        return weir_offload(w, offloaded);
    return WEIR_NEXT;
}

static inline void count_after(struct weir *w, const void *self, void *slot)
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

/* ---- what the tests say ----------------------------------------------------------- */

static struct worker_fixture worker;

static inline void init(void)
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

static inline void finish(void)
{
    cr_expect(worker_finish(&worker), "the worker must end in order");
}

static inline void start(void)
{
    cr_assert(worker_start(&worker, &app));
}

static inline struct fcgi_client connect_to_worker(void)
{
    struct fcgi_client client;
    cr_assert(fcgi_connect(&client, worker.path), "%s", strerror(errno));
    return client;
}

/* Sends a GET of that path on a kept connection. */
static inline struct fcgi_client begin(const char *uri)
{
    struct fcgi_client client = connect_to_worker();
    cr_assert(fcgi_send_request(&client,
                                &(struct fcgi_request){ .uri = uri, .keep_conn = true }));
    return client;
}

/* The first so many bytes of a request. */
static inline struct fcgi_client begin_part(size_t len)
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

static inline int read_status(struct fcgi_client *client)
{
    struct fcgi_reply reply;
    fcgi_read_reply(client, 1, 5000, &reply);
    int status = reply.ended ? reply.status : 0;
    fcgi_reply_finish(&reply);
    return status;
}

static inline int get(const char *uri)
{
    return fcgi_status(worker.path, &(struct fcgi_request){ .uri = uri }, 5000);
}

static inline void wait_until(atomic_uint *count, unsigned wanted)
{
    for (int i = 0; atomic_load(count) != wanted; i++) {
        cr_assert_lt(i, 5000, "%u", atomic_load(count));
        usleep(1000);
    }
}

/* Closed after at least and at most so many milliseconds from begin_us on. */
static inline void expect_closed_within(struct fcgi_client *client,
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

#endif
