/* Many processes on one store: what they share, how they start together and end. The
 * programs in this folder do without Criterion, which would count their children's exits
 * as its own. */
#ifndef TESTS_STORE_CROWD_H
#define TESTS_STORE_CROWD_H

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/shm.h"
#include "store/shm_lock.h"
#include "store/shm_stop.h"
#include "store/shm_table.h"
#include "support/asks.h"
#include "support/rng.h"

#define CROWD_COUNTS 32

/* In memory that all processes share. */
struct crowd {
    atomic_int ready, go;
    atomic_long admitted[CROWD_COUNTS]; /* by kind of request, as the test numbers them */
    atomic_long asked;
    atomic_long slowest_us; /* of all decisions, on the clock */
    atomic_long busiest_us; /* of all decisions, in processor time */
};

#define CHECK(condition_, ...)                                                           \
    do {                                                                                 \
        if (!(condition_)) {                                                             \
            fflush(stdout);                                                              \
            fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #condition_);     \
            fprintf(stderr, __VA_ARGS__);                                                \
            fprintf(stderr, "\n");                                                       \
            _exit(1);                                                                    \
        }                                                                                \
    } while (0)

static inline struct crowd *crowd_create(void)
{
    void *memory = mmap(NULL,
                        sizeof(struct crowd),
                        PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS,
                        -1,
                        0);
    CHECK(memory != MAP_FAILED, "mmap");
    return memory;
}

static inline void crowd_destroy(struct crowd *crowd)
{
    munmap(crowd, sizeof *crowd);
}

/* A decision that takes this long has waited for somebody. */
static inline void crowd_check_nobody_waited(struct crowd *crowd)
{
    long busiest_us = atomic_load(&crowd->busiest_us);
    CHECK(busiest_us < 100000, "a decision took %ld us of processor time", busiest_us);
}

/* In a child: waits until all are there. */
static inline void crowd_wait(struct crowd *crowd)
{
    atomic_fetch_add(&crowd->ready, 1);
    while (!atomic_load(&crowd->go))
        sched_yield();
}

/* In the parent. */
static inline void crowd_start(struct crowd *crowd, int children)
{
    while (atomic_load(&crowd->ready) < children)
        sched_yield();
    atomic_store(&crowd->go, 1);
}

static inline int64_t crowd_cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static inline void crowd_keep_highest(atomic_long *highest, int64_t value)
{
    long seen = atomic_load(highest);
    while (value > seen && !atomic_compare_exchange_weak(highest, &seen, (long)value))
        ;
}

/* Asks, notes how long it took and whether it was admitted. The store never sleeps, so
 * that processor time tells how long it was held up, however many others the machine has
 * to run meanwhile. */
static inline bool crowd_ask(struct crowd *crowd,
                             struct weir_store *store,
                             struct weir_store_ask *ask,
                             int kind)
{
    int64_t start_us = weir__clock_now_us(), start_cpu_us = crowd_cpu_us();
    CHECK(ask_wait(store, ask) == WEIR_STORE_READY, "no answer");
    crowd_keep_highest(&crowd->busiest_us, crowd_cpu_us() - start_cpu_us);
    crowd_keep_highest(&crowd->slowest_us, weir__clock_now_us() - start_us);
    atomic_fetch_add(&crowd->asked, 1);
    if (ask->decision.allowed)
        atomic_fetch_add(&crowd->admitted[kind], 1);
    return ask->decision.allowed;
}

static inline void crowd_join(const pid_t *children, int len)
{
    for (int i = 0; i < len; i++) {
        int status;
        CHECK(waitpid(children[i], &status, 0) == children[i], "waitpid");
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: %x", status);
    }
}

/* Ends the program, with its children, where something hangs. */
static inline void crowd_limit_seconds(unsigned seconds)
{
    setpgid(0, 0);
    alarm(seconds);
}

static inline struct weir__shm_census crowd_verify(const struct weir_store *store)
{
    struct weir__shm_census census;
    struct weir_error error = { { 0 } };
    CHECK(
        weir__shm_verify(weir__shm_segment_of(store), &census, &error), "%s", error.text);
    return census;
}

static inline struct weir_store *crowd_store(size_t entries)
{
    struct weir_error error = { { 0 } };
    struct weir_shm_options options = { .entries = entries };
    struct weir_store *store = weir_shm_create(&options, &error);
    CHECK(store, "%s", error.text);
    return store;
}

#endif
