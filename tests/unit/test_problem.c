#include "problem.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- golden bytes: a folder a case ------------------------------------------------- */

static char *read_file(const char *folder, const char *name, size_t *ret_len)
{
    static char bytes[8192];
    char path[1024];
    snprintf(path, sizeof path, "%s/golden/%s/%s", TEST_DATA, folder, name);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    *ret_len = fread(bytes, 1, sizeof bytes - 1, file);
    bytes[*ret_len] = '\0';
    fclose(file);
    return bytes;
}

static enum weir_refusal_format format_of(json_t *input)
{
    const char *name = json_string_value(json_object_get(input, "format"));
    if (strcmp(name, "both") == 0)
        return WEIR_FORMAT_BOTH;
    return strcmp(name, "problem") == 0 ? WEIR_FORMAT_PROBLEM
                                        : WEIR_FORMAT_RESPONSE_STATUS;
}

static const char *detail_of(json_t *input, char *room)
{
    const char *hex = json_string_value(json_object_get(input, "detail_hex"));
    if (!hex)
        return json_string_value(json_object_get(input, "detail"));
    size_t len = strlen(hex) / 2;
    for (size_t i = 0; i < len; i++) {
        unsigned byte = 0;
        cr_assert_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
        room[i] = (char)byte;
    }
    room[len] = '\0';
    return room;
}

static void check_case(const char *folder)
{
    size_t len;
    json_t *input = json_loads(read_file(folder, "input.json", &len), 0, NULL);
    cr_assert_not_null(input, "%s", folder);

    struct weir_rule rules[WEIR_RULES_MAX] = { { .name = NULL } };
    struct weir_decision decision = { .rules_len = 0 };
    /* One rule that didn't refuse: it must not be named. */
    static const struct weir_rule innocent = { .name = "innocent" };
    decision.rules[decision.rules_len++] =
        (struct weir_rule_answer){ .rule = &innocent, .allowed = true };
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(input, "violated"), i, name)
    {
        rules[i].name = json_string_value(name);
        decision.rules[decision.rules_len++].rule = &rules[i];
    }

    char room[256];
    struct weir__problem problem = {
        .status = (int)json_integer_value(json_object_get(input, "status")),
        .code = json_string_value(json_object_get(input, "code")),
        .detail = detail_of(input, room),
        .decision = &decision,
        .retry_after = json_integer_value(json_object_get(input, "retry_after")),
        .request_id = json_string_value(json_object_get(input, "request_id")),
    };
    struct weir__buf body;
    weir__buf_init(&body, 0);
    cr_assert(weir__problem_body(&problem, format_of(input), &body));
    cr_assert(weir__buf_append(&body, "", 1));
    const char *expected = read_file(folder, "expected.json", &len);
    cr_expect_str_eq(body.bytes, expected, "%s:\n%s\n%s", folder, body.bytes, expected);
    weir__buf_finish(&body);
    json_decref(input);
}

Test(problem, gives_the_golden_bytes)
{
    DIR *folder = opendir(TEST_DATA "/golden");
    cr_assert_not_null(folder);
    unsigned ran = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        check_case(entry->d_name);
        ran++;
    }
    closedir(folder);
    cr_assert_geq(ran, 15);
}

/* ---- as an answer ------------------------------------------------------------------ */

static struct weir w;

static void setup(void)
{
    w = (struct weir){ .status = 0 };
    weir__arena_init(&w.arena, 65536, 4096);
    weir__buf_init(&w.out, WEIR__OUT_MAX);
}

static void teardown(void)
{
    weir__arena_finish(&w.arena);
    weir__buf_finish(&w.out);
}

TestSuite(problem, .init = setup, .fini = teardown);

static const char *body(void)
{
    cr_assert(weir__buf_append(&w.out, "", 1));
    w.out.len--;
    return w.out.bytes;
}

Test(problem, replaces_an_answer_that_was_begun)
{
    weir_set_status(&w, 200);
    weir_set_header(&w, "Content-Type", "text/csv");
    weir_set_header(&w, "ETag", "\"abc\"");
    weir_set_header(&w, "Content-Encoding", "gzip");
    weir_set_header(&w, "Allow", "GET");
    weir__buf_append(&w.out, "half", 4);
    cr_assert_eq(weir_problem(&w, 405, "MethodNotAllowed", NULL), 405);
    cr_expect_eq(weir_status(&w), 405);
    cr_expect_str_eq(weir_response_header(&w, "content-type"),
                     "application/problem+json");
    cr_expect_null(weir_response_header(&w, "ETag"));
    cr_expect_null(weir_response_header(&w, "Content-Encoding"));
    cr_expect_str_eq(weir_response_header(&w, "Allow"), "GET");
    cr_expect_str_eq(body(),
                     "{\"type\":\"about:blank\",\"title\":\"Method Not Allowed\","
                     "\"status\":405,\"code\":\"MethodNotAllowed\"}");
}

Test(problem, carries_the_id_of_the_request)
{
    w.request_id = "abc";
    weir_problem(&w, 404, "NotFound", "No such city.");
    cr_expect_str_eq(body(),
                     "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,"
                     "\"detail\":\"No such city.\",\"code\":\"NotFound\","
                     "\"request_id\":\"abc\"}");
}

Test(problem, a_refusal_in_response_status_form_is_plain_json)
{
    static const struct weir_rule rule = { .name = "minute" };
    struct weir_decision decision = { .rules_len = 1, .rules = { { .rule = &rule } } };
    cr_assert(weir__problem_refusal(
        &w, WEIR_FORMAT_RESPONSE_STATUS, 429, "TooManyRequests", &decision, 3));
    cr_expect_str_eq(weir_response_header(&w, "Content-Type"), "application/json");
    cr_expect_str_eq(body(),
                     "{\"responseStatus\":{\"errorCode\":\"TooManyRequests\",\"message\":"
                     "\"Rate limit exceeded, try again in 3 seconds.\"}}");
}

Test(problem, a_body_without_room_is_left_out_whole)
{
    weir__buf_finish(&w.out);
    weir__buf_init(&w.out, 60);
    struct weir__problem problem = { .status = 404, .code = "NotFound" };
    cr_expect_not(weir__problem_answer(&w, &problem, WEIR_FORMAT_PROBLEM));
    cr_expect_eq(w.out.len, 0);
    cr_expect_eq(w.status, 404);
}

Test(problem, comes_too_late_once_the_head_is_built)
{
    cr_assert(weir__response_build_head(&w, true));
    struct weir__problem problem = { .status = 404, .code = "NotFound" };
    cr_expect_not(weir__problem_answer(&w, &problem, WEIR_FORMAT_PROBLEM));
    cr_expect_eq(w.status, 200);
    cr_expect_eq(w.out.len, 0);
}
