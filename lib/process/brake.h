/* How fast workers may be started again: at once, until it looks like a crash loop, then
 * one a second. Pure: time is an argument (monotonic microseconds). One thread. */
#ifndef WEIR_PROCESS_BRAKE_H
#define WEIR_PROCESS_BRAKE_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR__BRAKE_MIN 10 /* restarts in a span that are nothing special */
#define WEIR__BRAKE_MAX 256
#define WEIR__BRAKE_SPAN_US INT64_C(10000000)
#define WEIR__BRAKE_PAUSE_US INT64_C(1000000)

struct weir__brake {
    unsigned bound;                    /* so many restarts in one span put it on */
    unsigned long len;                 /* restarts so far */
    int64_t times_us[WEIR__BRAKE_MAX]; /* the last `bound` of them, a ring */
};

/* bound: 10, or the number of workers where that is more, so that all of them may die of
 * one cause and come back at once. */
void weir__brake_init(struct weir__brake *brake, unsigned workers);

/* Whether `bound` restarts happened in the span that ends now. */
bool weir__brake_is_on(const struct weir__brake *brake, int64_t now_us);

/* When the next restart is allowed: now_us, or later. */
int64_t weir__brake_next_us(const struct weir__brake *brake, int64_t now_us);

/* A worker was started again. */
void weir__brake_count(struct weir__brake *brake, int64_t now_us);

#endif
