/* The line before handlers that may run for one request of this process at a time. Who
 * stands in it has no thread: a slow one holds up its like alone, not the worker. */
#ifndef WEIR_LINE_H
#define WEIR_LINE_H

#include "request.h"

/* True: it is this request's turn, until weir__line_leave(). False: it is parked, and
 * resumed when its turn may have come; the caller must not touch it any more and calls
 * this again then. By the owner of the request. */
bool weir__line_enter(struct weir *w);

/* Leaves the line, from any place in it; whose turn comes by that is woken. A no-op for
 * who isn't in it. By the owner of the request. */
void weir__line_leave(struct weir *w);

#endif
