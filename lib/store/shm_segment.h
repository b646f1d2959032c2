/* The memory of a shared-memory store: one segment, made before the workers fork.
 *
 *   header | stripes | overflow buckets | buckets
 *
 * All of it is reserved and touched when it is made, so that no later access can meet a
 * lack of memory (SIGBUS) or pay for a first touch. The header says what the segment is,
 * for a program that finds it in a file. */
#ifndef WEIR_STORE_SHM_SEGMENT_H
#define WEIR_STORE_SHM_SEGMENT_H

#include <stddef.h>

#include "base/siphash.h"
#include "store/shm_word.h"

#define WEIR__SHM_MAGIC UINT64_C(0x316d687372696577) /* "weirshm1" */
#define WEIR__SHM_LAYOUT 2U /* grows with every change to a struct below */
#define WEIR__SHM_WAYS 15
#define WEIR__SHM_STRIPES 256
#define WEIR__SHM_OVERFLOW_BUCKETS 64
#define WEIR__SHM_ENTRIES_DEFAULT 262144
#define WEIR__SHM_ENTRIES_MAX (UINT64_C(1) << 36)

/* The clock may step back by as much before times stop at the epoch. */
#define WEIR__SHM_EPOCH_MARGIN_US WEIR_DAYS(1)

/* One insertion at a time: intent is clear (hi 0) or names the tag that is to fill a
 * hole; see shm_table.c. Four cache lines. */
struct weir__shm_bucket {
    alignas(256) struct weir__word intent;
    struct weir__word ways[WEIR__SHM_WAYS];
};

/* What the buckets, or the subjects, of one 256th share. A cache line. */
struct weir__shm_stripe {
    alignas(64) uint64_t lock; /* shm_lock.c */
    uint64_t next_hole;        /* a number for the next hole in these buckets */
};

struct weir__shm_header {
    uint64_t magic;
    uint32_t layout, header_bytes;
    uint64_t segment_bytes;
    uint64_t buckets, overflow_buckets, stripes;
    int64_t epoch_us;      /* monotonic clock of this boot */
    int64_t wall_epoch_us; /* the wall clock at the same moment */
    uint8_t boot_id[16];   /* a segment of another boot has other times: worth nothing */
    uint8_t key[16];       /* secret of the hash, new for each segment */
    struct weir__hash128 check; /* of all of the above */
};

/* A segment as this process has it mapped. */
struct weir__shm_segment {
    struct weir__shm_header *header;
    struct weir__shm_stripe *stripes;
    struct weir__shm_bucket *overflow, *buckets;
    size_t bytes;
    int fd;
};

/* Makes a segment with room for at least entries counters (0: the default), in anonymous
 * memory or, where path is not NULL, in a new file of mode 0600 at it (it must not exist,
 * and is left behind). False with a text where it can't be had whole; nothing is left
 * then. */
bool weir__shm_segment_create(size_t entries,
                              const char *path,
                              struct weir__shm_segment *ret,
                              struct weir_error *ret_error);

/* Takes over the segment that another process has made in anonymous memory and handed on
 * as fd: memory that can't shrink, with the layout of this program, of this boot and of a
 * time before now, with room for so many entries. The descriptor is the segment's then.
 * False with a text; fd stays the caller's. */
bool weir__shm_segment_adopt(size_t entries,
                             int fd,
                             struct weir__shm_segment *ret,
                             struct weir_error *ret_error);

/* Maps every page into this process, before the first request does it page by page. For a
 * forked worker; failure only costs time. */
void weir__shm_segment_touch(const struct weir__shm_segment *segment);

/* Microseconds since the segment's epoch, at least 1. Any thread. */
int64_t weir__shm_now_us(const struct weir__shm_segment *segment);

/* Microseconds since 1970 by the wall clock, later than the header's. Any thread. */
int64_t weir__shm_wall_us(const struct weir__shm_segment *segment);

/* Whether the header is what a program of this layout wrote. False with a text. */
bool weir__shm_segment_check(const struct weir__shm_segment *segment,
                             struct weir_error *ret_error);

void weir__shm_segment_destroy(struct weir__shm_segment *segment);

#endif
