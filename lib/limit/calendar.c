/* Where a month ends, by arithmetic alone: the C library's calls ask for the time zone's
 * files. After Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2014): years begin
 * in March, so that the day which comes and goes is the last one, and the Gregorian
 * calendar repeats every 400 years. */
#include "limit/calendar.h"

#include <stdbool.h>

#define DAY_US INT64_C(86400000000)
#define ERA_DAYS 146097  /* 400 years */
#define DAYS_0000 719468 /* from 1 March of the year 0 to 1970 */

int64_t weir__month_end_us(int64_t now_us)
{
    int64_t day = now_us / DAY_US;
    int64_t of_era = (day + DAYS_0000) % ERA_DAYS;
    int64_t year =
        (of_era - of_era / 1460 + of_era / 36524 - of_era / (ERA_DAYS - 1)) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;           /* 0 is March */
    int64_t next_begins = (153 * (month + 1) + 2) / 5; /* in days of the year */
    if (month == 11) {
        int64_t of = year + 1; /* January and February are the next year's */
        bool leap = (of % 4 == 0 && of % 100 != 0) || of == 400;
        next_begins = leap ? 366 : 365;
    }
    return (day + next_begins - of_year) * DAY_US;
}
