/* Random bytes from the kernel, and SplitMix64 (Steele, Lea and Flood, 2014) a thread for
 * jitter. The generator's state is seeded anew in a forked child, so that two workers
 * never wait for the same jittered time. Nothing from it may become a secret. */
#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

void weir__random_bytes(void *bytes, size_t len)
{
    char *at = bytes;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0 && errno != EINTR)
            abort();
        if (got > 0) {
            at += got;
            len -= (size_t)got;
        }
    }
}

static uint64_t next(void)
{
    static _Thread_local uint64_t state;
    static _Thread_local pid_t seeded_in;
    if (seeded_in != getpid()) {
        weir__random_bytes(&state, sizeof state);
        seeded_in = getpid();
    }
    uint64_t mixed = state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

uint64_t weir__random_below(uint64_t bound)
{
    if (bound == 0)
        return 0;
    uint64_t whole = UINT64_MAX - UINT64_MAX % bound; /* a multiple of bound */
    uint64_t number;
    do
        number = next();
    while (number >= whole); /* the rest would favour the small numbers */
    return number % bound;
}
