/* Parks a request, and lets it go on exactly once.
 *
 * The word holds the number of the wait and its state. While a hook runs a wake is only
 * noted (NUDGED), so that it is not lost when it comes before the wait; a time-out of a
 * wait that has not parked yet likewise (TIMED_OUT). Only the step out of PARKED resumes.
 * Must not touch anything of the request but the word, `blocked` and `transport` after
 * another thread may have taken it. */
#include "wait.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "life.h"
#include "lint_watch.h"

enum state {
    RUNNING,   /* not parked, nothing happened */
    NUDGED,    /* not parked, woken in advance */
    PARKED,    /* nobody runs it */
    WOKEN,     /* about to run again */
    TIMED_OUT, /* the same, its time being over */
};

#define STATE_BITS 3
#define STATE_MASK ((UINT64_C(1) << STATE_BITS) - 1)

/* A thread that sits in a wait. */
struct weir__blocked {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool over;
};

static enum state state_of(uint64_t word)
{
    return (enum state)(word & STATE_MASK);
}

static uint64_t number_of(uint64_t word)
{
    return word >> STATE_BITS;
}

static uint64_t word_of(uint64_t number, enum state state)
{
    return number << STATE_BITS | (uint64_t)state;
}

void weir__wait_init(struct weir *w)
{
    weir__wait_over(w);
    w->timed_out = false;
}

void weir__wait_over(struct weir *w)
{
    uint64_t word = atomic_load(&w->wait_word);
    /* A wake or time-out may still turn RUNNING into something else; what comes after the
     * exchange meets another number or counts as a wake in advance. */
    while (!atomic_compare_exchange_weak(
        &w->wait_word, &word, word_of(number_of(word) + 1, RUNNING)))
        ;
    w->timed_out = state_of(word) == TIMED_OUT;
}

void weir__wait_forget(struct weir *w)
{
    uint64_t word = atomic_load(&w->wait_word);
    if (state_of(word) == NUDGED)
        atomic_compare_exchange_strong(
            &w->wait_word, &word, word_of(number_of(word), RUNNING));
}

/* RUNNING to PARKED. False where something has come first. */
static bool park(struct weir *w, uint64_t number)
{
    uint64_t running = word_of(number, RUNNING);
    return atomic_compare_exchange_strong(
        &w->wait_word, &running, word_of(number, PARKED));
}

bool weir__wait_park(struct weir *w)
{
    uint64_t number = number_of(atomic_load(&w->wait_word));
    w->blocked = NULL;
    if (state_of(atomic_load(&w->wait_word)) == RUNNING) {
        w->transport->arm(w, number);
        if (park(w, number))
            return true;
    }
    weir__wait_over(w);
    return false;
}

/* The monotonic time that lies left_us ahead. The library's own clock may be a test's,
 * the condition variable's is the system's. */
static struct timespec ahead(int64_t left_us)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (left_us < 0)
        left_us = 0;
    if (left_us > WEIR_DAYS(1))
        left_us = WEIR_DAYS(1);
    until.tv_sec += left_us / 1000000;
    until.tv_nsec += left_us % 1000000 * 1000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

/* Waits until somebody has taken the request out of PARKED, which this thread does itself
 * when the time is over. */
static void sit(struct weir *w, struct weir__blocked *blocked, uint64_t number)
{
    struct timespec until = ahead(w->wait_until_us - weir__clock_now_us());
    pthread_mutex_lock(&blocked->mutex);
    bool timed = true;
    while (!blocked->over) {
        if (!timed) {
            pthread_cond_wait(&blocked->cond, &blocked->mutex);
        } else if (pthread_cond_timedwait(&blocked->cond, &blocked->mutex, &until) != 0) {
            uint64_t parked = word_of(number, PARKED);
            if (atomic_compare_exchange_strong(
                    &w->wait_word, &parked, word_of(number, TIMED_OUT)))
                break;
            timed = false; /* a wake was faster and is about to say so */
        }
    }
    pthread_mutex_unlock(&blocked->mutex);
}

void weir__wait_sit(struct weir *w)
{
    struct weir__blocked blocked = { .mutex = PTHREAD_MUTEX_INITIALIZER };
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&blocked.cond, &monotonic);
    pthread_condattr_destroy(&monotonic);

    uint64_t number = number_of(atomic_load(&w->wait_word));
    w->blocked = &blocked;
    if (park(w, number))
        sit(w, &blocked, number);
    w->blocked = NULL;
    weir__wait_over(w);
    pthread_cond_destroy(&blocked.cond);
    pthread_mutex_destroy(&blocked.mutex);
}

/* The caller has taken the request out of PARKED: whoever carries it on is told. */
static void deliver(struct weir *w)
{
    struct weir__blocked *blocked = w->blocked;
    if (!blocked) {
        w->transport->resume(w);
        return;
    }
    pthread_mutex_lock(&blocked->mutex);
    blocked->over = true;
    pthread_cond_signal(&blocked->cond);
    pthread_mutex_unlock(&blocked->mutex);
}

void weir_wake(struct weir *w)
{
    uint64_t word = atomic_load(&w->wait_word);
    for (;;) {
        enum state state = state_of(word);
        if (state != RUNNING && state != PARKED)
            return;
        enum state next = state == PARKED ? WOKEN : NUDGED;
        if (!atomic_compare_exchange_weak(
                &w->wait_word, &word, word_of(number_of(word), next)))
            continue;
        if (next == WOKEN)
            deliver(w);
        return;
    }
}

void weir__life_timeout(struct weir *w, uint64_t wait)
{
    uint64_t word = atomic_load(&w->wait_word);
    for (;;) {
        enum state state = state_of(word);
        if (number_of(word) != wait || (state != RUNNING && state != PARKED))
            return;
        if (!atomic_compare_exchange_weak(&w->wait_word, &word, word_of(wait, TIMED_OUT)))
            continue;
        if (state == PARKED)
            deliver(w);
        return;
    }
}

bool weir_timed_out(const struct weir *w)
{
    return w->timed_out;
}

enum weir_verdict weir_wait(struct weir *w, weir_step_fn *then, int64_t timeout_us)
{
    if (!w->running) {
        weir__breach(w, WEIR_BREACH_WAIT_OUTSIDE);
        return WEIR_FAIL;
    }
    if (!then || timeout_us <= 0) {
        weir__breach(w, WEIR_BREACH_WAIT_ENDLESS);
        return WEIR_FAIL;
    }
    int64_t now_us = weir__clock_now_us();
    w->wait_until_us = timeout_us > INT64_MAX - now_us ? INT64_MAX : now_us + timeout_us;
    w->then = then;
    w->then_may_block = false;
    return WEIR_WAIT;
}

enum weir_verdict weir_offload(struct weir *w, weir_step_fn *then)
{
    if (!w->running || !then) {
        weir__breach(w, WEIR_BREACH_WAIT_OUTSIDE);
        return WEIR_FAIL;
    }
    w->then = then;
    w->then_may_block = true;
    return WEIR_WAIT;
}
