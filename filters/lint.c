/* Switches the watch over a request's hooks on. What is watched, and how, is
 * lib/lint_watch.c: it must see inside each call, which a filter beside the others could
 * not. */
#include "lint.h"

#include <stdlib.h>

#include "base/error.h"
#include "lint_watch.h"

static bool start(const struct weir_app *app,
                  const void *options,
                  void **ret_self,
                  struct weir_error *ret_error)
{
    const struct weir_lint *lint = options;
    (void)app;
    if (lint->block_ms < 0 || lint->block_ms > INT64_MAX / 1000)
        return weir__error(
            ret_error, "lint: block_ms is %lld", (long long)lint->block_ms);
    struct weir__lint_config *config = malloc(sizeof *config);
    if (!config)
        return weir__error(ret_error, "lint: out of memory");
    *config = (struct weir__lint_config){
        .block_us = (lint->block_ms ? lint->block_ms : 50) * 1000,
        .abort = lint->abort,
        .report = lint->report,
        .arg = lint->arg,
    };
    *ret_self = config;
    return true;
}

static enum weir_verdict before(struct weir *w, const void *self, void *slot)
{
    weir__lint_attach(w, slot, self);
    return WEIR_NEXT;
}

const struct weir_filter weir_filter_lint = {
    .name = "lint",
    .options_size = sizeof(struct weir_lint),
    .slot_size = sizeof(struct weir__lint),
    .start = start,
    .stop = free,
    .before = before,
};
