/* The one place where the library asks the system for the time. Tests put a function of
 * their own here; nothing else may call clock_gettime, time or gettimeofday. */
#include "base/clock.h"

#include <stddef.h>
#include <time.h>

static int64_t system_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t system_now_us(void)
{
    return system_us(CLOCK_MONOTONIC);
}

static int64_t system_wall_us(void)
{
    return system_us(CLOCK_REALTIME);
}

static int64_t (*now_fn)(void) = system_now_us;
static int64_t (*wall_fn)(void) = system_wall_us;

int64_t weir__clock_now_us(void)
{
    return now_fn();
}

int64_t weir__clock_wall_us(void)
{
    return wall_fn();
}

void weir__clock_replace(int64_t (*now_us)(void), int64_t (*wall_us)(void))
{
    now_fn = now_us ? now_us : system_now_us;
    wall_fn = wall_us ? wall_us : system_wall_us;
}
