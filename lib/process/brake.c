/* A ring of the last restarts. It counts every restart, not only crashes: a worker that
 * leaves politely and at once, again and again, burns a processor just as well. */
#include "process/brake.h"

void weir__brake_init(struct weir__brake *brake, unsigned workers)
{
    *brake = (struct weir__brake){ .bound = WEIR__BRAKE_MIN };
    if (workers > brake->bound)
        brake->bound = workers < WEIR__BRAKE_MAX ? workers : WEIR__BRAKE_MAX;
}

bool weir__brake_is_on(const struct weir__brake *brake, int64_t now_us)
{
    if (brake->len < brake->bound)
        return false;
    int64_t oldest_us = brake->times_us[brake->len % brake->bound];
    return now_us - oldest_us < WEIR__BRAKE_SPAN_US;
}

void weir__brake_ended(struct weir__brake *brake, int64_t ready_us)
{
    if (ready_us >= WEIR__BRAKE_WORKED_US)
        brake->unable = 0;
    else if (brake->unable < WEIR__BRAKE_UNABLE_MAX)
        brake->unable++;
}

/* Not paced with the others: who needs it waits. */
static bool is_needed(const struct weir__brake *brake, bool last)
{
    return last && brake->unable < WEIR__BRAKE_UNABLE_MAX;
}

int64_t weir__brake_next_us(const struct weir__brake *brake, int64_t now_us, bool last)
{
    if (!weir__brake_is_on(brake, now_us))
        return now_us;
    int64_t last_us = brake->times_us[(brake->len - 1) % brake->bound];
    int64_t next_us = is_needed(brake, last) ? last_us + WEIR__BRAKE_LAST_PAUSE_US
                                             : brake->paced_us + WEIR__BRAKE_PAUSE_US;
    return next_us > now_us ? next_us : now_us;
}

void weir__brake_count(struct weir__brake *brake, int64_t now_us, bool last)
{
    /* One that was needed doesn't put off the others. */
    if (!weir__brake_is_on(brake, now_us) || !is_needed(brake, last))
        brake->paced_us = now_us;
    brake->times_us[brake->len % brake->bound] = now_us;
    brake->len++;
}
