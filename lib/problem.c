/* The one maker of error bodies. It writes JSON by itself: the members stand in a fixed
 * order, nothing is allocated but the buffer, and hostile bytes can't make it fail.
 *
 * What goes in is for the client: no address of a store, no key, no internal name. */
#include "problem.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "response.h"

#define QUOTA_TYPE "https://iana.org/assignments/http-problem-types#quota-exceeded"
#define QUOTA_TITLE "Request cannot be satisfied as assigned quota has been exceeded"

/* What is said where nobody gave a detail. */
static const struct {
    const char *code, *detail;
    bool wait; /* and when to come again, where that is known */
} details[] = {
    { "TooManyRequests", "Rate limit exceeded", true },
    { "StoreUnavailable", "Rate limits can't be checked at the moment", true },
    { "Overloaded", "The service is busy", true },
    { "CallerBlocked", "Requests of this caller are not served", false },
    { "CostExceedsLimit", "This request costs more than its limit ever allows", false },
};

/* Fields that describe a body, and so not another in its place (RFC 9110 8). */
static const char *const about_the_body[] = {
    "Content-Encoding", "Content-Language",    "Content-Location",
    "Content-Range",    "Content-Digest",      "Repr-Digest",
    "Digest",           "Content-Disposition", "ETag",
    "Last-Modified",
};

/* A body under construction. */
struct writer {
    struct weir__buf *buf;
    bool ok; /* nothing failed so far */
};

static void put(struct writer *to, const char *bytes, size_t len)
{
    to->ok = to->ok && weir__buf_append(to->buf, bytes, len);
}

static void put_text(struct writer *to, const char *text)
{
    put(to, text, strlen(text));
}

/* How many bytes from text on are one character of UTF-8; 0 where it is none. */
static size_t character_len(const char *text, size_t len)
{
    unsigned char first = (unsigned char)text[0];
    size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    return bytes <= len && weir__utf8_is_valid(text, bytes) ? bytes : 0;
}

static void put_character(struct writer *to, const char *text, size_t bytes)
{
    unsigned char first = (unsigned char)text[0];
    if (bytes == 0)
        put_text(to, "\\ufffd");
    else if (first < 0x20)
        to->ok = to->ok && weir__buf_printf(to->buf, "\\u%04x", first);
    else if (first == '"' || first == '\\')
        put(to, (const char[]){ '\\', text[0] }, 2);
    else
        put(to, text, bytes);
}

/* A JSON string (RFC 8259 section 7) without its quotes. */
static void put_escaped(struct writer *to, const char *text)
{
    size_t len = strlen(text);
    while (len > 0 && to->ok) {
        size_t bytes = character_len(text, len), step = bytes ? bytes : 1;
        put_character(to, text, bytes);
        text += step;
        len -= step;
    }
}

/* name is the member with its punctuation: ",\"code\":". */
static void put_member(struct writer *to, const char *name, const char *text)
{
    put_text(to, name);
    put_text(to, "\"");
    put_escaped(to, text);
    put_text(to, "\"");
}

static void put_number(struct writer *to, const char *name, int64_t number)
{
    to->ok = to->ok && weir__buf_printf(to->buf, "%s%" PRId64, name, number);
}

/* Whether an earlier rule of the same name is listed. */
static bool is_listed(const struct weir_decision *decision, unsigned index)
{
    for (unsigned i = 0; i < index; i++) {
        if (!decision->rules[i].allowed &&
            strcmp(decision->rules[i].rule->name, decision->rules[index].rule->name) == 0)
            return true;
    }
    return false;
}

static void put_violated(struct writer *to, const struct weir_decision *decision)
{
    const char *before = ",\"violated-policies\":[";
    bool any = false;
    for (unsigned i = 0; decision && i < decision->rules_len; i++) {
        if (decision->rules[i].allowed || is_listed(decision, i))
            continue;
        put_member(to, any ? "," : before, decision->rules[i].rule->name);
        any = true;
    }
    if (any)
        put_text(to, "]");
}

/* The detail as a JSON string without its quotes. False where there is none. */
static bool put_detail(struct writer *to, const struct weir__problem *problem)
{
    if (problem->detail) {
        put_escaped(to, problem->detail);
        return true;
    }
    for (unsigned i = 0; i < sizeof details / sizeof details[0]; i++) {
        if (strcmp(details[i].code, problem->code) != 0)
            continue;
        put_text(to, details[i].detail);
        if (details[i].wait && problem->retry_after > 0) {
            put_number(to, ", try again in ", problem->retry_after);
            put_text(to, problem->retry_after == 1 ? " second" : " seconds");
        }
        put_text(to, ".");
        return true;
    }
    return false;
}

static const char *title_of(const struct weir__problem *problem)
{
    return problem->status == 429 ? QUOTA_TITLE : weir__status_phrase(problem->status);
}

static void put_problem(struct writer *to, const struct weir__problem *problem)
{
    put_member(to, "\"type\":", problem->status == 429 ? QUOTA_TYPE : "about:blank");
    if (*title_of(problem))
        put_member(to, ",\"title\":", title_of(problem));
    put_number(to, ",\"status\":", problem->status);
    size_t before = to->buf->len;
    put_text(to, ",\"detail\":\"");
    if (put_detail(to, problem))
        put_text(to, "\"");
    else
        to->buf->len = before;
    put_member(to, ",\"code\":", problem->code);
    if (problem->status == 429)
        put_violated(to, problem->decision);
    if (problem->retry_after > 0)
        put_number(to, ",\"retry_after\":", problem->retry_after);
    if (problem->request_id)
        put_member(to, ",\"request_id\":", problem->request_id);
}

static void put_response_status(struct writer *to, const struct weir__problem *problem)
{
    put_text(to, "\"responseStatus\":{");
    put_member(to, "\"errorCode\":", problem->code);
    put_text(to, ",\"message\":\"");
    if (!put_detail(to, problem))
        put_escaped(to, *title_of(problem) ? title_of(problem) : problem->code);
    put_text(to, "\"}");
}

bool weir__problem_body(const struct weir__problem *problem,
                        enum weir_refusal_format format,
                        struct weir__buf *buf)
{
    size_t before = buf->len;
    struct writer to = { .buf = buf, .ok = true };
    put_text(&to, "{");
    if (format != WEIR_FORMAT_RESPONSE_STATUS)
        put_problem(&to, problem);
    if (format == WEIR_FORMAT_BOTH)
        put_text(&to, ",");
    if (format != WEIR_FORMAT_PROBLEM)
        put_response_status(&to, problem);
    put_text(&to, "}");
    if (!to.ok)
        buf->len = before;
    return to.ok;
}

const char *weir__problem_media_type(enum weir_refusal_format format)
{
    return format == WEIR_FORMAT_RESPONSE_STATUS ? "application/json"
                                                 : "application/problem+json";
}

bool weir__problem_answer(struct weir *w,
                          const struct weir__problem *problem,
                          enum weir_refusal_format format)
{
    struct weir__problem whole = *problem;
    if (!whole.request_id)
        whole.request_id = w->request_id;
    if (!weir__response_begin(w, whole.status, weir__problem_media_type(format)))
        return false;
    weir__response_drop(
        w, about_the_body, sizeof about_the_body / sizeof about_the_body[0]);
    return weir__problem_body(&whole, format, &w->out);
}

bool weir__problem_refusal(struct weir *w,
                           enum weir_refusal_format format,
                           int status,
                           const char *code,
                           const struct weir_decision *decision,
                           int64_t retry_after)
{
    struct weir__problem problem = {
        .status = status, .code = code, .decision = decision, .retry_after = retry_after
    };
    return weir__problem_answer(w, &problem, format);
}

int weir_problem(struct weir *w, int status, const char *code, const char *detail)
{
    struct weir__problem problem = { .status = status, .code = code, .detail = detail };
    weir__problem_answer(w, &problem, WEIR_FORMAT_PROBLEM);
    return status;
}
