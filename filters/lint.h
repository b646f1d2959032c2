/* Watches the rules of the chain, and tells who breaks them. For tests and development.
 *
 * Put it first: it sees the filters behind it. What it finds is logged, counted
 * (weir_breach_count) and reported; see enum weir_breach in weir/weir.h. Rules of the
 * chain itself (needs, a filter twice, options of another size) are checked at every
 * start, with lint or without. */
#ifndef WEIR_FILTERS_LINT_H
#define WEIR_FILTERS_LINT_H

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_lint {
    size_t size;      /* set by WEIR_USE */
    int64_t block_ms; /* how long a hook may keep a thread that must not block; 0: 50. A
                         busy machine can take a thread away for as long */
    bool abort;       /* abort() at the first breach, so that a test can't miss it */
    /* Told of each breach: the filter's name, NULL for a handler. Any thread. */
    void (*report)(void *arg, const char *filter, enum weir_breach breach);
    void *arg; /* report's */
    int abi;   /* set by WEIR_USE */
};

extern WEIR_API const struct weir_filter weir_filter_lint;

#ifdef __cplusplus
}
#endif

#endif
