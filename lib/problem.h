/* The body of a refusal by a limit. Other error bodies are weir_problem()'s. */
#ifndef WEIR_PROBLEM_H
#define WEIR_PROBLEM_H

#include <weir/weir.h>

/* Makes the whole answer of a refusal but for its fields: status, Content-Type and body,
 * as compact JSON, members in the order type, title, status, detail, code,
 * violated-policies, retry_after, request_id, responseStatus.
 *
 * status is 429 (type quota-exceeded) or 503 (temporary-reduced-capacity); code a stable
 * word; violated-policies names the rules of decision that refused, in their order, and
 * is left out for 503; retry_after is whole seconds, 0 leaves it out ("Rate limit
 * exceeded, try again in 42 seconds."; without a wait "Rate limit exceeded."; for
 * CostExceedsLimit the detail says that the request costs more than the limit admits).
 * False when memory is short. Only by the owner of the request. */
bool weir__problem_refusal(struct weir *w,
                           enum weir_refusal_format format,
                           int status,
                           const char *code,
                           const struct weir_decision *decision,
                           int64_t retry_after);

#endif
