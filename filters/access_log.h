/* One line a request, when it is over.
 *
 *     status=200 ms=1.204 bytes=57 caller=ip source=shm id=... method=GET path=/a
 *
 * caller is the type of who asked, never the id; source is who decided about its limits
 * ("-" where no rule applied); id stands only where request_id runs. Every byte that
 * could forge a line is written as \xNN. Of refusals (429, 503) at most one line a second
 * is written for each of the two, and the next one says how many were left out
 * ("dropped=7"): a flood must not become a flood of lines. */
#ifndef WEIR_FILTERS_ACCESS_LOG_H
#define WEIR_FILTERS_ACCESS_LOG_H

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_access_log {
    size_t size; /* set by WEIR_USE */
    /* Takes one line, with time=2026-01-31T12:00:00.000Z in front, without a newline. Any
     * thread; must not block. NULL: the app's log, which has its own time, at level
     * info. */
    void (*write)(void *arg, const char *line);
    void *arg; /* write's */
    int abi;   /* set by WEIR_USE */
};

/* Put it before identity and ratelimit, so that it sees what they refuse. */
extern WEIR_API const struct weir_filter weir_filter_access_log;

#ifdef __cplusplus
}
#endif

#endif
