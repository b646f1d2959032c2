/* The smallest useful filter: one hook and a start.
 *
 * It has no `before`, since it doesn't look at requests; its `commit` runs once for every
 * answer just before the first byte leaves, whoever made the answer. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "instance.h"

#define NAME_MAX_BYTES 64

static bool is_name(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t len = strlen(text);

    return len >= 1 && len <= NAME_MAX_BYTES && strspn(text, allowed) == len;
}

/* Once, before the workers: what it puts into ret_self is what commit gets as self. */
static bool start(const struct weir_app *app,
                  const void *options,
                  void **ret_self,
                  struct weir_error *ret_error)
{
    static char name[NAME_MAX_BYTES + 1];
    const struct weir_instance *instance = options;
    char host[32] = "localhost";

    (void)app;
    if (instance->name != NULL && *instance->name != NULL) {
        if (!is_name(*instance->name)) {
            snprintf(ret_error->text,
                     sizeof(ret_error->text),
                     "--instance: 1 to %d letters, digits, '.', '_' or '-'",
                     NAME_MAX_BYTES);
            return false;
        }
        snprintf(name, sizeof(name), "%s", *instance->name);
    } else {
        gethostname(host, sizeof(host) - 1);
        snprintf(name, sizeof(name), "%.31s-%ld", host, (long)getpid());
    }
    *ret_self = name;
    return true;
}

static enum weir_verdict commit(struct weir *w, const void *self, void *slot)
{
    (void)slot;
    weir_set_header(w, "Demo-Instance", self);
    return WEIR_NEXT;
}

const struct weir_filter weir_filter_instance = {
    .name = "instance",
    .options_size = sizeof(struct weir_instance),
    .start = start,
    .commit = commit,
};
