/* The loop's promises among threads: every task runs once, one thread always stays out of
 * those that block, alarms ring once and in time, a stop reaches every thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "net/loop.h"

enum { THREADS = 4, FEEDERS = 2, TASKS = 4000 };

static struct weir__loop loop;

/* ---- tasks from outside, each of which leaves another ----------------------------- */

struct job {
    struct weir__task block, soon;
    atomic_uint ran;
};

static struct job jobs[FEEDERS][TASKS];
static atomic_uint blocking, done, turn_ends;

static void run_soon(struct weir__task *task)
{
    struct job *job = (struct job *)((char *)task - offsetof(struct job, soon));
    CHECK(weir__turn_is_open());
    atomic_fetch_add(&job->ran, 1);
    atomic_fetch_add(&done, 1);
}

static void run_block(struct weir__task *task)
{
    struct job *job = (struct job *)((char *)task - offsetof(struct job, block));
    CHECK(!weir__turn_is_open());
    CHECK(weir__turn_index() >= 0 && weir__turn_index() < THREADS);
    CHECK(atomic_fetch_add(&blocking, 1) < THREADS - 1);
    if (atomic_fetch_add(&job->ran, 1) % 64 == 0)
        usleep(10);
    atomic_fetch_sub(&blocking, 1);
    weir__loop_soon(&loop, &job->soon);
}

static void *feed(void *arg)
{
    struct job *mine = arg;
    CHECK(weir__turn_index() == -1);
    for (int i = 0; i < TASKS; i++) {
        mine[i].block.run = run_block;
        mine[i].block.brief = i % 3;
        mine[i].soon.run = run_soon;
        weir__loop_block(&loop, &mine[i].block);
    }
    return NULL;
}

static void count_turn_end(void *arg)
{
    atomic_fetch_add((atomic_uint *)arg, 1);
}

static void wait_until(atomic_uint *count, unsigned wanted)
{
    for (int i = 0; atomic_load(count) < wanted; i++) {
        CHECK(i < 20000);
        usleep(1000);
    }
}

static void every_task_runs_once(void)
{
    pthread_t feeder[FEEDERS];
    for (int i = 0; i < FEEDERS; i++)
        CHECK(pthread_create(&feeder[i], NULL, feed, jobs[i]) == 0);
    for (int i = 0; i < FEEDERS; i++)
        pthread_join(feeder[i], NULL);
    wait_until(&done, FEEDERS * TASKS);
    for (int i = 0; i < FEEDERS; i++)
        for (int k = 0; k < TASKS; k++)
            CHECK(atomic_load(&jobs[i][k].ran) == 2);
    CHECK(atomic_load(&turn_ends) > 0);
}

/* ---- all but one thread stuck ----------------------------------------------------- */

static atomic_uint stuck, soon_ran;
static atomic_bool release;

static void stick(struct weir__task *task)
{
    (void)task;
    atomic_fetch_add(&stuck, 1);
    while (!atomic_load(&release))
        usleep(1000);
    atomic_fetch_sub(&stuck, 1);
}

static void note_soon(struct weir__task *task)
{
    (void)task;
    atomic_fetch_add(&soon_ran, 1);
}

static void one_thread_is_left_while_all_others_block(void)
{
    struct weir__task sticky[THREADS + 1] = { { .run = stick } };
    for (int i = 0; i < THREADS + 1; i++) {
        sticky[i] = (struct weir__task){ .run = stick };
        weir__loop_block(&loop, &sticky[i]);
    }
    wait_until(&stuck, THREADS - 1);
    for (unsigned i = 0; i < 100; i++) {
        struct weir__task soon = { .run = note_soon };
        weir__loop_soon(&loop, &soon);
        wait_until(&soon_ran, i + 1);
    }
    CHECK(atomic_load(&stuck) == THREADS - 1);
    /* The two that wait can be taken back, those that run can't. */
    CHECK(weir__loop_unblock(&loop, &sticky[THREADS]));
    CHECK(weir__loop_unblock(&loop, &sticky[THREADS - 1]));
    CHECK(!weir__loop_unblock(&loop, &sticky[THREADS]));
    CHECK(!weir__loop_unblock(&loop, &sticky[0]));
    atomic_store(&release, true);
    while (atomic_load(&stuck) > 0)
        usleep(1000);
}

/* ---- a brief task that isn't ------------------------------------------------------ */

static struct weir__task sticky_brief[THREADS - 2], behind[THREADS - 2];
static unsigned planted;

static void note(struct weir__task *task)
{
    (void)task;
    atomic_fetch_add(&soon_ran, 1);
}

/* In one turn: a task that blocks, though it said that it wouldn't, and one behind it. */
static void plant(struct weir__task *task)
{
    (void)task;
    sticky_brief[planted] = (struct weir__task){ .run = stick, .brief = true };
    behind[planted] = (struct weir__task){ .run = note, .brief = true };
    weir__loop_block(&loop, &sticky_brief[planted]);
    weir__loop_block(&loop, &behind[planted]);
}

static void a_brief_task_that_blocks_holds_up_nobody(void)
{
    struct weir__task planter = { .run = plant }, soon = { .run = note };
    atomic_store(&release, false);
    atomic_store(&soon_ran, 0);
    for (planted = 0; planted < THREADS - 2; planted++) {
        weir__loop_soon(&loop, &planter);
        wait_until(&stuck, planted + 1);
        wait_until(&soon_ran, 2 * planted + 1); /* the one behind it */
        weir__loop_soon(&loop, &soon);
        wait_until(&soon_ran, 2 * planted + 2);
    }
    CHECK(atomic_load(&stuck) == THREADS - 2);
    atomic_store(&release, true);
    while (atomic_load(&stuck) > 0)
        usleep(1000);
}

/* ---- a turn that is held up -----------------------------------------------------------
 */

static void keep_busy(struct weir__task *soon)
{
    unsigned ran = atomic_load(&soon_ran);
    for (unsigned i = 0; i < 300; i++) {
        weir__loop_soon(&loop, soon);
        while (atomic_load(&soon_ran) <= ran + i)
            ;
    }
}

/* What must not block blocks, in all threads but one, on a loop that was busy or that was
 * not: others take over all the same. */
static void turns_that_block_hold_up_others_for_moments_only(void)
{
    struct weir__task sticky[THREADS - 1], soon = { .run = note };
    for (int round = 0; round < 12; round++) {
        atomic_store(&release, false);
        for (unsigned i = 0; i < THREADS - 1; i++) {
            sticky[i] = (struct weir__task){ .run = stick };
            if (round % 2 == 0)
                keep_busy(&soon);
            if (round % 3 == 0)
                usleep(30000);
            weir__loop_soon(&loop, &sticky[i]);
            wait_until(&stuck, i + 1);
            unsigned ran = atomic_load(&soon_ran);
            weir__loop_soon(&loop, &soon);
            wait_until(&soon_ran, ran + 1);
            CHECK(atomic_load(&stuck) == i + 1);
        }
        atomic_store(&release, true);
        while (atomic_load(&stuck) > 0)
            usleep(1000);
    }
}

/* ---- alarms ----------------------------------------------------------------------- */

static atomic_uint rung, rung_early;

static void ring(struct weir__alarm *alarm)
{
    int64_t now_us = weir__clock_now_us();
    if (!weir__alarm_is_due(alarm, now_us))
        atomic_fetch_add(&rung_early, 1);
    weir__alarm_clear(alarm);
    atomic_fetch_add(&rung, 1);
}

static void alarms_ring_in_time_however_often_they_were_moved(void)
{
    enum { ALARMS = 50 };
    static struct weir__alarm alarms[ALARMS];
    int64_t begin_us = weir__clock_now_us();
    for (int i = 0; i < ALARMS; i++) {
        alarms[i].fire = ring;
        weir__alarm_set(&loop, &alarms[i], begin_us + 60000000);
        weir__alarm_set(&loop, &alarms[i], begin_us + 30000);
        for (int k = 0; k < 100; k++)
            weir__alarm_set(&loop, &alarms[i], begin_us + 50000 + 1000 * k);
        if (i % 2)
            weir__alarm_clear(&alarms[i]);
    }
    wait_until(&rung, ALARMS / 2);
    int64_t took_us = weir__clock_now_us() - begin_us;
    CHECK(took_us >= 149000);
    CHECK(took_us < 2000000);
    usleep(50000);
    CHECK(atomic_load(&rung) == ALARMS / 2 && atomic_load(&rung_early) == 0);
}

static void *run_loop(void *arg)
{
    weir__loop_enter(&loop, *(unsigned *)arg);
    weir__loop_run(&loop);
    weir__loop_leave();
    return NULL;
}

int main(void)
{
    struct weir_error error = { 0 };
    CHECK(weir__loop_init(&loop, THREADS, 2, &error));
    CHECK(weir__loop_turn_end(&loop, count_turn_end, &turn_ends));
    pthread_t threads[THREADS];
    unsigned index[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        index[i] = i;
        CHECK(pthread_create(&threads[i], NULL, run_loop, &index[i]) == 0);
    }
    every_task_runs_once();
    one_thread_is_left_while_all_others_block();
    a_brief_task_that_blocks_holds_up_nobody();
    turns_that_block_hold_up_others_for_moments_only();
    alarms_ring_in_time_however_often_they_were_moved();
    weir__loop_stop(&loop);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    weir__loop_finish(&loop);
    return 0;
}
