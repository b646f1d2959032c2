/* Limits as people write them in WEIR_LIMIT and in weir-run --limit, for programs that
 * have no table of endpoints: text in, endpoints and rules out.
 *
 *     100/60s                               each caller, on every path
 *     GET /api/{name} 10/1s day=1000/86400s two rules of one path
 *     POST /login 5/900s@ip; / unlimited    several, and no limit at all
 *
 * A limit is [[METHOD] PATH] RULE...; without a path it is the default. A path is a
 * pattern of endpoints. A rule is [NAME=]COUNT/TIME[@ip|@all], a fixed window for each
 * caller, each address, or for everybody together; or "unlimited". */
#ifndef WEIR_PROCESS_PULL_LIMITS_H
#define WEIR_PROCESS_PULL_LIMITS_H

#include <weir/weir.h>

struct weir__pull_limits {
    struct weir_endpoint *endpoints;  /* all paths; ended by one without pattern */
    const struct weir_rule *defaults; /* NULL: none */
    bool has_paths;                   /* the text names at least one */
    struct weir__pull_rules *rules;   /* all of them */
    char *text;                       /* where the rules' names are */
};

/* Reads the text ("" is no limit). Every path goes to `fcgx`, `.parallel`; the methods of
 * a path that the text doesn't name go there by the default. What patterns and rules may
 * be beyond their form is checked by weir__app_create(). False with a text that quotes
 * the mistake. Not for several threads. */
bool weir__pull_limits_parse(const char *text,
                             weir_fcgx_fn *fcgx,
                             struct weir__pull_limits *ret_limits,
                             struct weir_error *ret_error);

void weir__pull_limits_finish(struct weir__pull_limits *limits);

#endif
