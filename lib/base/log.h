/* Where messages go: the app's callback, else standard error. One event is one line.
 *
 * Hostile bytes in an argument are encoded (\xNN), so that nobody can forge a line. The
 * write never blocks: what doesn't fit into a pipe or socket is dropped and counted. */
#ifndef WEIR_BASE_LOG_H
#define WEIR_BASE_LOG_H

#include <weir/weir.h>

/* Sends one line, printf style, to the callback. Any thread. A line over 2,000 bytes is
 * cut. */
void weir__log(enum weir_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, at most one line a second for each `kind`, a static struct of the caller's;
 * the next line that gets through says how many were dropped. Any thread. */
struct weir__log_kind {
    _Atomic long long next_us;
    _Atomic unsigned long dropped;
};
void weir__log_limited(struct weir__log_kind *kind,
                       enum weir_log_level level,
                       const char *format,
                       ...) __attribute__((format(printf, 3, 4)));

/* Replaces the sink and the lowest level that is sent; NULL puts standard error back.
 * Before other threads run. */
void weir__log_replace(weir_log_fn *fn, void *arg, enum weir_log_level lowest);

/* How many lines were dropped because the sink was full. */
unsigned long weir__log_lost(void);

#endif
