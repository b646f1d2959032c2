/* The answers that Weir gives itself. All but the last resort go through the commit hooks
 * like a handler's; each replaces what was begun. */
#ifndef WEIR_ANSWER_H
#define WEIR_ANSWER_H

#include "request.h"

/* Handlers for requests without an endpoint; none of them blocks. Each returns its
 * status. */
int weir__answer_not_found(struct weir *w);   /* 404 */
int weir__answer_not_allowed(struct weir *w); /* 405 with Allow */
int weir__answer_options(struct weir *w);     /* 204 with Allow */
int weir__answer_authorized(struct weir *w);  /* 200 without a body, for an authorizer */
int weir__answer_refusal(struct weir *w);     /* w->refusal */

/* A 500. */
void weir__answer_internal_error(struct weir *w);

/* 503, code Overloaded, with Retry-After; what was charged goes back. */
void weir__answer_overloaded(struct weir *w);

/* Memory is short: a 500 whose head is a constant, so that it can always be given. */
void weir__answer_last_resort(struct weir *w);

#endif
