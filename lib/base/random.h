/* Random bytes from getrandom(2), and a cheap per-thread generator for jitter. Both are
 * safe after fork: nothing secret is kept in the process. */
#ifndef WEIR_BASE_RANDOM_H
#define WEIR_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Fills bytes with what getrandom(2) gives; blocks only in the first seconds of a boot.
 * Aborts if the kernel has no getrandom, which no supported one lacks. Any thread. */
void weir__random_bytes(void *bytes, size_t len);

/* A number in [0, bound), for jitter, never for secrets; 0 where bound is 0. Any thread.
 */
uint64_t weir__random_below(uint64_t bound);

#endif
