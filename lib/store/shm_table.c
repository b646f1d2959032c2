/* The shared table: where counters are, how one gets in, who goes out.
 *
 * A counter must never be there twice, or a caller would be counted in two halves. So an
 * insertion is announced in the bucket's intent word before it happens: {tag, way, number
 * of the hole in it}. The announcement is swapped in from the clear word that was there
 * before the inserter scanned the bucket, and a clear word keeps the number of the last
 * hole that was filled, so that it never stands there twice: the swap succeeds only if
 * nothing was inserted since. Whoever misses and meets an announcement carries it out
 * first, whether its author runs, stands still or is dead; as the hole's number is
 * unique, it is filled once, however late somebody comes to it. Nothing here blocks. */
#include "store/shm_table.h"

#include <string.h>

#include "store/shm_stop.h"

#ifdef WEIR_TEST_STOP_POINTS
void (*weir__shm_stop_fn)(enum weir__shm_stop stop);
#endif

#define KEY_MAX 256 /* bytes that are hashed in one go */

/* ---- places ------------------------------------------------------------------------ */

static struct weir__hash128 hash_key(const struct weir__shm_segment *segment,
                                     const char *subject,
                                     size_t subject_len,
                                     const char *tail)
{
    const uint8_t *secret = segment->header->key;
    size_t tail_len = strlen(tail);
    char key[KEY_MAX];
    if (subject_len + 1 + tail_len <= sizeof key) {
        memcpy(key, subject, subject_len);
        key[subject_len] = '\0';
        memcpy(key + subject_len + 1, tail, tail_len);
        return weir__siphash128(secret, key, subject_len + 1 + tail_len);
    }
    struct weir__hash128 halves[2] = { weir__siphash128(secret, subject, subject_len),
                                       weir__siphash128(secret, tail, tail_len) };
    return weir__siphash128(secret, halves, sizeof halves);
}

/* A bucket is four cache lines. Each tag begins to look in one of them, and is put into
 * the first hole from there, so that most are found in the first line that is fetched. */
static unsigned first_way(uint64_t tag)
{
    static const uint8_t line_starts[4] = { 0, 3, 7, 11 };
    return line_starts[tag & 3];
}

static unsigned next_way(unsigned way)
{
    return way + 1 < WEIR__SHM_WAYS ? way + 1 : 0;
}

static struct weir__shm_place place_in(const struct weir__shm_segment *segment,
                                       struct weir__shm_bucket *buckets,
                                       uint64_t count,
                                       struct weir__hash128 hash)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t index = (uint64_t)((wide)hash.hi * count >> 64);
    uint64_t tag = weir__word_tag(hash.lo);
    tag = tag ? tag : 1;
    __builtin_prefetch(&buckets[index].ways[first_way(tag)]);
    return (struct weir__shm_place){
        .bucket = buckets + index,
        .stripe = segment->stripes + index % WEIR__SHM_STRIPES,
        .tag = tag,
        .overflow = buckets == segment->overflow,
    };
}

struct weir__shm_place weir__shm_place(const struct weir__shm_segment *segment,
                                       const char *subject,
                                       size_t subject_len,
                                       const char *tail)
{
    return place_in(segment,
                    segment->buckets,
                    segment->header->buckets,
                    hash_key(segment, subject, subject_len, tail));
}

struct weir__shm_place weir__shm_overflow_place(const struct weir__shm_segment *segment,
                                                const char *tail)
{
    return place_in(segment,
                    segment->overflow,
                    segment->header->overflow_buckets,
                    hash_key(segment, "", 0, tail));
}

struct weir__word *weir__shm_find(const struct weir__shm_place *place)
{
    struct weir__word *ways = place->bucket->ways;
    unsigned way = first_way(place->tag);
    for (unsigned i = 0; i < WEIR__SHM_WAYS; i++, way = next_way(way))
        if (weir__word_tag(weir__word_load_hi(&ways[way])) == place->tag)
            return &ways[way];
    return NULL;
}

/* ---- victims ----------------------------------------------------------------------- */

/* Who goes first, lowest first: dead counters, then those that an insertion has just put
 * in (or a refund has emptied), then live ones by level and by the end of their time. */
static uint64_t rank(struct weir__word word, int64_t now_us)
{
    struct weir__limit_state state = weir__word_state(word);
    if (state.time_us < now_us)
        return state.time_us > 0 ? 0 : 1;
    return (uint64_t)(weir__word_level(word) + 1) << WEIR__WORD_TIME_BITS |
           (uint64_t)state.time_us;
}

/* The way of the victim and its word, or false where all must stay. */
static bool choose_victim(const struct weir__shm_place *place,
                          int64_t now_us,
                          unsigned *ret_way,
                          struct weir__word *ret_word)
{
    uint64_t lowest = place->overflow
                          ? UINT64_MAX
                          : (uint64_t)(WEIR__LEVEL_REFUSED + 1) << WEIR__WORD_TIME_BITS;
    bool found = false;
    for (unsigned way = 0; way < WEIR__SHM_WAYS; way++) {
        struct weir__word word = weir__word_guess(&place->bucket->ways[way]);
        uint64_t own = rank(word, now_us);
        if (own >= lowest)
            continue;
        lowest = own;
        *ret_way = way;
        *ret_word = word;
        found = true;
    }
    return found;
}

/* ---- insertion --------------------------------------------------------------------- */

static struct weir__word hole_of(uint64_t number)
{
    return (struct weir__word){ .lo = number, .hi = 0 };
}

/* hi: tag 42 | unused 17 | way 4 | announced 1        lo: the hole's number */
static struct weir__word intent_of(uint64_t tag, unsigned way, uint64_t number)
{
    uint64_t hi = tag << (64 - WEIR__WORD_TAG_BITS) | (uint64_t)way << 1 | 1;
    return (struct weir__word){ .lo = number, .hi = hi };
}

/* Carries out an announcement that stood in the bucket as a whole. Any number of helpers
 * may do it at once, or long after it has been done. */
static void carry_out(struct weir__shm_bucket *bucket, struct weir__word intent)
{
    struct weir__word *at = &bucket->ways[intent.hi >> 1 & 15];
    struct weir__limit_state unused = { 0, 0 };
    weir__word_swap(
        at, hole_of(intent.lo), weir__word_make(weir__word_tag(intent.hi), unused, 0));
    WEIR__STOP(WEIR__STOP_FILLED);
    weir__word_swap(&bucket->intent, intent, hole_of(intent.lo));
}

/* A hole of the bucket, made where there is none. *ret_full where all must stay; false
 * without it after a lost race. */
static bool find_hole(const struct weir__shm_place *place,
                      int64_t now_us,
                      unsigned *ret_way,
                      uint64_t *ret_number,
                      bool *ret_full)
{
    struct weir__word *ways = place->bucket->ways;
    unsigned way = first_way(place->tag);
    for (unsigned i = 0; i < WEIR__SHM_WAYS; i++, way = next_way(way)) {
        struct weir__word word = weir__word_guess(&ways[way]);
        if (weir__word_tag(word.hi) != 0)
            continue;
        *ret_way = way;
        *ret_number = word.lo;
        return true;
    }
    struct weir__word victim;
    if (!choose_victim(place, now_us, ret_way, &victim)) {
        *ret_full = true;
        return false;
    }
    *ret_number = __atomic_fetch_add(&place->stripe->next_hole, 1, __ATOMIC_RELAXED);
    return weir__word_swap(&ways[*ret_way], victim, hole_of(*ret_number));
}

struct weir__word *weir__shm_insert(const struct weir__shm_place *place, int64_t now_us)
{
    struct weir__shm_bucket *bucket = place->bucket;
    for (;;) {
        struct weir__word clear = weir__word_guess(&bucket->intent);
        if (clear.hi != 0) {
            clear = weir__word_read(&bucket->intent);
            if (clear.hi != 0)
                carry_out(bucket, clear);
            continue;
        }
        struct weir__word *found = weir__shm_find(place);
        if (found)
            return found;
        WEIR__STOP(WEIR__STOP_MISSED);

        unsigned way;
        uint64_t number;
        bool full = false;
        if (!find_hole(place, now_us, &way, &number, &full)) {
            if (full)
                return NULL;
            continue;
        }
        WEIR__STOP(WEIR__STOP_EVICTED);
        struct weir__word intent = intent_of(place->tag, way, number);
        if (!weir__word_swap(&bucket->intent, clear, intent))
            continue;
        WEIR__STOP(WEIR__STOP_INTENT);
        carry_out(bucket, intent);
        WEIR__STOP(WEIR__STOP_INSERTED);
        return &bucket->ways[way];
    }
}
