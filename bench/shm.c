/* What a decision in shared memory costs, in nanoseconds of processor time, and who is
 * kept under a flood.
 *
 *   bench_shm [ROUNDS]
 *
 * Prints the median and the best of the rounds (default 7); decisions include hash and
 * clock. The rounds alternate between the cases, so that a busy machine hits all of them
 * alike. Figures and what they decided: docs/decisions/shared-memory.md. */
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/shm.h"
#include "store/shm_table.h"
#include "support/asks.h"
#include "support/rng.h"

#define DECISIONS 400000
#define ROUNDS_MAX 99

static struct rule_kit kits[8];
static struct rule_kit refusing;

/* One way to spend decisions; the store is fresh in each round. */
struct bench {
    const char *name;
    size_t entries;
    int processes;
    unsigned rules;
    unsigned callers; /* 1: one hot counter; 0: a new caller each time */
    bool warm;        /* all callers are in the table before the clock starts */
    bool refused;
    double ns[ROUNDS_MAX];
};

static struct bench benches[] = {
    { "hot counter, 1 process", 0, 1, 1, 1, true, false, { 0 } },
    { "hot counter, refused", 0, 1, 1, 1, true, true, { 0 } },
    { "hot counter, 2 processes", 0, 2, 1, 1, true, false, { 0 } },
    { "10^6 callers, 1 process", 1200000, 1, 1, 1000000, true, false, { 0 } },
    { "10^6 callers, 2 processes", 1200000, 2, 1, 1000000, true, false, { 0 } },
    { "1,000 callers, 2 processes", 0, 2, 1, 1000, true, false, { 0 } },
    { "1,000 callers, 2 processes, 2 rules", 0, 2, 2, 1000, true, false, { 0 } },
    { "1,000 callers, 2 processes, 4 rules", 0, 2, 4, 1000, true, false, { 0 } },
    { "10^6 callers, 2 processes, 4 rules", 4800000, 2, 4, 1000000, true, false, { 0 } },
    { "new callers, room", 1200000, 1, 1, 0, false, false, { 0 } },
    { "new callers, table full", 10000, 1, 1, 0, true, false, { 0 } },
};

/* "user:" and eight digits, by hand: snprintf would cost more than the decision, and a
 * table of names would be in the way in the caches. */
static void name_caller(char ret_text[16], unsigned number)
{
    memcpy(ret_text, "user:00000000", 14);
    for (char *digit = ret_text + 12; number > 0; number /= 10)
        *digit-- = (char)('0' + number % 10);
}

static void ask(struct weir_store *store, const struct bench *bench, const char *subject)
{
    struct weir_store_ask one;
    one.items_len = 0;
    for (unsigned i = 0; i < bench->rules; i++)
        ask_add(&one, bench->refused ? &refusing : &kits[i], subject, 1);
    store->ops->decide(store->self, &one);
}

static void warm_up(struct weir_store *store, const struct bench *bench)
{
    unsigned callers = bench->callers ? bench->callers : 20000;
    char subject[16];
    for (unsigned i = 0; i < callers; i++) {
        name_caller(subject, i);
        ask(store, bench, subject);
    }
}

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double
spend(struct weir_store *store, const struct bench *bench, int process, atomic_int *ready)
{
    unsigned first = 1000000 + (unsigned)process * DECISIONS;
    struct rng rng = { (uint64_t)process + 1 };
    char subject[16];
    atomic_fetch_add(ready, 1);
    while (atomic_load(ready) < bench->processes)
        sched_yield();
    double start_ns = cpu_ns();
    for (unsigned i = 0; i < DECISIONS; i++) {
        name_caller(subject,
                    bench->callers ? (unsigned)(rng_next(&rng) % bench->callers)
                                   : first + i);
        ask(store, bench, subject);
    }
    return (cpu_ns() - start_ns) / DECISIONS;
}

/* The mean over the processes. */
static double run(const struct bench *bench)
{
    struct shared {
        atomic_int ready;
        double ns[8];
    } *shared = mmap(
        NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct weir_shm_options options = { .entries = bench->entries };
    struct weir_store *store = weir_shm_create(&options, NULL);
    if (shared == MAP_FAILED || !store)
        abort();
    if (bench->warm)
        warm_up(store, bench);
    for (int i = 0; i < bench->processes; i++)
        if (fork() == 0) {
            store->ops->worker_start(store->self, NULL, NULL);
            shared->ns[i] = spend(store, bench, i, &shared->ready);
            _exit(0);
        }
    double sum_ns = 0;
    for (int i = 0; i < bench->processes; i++)
        wait(NULL);
    for (int i = 0; i < bench->processes; i++)
        sum_ns += shared->ns[i];
    weir_store_destroy(store);
    munmap(shared, sizeof *shared);
    return sum_ns / bench->processes;
}

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, two = *(const double *)b;
    return one < two ? -1 : one > two;
}

/* Callers who have used up their limit fill a share of the table; ten times as many
 * others as it holds come once each. How many of the first are still refused? */
static void flood(int percent)
{
    static const size_t entries = 60000;
    struct rule_kit five;
    kit_init(&five, (struct weir_rule)WEIR_FIXED_WINDOW("five", 5, WEIR_HOURS(1)));
    struct weir_shm_options options = { .entries = entries };
    struct weir_store *store = weir_shm_create(&options, NULL);
    size_t refused = entries * (size_t)percent / 100, own = 0, kept = 0, passed = 0;
    char subject[16];
    for (size_t i = 0; i < refused; i++) {
        struct weir_store_ask last = { .items_len = 0 };
        name_caller(subject, (unsigned)i);
        ask_one(store, &five, subject, 5, &last);
        own += last.receipts[0].mark[2] == 0;
    }
    for (size_t i = 0; i < 10 * entries; i++) {
        name_caller(subject, 1000000 + (unsigned)i);
        passed += ask_one(store, &five, subject, 1, NULL).allowed;
    }
    for (size_t i = 0; i < refused; i++) {
        name_caller(subject, (unsigned)i);
        kept += !ask_one(store, &five, subject, 1, NULL).allowed;
    }
    printf("refused callers fill %2d %%: %zu of %zu have a counter of their own, %.3f %% "
           "still refused; of the others %.3f %% pass\n",
           percent,
           own,
           refused,
           100.0 * (double)kept / (double)refused,
           100.0 * (double)passed / (double)(10 * entries));
    weir_store_destroy(store);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 7;
    size_t len = sizeof benches / sizeof *benches;
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    for (unsigned i = 0; i < 8; i++) {
        char *name = strdup("r0");
        name[1] = (char)('0' + i);
        kit_init(&kits[i],
                 i % 2 ? (struct weir_rule)WEIR_TOKEN_BUCKET(
                             name, 1000000, 1000000, WEIR_SECONDS(1))
                       : (struct weir_rule)WEIR_FIXED_WINDOW(
                             name, WEIR__MAX_UNITS, WEIR_HOURS(1)));
    }
    kit_init(&refusing, (struct weir_rule)WEIR_FIXED_WINDOW("no", 1, WEIR_HOURS(1)));
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < len; i++)
            benches[i].ns[round] = run(&benches[i]);
    for (size_t i = 0; i < len; i++) {
        qsort(benches[i].ns, (size_t)rounds, sizeof benches[i].ns[0], compare);
        printf("%-38s median %4.0f ns, best %4.0f ns\n",
               benches[i].name,
               benches[i].ns[rounds / 2],
               benches[i].ns[0]);
    }
    static const int percents[] = { 1, 10, 25, 50, 75 };
    for (int i = 0; i < 5; i++)
        flood(percents[i]);
    return 0;
}
