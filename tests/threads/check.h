/* Checks for the programs in this folder. They do without Criterion, which aborts under
 * ThreadSanitizer. */
#ifndef TESTS_THREADS_CHECK_H
#define TESTS_THREADS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition_)                                                                \
    do {                                                                                 \
        if (!(condition_)) {                                                             \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition_);     \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

#endif
