/* The one thing that limits need of the calendar. */
#ifndef WEIR_LIMIT_CALENDAR_H
#define WEIR_LIMIT_CALENDAR_H

#include <stdint.h>

/* Where the month of now_us ends, both in microseconds since 1970, UTC, now_us 0 or more:
 * the first moment of the next month. Pure; any thread. */
int64_t weir__month_end_us(int64_t now_us);

#endif
