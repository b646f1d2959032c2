/* Error bodies of hostile texts: always JSON, always with the same members, and valid
 * text comes through unchanged. The input is a status (two bytes), a format, the code,
 * the detail, the request's id, each text ended by a NUL. */
#include "fuzz.h"

#include <jansson.h>

#include "base/utf8.h"
#include "problem.h"

/* A text that is UTF-8 stands as it is; any other has U+FFFD in it. */
static void must_carry(const json_t *object, const char *member, const char *text)
{
    const char *got = json_string_value(json_object_get(object, member));
    MUST(got);
    if (weir__utf8_is_valid(text, strlen(text)))
        MUST(strcmp(got, text) == 0);
    else
        MUST(strstr(got, "\xef\xbf\xbd"));
}

static void must_say(const struct weir__problem *problem,
                     enum weir_refusal_format format,
                     const struct weir__buf *body)
{
    json_t *object = json_loadb(body->bytes, body->len, JSON_REJECT_DUPLICATES, NULL);
    MUST(json_is_object(object));
    if (format != WEIR_FORMAT_RESPONSE_STATUS) {
        MUST(json_integer_value(json_object_get(object, "status")) == problem->status);
        must_carry(object, "code", problem->code);
        must_carry(object, "detail", problem->detail);
        must_carry(object, "request_id", problem->request_id);
    }
    if (format != WEIR_FORMAT_PROBLEM) {
        const json_t *status = json_object_get(object, "responseStatus");
        must_carry(status, "errorCode", problem->code);
        must_carry(status, "message", problem->detail);
    }
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    enum weir_refusal_format format = (enum weir_refusal_format)(data[2] % 3);
    struct weir__problem problem = { .status = data[0] << 8 | data[1],
                                     .retry_after = data[2] };
    data += 3;
    size -= 3;
    char *code = fuzz_text(&data, &size), *detail = fuzz_text(&data, &size);
    char *id = fuzz_text(&data, &size);
    problem.code = code;
    problem.detail = detail;
    problem.request_id = id;
    struct weir__buf body;
    weir__buf_init(&body, 0);
    MUST(weir__problem_body(&problem, format, &body));
    must_say(&problem, format, &body);
    weir__buf_finish(&body);
    free(code);
    free(detail);
    free(id);
    return 0;
}
