/* The smallest filter, to copy. It has options, a start that checks them, and one hook.
 *
 * A header belongs into commit and not into before: commit runs for every answer, also
 * for one that another filter gave or that replaced what went wrong. */
#include "skeleton.h"

#include <stdio.h>
#include <string.h>

/* Checks the options, before any worker. self stays the options struct, since ret_self is
 * left alone. */
static bool start(const struct weir_app *app,
                  const void *options,
                  void **ret_self,
                  struct weir_error *ret_error)
{
    const struct weir_skeleton *skeleton = options;
    (void)app, (void)ret_self;
    if (skeleton->value && strpbrk(skeleton->value, "\r\n")) {
        snprintf(
            ret_error->text, sizeof ret_error->text, "skeleton: value holds a newline");
        return false;
    }
    return true;
}

static enum weir_verdict commit(struct weir *w, const void *self, void *slot)
{
    const struct weir_skeleton *skeleton = self;
    (void)slot;
    weir_set_header(w, "Weir-Skeleton", skeleton->value ? skeleton->value : "hello");
    return WEIR_NEXT;
}

const struct weir_filter weir_filter_skeleton = {
    .name = "skeleton",
    .options_size = sizeof(struct weir_skeleton),
    .start = start,
    .commit = commit,
};
