/* The breaker's few transitions. Two processes may make the same one at once: each is
 * then made once or in a row, and neither does harm; only the probe is one process's
 * alone. It knows nothing of what is asked. */
#include "store/breaker.h"

#include "base/random.h"

int64_t weir__jitter_us(int64_t span_us)
{
    return span_us * 4 / 5 + (int64_t)weir__random_below((uint64_t)span_us * 2 / 5 + 1);
}

bool weir__breaker_is_open(const struct weir__breaker *breaker)
{
    return atomic_load_explicit(&breaker->probe_at_us, memory_order_relaxed) != 0;
}

void weir__breaker_answered(struct weir__breaker *breaker)
{
    /* Mostly it is 0 already, and the line stays shared between the processors. */
    if (atomic_load_explicit(&breaker->failures, memory_order_relaxed) != 0)
        atomic_store(&breaker->failures, 0);
}

bool weir__breaker_failed(struct weir__breaker *breaker, int64_t now_us)
{
    int64_t closed = 0;
    if (atomic_fetch_add(&breaker->failures, 1) + 1 < WEIR__BREAKER_FAILURES)
        return false;
    if (weir__breaker_is_open(breaker))
        return false;
    atomic_store(&breaker->good, 0);
    atomic_store(&breaker->open_us, WEIR__BREAKER_OPEN_MIN_US);
    return atomic_compare_exchange_strong(&breaker->probe_at_us,
                                          &closed,
                                          now_us +
                                              weir__jitter_us(WEIR__BREAKER_OPEN_MIN_US));
}

bool weir__breaker_take_probe(struct weir__breaker *breaker, int64_t now_us)
{
    int64_t probe_at_us = atomic_load(&breaker->probe_at_us);
    int64_t lease_us = atomic_load(&breaker->lease_until_us);
    return probe_at_us != 0 && probe_at_us <= now_us && lease_us <= now_us &&
           atomic_compare_exchange_strong(
               &breaker->lease_until_us, &lease_us, now_us + WEIR__BREAKER_LEASE_US);
}

bool weir__breaker_probe_good(struct weir__breaker *breaker, int64_t now_us)
{
    atomic_store(&breaker->lease_until_us, now_us + WEIR__BREAKER_LEASE_US);
    if (atomic_fetch_add(&breaker->good, 1) + 1 < WEIR__BREAKER_GOOD_PROBES)
        return false;
    atomic_store(&breaker->failures, 0);
    atomic_store(&breaker->good, 0);
    atomic_store(&breaker->probe_at_us, 0);
    atomic_store(&breaker->lease_until_us, 0);
    return true;
}

void weir__breaker_probe_bad(struct weir__breaker *breaker, int64_t now_us)
{
    int64_t open_us = 2 * atomic_load(&breaker->open_us);
    if (open_us > WEIR__BREAKER_OPEN_MAX_US)
        open_us = WEIR__BREAKER_OPEN_MAX_US;
    atomic_store(&breaker->good, 0);
    atomic_store(&breaker->open_us, open_us);
    atomic_store(&breaker->probe_at_us, now_us + weir__jitter_us(open_us));
    atomic_store(&breaker->lease_until_us, 0);
}

int64_t weir__breaker_look_us(const struct weir__breaker *breaker, int64_t now_us)
{
    int64_t at_us = atomic_load(&breaker->probe_at_us);
    int64_t soonest_us = now_us + WEIR__BREAKER_OPEN_MIN_US / 4;
    int64_t latest_us = now_us + WEIR__BREAKER_OPEN_MIN_US;
    return at_us < soonest_us ? soonest_us : at_us < latest_us ? at_us : latest_us;
}
