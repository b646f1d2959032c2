/* Time from one replaceable function. Nothing else in the library asks the system. */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdint.h>

/* Microseconds of CLOCK_MONOTONIC: for deadlines and for counters in shared memory, where
 * a step of the wall clock must change nothing. Any thread. */
int64_t weir__clock_now_us(void);

/* Microseconds since 1970 of the wall clock, for log lines and HTTP dates only. */
int64_t weir__clock_wall_us(void);

/* Tests: replaces both by functions of their own; NULL puts the system's back. Call it
 * before other threads run. */
void weir__clock_replace(int64_t (*now_us)(void), int64_t (*wall_us)(void));

#endif
