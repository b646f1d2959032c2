/* What the environment says to a program with a loop of its own: the options of weir_main
 * and limits, in variables. */
#ifndef WEIR_PROCESS_PULL_ENVIRONMENT_H
#define WEIR_PROCESS_PULL_ENVIRONMENT_H

#include "options.h"
#include "process/pull_limits.h"

#define WEIR__PULL_PREFIX "WEIR_"
#define WEIR__PULL_LIMIT "WEIR_LIMIT"

/* Reads WEIR_LIMIT and each WEIR_MAX_BODY as --max-body. Values point into memory that is
 * never freed. False with a text; a variable of that form which is no option is a mistake
 * too, since it may be a limit that was meant, and so is libfcgi's list of peers, since
 * it would be passed over. Not for several threads. */
bool weir__pull_environment(weir_fcgx_fn *fcgx,
                            struct weir__options *ret_options,
                            struct weir__pull_limits *ret_limits,
                            struct weir_error *ret_error);

#endif
