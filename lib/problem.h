/* Error bodies: problem details (RFC 9457), and the form that some typed clients read. */
#ifndef WEIR_PROBLEM_H
#define WEIR_PROBLEM_H

#include "base/buf.h"
#include "request.h"

/* What an error body says. Texts may hold any bytes: what isn't UTF-8 becomes U+FFFD. */
struct weir__problem {
    int status;
    const char *code;   /* a stable word: "TooManyRequests" */
    const char *detail; /* NULL: the code's own text, where it has one */
    const struct weir_decision *decision; /* of a 429: the rules that refused are its
                                             violated-policies; NULL: none */
    int64_t retry_after;                  /* whole seconds, as in the header; 0: none */
    const char *request_id;               /* NULL: none */
};

/* Appends the body as compact JSON: type, title, status, detail, code, violated-policies,
 * retry_after, request_id, each only where it has a value. A 429's type is that of an
 * exceeded quota (draft-ietf-httpapi-ratelimit-headers, section 5), any other's
 * about:blank with the status phrase as title. False, and nothing appended, where the
 * buffer has no room. Any thread. */
bool weir__problem_body(const struct weir__problem *problem,
                        enum weir_refusal_format format,
                        struct weir__buf *buf);

/* "application/problem+json", or "application/json" for responseStatus alone. */
const char *weir__problem_media_type(enum weir_refusal_format format);

/* Makes it the request's answer: status, Content-Type and body; fields that described an
 * earlier body (ETag, Content-Encoding, ...) go. request_id is the request's own where
 * NULL. False where memory is short or the head has left; the body is then left out. Only
 * by the owner of the request. */
bool weir__problem_answer(struct weir *w,
                          const struct weir__problem *problem,
                          enum weir_refusal_format format);

/* The answer to a decision that refused: 429 or 503, with the names of its rules. The
 * same as weir__problem_answer() with these. */
bool weir__problem_refusal(struct weir *w,
                           enum weir_refusal_format format,
                           int status,
                           const char *code,
                           const struct weir_decision *decision,
                           int64_t retry_after);

#endif
