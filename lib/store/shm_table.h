/* The shared table: counters in buckets of 15, found by a keyed hash.
 *
 * Every change is one 128-bit compare-and-swap, so that a process may be killed or
 * stopped between any two instructions: the table is whole, and nobody waits for it.
 * Every function may be called by any number of processes and threads at the same time.
 */
#ifndef WEIR_STORE_SHM_TABLE_H
#define WEIR_STORE_SHM_TABLE_H

#include "store/shm_segment.h"

/* Where a counter is, or would be. */
struct weir__shm_place {
    struct weir__shm_bucket *bucket;
    struct weir__shm_stripe *stripe; /* numbers the bucket's holes */
    uint64_t tag;
    bool overflow; /* counts all newcomers of one rule whose own buckets are full */
};

/* The place of a caller's counter, and that of the rule's overflow counter. */
struct weir__shm_place weir__shm_place(const struct weir__shm_segment *segment,
                                       const char *subject,
                                       size_t subject_len,
                                       const char *tail);
struct weir__shm_place weir__shm_overflow_place(const struct weir__shm_segment *segment,
                                                const char *tail);

/* The counter's word, or NULL where it has none. What is found may be evicted at any
 * moment: whoever changes it checks the tag in the word that it changes. */
struct weir__word *weir__shm_find(const struct weir__shm_place *place);

/* The counter's word; where it has none, one with nothing used is put in, in a hole or in
 * place of a victim: one that has expired before now_us, else the one with the lowest
 * level, of these the one that expires first. A counter of level 15 that has not expired
 * is no victim, its caller is being refused: where there are no others, NULL. In an
 * overflow bucket, whose counters belong to nobody, it is one. */
struct weir__word *weir__shm_insert(const struct weir__shm_place *place, int64_t now_us);

/* What weir__shm_verify() counted. */
struct weir__shm_census {
    uint64_t entries, holes;
    uint64_t expired;    /* of the entries */
    uint64_t levels[16]; /* of those that have not expired */
    uint64_t intents;    /* insertions that somebody left unfinished */
    uint64_t locks;      /* that somebody holds or has left behind */
};

/* Walks the whole segment and checks everything that must hold in it at any moment: no
 * counter twice, no hole's number twice, no time further ahead than a rule can put it. No
 * other process may change it meanwhile. ret_census may be NULL. False with a text. */
bool weir__shm_verify(const struct weir__shm_segment *segment,
                      struct weir__shm_census *ret_census,
                      struct weir_error *ret_error);

#endif
