/* 64 processes at once, 50 decisions each, a limit of 100: exactly 100 pass, in every
 * algorithm and mix of rules, however often it is run.
 *
 *   store_exact [RUNS [redis]]
 *
 * A case from the field: reading and raising the count were two steps, parallel requests
 * all saw room. Faults that were planted in the store and seen to fail here: the counter
 * written back by two plain stores, an insertion without its announcement, a refused
 * request of three rules that is not undone. */
#include "crowd.h"

#include "support/redis_server.h"

#define PROCESSES 64
#define DECISIONS 50
#define RULES 3

/* Which rules each kind of request asks; process i is of kind i % kinds. */
struct mix {
    const char *name;
    struct weir_rule rules[RULES];
    int kinds;
    unsigned wanted[4]; /* bits */
    long expected;      /* admitted in all, where it is known beforehand; else -1 */
};

#define DAY(max_) WEIR_FIXED_WINDOW("d", max_, WEIR_DAYS(1))
#define COUNTER(max_) WEIR_SLIDING_COUNTER("c", max_, WEIR_DAYS(366))
#define MONTH(max_) WEIR_CALENDAR_MONTH("m", max_)
#define FILL(max_) WEIR_TOKEN_BUCKET("f", max_, 1, WEIR_DAYS(1))

static const struct mix mixes[] = {
    { "fixed window", { DAY(100) }, 1, { 1 }, 100 },
    { "sliding counter", { COUNTER(100) }, 1, { 1 }, 100 },
    { "calendar month", { MONTH(100) }, 1, { 1 }, 100 },
    { "token bucket", { FILL(100) }, 1, { 1 }, 100 },
    { "three of one max", { DAY(100), FILL(100), DAY(100) }, 1, { 7 }, 100 },
    { "three maxima", { DAY(150), FILL(100), DAY(120) }, 1, { 7 }, 100 },
    { "one alone, three together", { DAY(100), FILL(400), DAY(400) }, 2, { 1, 7 }, 100 },
    { "three kinds", { MONTH(120), FILL(150), COUNTER(100) }, 1, { 7 }, 100 },
    { "pairs in a ring", { DAY(100), FILL(100), DAY(100) }, 3, { 3, 6, 5 }, -1 },
    { "a pair and its halves", { DAY(100), FILL(100), DAY(1) }, 3, { 3, 1, 2 }, -1 },
};

static struct rule_kit kits[RULES];
static struct redis_server *server; /* NULL: over shared memory */
static const char *const subjects[RULES] = { "user:42", "ip:198.51.100.7", "all" };

static void fill_ask(struct weir_store_ask *ask, unsigned wanted, int64_t cost)
{
    memset(ask, 0, sizeof *ask);
    for (int i = 0; i < RULES; i++)
        if (wanted >> i & 1)
            ask_add(ask, &kits[i], subjects[i], cost);
}

static void
child(struct crowd *crowd, struct weir_store *store, const struct mix *mix, int number)
{
    int kind = number % mix->kinds;
    struct weir_store_ask ask;
    fill_ask(&ask, mix->wanted[kind], 1);
    crowd_wait(crowd);
    for (int i = 0; i < DECISIONS; i++)
        crowd_ask(crowd, store, &ask, kind);
    _exit(0);
}

/* What each counter says is what was admitted, and nobody who asked could still pass. */
static void
check_counters(struct crowd *crowd, struct weir_store *store, const struct mix *mix)
{
    struct weir_store_ask ask;
    long total = 0;
    for (int kind = 0; kind < mix->kinds; kind++)
        total += atomic_load(&crowd->admitted[kind]);
    CHECK(
        mix->expected < 0 || total == mix->expected, "%s: %ld passed", mix->name, total);
    for (int i = 0; i < RULES; i++) {
        long used = 0;
        for (int kind = 0; kind < mix->kinds; kind++)
            if (mix->wanted[kind] >> i & 1)
                used += atomic_load(&crowd->admitted[kind]);
        if (!mix->rules[i].name)
            continue;
        fill_ask(&ask, 1U << i, 0);
        ask_wait(store, &ask);
        long left = (long)ask.decision.rules[0].remaining;
        CHECK(mix->rules[i].max - left == used,
              "%s: rule %d: %ld left, %ld passed",
              mix->name,
              i,
              left,
              used);
    }
    for (int kind = 0; kind < mix->kinds; kind++) {
        fill_ask(&ask, mix->wanted[kind], 1);
        ask_wait(store, &ask);
        CHECK(!ask.decision.allowed, "%s: kind %d still passes", mix->name, kind);
    }
}

/* An empty one. Over Redis nothing may be late here, however busy the machine. */
static struct weir_store *make_store(void)
{
    struct weir_error error = { { 0 } };
    struct redis_client client;
    if (!server)
        return crowd_store(1000);
    redis_client_open(&client, server->socket);
    redis_client_ask(&client, "FLUSHALL");
    redis_client_close(&client);
    struct weir_store *store =
        weir_redis_create(&(struct weir_redis_options){ .address = server->address,
                                                        .timeout_us = WEIR_SECONDS(60) },
                          &error);
    CHECK(store, "%s", error.text);
    return store;
}

static void check_left(const struct weir_store *store, const char *mix)
{
    if (server)
        return;
    struct weir__shm_census census = crowd_verify(store);
    CHECK(census.intents == 0 && census.locks == 0, "%s: left behind", mix);
}

static void run(const struct mix *mix)
{
    struct crowd *crowd = crowd_create();
    struct weir_store *store = make_store();
    pid_t children[PROCESSES];
    for (int i = 0; i < RULES; i++)
        if (mix->rules[i].name)
            kit_init(&kits[i], mix->rules[i]);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0, "fork: %s", strerror(errno));
        if (children[i] == 0)
            child(crowd, store, mix, i);
    }
    crowd_start(crowd, PROCESSES);
    crowd_join(children, PROCESSES);
    CHECK(atomic_load(&crowd->asked) == PROCESSES * DECISIONS, "not all asked");
    check_counters(crowd, store, mix);
    check_left(store, mix->name);
    weir_store_destroy(store);
    crowd_destroy(crowd);
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? atoi(argv[1]) : 20;
    struct redis_server own;
    crowd_limit_seconds(600);
    if (argc > 2) {
        server = &own;
        redis_server_start(server);
    }
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++) {
        for (int n = 0; n < runs; n++)
            run(&mixes[i]);
        printf("%s: exact in %d runs\n", mixes[i].name, runs);
    }
    if (server)
        redis_server_finish(server);
    return 0;
}
