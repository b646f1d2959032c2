/* How fast workers may be started again: at once, until it looks like a crash loop, then
 * one a second. But as long as workers do work before they end, one of them always runs:
 * requests must not wait for the brake. Pure: time is an argument (monotonic
 * microseconds). One thread. */
#ifndef WEIR_PROCESS_BRAKE_H
#define WEIR_PROCESS_BRAKE_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR__BRAKE_MIN 10 /* restarts in a span that are nothing special */
#define WEIR__BRAKE_MAX 256
#define WEIR__BRAKE_SPAN_US INT64_C(10000000)
#define WEIR__BRAKE_PAUSE_US INT64_C(1000000)
#define WEIR__BRAKE_LAST_PAUSE_US INT64_C(20000) /* where no worker is left */
#define WEIR__BRAKE_WORKED_US INT64_C(10000) /* ready for so long: it can do its work */
#define WEIR__BRAKE_UNABLE_MAX 3 /* so many in a row that couldn't, or didn't */

struct weir__brake {
    unsigned bound;    /* so many restarts in one span put it on */
    unsigned unable;   /* ended in a row without having worked */
    int64_t paced_us;  /* the last restart of those that the brake paces */
    unsigned long len; /* restarts so far */
    int64_t times_us[WEIR__BRAKE_MAX]; /* the last `bound` of them, a ring */
};

/* bound: 10, or the number of workers where that is more, so that all of them may die of
 * one cause and come back at once. */
void weir__brake_init(struct weir__brake *brake, unsigned workers);

/* Whether `bound` restarts happened in the span that ends now. */
bool weir__brake_is_on(const struct weir__brake *brake, int64_t now_us);

/* A worker has ended, ready_us after it was ready; negative where it never was. */
void weir__brake_ended(struct weir__brake *brake, int64_t ready_us);

/* When the next restart is allowed: now_us, or later. last: no worker is left. */
int64_t weir__brake_next_us(const struct weir__brake *brake, int64_t now_us, bool last);

/* A worker was started again; last as above. */
void weir__brake_count(struct weir__brake *brake, int64_t now_us, bool last);

#endif
