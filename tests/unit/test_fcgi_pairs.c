#include "net/fcgi.h"

#include "data.h"
#include "field.h"

static const struct weir__fcgi_caps usual = { .max_bytes = 65536,
                                              .max_value_bytes = 8192,
                                              .max_pairs = 256 };

struct fixture {
    struct weir__arena arena;
    struct weir__fcgi_pairs pairs;
};

static void init(struct fixture *f, const struct weir__fcgi_caps *caps)
{
    weir__arena_init(&f->arena, 1 << 20, 4096);
    weir__fcgi_pairs_init(&f->pairs, &f->arena, caps);
}

static void finish(struct fixture *f)
{
    weir__arena_finish(&f->arena);
}

/* Takes bytes in windows of that size, then the end. */
static enum weir__fcgi_pairs_result
take(struct fixture *f, const void *bytes, size_t len, size_t window)
{
    for (size_t at = 0; at < len; at += window) {
        size_t size = len - at < window ? len - at : window;
        unsigned char *copy = malloc(size);
        memcpy(copy, (const char *)bytes + at, size);
        weir__fcgi_pairs_take(&f->pairs, copy, size);
        free(copy);
    }
    return weir__fcgi_pairs_end(&f->pairs);
}

/* The result for content given as hex, the same however it is cut. */
static enum weir__fcgi_pairs_result result_of(const char *hex,
                                              const struct weir__fcgi_caps *caps)
{
    struct fixture f;
    size_t len;
    unsigned char *bytes = data_bytes(hex, &len);
    init(&f, caps);
    enum weir__fcgi_pairs_result whole = take(&f, bytes, len, len ? len : 1);
    finish(&f);
    for (size_t window = 1; window < len; window++) {
        init(&f, caps);
        cr_assert_eq(
            take(&f, bytes, len, window), whole, "%s cut every %zu", hex, window);
        finish(&f);
    }
    free(bytes);
    return whole;
}

static const char *value_of(const struct weir__fcgi_pairs *pairs, const char *name)
{
    for (unsigned i = 0; i < pairs->pairs_len; i++)
        if (strcmp(pairs->pairs[i].name, name) == 0)
            return pairs->pairs[i].value;
    return NULL;
}

/* Feeds the PARAMS records of a vector, read in windows of that size. */
static void take_vector(struct fixture *f, const char *name, size_t window)
{
    json_t *data = data_load("fastcgi-vectors.json"), *row;
    size_t i, len = 0, used;
    unsigned char *bytes = NULL;
    json_array_foreach(json_object_get(data, "vectors"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0)
            bytes =
                data_bytes(json_string_value(json_object_get(row, "input_hex")), &len);
    }
    cr_assert_not_null(bytes);
    struct weir__fcgi_reader reader = { .in_record = false };
    struct weir__fcgi_piece piece;
    for (size_t at = 0; at < len; at += used) {
        size_t size = len - at < window ? len - at : window;
        if (weir__fcgi_read(&reader, bytes + at, size, &used, &piece) ==
                WEIR__FCGI_PIECE &&
            piece.header.type == WEIR__FCGI_PARAMS)
            weir__fcgi_pairs_take(&f->pairs, piece.bytes, piece.len);
    }
    cr_assert_eq(weir__fcgi_pairs_end(&f->pairs), WEIR__FCGI_PAIRS_OK);
    free(bytes);
    json_decref(data);
}

/* ---- the vectors ------------------------------------------------------------------- */

Test(fcgi_pairs, params_survive_a_cut_inside_a_name)
{
    const char *name =
        "params split inside a name across two PARAMS records, each padded";
    for (size_t window = 1; window < 120; window++) {
        struct fixture f;
        init(&f, &usual);
        take_vector(&f, name, window);
        cr_assert_eq(f.pairs.pairs_len, 2);
        cr_assert_str_eq(value_of(&f.pairs, "REQUEST_METHOD"), "GET");
        cr_assert_str_eq(value_of(&f.pairs, "REMOTE_ADDR"), "198.51.100.7");
        finish(&f);
    }
}

Test(fcgi_pairs, a_repeated_name_is_kept_twice_and_joins_as_the_vector_says)
{
    struct fixture f;
    init(&f, &usual);
    take_vector(&f, "duplicate param name", 7);
    cr_assert_eq(f.pairs.pairs_len, 4);
    const struct weir__pair *one = &f.pairs.pairs[2], *two = &f.pairs.pairs[3];
    char joined[100];
    cr_assert_str_eq(one->name, "HTTP_X_FORWARDED_FOR");
    cr_assert_str_eq(two->name, one->name);
    snprintf(joined,
             sizeof joined,
             "%s%s%s",
             one->value,
             weir__field_joint(one->name),
             two->value);
    cr_assert_str_eq(joined, "6.6.6.6, 203.0.113.9");
    finish(&f);
}

Test(fcgi_pairs, lengths_are_coded_as_the_vector_says)
{
    json_t *data = data_load("fastcgi-vectors.json"), *coded;
    json_t *row = json_array_get(json_object_get(data, "vectors"), 0);
    const char *number;
    int rows = 0;
    json_object_foreach(json_object_get(row, "expect"), number, coded)
    {
        unsigned long length = strtoul(number, NULL, 10);
        size_t len;
        unsigned char *bytes = data_bytes(json_string_value(coded), &len);
        /* Decoding: a name of one byte, then a value of that length is announced. */
        unsigned char head[5] = { 1 };
        struct weir__fcgi_query query = { .name_len = 0 };
        memcpy(head + 1, bytes, len);
        weir__fcgi_query_take(&query, head, 1 + len);
        cr_assert_eq(query.walk.value_left, length);
        /* Encoding: as far as it is a length that one would hold in memory here. */
        struct weir__buf buf;
        weir__buf_init(&buf, 0);
        if (length < 100000) {
            char *value = calloc(length + 1, 1);
            struct weir__pair pair = { "n", value, 1, (unsigned)length };
            cr_assert(weir__fcgi_append_pair(&buf, &pair));
            cr_assert_eq(buf.len, 1 + len + 1 + length);
            cr_assert_eq(memcmp(buf.bytes + 1, bytes, len), 0);
            free(value);
        }
        weir__buf_finish(&buf);
        free(bytes);
        rows++;
    }
    cr_assert_eq(rows, 7);
    json_decref(data);
}

/* ---- what is refused --------------------------------------------------------------- */

Test(fcgi_pairs, takes_what_is_well_formed)
{
    cr_assert_eq(result_of("", &usual), WEIR__FCGI_PAIRS_OK);
    cr_assert_eq(result_of("010041", &usual), WEIR__FCGI_PAIRS_OK);
    cr_assert_eq(result_of("01014142", &usual), WEIR__FCGI_PAIRS_OK);
    /* Long forms of short lengths, and a value with '=' in it. */
    cr_assert_eq(result_of("800000018000000241423d", &usual), WEIR__FCGI_PAIRS_OK);
}

Test(fcgi_pairs, refuses_names_and_values_that_would_deceive)
{
    cr_assert_eq(result_of("0000", &usual), WEIR__FCGI_PAIRS_BAD);
    cr_assert_eq(result_of("000141", &usual), WEIR__FCGI_PAIRS_BAD);
    cr_assert_eq(result_of("0301413d4243", &usual), WEIR__FCGI_PAIRS_BAD);
    cr_assert_eq(result_of("030141004243", &usual), WEIR__FCGI_PAIRS_BAD);
    cr_assert_eq(result_of("010341420042", &usual), WEIR__FCGI_PAIRS_BAD);
}

Test(fcgi_pairs, refuses_a_stream_that_ends_inside_a_pair)
{
    const char *cut[] = {
        "01",     "0102",   "010241",           "01024142", "80",
        "800000", "018000", "0100418000000100", "02014100", "01004101"
    };
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++)
        cr_assert_eq(result_of(cut[i], &usual), WEIR__FCGI_PAIRS_BAD, "%s", cut[i]);
}

Test(fcgi_pairs, lengths_that_overflow_are_too_large_and_reserve_nothing)
{
    const char *huge[] = {
        "ffffffffffffffff", "c0000000c0000000", "ffffffff00", "01ffffffff", "8000200101"
    };
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        struct fixture f;
        size_t len;
        unsigned char *bytes = data_bytes(huge[i], &len);
        init(&f, &usual);
        cr_assert_eq(weir__fcgi_pairs_take(&f.pairs, bytes, len),
                     WEIR__FCGI_PAIRS_TOO_LARGE);
        cr_assert_eq(f.arena.used_bytes, 0);
        cr_assert_eq(weir__fcgi_pairs_take(&f.pairs, "\1\1AB", 4),
                     WEIR__FCGI_PAIRS_TOO_LARGE);
        cr_assert_eq(weir__fcgi_pairs_end(&f.pairs), WEIR__FCGI_PAIRS_TOO_LARGE);
        cr_assert_eq(f.pairs.pairs_len, 0);
        finish(&f);
        free(bytes);
    }
    /* With caps that nothing reaches the sum is still made in 64 bits. */
    struct weir__fcgi_caps none = { SIZE_MAX, SIZE_MAX, 10 };
    cr_assert_eq(result_of("ffffffffffffffff", &none), WEIR__FCGI_PAIRS_NO_MEMORY);
    struct weir__fcgi_caps few = { 100, SIZE_MAX, 10 };
    cr_assert_eq(result_of("01014142ffffffffffffffff", &few), WEIR__FCGI_PAIRS_TOO_LARGE);
}

Test(fcgi_pairs, each_cap_holds_exactly)
{
    struct weir__fcgi_caps caps = { .max_bytes = 6,
                                    .max_value_bytes = 4,
                                    .max_pairs = 2 };
    cr_assert_eq(result_of("0202414142420101414d", &caps), WEIR__FCGI_PAIRS_OK);
    cr_assert_eq(result_of("0202414142420102414d4d", &caps), WEIR__FCGI_PAIRS_TOO_LARGE);
    cr_assert_eq(result_of("01044141414141", &caps), WEIR__FCGI_PAIRS_OK);
    cr_assert_eq(result_of("0105414141414141", &caps), WEIR__FCGI_PAIRS_TOO_LARGE);
    cr_assert_eq(result_of("05004141414141", &caps), WEIR__FCGI_PAIRS_TOO_LARGE);
    cr_assert_eq(result_of("010041010042", &caps), WEIR__FCGI_PAIRS_OK);
    cr_assert_eq(result_of("010041010042010043", &caps), WEIR__FCGI_PAIRS_TOO_LARGE);
}

Test(fcgi_pairs, a_full_arena_is_no_memory)
{
    struct fixture f;
    weir__arena_init(&f.arena, 64, 64);
    weir__fcgi_pairs_init(&f.pairs, &f.arena, &usual);
    cr_assert_eq(weir__fcgi_pairs_take(&f.pairs, "\1\1AB", 4),
                 WEIR__FCGI_PAIRS_NO_MEMORY);
    finish(&f);
}

Test(fcgi_pairs, holds_as_many_as_the_cap_allows)
{
    struct fixture f;
    char name[8];
    init(&f, &usual);
    for (unsigned i = 0; i < 256; i++) {
        unsigned char head[2] = { (unsigned char)snprintf(name, sizeof name, "N%u", i),
                                  1 };
        weir__fcgi_pairs_take(&f.pairs, head, 2);
        weir__fcgi_pairs_take(&f.pairs, name, head[0]);
        weir__fcgi_pairs_take(&f.pairs, "v", 1);
    }
    cr_assert_eq(f.pairs.pairs_len, 256);
    cr_assert_str_eq(f.pairs.pairs[0].name, "N0");
    cr_assert_str_eq(f.pairs.pairs[255].name, "N255");
    cr_assert_str_eq(f.pairs.pairs[255].value, "v");
    cr_assert_eq(f.pairs.pairs[255].name_len, 4);
    cr_assert_eq(weir__fcgi_pairs_end(&f.pairs), WEIR__FCGI_PAIRS_OK);
    finish(&f);
}

/* ---- the client's half ------------------------------------------------------------- */

/* Reads a PARAMS stream back; asserts that no record ends inside a pair that would fit
 * into one. */
static void read_back(struct fixture *f, const struct weir__buf *buf)
{
    struct weir__fcgi_reader reader = { .in_record = false };
    struct weir__fcgi_piece piece;
    size_t at = 0, used;
    bool ended = false;
    while (weir__fcgi_read(&reader, buf->bytes + at, buf->len - at, &used, &piece) ==
           WEIR__FCGI_PIECE) {
        cr_assert_not(ended);
        cr_assert_eq(piece.header.type, WEIR__FCGI_PARAMS);
        cr_assert_leq(piece.header.content_len + piece.header.padding_len, 65535);
        weir__fcgi_pairs_take(&f->pairs, piece.bytes, piece.len);
        ended = piece.len == 0;
        at += used;
    }
    cr_assert(ended);
    cr_assert_eq(at, buf->len);
    cr_assert_eq(weir__fcgi_pairs_end(&f->pairs), WEIR__FCGI_PAIRS_OK);
}

Test(fcgi_pairs, params_read_back_and_no_pair_straddles_two_records)
{
    static char value[30001];
    memset(value, 'v', 30000);
    struct weir__pair pairs[5];
    for (unsigned i = 0; i < 5; i++)
        pairs[i] = (struct weir__pair){ "NAME", value, 4, 30000 };
    struct weir__buf buf;
    weir__buf_init(&buf, 0);
    cr_assert(weir__fcgi_append_params(&buf, 1, pairs, 5));

    struct weir__fcgi_reader reader = { .in_record = false };
    struct weir__fcgi_piece piece;
    size_t at = 0, used;
    unsigned records = 0;
    while (weir__fcgi_read(&reader, buf.bytes + at, buf.len - at, &used, &piece) ==
           WEIR__FCGI_PIECE) {
        cr_assert_eq(piece.len % (1 + 4 + 4 + 30000), 0);
        records++;
        at += used;
    }
    cr_assert_eq(records, 4);

    struct weir__fcgi_caps caps = { 1 << 20, 1 << 16, 10 };
    struct fixture f;
    init(&f, &caps);
    read_back(&f, &buf);
    cr_assert_eq(f.pairs.pairs_len, 5);
    for (unsigned i = 0; i < 5; i++)
        cr_assert_str_eq(f.pairs.pairs[i].value, value);
    finish(&f);
    weir__buf_finish(&buf);
}

Test(fcgi_pairs, a_pair_larger_than_a_record_is_cut_and_reads_back)
{
    static char value[150001];
    memset(value, 'v', 150000);
    struct weir__pair pairs[] = { { "A", "1", 1, 1 },
                                  { "B", value, 1, 150000 },
                                  { "C", "", 1, 0 } };
    struct weir__buf buf;
    weir__buf_init(&buf, 0);
    cr_assert(weir__fcgi_append_params(&buf, 1, pairs, 3));
    struct weir__fcgi_caps caps = { 1 << 20, 1 << 20, 10 };
    struct fixture f;
    init(&f, &caps);
    read_back(&f, &buf);
    cr_assert_eq(f.pairs.pairs_len, 3);
    cr_assert_str_eq(f.pairs.pairs[1].value, value);
    cr_assert_str_eq(f.pairs.pairs[2].value, "");
    finish(&f);
    weir__buf_finish(&buf);
}

Test(fcgi_pairs, no_pairs_are_the_empty_record_alone)
{
    struct weir__buf buf;
    weir__buf_init(&buf, 0);
    cr_assert(weir__fcgi_append_params(&buf, 1, NULL, 0));
    data_expect(buf.bytes, buf.len, "0104000100000000");
    weir__buf_finish(&buf);
}

Test(fcgi_pairs, params_past_the_bound_leave_the_buffer_alone)
{
    struct weir__pair pair = { "NAME", "value", 4, 5 };
    struct weir__buf buf;
    weir__buf_init(&buf, 30);
    weir__buf_append(&buf, "abc", 3);
    cr_assert_not(weir__fcgi_append_params(&buf, 1, &pair, 1));
    cr_assert_eq(buf.len, 3);
    pair.value_len = (unsigned)INT32_MAX + 1;
    cr_assert_not(weir__fcgi_append_pair(&buf, &pair));
    cr_assert_eq(buf.len, 3);
    weir__buf_finish(&buf);
}

/* ---- GET_VALUES -------------------------------------------------------------------- */

/* Content of a GET_VALUES record that asks for these names, n times over. */
static struct weir__buf ask(const char *const *names, int times)
{
    struct weir__buf buf;
    weir__buf_init(&buf, 0);
    for (int i = 0; i < times; i++)
        for (const char *const *name = names; *name; name++) {
            struct weir__pair pair = { *name, "", (unsigned)strlen(*name), 0 };
            weir__fcgi_append_pair(&buf, &pair);
        }
    return buf;
}

static void expect_values(const char *const *names, int times, const char *hex)
{
    struct weir__buf content = ask(names, times);
    for (size_t window = 1; window <= content.len; window++) {
        struct weir__fcgi_query query = { .name_len = 0 };
        unsigned char reply[WEIR__FCGI_VALUES_BYTES];
        for (size_t at = 0; at < content.len; at += window)
            weir__fcgi_query_take(&query,
                                  content.bytes + at,
                                  content.len - at < window ? content.len - at : window);
        data_expect(reply, weir__fcgi_put_values(reply, &query, 4096, UINT32_MAX), hex);
    }
    weir__buf_finish(&content);
}

#define MAX_CONNS_4096 "0e04464347495f4d41585f434f4e4e5334303936"
#define MAX_REQS_MOST "0d0a464347495f4d41585f5245515334323934393637323935"
#define MPXS_CONNS_0 "0f01464347495f4d5058535f434f4e4e5330"

Test(fcgi_pairs, get_values_answers_only_known_names_once)
{
    const char *const all[] = {
        "FCGI_MPXS_CONNS", "FCGI_MAX_REQS", "FCGI_MAX_CONNS", NULL
    };
    const char *const one[] = { "FCGI_MAX_CONNS", NULL };
    const char *const strangers[] = { "FCGI_MAX_CONN",
                                      "FCGI_MAX_CONNSX",
                                      "FCGI_MPXS_CONNS_AND_MORE",
                                      "fcgi_max_reqs",
                                      "X",
                                      NULL };
    const char *all_hex =
        "010a0000003f0100" MAX_CONNS_4096 MAX_REQS_MOST MPXS_CONNS_0 "00";
    expect_values(all, 1, all_hex);
    expect_values(all, 4, all_hex);
    expect_values(one, 1, "010a000000140400" MAX_CONNS_4096 "00000000");
    expect_values(strangers, 3, "010a000000000000");
}

Test(fcgi_pairs, the_longest_get_values_reply_fits)
{
    struct weir__fcgi_query query = { .max_conns = true,
                                      .max_reqs = true,
                                      .mpxs_conns = true };
    unsigned char reply[WEIR__FCGI_VALUES_BYTES];
    cr_assert_eq(weir__fcgi_put_values(reply, &query, UINT32_MAX, UINT32_MAX),
                 WEIR__FCGI_VALUES_BYTES);
}

Test(fcgi_pairs, get_values_ignores_values_and_a_cut_pair)
{
    struct weir__fcgi_query query = { .name_len = 0 };
    weir__fcgi_query_take(&query,
                          "\x0e\x03"
                          "FCGI_MAX_CONNS"
                          "abc"
                          "\x0d",
                          20);
    cr_assert(query.max_conns);
    cr_assert_not(query.max_reqs);
    weir__fcgi_query_take(&query, "\x00\x00\x02", 2);
    cr_assert_not(query.max_reqs);
}
