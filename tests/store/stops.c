/* One process is stopped, or killed, at each place in the store at which something is
 * half done; four others go on. They must not hang, no charge may be lost or made twice,
 * and the one that was stopped goes on where it was.
 *
 *   store_stops
 *
 * Faults that were planted in the store and seen to fail here: an announced insertion
 * that only its author carries out, a lock without its age, a stopped request that
 * charges by an old decision, a counter written in two steps. */
#include "crowd.h"

#define OTHERS 4
#define ASKS 40
#define MAX 100
#define RULES 3
#define ALL 7U /* all three rules in one request; 1: the first alone */

static const char *const point_names[WEIR__STOPS] = {
    [WEIR__STOP_MISSED] = "missed",     [WEIR__STOP_EVICTED] = "evicted",
    [WEIR__STOP_INTENT] = "intent",     [WEIR__STOP_FILLED] = "filled",
    [WEIR__STOP_INSERTED] = "inserted", [WEIR__STOP_DECIDED] = "decided",
    [WEIR__STOP_CHARGED] = "charged",   [WEIR__STOP_LOCKED] = "locked",
    [WEIR__STOP_BETWEEN] = "between",   [WEIR__STOP_ALL_CHARGED] = "all charged",
    [WEIR__STOP_UNDOING] = "undoing",   [WEIR__STOP_UNLOCKED] = "unlocked",
};

struct scene {
    enum weir__shm_stop point;
    int signal;      /* SIGSTOP or SIGKILL */
    unsigned wanted; /* rules */
    int number;      /* stop when the point is met for the n-th time, from 1 */
    bool crowded;    /* all counters meet in one full bucket */
    bool exhausting; /* others use up everything once two rules are charged */
};

static struct rule_kit kits[RULES], filler;
static const char *const subjects[RULES] = { "user:42", "ip:198.51.100.7", "all" };
static struct scene scene;
static struct crowd *crowd;
static struct weir_store *store;

enum { KIND_LONE, KIND_ALL, KIND_EXHAUST }; /* the latter once a rule */

static void fill_ask(struct weir_store_ask *ask, unsigned wanted, int64_t cost)
{
    memset(ask, 0, sizeof *ask);
    for (int i = 0; i < RULES; i++)
        if (wanted >> i & 1)
            ask_add(ask, &kits[i], subjects[i], cost);
}

static int64_t left_of(int rule)
{
    struct weir_store_ask ask;
    fill_ask(&ask, 1U << rule, 0);
    store->ops->decide(store->self, &ask);
    return ask.decision.rules[0].remaining;
}

static void exhaust(void)
{
    for (int i = 0; i < RULES; i++) {
        struct weir_store_ask ask;
        int64_t left = left_of(i);
        fill_ask(&ask, 1U << i, left);
        store->ops->decide(store->self, &ask);
        if (left > 0 && ask.decision.allowed)
            atomic_fetch_add(&crowd->admitted[KIND_EXHAUST + i], (long)left);
    }
}

static void on_point(enum weir__shm_stop point)
{
    static int met, charged;
    if (scene.exhausting && point == WEIR__STOP_BETWEEN && ++charged == 2) {
        weir__shm_stop_fn = NULL;
        exhaust();
        weir__shm_stop_fn = on_point;
    }
    if (point == scene.point && ++met == scene.number)
        kill(getpid(), scene.signal);
}

static void ask_once(void)
{
    struct weir_store_ask ask;
    fill_ask(&ask, scene.wanted, 1);
    crowd_ask(crowd, store, &ask, scene.wanted == ALL ? KIND_ALL : KIND_LONE);
}

static void other(void)
{
    crowd_wait(crowd);
    for (int i = 0; i < ASKS; i++)
        ask_once();
    _exit(0);
}

static void run_others(void)
{
    pid_t others[OTHERS];
    for (int i = 0; i < OTHERS; i++) {
        others[i] = fork();
        CHECK(others[i] >= 0, "fork: %s", strerror(errno));
        if (others[i] == 0)
            other();
    }
    crowd_start(crowd, OTHERS);
    crowd_join(others, OTHERS);
}

/* What a rule's counter says against what was admitted. A kill may lose one charge. */
static void check_counters(void)
{
    for (int i = 0; i < RULES; i++) {
        if (!(scene.wanted >> i & 1) && !scene.exhausting)
            continue;
        long used = (long)(MAX - left_of(i));
        long admitted = atomic_load(&crowd->admitted[KIND_EXHAUST + i]);
        if (scene.wanted >> i & 1)
            admitted += atomic_load(&crowd->admitted[KIND_LONE]) +
                        atomic_load(&crowd->admitted[KIND_ALL]);
        long lost = scene.signal == SIGKILL ? 1 : 0;
        CHECK(used >= admitted && used <= admitted + lost,
              "%s: rule %d: %ld used, %ld admitted",
              point_names[scene.point],
              i,
              used,
              admitted);
    }
}

static void prepare(void)
{
    crowd = crowd_create();
    store = crowd_store(scene.crowded ? WEIR__SHM_WAYS : 1000);
    for (int i = 0; scene.crowded && i < WEIR__SHM_WAYS; i++) {
        char subject[16];
        snprintf(subject, sizeof subject, "user:x%d", i);
        ask_one(store, &filler, subject, 1, NULL);
    }
}

/* True where the child came to the point. */
static bool play(void)
{
    int status;
    prepare();
    pid_t child = fork();
    CHECK(child >= 0, "fork: %s", strerror(errno));
    if (child == 0) {
        weir__shm_stop_fn = on_point;
        ask_once();
        _exit(0);
    }
    CHECK(waitpid(child, &status, WUNTRACED) == child, "waitpid");
    bool reached = WIFSTOPPED(status) || WIFSIGNALED(status);
    if (reached) {
        ask_once();
        CHECK(crowd_verify(store).locks == 0,
              "%s: the first to wait didn't take the lock over",
              point_names[scene.point]);
        run_others();
    }
    if (WIFSTOPPED(status)) {
        CHECK(kill(child, SIGCONT) == 0, "SIGCONT");
        crowd_join(&child, 1);
    }
    if (reached && !scene.exhausting)
        for (int i = 0; i <= MAX; i++)
            ask_once();
    check_counters();
    struct weir__shm_census census = crowd_verify(store);
    CHECK(census.locks == 0, "%s: still locked", point_names[scene.point]);
    crowd_check_nobody_waited(crowd);
    weir_store_destroy(store);
    crowd_destroy(crowd);
    return reached;
}

static bool play_variants(enum weir__shm_stop point, int signal)
{
    bool reached = false;
    for (int variant = 0; variant < 4; variant++)
        for (int number = 1; number <= RULES; number++) {
            scene = (struct scene){
                .point = point,
                .signal = signal,
                .wanted = variant & 1 ? ALL : 1,
                .crowded = variant & 2,
                .number = number,
                .exhausting = point == WEIR__STOP_UNDOING && (variant & 1),
            };
            reached = play() || reached;
        }
    return reached;
}

int main(void)
{
    static const int signals[] = { SIGSTOP, SIGKILL };
    crowd_limit_seconds(120);
    for (int i = 0; i < RULES; i++)
        kit_init(&kits[i],
                 i == 1 ? (struct weir_rule)WEIR_TOKEN_BUCKET("f", MAX, 1, WEIR_DAYS(1))
                        : (struct weir_rule)WEIR_FIXED_WINDOW("d", MAX, WEIR_DAYS(1)));
    kit_init(&filler, (struct weir_rule)WEIR_FIXED_WINDOW("x", 1000, WEIR_HOURS(1)));
    for (int s = 0; s < 2; s++)
        for (int point = 0; point <= WEIR__STOP_UNLOCKED; point++) {
            bool reached = play_variants((enum weir__shm_stop)point, signals[s]);
            CHECK(reached, "no process ever came to \"%s\"", point_names[point]);
            printf("%s at \"%s\": nobody waits, nothing is lost\n",
                   signals[s] == SIGSTOP ? "stopped" : "killed",
                   point_names[point]);
        }
    return 0;
}
