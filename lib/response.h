/* What the pieces of a response need of each other, beside request.h. */
#ifndef WEIR_RESPONSE_H
#define WEIR_RESPONSE_H

#include "request.h"

/* Whether head and body can still be changed. If not, and it is not Weir that has put an
 * answer of its own in their place, somebody broke a rule, which is reported. */
bool weir__response_is_open(struct weir *w);

/* Whether a field is Weir's own to send: Status, Content-Length, and those of one
 * connection only (RFC 3875 section 6.3.4). Any thread. */
bool weir__response_is_reserved(const char *name);

/* Removes the fields of these names. Before the head is built. */
void weir__response_drop(struct weir *w, const char *const *names, unsigned names_len);

/* Begins a whole answer: sets status and Content-Type, drops the body so far. False where
 * it is too late, or the status or memory doesn't allow it. */
bool weir__response_begin(struct weir *w, int status, const char *content_type);

/* Ends it: the status to return. written false: a 500 in its place, unless the client is
 * gone or the head has left. */
int weir__response_end(struct weir *w, int status, bool written);

/* Whether a status has no body by definition: 204 and 304 (RFC 9110 6.4.1). */
bool weir__status_is_bodiless(int status);

#endif
