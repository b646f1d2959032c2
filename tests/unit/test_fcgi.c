#include "net/fcgi.h"

#include "data.h"

/* Every record that was read, one line each: type, id, flags of the pieces, content. */
struct transcript {
    struct weir__buf text;
    bool bad;
};

/* Reads all of bytes in windows of at most `window` bytes, each in memory of its own. */
static struct transcript read_all(const unsigned char *bytes, size_t len, size_t window)
{
    struct transcript transcript = { .bad = false };
    struct weir__fcgi_reader reader = { .in_record = false };
    weir__buf_init(&transcript.text, 0);
    bool begun = false;
    for (size_t at = 0; at < len && !transcript.bad;) {
        size_t size = len - at < window ? len - at : window, used = 0, done = 0;
        unsigned char *copy = malloc(size);
        memcpy(copy, bytes + at, size);
        struct weir__fcgi_piece piece;
        enum weir__fcgi_step step;
        while (
            (step = weir__fcgi_read(&reader, copy + done, size - done, &used, &piece)) ==
            WEIR__FCGI_PIECE) {
            done += used;
            if (!begun)
                weir__buf_printf(&transcript.text,
                                 "%u/%u/%u ",
                                 piece.header.type,
                                 piece.header.request_id,
                                 piece.header.content_len);
            for (size_t i = 0; i < piece.len; i++)
                weir__buf_printf(&transcript.text, "%02x", piece.bytes[i]);
            if (piece.last)
                weir__buf_append(&transcript.text, "\n", 1);
            begun = !piece.last;
        }
        if (step == WEIR__FCGI_BAD)
            transcript.bad = true;
        else
            cr_assert_eq(done + used, size);
        free(copy);
        at += size;
    }
    weir__buf_append(&transcript.text, "", 1);
    return transcript;
}

/* Reads bytes whole and cut in every size; all must agree. */
static struct transcript read_however_cut(const unsigned char *bytes, size_t len)
{
    struct transcript whole = read_all(bytes, len, len ? len : 1);
    for (size_t window = 1; window < len; window++) {
        struct transcript cut = read_all(bytes, len, window);
        cr_assert_eq(cut.bad, whole.bad);
        cr_assert_str_eq(cut.text.bytes, whole.text.bytes, "cut every %zu", window);
        weir__buf_finish(&cut.text);
    }
    return whole;
}

static void expect_records(const char *hex, const char *expected)
{
    size_t len;
    unsigned char *bytes = data_bytes(hex, &len);
    struct transcript seen = read_however_cut(bytes, len);
    cr_assert_not(seen.bad);
    cr_assert_str_eq(seen.text.bytes, expected);
    weir__buf_finish(&seen.text);
    free(bytes);
}

static void expect_bad(const char *hex)
{
    size_t len;
    unsigned char *bytes = data_bytes(hex, &len);
    struct transcript seen = read_however_cut(bytes, len);
    cr_assert(seen.bad, "%s was taken", hex);
    weir__buf_finish(&seen.text);
    free(bytes);
}

/* ---- the vectors ------------------------------------------------------------------- */

#define PARAMS_HEX                                                                       \
    "0e03524551554553545f4d4554484f444745540b0c52454d4f54455f414444523139382e35312e3130" \
    "302e37"
#define REQUEST_1_TEXT "1/1/8 0001000000000000\n4/1/44 " PARAMS_HEX "\n4/1/0 \n5/1/0 \n"

static const struct {
    const char *name;
    const char *records; /* NULL: the stream is bad */
} vectors[] = {
    { "unknown management type 77 with an 8-byte body, then a request",
      "77/0/8 3132333435363738\n" REQUEST_1_TEXT },
    { "unknown management type 77 with empty body, then a request",
      "77/0/0 \n" REQUEST_1_TEXT },
    { "second BEGIN while request 1 is active, application does not multiplex",
      "1/1/8 0001010000000000\n4/1/44 " PARAMS_HEX
      "\n1/2/8 0001010000000000\n4/2/44 " PARAMS_HEX
      "\n4/2/0 \n5/2/0 \n4/1/0 \n5/1/0 \n" },
    { "record for an inactive request id is ignored", "5/7/3 7a7a7a\n" REQUEST_1_TEXT },
    { "params split inside a name across two PARAMS records, each padded",
      "1/1/8 0001000000000000\n4/1/9 0e0352455155455354\n4/1/35 "
      "5f4d4554484f444745540b0c52454d4f54455f414444523139382e35312e3130302e37\n"
      "4/1/0 \n5/1/0 \n" },
    { "authorizer with no STDIN record at all",
      "1/1/8 0002000000000000\n4/1/44 " PARAMS_HEX "\n4/1/0 \n" },
    { "keep-conn request with a 50,000-byte body that is refused early, then a second "
      "request on the same connection",
      "1/1/8 0001010000000000\n4/1/44 " PARAMS_HEX "\n4/1/0 \n" },
    { "bad version byte", NULL },
};

static json_t *vector(json_t *data, const char *name)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(data, "vectors"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0)
            return row;
    }
    cr_assert_fail("no vector \"%s\"", name);
    return NULL;
}

Test(fcgi, reads_the_vectors_however_they_are_cut)
{
    json_t *data = data_load("fastcgi-vectors.json");
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        json_t *row = vector(data, vectors[i].name);
        const char *hex = json_string_value(json_object_get(row, "input_hex"));
        if (vectors[i].records)
            expect_records(hex, vectors[i].records);
        else
            expect_bad(hex);
    }
    json_decref(data);
}

static const char *expected_hex(json_t *data, const char *name, const char *key)
{
    json_t *expect = json_object_get(vector(data, name), "expect");
    return json_string_value(json_object_get(expect, key));
}

Test(fcgi, answers_management_records_as_the_vectors_say)
{
    json_t *data = data_load("fastcgi-vectors.json");
    unsigned char record[16];
    weir__fcgi_put_unknown_type(record, 77);
    data_expect(
        record, sizeof record, expected_hex(data, vectors[0].name, "first_record_hex"));
    weir__fcgi_put_end(record, 2, 0, WEIR__FCGI_CANT_MPX_CONN);
    data_expect(
        record, sizeof record, expected_hex(data, vectors[2].name, "contains_hex"));
    json_decref(data);
}

Test(fcgi, writes_the_golden_429)
{
    json_t *data = data_load("fastcgi-vectors.json");
    json_t *golden = json_object_get(data, "golden_429");
    const char *text = json_string_value(json_object_get(golden, "cgi_stdout"));
    const char *hex = json_string_value(json_object_get(golden, "fastcgi_records_hex"));
    struct weir__buf buf;
    unsigned char end[24];
    weir__buf_init(&buf, 0);
    cr_assert(weir__fcgi_append_stream(&buf, WEIR__FCGI_STDOUT, 1, text, strlen(text)));
    cr_assert_eq(weir__fcgi_put_header(end, WEIR__FCGI_STDOUT, 1, 0), 0);
    weir__fcgi_put_end(end + 8, 1, 0, WEIR__FCGI_REQUEST_COMPLETE);
    weir__buf_append(&buf, end, sizeof end);
    data_expect(buf.bytes, buf.len, hex);
    weir__buf_finish(&buf);
    json_decref(data);
}

/* ---- reading ----------------------------------------------------------------------- */

Test(fcgi, skips_any_padding)
{
    char hex[2 * (8 + 3 + 255 + 8) + 1] = "010500010003ff00616263";
    memset(hex + 22, 'e', 510);
    strcpy(hex + 22 + 510, "0105000100000000");
    expect_records(hex, "5/1/3 616263\n5/1/0 \n");
}

Test(fcgi, refuses_malformed_headers)
{
    expect_bad("0001000100080000"); /* version 0 */
    expect_bad("0101000000080000"); /* BEGIN without an id */
    expect_bad("0105000000000000"); /* STDIN without an id */
    expect_bad("0109000100000000"); /* GET_VALUES with one */
    expect_bad("010b000100080000"); /* UNKNOWN_TYPE with one */
    expect_bad("0101000100070000"); /* BEGIN with seven bytes */
    expect_bad("0101000100090000"); /* and with nine */
    expect_bad("0103000100000000"); /* END without a body */
    expect_bad("0102000100010000"); /* ABORT with one */
    expect_bad("0105000100000000"
               "0205000100000000"); /* the second of two */
}

Test(fcgi, lets_unknown_types_pass)
{
    expect_records("0100000000000000"
                   "01ff000000020000abcd"
                   "0163000500000000",
                   "0/0/0 \n255/0/2 abcd\n99/5/0 \n");
}

Test(fcgi, hands_out_a_large_record_as_it_arrives)
{
    unsigned char header[8] = { 1, 5, 0, 1, 0xff, 0xff, 255, 0 };
    static unsigned char content[65535 + 255];
    struct weir__fcgi_reader reader = { .in_record = false };
    struct weir__fcgi_piece piece;
    size_t used;
    cr_assert_eq(weir__fcgi_read(&reader, header, 8, &used, &piece),
                 WEIR__FCGI_NEED_MORE);
    cr_assert_eq(used, 8);
    cr_assert_eq(weir__fcgi_read(&reader, content, 10, &used, &piece), WEIR__FCGI_PIECE);
    cr_assert_eq(piece.bytes, content);
    cr_assert_eq(piece.len, 10);
    cr_assert_not(piece.last);
    cr_assert_eq(
        weir__fcgi_read(&reader, content + 10, sizeof content - 10, &used, &piece),
        WEIR__FCGI_PIECE);
    cr_assert_eq(piece.len, 65525);
    cr_assert(piece.last);
    cr_assert_not(weir__fcgi_between_records(&reader));
    cr_assert_eq(weir__fcgi_read(&reader, content, 255, &used, &piece),
                 WEIR__FCGI_NEED_MORE);
    cr_assert_eq(used, 255);
    cr_assert(weir__fcgi_between_records(&reader));
}

Test(fcgi, ends_a_record_before_its_padding_has_come)
{
    unsigned char bytes[] = { 1, 9, 0, 0, 0, 1, 7, 0, 'x' };
    struct weir__fcgi_reader reader = { .in_record = false };
    struct weir__fcgi_piece piece;
    size_t used;
    cr_assert_eq(weir__fcgi_read(&reader, bytes, sizeof bytes, &used, &piece),
                 WEIR__FCGI_PIECE);
    cr_assert(piece.last);
    cr_assert_eq(used, sizeof bytes);
}

Test(fcgi, knows_when_it_stands_between_records)
{
    unsigned char header[8] = { 1, 5, 0, 1, 0, 2, 0, 0 };
    struct weir__fcgi_reader reader = { .in_record = false };
    struct weir__fcgi_piece piece;
    size_t used;
    cr_assert(weir__fcgi_between_records(&reader));
    weir__fcgi_read(&reader, header, 3, &used, &piece);
    cr_assert_not(weir__fcgi_between_records(&reader));
    weir__fcgi_read(&reader, header + 3, 5, &used, &piece);
    cr_assert_not(weir__fcgi_between_records(&reader));
    weir__fcgi_read(&reader, "ab", 2, &used, &piece);
    cr_assert(weir__fcgi_between_records(&reader));
    cr_assert_eq(weir__fcgi_read(&reader, NULL, 0, &used, &piece), WEIR__FCGI_NEED_MORE);
    cr_assert_eq(used, 0);
}

/* ---- writing ----------------------------------------------------------------------- */

static struct weir__fcgi_piece first_piece(const unsigned char *bytes, size_t len)
{
    static struct weir__fcgi_reader reader;
    struct weir__fcgi_piece piece;
    size_t used;
    reader = (struct weir__fcgi_reader){ .in_record = false };
    cr_assert_eq(weir__fcgi_read(&reader, bytes, len, &used, &piece), WEIR__FCGI_PIECE);
    cr_assert_eq(used, len);
    return piece;
}

Test(fcgi, begin_and_end_read_back)
{
    unsigned char record[16];
    weir__fcgi_put_begin(record, 258, WEIR__FCGI_AUTHORIZER, true);
    data_expect(record, sizeof record, "01010102000800000002010000000000");
    struct weir__fcgi_piece piece = first_piece(record, sizeof record);
    struct weir__fcgi_begin begin = weir__fcgi_begin_decode(&piece);
    cr_assert_eq(piece.header.request_id, 258);
    cr_assert_eq(begin.role, WEIR__FCGI_AUTHORIZER);
    cr_assert(begin.keep_conn);
    weir__fcgi_put_begin(record, 1, WEIR__FCGI_RESPONDER, false);
    piece = first_piece(record, sizeof record);
    cr_assert_not(weir__fcgi_begin_decode(&piece).keep_conn);

    weir__fcgi_put_end(record, 1, 0x89abcdef, WEIR__FCGI_UNKNOWN_ROLE);
    data_expect(record, sizeof record, "010300010008000089abcdef03000000");
    piece = first_piece(record, sizeof record);
    struct weir__fcgi_end end = weir__fcgi_end_decode(&piece);
    cr_assert_eq(end.app_status, 0x89abcdef);
    cr_assert_eq(end.protocol_status, WEIR__FCGI_UNKNOWN_ROLE);
}

Test(fcgi, a_header_pads_to_whole_eights)
{
    unsigned char header[8];
    for (unsigned len = 0; len < 20; len++) {
        unsigned padding = weir__fcgi_put_header(header, WEIR__FCGI_STDOUT, 1, len);
        cr_assert_eq((len + padding) % 8, 0);
        cr_assert_lt(padding, 8);
        cr_assert_eq(header[6], padding);
        cr_assert_eq(header[7], 0);
    }
    cr_assert_eq(weir__fcgi_put_header(header, WEIR__FCGI_STDOUT, 1, 65528), 0);
    data_expect(header, 8, "01060001fff80000");
}

Test(fcgi, a_long_stream_is_cut_into_records_that_add_up)
{
    static unsigned char bytes[200003];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 >> 3);
    struct weir__buf buf;
    weir__buf_init(&buf, 0);
    cr_assert(weir__fcgi_append_stream(&buf, WEIR__FCGI_STDIN, 1, bytes, sizeof bytes));
    cr_assert_eq(buf.len % 8, 0);
    struct weir__fcgi_reader reader = { .in_record = false };
    struct weir__fcgi_piece piece;
    size_t at = 0, used, seen = 0;
    while (weir__fcgi_read(&reader, buf.bytes + at, buf.len - at, &used, &piece) ==
           WEIR__FCGI_PIECE) {
        cr_assert_eq(memcmp(piece.bytes, bytes + seen, piece.len), 0);
        cr_assert_gt(piece.len, 0, "an empty record would end the stream");
        seen += piece.len;
        at += used;
    }
    cr_assert_eq(seen, sizeof bytes);
    weir__buf_finish(&buf);
}

Test(fcgi, padding_is_zero_bytes)
{
    struct weir__buf buf;
    weir__buf_init(&buf, 0);
    weir__buf_append(&buf, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 32);
    weir__buf_consume(&buf, 32);
    cr_assert(weir__fcgi_append_stream(&buf, WEIR__FCGI_STDOUT, 1, "a", 1));
    data_expect(buf.bytes, buf.len, "01060001000107006100000000000000");
    weir__buf_finish(&buf);
}

Test(fcgi, a_stream_past_the_bound_leaves_the_buffer_alone)
{
    static unsigned char bytes[70000];
    struct weir__buf buf;
    weir__buf_init(&buf, 66000);
    weir__buf_append(&buf, "abc", 3);
    cr_assert_not(
        weir__fcgi_append_stream(&buf, WEIR__FCGI_STDIN, 1, bytes, sizeof bytes));
    cr_assert_eq(buf.len, 3);
    weir__buf_finish(&buf);
}
