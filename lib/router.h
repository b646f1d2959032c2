/* From method and normalised path to an endpoint. Built once, then read by all threads.
 */
#ifndef WEIR_ROUTER_H
#define WEIR_ROUTER_H

#include "request.h"

/* Compiles the patterns. False names a malformed pattern (pattern.h), or one that matches
 * the same requests as another, as "GET /a/{x}" and "GET /a/{y}" do. */
bool weir__router_create(const struct weir_endpoint *endpoints,
                         struct weir__router **ret_router,
                         struct weir_error *ret_error);
void weir__router_destroy(struct weir__router *router);

enum weir__route {
    WEIR__ROUTE_FOUND,
    WEIR__ROUTE_NO_PATH,   /* 404 */
    WEIR__ROUTE_NO_METHOD, /* 405, or 204 for OPTIONS; *ret_allow lists the methods */
};

/* Finds the most specific endpoint for the normalised path that serves the method:
 * segment by segment a literal goes before {name}, and that before `*`, which also
 * matches where nothing follows; of one pattern the method itself goes before GET for
 * HEAD, and that before `*` for any. The path decides first, then the method. *ret_allow
 * is made in the arena, sorted, with HEAD beside GET and with OPTIONS; it is set for
 * NO_METHOD only, the other outputs for FOUND only. Captures point into path and pattern;
 * ret_captures has room for WEIR__CAPTURES_MAX. Any thread. */
enum weir__route weir__router_find(const struct weir__router *router,
                                   const char *method,
                                   const char *path,
                                   struct weir__arena *arena,
                                   size_t *ret_endpoint,
                                   struct weir__capture *ret_captures,
                                   unsigned *ret_captures_len,
                                   const char **ret_allow);

#endif
