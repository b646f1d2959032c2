/* What the programs that test the Redis store have in common: a redis-server of their
 * own, a store on it, and questions with a deadline. */
#ifndef TESTS_STORE_REDIS_KIT_H
#define TESTS_STORE_REDIS_KIT_H

#include "crowd.h"

#include "store/redis_command.h"
#include "support/redis_server.h"

#define TIMEOUT_US INT64_C(50000)
#define LATE_US INT64_C(400000) /* a busy machine may add so much */

static struct redis_server server;
static struct redis_client client;
static struct weir_store *store;
static struct rule_kit window, bucket;

static inline struct weir_store *
open_store_of(const char *address, const char *password_file, unsigned database)
{
    struct weir_error error = { { 0 } };
    struct weir_store *made =
        weir_redis_create(&(struct weir_redis_options){ .address = address,
                                                        .password_file = password_file,
                                                        .database = database,
                                                        .timeout_us = TIMEOUT_US },
                          &error);
    CHECK(made, "%s", error.text);
    return made;
}

static inline struct weir_store *open_store(const char *address,
                                            const char *password_file)
{
    return open_store_of(address, password_file, password_file ? 3 : 0);
}

/* -1: unavailable; else what is left, or -2 where it was refused. */
static inline long ask(const struct rule_kit *kit, const char *subject, int64_t cost)
{
    struct weir_store_ask asked = { .items_len = 0 };
    ask_add(&asked, kit, subject, cost);
    int64_t begin_us = weir__clock_now_us();
    enum weir_store_result result = ask_wait(store, &asked);
    int64_t took_us = weir__clock_now_us() - begin_us;
    CHECK(took_us < TIMEOUT_US + LATE_US, "took %lld us", (long long)took_us);
    if (result != WEIR_STORE_READY)
        return -1;
    CHECK(asked.decision.source == WEIR_SOURCE_REDIS, "source");
    return asked.decision.allowed ? (long)asked.decision.rules[0].remaining : -2;
}

/* Asks until there is an answer. */
static inline long
ask_patiently(const struct rule_kit *kit, const char *subject, int64_t cost)
{
    int64_t until_us = weir__clock_now_us() + WEIR_SECONDS(4);
    long left;
    while ((left = ask(kit, subject, cost)) == -1) {
        CHECK(weir__clock_now_us() < until_us, "no answer in 4 s");
        usleep(5000);
    }
    return left;
}

static inline void open_all(void)
{
    redis_server_start(&server);
    redis_client_open(&client, server.socket);
    store = open_store(server.address, NULL);
    CHECK(ask_patiently(&window, "warm-up", 0) == 5, "warm-up");
}

/* No key of ours may live for ever. */
static inline void check_lifetimes(void)
{
    static const char script[] = "local n=0 "
                                 "for _,k in ipairs(redis.call('KEYS','*')) do "
                                 "if redis.call('PTTL',k)<0 then n=n+1 end end "
                                 "return tostring(n)";
    const struct weir__redis_arg args[] = { { "EVAL", 4 },
                                            { script, sizeof script - 1 },
                                            { "0", 1 } };
    struct weir__buf out;
    struct weir__redis_reply reply;
    weir__buf_init(&out, 0);
    weir__redis_put(&out, args, 3);
    redis_client_send(&client, &out);
    weir__buf_finish(&out);
    redis_client_take(&client, &reply);
    CHECK(strcmp(reply.bytes, "0") == 0, "%s keys without a lifetime", reply.bytes);
}

static inline void close_all(void)
{
    check_lifetimes();
    weir_store_destroy(store);
    redis_client_close(&client);
    redis_server_finish(&server);
}

static inline void kits_init(void)
{
    kit_init(&window, (struct weir_rule)WEIR_FIXED_WINDOW("w", 5, WEIR_MINUTES(10)));
    kit_init(&bucket, (struct weir_rule)WEIR_TOKEN_BUCKET("b", 20, 1, WEIR_DAYS(1)));
}

struct test_case {
    const char *name;
    void (*run)(void);
};
#define CASE(name_)                                                                      \
    {                                                                                    \
#name_, name_                                                                    \
    }

/* Runs all of them, or the one that is named. */
static inline int run_cases(const struct test_case *cases, size_t len, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < len; i++) {
        if (name && strcmp(name, cases[i].name) != 0)
            continue;
        found = true;
        cases[i].run();
        printf("%s\n", cases[i].name);
        fflush(stdout);
    }
    CHECK(found, "no such case");
    return 0;
}

#endif
