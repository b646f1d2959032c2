/* A transport that is a struct: the tests of life, hooks and filters step a request
 * through its needs by hand, without sockets or threads. */
#ifndef TESTS_KIT_H
#define TESTS_KIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "life.h"

#define KIT_PARAMS_MAX 16

/* One request at a time; static state is fine, each test is a process of its own. */
static struct kit {
    struct weir w;
    struct weir_app declared;
    struct weir__app *app;
    struct weir__pair params[KIT_PARAMS_MAX];
    unsigned params_len;

    char hooks[512];  /* "a.before b.before ", as told by the machine */
    char sent[65536]; /* head and body, as they left */
    size_t sent_len;
    unsigned bodies;  /* how often NEED_BODY came */
    unsigned threads; /* NEED_THREAD */
    unsigned resumes; /* calls of resume() */
    uint64_t armed;   /* the wait that was armed last */
    int offloads;     /* in flight */
    int offloads_max; /* 0: no bound */
    const char *body; /* what a request's body is */
    bool ended;       /* the reply was ended in order */
    int64_t now_us;
} kit;

static int64_t kit_now(void)
{
    return kit.now_us;
}

/* 2027-01-15T08:00:00Z at the start. */
static int64_t kit_wall(void)
{
    return WEIR_SECONDS(INT64_C(1800000000) - 1000) + kit.now_us;
}

static bool kit_send(struct weir *w)
{
    size_t head = w->head_sent ? 0 : w->head_len;
    cr_assert_lt(kit.sent_len + head + w->out.len, sizeof kit.sent);
    if (head > 0)
        memcpy(kit.sent + kit.sent_len, w->head_text, head);
    kit.sent_len += head;
    if (w->out.len > 0)
        memcpy(kit.sent + kit.sent_len, w->out.bytes, w->out.len);
    kit.sent_len += w->out.len;
    kit.sent[kit.sent_len] = '\0';
    w->head_sent = true;
    w->out.len = 0;
    return !atomic_load(&w->gone);
}

static void kit_resume(struct weir *w)
{
    (void)w;
    kit.resumes++;
}

static void kit_arm(struct weir *w, uint64_t wait)
{
    (void)w;
    kit.armed = wait;
}

static bool kit_offload_begin(struct weir *w)
{
    (void)w;
    if (kit.offloads_max > 0 && kit.offloads == kit.offloads_max)
        return false;
    kit.offloads++;
    return true;
}

static void kit_offload_end(struct weir *w)
{
    (void)w;
    kit.offloads--;
}

static void kit_hook(struct weir *w, const struct weir_filter *filter, const char *hook)
{
    (void)w;
    size_t len = strlen(kit.hooks);
    snprintf(kit.hooks + len, sizeof kit.hooks - len, "%s.%s ", filter->name, hook);
}

static const struct weir__transport_ops kit_transport = {
    .name = "kit",
    .send = kit_send,
    .resume = kit_resume,
    .arm = kit_arm,
    .offload_begin = kit_offload_begin,
    .offload_end = kit_offload_end,
    .hook = kit_hook,
};

static inline void kit_open_app(const struct weir_app *declared)
{
    static const struct weir__options options = { .shm_entries = 1024 };
    struct weir_error error = { "" };
    memset(&kit, 0, sizeof kit);
    kit.now_us = WEIR_SECONDS(1000);
    kit.declared = *declared;
    weir__clock_replace(kit_now, kit_wall);
    cr_assert(weir__app_create(&kit.declared, &options, NULL, &kit.app, &error),
              "%s",
              error.text);
    weir__arena_init(&kit.w.arena, 1 << 20, 4096);
    weir__buf_init(&kit.w.out, WEIR__OUT_MAX);
}

static inline void kit_open(const struct weir_endpoint *endpoints,
                            const struct weir_use *chain)
{
    kit_open_app(&(struct weir_app){ WEIR_ABI, .endpoints = endpoints, .chain = chain });
}

static inline void kit_close(void)
{
    weir__app_destroy(kit.app);
    weir__arena_finish(&kit.w.arena);
    weir__buf_finish(&kit.w.out);
    weir__clock_replace(NULL, NULL);
}

static inline void kit_param(const char *name, const char *value)
{
    cr_assert_lt(kit.params_len, (unsigned)KIT_PARAMS_MAX);
    kit.params[kit.params_len++] = (struct weir__pair){
        .name = name,
        .value = value,
        .name_len = (unsigned)strlen(name),
        .value_len = (unsigned)strlen(value),
    };
}

/* A request up to its begin; more parameters may be set between this and kit_begin(). */
static inline void kit_request(const char *method, const char *uri)
{
    kit.params_len = 0;
    kit.hooks[0] = '\0';
    kit.sent[kit.sent_len = 0] = '\0';
    kit.bodies = kit.threads = kit.resumes = 0;
    kit.ended = false;
    weir__life_init(&kit.w, kit.app, NULL, &kit_transport, NULL);
    kit.w.start_us = kit.now_us;
    kit_param("REQUEST_METHOD", method);
    kit_param("REQUEST_URI", uri);
}

static inline void kit_begin(void)
{
    kit.w.params = kit.params;
    kit.w.params_len = kit.params_len;
    weir__life_begin(&kit.w);
}

static inline void kit_start(const char *method, const char *uri)
{
    kit_request(method, uri);
    kit_begin();
}

/* Runs as a transport would, until the request is parked (false) or over (true). */
static inline bool kit_run(void)
{
    bool may_block = false;
    for (;;) {
        switch (weir__life_run(&kit.w, may_block)) {
        case WEIR__NEED_RESUME:
            return false;
        case WEIR__NEED_BODY:
            kit.bodies++;
            kit.w.body = kit.body ? kit.body : "";
            kit.w.body_len = strlen(kit.w.body);
            break;
        case WEIR__NEED_THREAD:
            cr_assert_not(may_block);
            kit.threads++;
            may_block = true;
            break;
        case WEIR__NEED_SEND:
            kit.ended = !kit.w.torn;
            if (!kit.w.dropped && !kit.w.gone)
                kit_send(&kit.w);
            weir__life_end(&kit.w);
            return true;
        }
    }
}

/* The whole of it, for requests that don't park. Returns the status. */
static inline int kit_get(const char *method, const char *uri)
{
    kit_start(method, uri);
    cr_assert(kit_run());
    return kit.w.status;
}

static inline bool kit_sent_line(const char *line)
{
    const char *end = strstr(kit.sent, "\r\n\r\n"), *found = strstr(kit.sent, line);
    return end && found && found < end && (found == kit.sent || found[-1] == '\n') &&
           strncmp(found + strlen(line), "\r\n", 2) == 0;
}

/* The value of a header that left, copied; "" where it didn't. */
static inline const char *kit_sent_header(const char *name)
{
    static char value[1100];
    char start[128];
    const char *end = strstr(kit.sent, "\r\n\r\n");
    snprintf(start, sizeof start, "\n%s: ", name);
    const char *found = strstr(kit.sent, start);
    value[0] = '\0';
    if (found && found < end) {
        found += strlen(start);
        snprintf(value, sizeof value, "%.*s", (int)strcspn(found, "\r"), found);
    }
    return value;
}

static inline const char *kit_sent_body(void)
{
    const char *end = strstr(kit.sent, "\r\n\r\n");
    return end ? end + 4 : "";
}

#endif
