/* Makes a failing sequence short: takes pieces out, halves first, then ever smaller ones,
 * as long as what is left still fails (delta debugging, Zeller and Hildebrandt, 2002). */
#ifndef TESTS_SUPPORT_SHRINK_H
#define TESTS_SUPPORT_SHRINK_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* items are len pieces of so many bytes; fails() says whether a sequence still does. The
 * shortest found is left in items. Returns its length; gives up after tries_max tries. */
static inline size_t shrink(void *items,
                            size_t len,
                            size_t bytes,
                            long tries_max,
                            bool (*fails)(const void *items, size_t len, void *arg),
                            void *arg)
{
    char *all = items, *some = malloc(len * bytes);
    for (size_t piece = len / 2; some && piece > 0 && tries_max > 0; piece /= 2) {
        for (size_t at = 0; at + piece <= len && tries_max > 0; tries_max--) {
            memcpy(some, all, at * bytes);
            memcpy(some + at * bytes,
                   all + (at + piece) * bytes,
                   (len - at - piece) * bytes);
            if (!fails(some, len - piece, arg)) {
                at += piece;
                continue;
            }
            len -= piece;
            memcpy(all, some, len * bytes);
        }
    }
    free(some);
    return len;
}

#endif
