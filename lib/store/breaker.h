/* A circuit breaker that several processes share: it lies in their shared memory, all of
 * it atomic. After three failures in a row it is open, and nobody is asked any more but
 * by one prober at a time, off the path of requests; two good probes close it.
 *
 * Pure but for its jitter: time is an argument, monotonic microseconds. Any thread. */
#ifndef WEIR_STORE_BREAKER_H
#define WEIR_STORE_BREAKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WEIR__BREAKER_FAILURES 3
#define WEIR__BREAKER_GOOD_PROBES 2
#define WEIR__BREAKER_OPEN_MIN_US INT64_C(100000)
#define WEIR__BREAKER_OPEN_MAX_US INT64_C(1000000)
#define WEIR__BREAKER_LEASE_US INT64_C(1000000) /* a prober that says nothing is dead */

/* All zero: closed. */
struct weir__breaker {
    atomic_uint failures;           /* in a row, while it is closed */
    atomic_uint good;               /* probes in a row */
    _Atomic int64_t probe_at_us;    /* while open: no probe before; 0: closed */
    _Atomic int64_t open_us;        /* how long it was opened for, without jitter */
    _Atomic int64_t lease_until_us; /* somebody probes until then */
};

bool weir__breaker_is_open(const struct weir__breaker *breaker);

/* An answer, and the lack of one. failed() returns whether this one has opened it. */
void weir__breaker_answered(struct weir__breaker *breaker);
bool weir__breaker_failed(struct weir__breaker *breaker, int64_t now_us);

/* Whether the caller is to probe now; then it says how that went. */
bool weir__breaker_take_probe(struct weir__breaker *breaker, int64_t now_us);
/* Returns whether that has closed it; else another probe is to follow at once. */
bool weir__breaker_probe_good(struct weir__breaker *breaker, int64_t now_us);
void weir__breaker_probe_bad(struct weir__breaker *breaker, int64_t now_us);

/* When to come and look again, while it is open. */
int64_t weir__breaker_look_us(const struct weir__breaker *breaker, int64_t now_us);

/* span_us with a random fifth more or less. */
int64_t weir__jitter_us(int64_t span_us);

#endif
