/* Who goes when a bucket is full, and that no choice of keys can fill one bucket. */
#include "store/shm_table.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "support/asks.h"
#include "support/rng.h"

static struct weir__shm_segment segment;

#define NOW_US INT64_C(5000000)

/* One bucket: all callers meet in it. */
static void setup(void)
{
    cr_assert(weir__shm_segment_create(WEIR__SHM_WAYS, NULL, &segment, NULL));
    cr_assert_eq(segment.header->buckets, 1);
}

static void teardown(void)
{
    struct weir_error error = { { 0 } };
    cr_expect(weir__shm_verify(&segment, NULL, &error), "%s", error.text);
    weir__shm_segment_destroy(&segment);
}

TestSuite(shm_table, .init = setup, .fini = teardown);

static struct weir__shm_place place_of(int caller)
{
    char subject[24];
    snprintf(subject, sizeof subject, "user:%d", caller);
    return weir__shm_place(&segment, subject, strlen(subject), "GET /t:w:w1");
}

static bool is_there(int caller)
{
    struct weir__shm_place place = place_of(caller);
    return weir__shm_find(&place) != NULL;
}

static bool put(int caller, int64_t time_us, unsigned level)
{
    struct weir__shm_place place = place_of(caller);
    struct weir__word *at = weir__shm_insert(&place, NOW_US);
    struct weir__limit_state state = { time_us, 1 };
    if (at)
        cr_assert(weir__word_swap(
            at, weir__word_read(at), weir__word_make(place.tag, state, level)));
    return at != NULL;
}

/* Callers 1 to 15 with the same level and times that rise. */
static void fill_bucket(unsigned level)
{
    for (int caller = 1; caller <= WEIR__SHM_WAYS; caller++)
        cr_assert(put(caller, NOW_US + caller * 1000, level));
}

Test(shm_table, finds_what_was_put_in_and_nothing_else)
{
    fill_bucket(3);
    for (int caller = 1; caller <= WEIR__SHM_WAYS; caller++)
        cr_expect(is_there(caller));
    cr_expect_not(is_there(99));
    struct weir__shm_place again = place_of(7);
    cr_expect_eq(weir__shm_insert(&again, NOW_US), weir__shm_find(&again));
}

Test(shm_table, packs_and_unpacks_every_state)
{
    struct rng rng = { 6 };
    for (int i = 0; i < 100000; i++) {
        struct weir__limit_state state = {
            (int64_t)(rng_next(&rng) >> rng_between(&rng, 14, 63)),
            (int64_t)(rng_next(&rng) >> rng_between(&rng, 32, 63)),
        };
        uint64_t tag = rng_next(&rng) >> 22;
        unsigned level = (unsigned)rng_between(&rng, 0, 15);
        struct weir__word word = weir__word_make(tag, state, level);
        cr_assert_eq(weir__word_tag(word.hi), tag);
        cr_assert_eq(weir__word_state(word).time_us, state.time_us);
        cr_assert_eq(weir__word_state(word).value, state.value);
        cr_assert_eq(weir__word_level(word), level);
    }
    struct weir__limit_state far = { INT64_MAX, 0 };
    cr_expect_eq(weir__word_state(weir__word_make(1, far, 0)).time_us,
                 WEIR__WORD_TIME_MAX);
}

Test(shm_table, evicts_what_has_expired_before_anything_else)
{
    fill_bucket(0);
    put(8, NOW_US - 1, WEIR__LEVEL_REFUSED);
    cr_expect(put(99, NOW_US + 1, 0));
    cr_expect_not(is_there(8));
    cr_expect(is_there(1));
}

/* What another process has just put in, and is about to charge, goes only after that. */
Test(shm_table, evicts_what_has_expired_before_what_was_just_put_in)
{
    fill_bucket(0);
    put(1, 0, 0);
    put(8, NOW_US - 1, 0);
    cr_expect(put(98, NOW_US + 1, 0));
    cr_expect(is_there(1));
    cr_expect_not(is_there(8));
    cr_expect(put(99, NOW_US + 1, 0));
    cr_expect_not(is_there(1));
}

Test(shm_table, evicts_the_lowest_level_first_and_of_these_the_one_that_ends_first)
{
    fill_bucket(7);
    put(9, NOW_US + WEIR_DAYS(1), 6);
    cr_expect(put(20, NOW_US + WEIR_DAYS(2), 14));
    cr_expect_not(is_there(9));
    cr_expect(put(21, NOW_US + WEIR_DAYS(2), 14));
    cr_expect_not(is_there(1));
    cr_expect(put(22, NOW_US + WEIR_DAYS(2), 14));
    cr_expect_not(is_there(2));
    cr_expect(is_there(20));
}

Test(shm_table, never_evicts_a_caller_who_is_being_refused)
{
    fill_bucket(WEIR__LEVEL_REFUSED);
    put(5, NOW_US + WEIR_DAYS(1), 14);
    cr_expect(put(20, NOW_US + 1, WEIR__LEVEL_REFUSED));
    cr_expect_not(is_there(5));
    cr_expect_not(put(21, NOW_US + 1, 0));
    cr_expect(is_there(1));

    /* The last microsecond counts as not expired yet. */
    struct weir__shm_place late = place_of(22);
    cr_expect_null(weir__shm_insert(&late, NOW_US + 1));
    cr_expect_not_null(weir__shm_insert(&late, NOW_US + 2));
    cr_expect_not(is_there(20));
}

Test(shm_table, evicts_anything_from_the_overflow_area_since_it_is_nobodys)
{
    char tail[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(tail, sizeof tail, "GET /%d:w:w1", i);
        struct weir__shm_place place = weir__shm_overflow_place(&segment, tail);
        struct weir__word *at = weir__shm_insert(&place, NOW_US);
        struct weir__limit_state state = { NOW_US + i, 1 };
        cr_assert_not_null(at);
        weir__word_swap(at,
                        weir__word_read(at),
                        weir__word_make(place.tag, state, WEIR__LEVEL_REFUSED));
    }
    struct weir__shm_census census;
    cr_assert(weir__shm_verify(&segment, &census, NULL));
    cr_expect_eq(census.entries, WEIR__SHM_OVERFLOW_BUCKETS * WEIR__SHM_WAYS);
}

/* A process was killed between the announcement and the filling: whoever comes next to
 * this bucket does it in its place. */
Test(shm_table, carries_out_an_insertion_that_was_left_behind)
{
    struct weir__shm_place place = place_of(1), other = place_of(2);
    struct weir__word number_three = segment.buckets[0].ways[2];
    struct weir__word intent = { .lo = number_three.lo,
                                 .hi = place.tag << 22 | 2 << 1 | 1 };
    segment.buckets[0].intent = intent;
    cr_expect_not_null(weir__shm_insert(&other, NOW_US));
    cr_expect_eq(weir__shm_find(&place), &segment.buckets[0].ways[2]);
    cr_expect_eq(segment.buckets[0].intent.hi, 0);

    /* The same announcement again, from one who was stopped for long: no second entry. */
    segment.buckets[0].intent = intent;
    struct weir__shm_place third = place_of(3);
    cr_expect_not_null(weir__shm_insert(&third, NOW_US));
    struct weir__shm_census census;
    struct weir_error error = { { 0 } };
    cr_expect(weir__shm_verify(&segment, &census, &error), "%s", error.text);
    cr_expect_eq(census.entries, 3);
}

/* Keys that all fall into one bucket under another secret are spread under this one: to
 * know the code doesn't help, only to know the secret would. */
Test(shm_table, spreads_keys_that_collide_under_another_secret)
{
    struct weir__shm_segment own, theirs;
    cr_assert(weir__shm_segment_create(15 * 256, NULL, &own, NULL));
    cr_assert(weir__shm_segment_create(15 * 256, NULL, &theirs, NULL));
    unsigned hits[256] = { 0 }, most = 0;
    int found = 0;
    for (int i = 0; found < 2560; i++) {
        char subject[24];
        snprintf(subject, sizeof subject, "user:%d", i);
        struct weir__shm_place at =
            weir__shm_place(&theirs, subject, strlen(subject), "GET /t:w:w1");
        if (at.bucket != theirs.buckets)
            continue;
        found++;
        at = weir__shm_place(&own, subject, strlen(subject), "GET /t:w:w1");
        unsigned count = ++hits[at.bucket - own.buckets];
        most = count > most ? count : most;
    }
    cr_expect_lt(most, 40, "%u of 2560 keys in one bucket of 256", most);
    weir__shm_segment_destroy(&own);
    weir__shm_segment_destroy(&theirs);
}

static void expect_broken(const char *why)
{
    struct weir_error error = { { 0 } };
    cr_expect_not(weir__shm_verify(&segment, NULL, &error), "%s was not seen", why);
    cr_expect_neq(strstr(error.text, why), NULL, "\"%s\" for: %s", error.text, why);
}

/* The walker itself: each broken invariant is planted and must be named. */
Test(shm_table, names_what_is_broken_in_a_table)
{
    struct weir__shm_bucket *bucket = segment.buckets, good;
    fill_bucket(3);
    struct weir__word hole = { .lo = 2, .hi = 0 };
    bucket->ways[3] = hole;
    good = *bucket;
    weir__clock_replace(asks_clock, NULL);
    segment.header->epoch_us = asks_now_us - NOW_US;
    cr_expect_not(weir__shm_verify(&segment, NULL, NULL),
                  "a changed header was not seen");

    weir__shm_segment_destroy(&segment);
    asks_now_us = NOW_US + WEIR__SHM_EPOCH_MARGIN_US;
    setup();
    bucket = segment.buckets;

    *bucket = good;
    bucket->ways[4] = bucket->ways[5];
    expect_broken("a counter stands there twice");
    *bucket = good;
    bucket->ways[4] = hole;
    expect_broken("a hole's number stands there twice");
    *bucket = good;
    bucket->ways[3].lo = 9999;
    expect_broken("never given out");
    *bucket = good;
    bucket->intent = hole;
    expect_broken("filled is there again");
    *bucket = good;
    bucket->intent =
        (struct weir__word){ .lo = 3, .hi = bucket->ways[7].hi >> 22 << 22 | 1 };
    expect_broken("an insertion of a counter that is there");
    *bucket = good;
    bucket->ways[4].hi |= 0x3fffff;
    expect_broken("further ahead");
    *bucket = (struct weir__shm_bucket){ .ways = { { .lo = 1, .hi = 0 } } };
    bucket->ways[1].hi = 1;
    expect_broken("a hole with a time");
    *bucket = good;
    memset(bucket, 0, sizeof *bucket);
    for (unsigned way = 0; way < WEIR__SHM_WAYS; way++)
        bucket->ways[way].lo = way + 1;
}
