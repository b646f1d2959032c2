/* Walks a shared segment and checks what must hold in it whatever happened to the
 * processes that used it. Changes nothing; not for a table in use. */
#include <string.h>

#include "base/error.h"
#include "store/shm_lock.h"
#include "store/shm_table.h"

/* Where the walk is, for the texts and the counts. */
struct walk {
    const struct weir__shm_segment *segment;
    const char *part;
    uint64_t index;
    int64_t now_us;
    struct weir__shm_census census;
    struct weir_error *error;
};

static bool broken(struct walk *walk, const char *what, unsigned way)
{
    return weir__error(walk->error,
                       "shared memory: %s %llu, way %u: %s",
                       walk->part,
                       (unsigned long long)walk->index,
                       way,
                       what);
}

static bool
check_hole(struct walk *walk, const struct weir__shm_bucket *bucket, unsigned way)
{
    const struct weir__shm_stripe *stripe =
        &walk->segment->stripes[walk->index % WEIR__SHM_STRIPES];
    struct weir__word word = bucket->ways[way];
    walk->census.holes++;
    if (word.hi != 0)
        return broken(walk, "a hole with a time", way);
    if (word.lo == 0 || word.lo >= stripe->next_hole)
        return broken(walk, "a hole's number that was never given out", way);
    for (unsigned other = 0; other < way; other++)
        if (weir__word_equal(bucket->ways[other], word))
            return broken(walk, "a hole's number stands there twice", way);
    if (bucket->intent.hi == 0 && bucket->intent.lo == word.lo)
        return broken(walk, "a hole that was filled is there again", way);
    return true;
}

static bool
check_entry(struct walk *walk, const struct weir__shm_bucket *bucket, unsigned way)
{
    struct weir__word word = bucket->ways[way];
    struct weir__limit_state state = weir__word_state(word);
    walk->census.entries++;
    if (state.time_us < walk->now_us)
        walk->census.expired++;
    else
        walk->census.levels[weir__word_level(word)]++;
    if (state.time_us > walk->now_us + WEIR__SPAN_MAX_US)
        return broken(walk, "a time further ahead than any rule puts it", way);
    for (unsigned other = 0; other < way; other++)
        if (weir__word_tag(bucket->ways[other].hi) == weir__word_tag(word.hi))
            return broken(walk, "a counter stands there twice", way);
    return true;
}

/* An announcement that was left behind: still to be carried out, or done and not yet
 * taken away. */
static bool check_intent(struct walk *walk, const struct weir__shm_bucket *bucket)
{
    struct weir__word intent = bucket->intent;
    const struct weir__shm_stripe *stripe =
        &walk->segment->stripes[walk->index % WEIR__SHM_STRIPES];
    unsigned way = intent.hi >> 1 & 15;
    if (intent.lo >= stripe->next_hole)
        return broken(walk, "an insertion into a hole that was never made", way);
    if (intent.hi == 0)
        return true;
    walk->census.intents++;
    if ((intent.hi & 1) == 0 || weir__word_tag(intent.hi) == 0 || way >= WEIR__SHM_WAYS)
        return broken(walk, "an insertion that nobody can have meant", way);
    for (unsigned other = 0; other < WEIR__SHM_WAYS; other++)
        if (other != way &&
            weir__word_tag(bucket->ways[other].hi) == weir__word_tag(intent.hi))
            return broken(walk, "an insertion of a counter that is there", other);
    return true;
}

static bool walk_buckets(struct walk *walk,
                         const char *part,
                         const struct weir__shm_bucket *buckets,
                         uint64_t count)
{
    walk->part = part;
    for (walk->index = 0; walk->index < count; walk->index++) {
        const struct weir__shm_bucket *bucket = &buckets[walk->index];
        if (!check_intent(walk, bucket))
            return false;
        for (unsigned way = 0; way < WEIR__SHM_WAYS; way++)
            if (weir__word_tag(bucket->ways[way].hi) == 0
                    ? !check_hole(walk, bucket, way)
                    : !check_entry(walk, bucket, way))
                return false;
    }
    return true;
}

bool weir__shm_verify(const struct weir__shm_segment *segment,
                      struct weir__shm_census *ret_census,
                      struct weir_error *ret_error)
{
    if (!weir__shm_segment_check(segment, ret_error))
        return false;
    struct walk walk = {
        .segment = segment,
        .now_us = weir__shm_now_us(segment),
        .error = ret_error,
    };
    if (!walk_buckets(&walk,
                      "overflow bucket",
                      segment->overflow,
                      segment->header->overflow_buckets) ||
        !walk_buckets(&walk, "bucket", segment->buckets, segment->header->buckets))
        return false;
    for (unsigned i = 0; i < WEIR__SHM_STRIPES; i++)
        walk.census.locks += weir__shm_lock_is_held(&segment->stripes[i]);
    if (ret_census)
        *ret_census = walk.census;
    return true;
}
