/* Eight processes at full load on one small table; one of them is killed every few
 * milliseconds, half of them at a random moment and half at a random place within the
 * store, and replaced. Nobody may wait for a dead one, no counter may say less than was
 * admitted by it, nor more than one charge for each that was killed.
 *
 *   store_kills [KILLS]
 *
 * A case from the field: the shared lock stayed taken for ever when its holder died. */
#include "crowd.h"

#define WORKERS 8
#define RULES 4
#define ENTRIES 600
#define PAUSE_US 4000

/* The last two are never used up, so that every charge of theirs can be counted. */
static const struct weir_rule rules[RULES] = {
    WEIR_FIXED_WINDOW("d", 2000, WEIR_DAYS(1)),
    WEIR_TOKEN_BUCKET("f", 2000, 1, WEIR_DAYS(1)),
    WEIR_FIXED_WINDOW("w", 4000000000, WEIR_DAYS(1)),
    WEIR_FIXED_WINDOW("v", 3000000000, WEIR_DAYS(2)),
};
static const char *const subjects[RULES] = {
    "user:42", "ip:198.51.100.7", "all", "key:k"
};

/* Sets of rules that requests ask for together. */
static const unsigned wanted[] = { 1, 2, 4, 8, 12, 7, 15 };
#define KINDS ((int)(sizeof wanted / sizeof *wanted))

/* Kinds of counts: admitted by kind, then given back by kind, begun and done. */
#define BEGUN KINDS
#define DONE (2 * KINDS)

static struct rule_kit kits[RULES], flood;
static struct crowd *crowd;
static struct weir_store *store;
static int stop_at, stop_after;

static void on_point(enum weir__shm_stop point)
{
    if ((int)point == stop_at && --stop_after == 0)
        kill(getpid(), SIGKILL);
}

static void fill_ask(struct weir_store_ask *ask, unsigned rules_wanted, int64_t cost)
{
    memset(ask, 0, sizeof *ask);
    for (int i = 0; i < RULES; i++)
        if (rules_wanted >> i & 1)
            ask_add(ask, &kits[i], subjects[i], cost);
}

static void one_request(struct rng *rng)
{
    struct weir_store_ask ask;
    int kind = (int)rng_between(rng, 0, KINDS - 1);
    fill_ask(&ask, wanted[kind], 1);
    if (!crowd_ask(crowd, store, &ask, kind) || rng_between(rng, 0, 9) != 0)
        return;
    atomic_fetch_add(&crowd->admitted[BEGUN + kind], 1);
    store->ops->refund(store->self, &ask);
    atomic_fetch_add(&crowd->admitted[DONE + kind], 1);
}

/* Callers that come once: the table is always full of them. */
static void one_stranger(struct rng *rng)
{
    char subject[32];
    snprintf(
        subject, sizeof subject, "ip:%llu", (unsigned long long)(rng_next(rng) >> 32));
    ask_one(store, &flood, subject, 1, NULL);
}

static void worker(uint64_t seed, bool stops_itself)
{
    struct rng rng = { seed };
    stop_at = stops_itself ? (int)rng_between(&rng, 0, WEIR__STOPS - 1) : -1;
    stop_after = (int)rng_between(&rng, 1, 500);
    weir__shm_stop_fn = on_point;
    for (;;) {
        one_request(&rng);
        one_stranger(&rng);
    }
}

static pid_t start(uint64_t seed)
{
    pid_t child = fork();
    CHECK(child >= 0, "fork: %s", strerror(errno));
    if (child == 0)
        worker(seed, seed % 2 == 0);
    return child;
}

/* Kills one a turn and replaces all that are dead; returns how many died. */
static int storm(int kills)
{
    pid_t workers[WORKERS];
    struct rng rng = { 8 };
    uint64_t seed = 1;
    int dead = 0;
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start(seed++);
    while (dead < kills) {
        usleep(PAUSE_US);
        kill(workers[rng_between(&rng, 0, WORKERS - 1)], SIGKILL);
        for (int i = 0; i < WORKERS; i++)
            if (waitpid(workers[i], NULL, WNOHANG) == workers[i]) {
                dead++;
                workers[i] = start(seed++);
            }
    }
    for (int i = 0; i < WORKERS; i++) {
        kill(workers[i], SIGKILL);
        CHECK(waitpid(workers[i], NULL, 0) == workers[i], "waitpid");
    }
    return dead + WORKERS;
}

static void check_rule(int rule, int kills)
{
    struct weir_store_ask ask;
    long admitted = 0, begun = 0, done = 0;
    for (int kind = 0; kind < KINDS; kind++)
        if (wanted[kind] >> rule & 1) {
            admitted += atomic_load(&crowd->admitted[kind]);
            begun += atomic_load(&crowd->admitted[BEGUN + kind]);
            done += atomic_load(&crowd->admitted[DONE + kind]);
        }
    fill_ask(&ask, 1U << rule, 0);
    store->ops->decide(store->self, &ask);
    long used = (long)(rules[rule].max - ask.decision.rules[0].remaining);
    printf("rule %s: %ld admitted, %ld given back, %ld used\n",
           rules[rule].name,
           admitted,
           done,
           used);
    CHECK(used <= rules[rule].max, "rule %d: over its max", rule);
    CHECK(used >= admitted - begun, "rule %d: charges were lost", rule);
    CHECK(used <= admitted - done + kills, "rule %d: charges came from nowhere", rule);
}

int main(int argc, char **argv)
{
    int kills = argc > 1 ? atoi(argv[1]) : 100;
    crowd_limit_seconds(60 + (unsigned)kills / 20);
    for (int i = 0; i < RULES; i++)
        kit_init(&kits[i], rules[i]);
    kit_init(&flood, (struct weir_rule)WEIR_FIXED_WINDOW("x", 1000, WEIR_MINUTES(10)));
    crowd = crowd_create();
    store = crowd_store(ENTRIES);
    int dead = storm(kills);
    struct weir__shm_census census = crowd_verify(store);
    printf("%d killed, %llu insertions and %llu locks left behind\n",
           dead,
           (unsigned long long)census.intents,
           (unsigned long long)census.locks);
    printf("%ld asked, slowest %ld us, of which at most %ld us of processor time\n",
           atomic_load(&crowd->asked),
           atomic_load(&crowd->slowest_us),
           atomic_load(&crowd->busiest_us));
    crowd_check_nobody_waited(crowd);
    for (int rule = 0; rule < RULES; rule++)
        check_rule(rule, dead);
    weir_store_destroy(store);
    crowd_destroy(crowd);
    return 0;
}
