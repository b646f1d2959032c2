/* Freezes the chain at start, and refuses an order that is a mistake.
 *
 * Everything that can be wrong with a list of filters is found here, before a worker
 * runs; life.c takes the result as given. */
#include "chain.h"

#include <string.h>

#include "base/error.h"
#include "lint_watch.h"

#define ALIGN 16
#define SLOT_MAX_BYTES ((size_t)64 * 1024)

static bool is_name(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name);
}

/* Whether a blank-separated list has the word of that length. */
static bool has_word(const char *list, const char *word, size_t len)
{
    while (list && *list) {
        size_t here = strcspn(list, " ");
        if (here == len && memcmp(list, word, len) == 0)
            return true;
        list += here;
        list += strspn(list, " ");
    }
    return false;
}

static bool provided(const struct weir__app *app, const char *word, size_t len)
{
    for (unsigned i = 0; i < app->stages_len; i++)
        if (has_word(app->stages[i].filter->provides, word, len))
            return true;
    return false;
}

/* The filter from this entry on that provides the word, for the text of an error. */
static const char *provider(const struct weir_use *rest, const char *word, size_t len)
{
    for (; rest->filter; rest++)
        if (has_word(rest->filter->provides, word, len))
            return rest->filter->name;
    return NULL;
}

static bool check_needs(const struct weir__app *app,
                        const struct weir_use *use,
                        struct weir_error *ret_error)
{
    const char *word = use->filter->needs;
    while (word && *word) {
        size_t len = strcspn(word, " ");
        if (len > 0 && !provided(app, word, len)) {
            const char *later = provider(use + 1, word, len);
            return later ? weir__error(ret_error,
                                       "chain: %s needs \"%.*s\": put it behind %s",
                                       use->filter->name,
                                       (int)len,
                                       word,
                                       later)
                         : weir__error(ret_error,
                                       "chain: %s needs \"%.*s\", and no filter before "
                                       "it provides that",
                                       use->filter->name,
                                       (int)len,
                                       word);
        }
        word += len;
        word += strspn(word, " ");
    }
    return true;
}

/* The options' first member is their size, as the app was compiled. */
static bool check_options(const struct weir_use *use, struct weir_error *ret_error)
{
    size_t size;
    if (use->filter->options_size == 0)
        return true;
    if (!use->options)
        return weir__error(
            ret_error, "chain: %s has no options: use WEIR_USE()", use->filter->name);
    memcpy(&size, use->options, sizeof size);
    if (size == use->filter->options_size)
        return true;
    return weir__error(
        ret_error,
        "chain: the options of %s have %zu bytes in the app and %zu in the "
        "filter: they were built against different headers",
        use->filter->name,
        size,
        use->filter->options_size);
}

static bool check_entry(const struct weir__app *app,
                        const struct weir_use *use,
                        struct weir_error *ret_error)
{
    const struct weir_filter *filter = use->filter;
    if (!filter->name || !is_name(filter->name))
        return weir__error(
            ret_error,
            "chain: filter %u has the name \"%s\": one of [a-z_] is needed",
            app->stages_len + 1,
            filter->name ? filter->name : "");
    if (app->stages_len == WEIR__STAGES_MAX)
        return weir__error(ret_error,
                           "chain: %s is one too many, at most %d filters",
                           filter->name,
                           WEIR__STAGES_MAX);
    for (unsigned i = 0; i < app->stages_len; i++)
        if (strcmp(app->stages[i].filter->name, filter->name) == 0)
            return weir__error(ret_error, "chain: %s stands twice", filter->name);
    if (filter->slot_size > SLOT_MAX_BYTES)
        return weir__error(ret_error,
                           "chain: the slot of %s has %zu bytes, at most %zu",
                           filter->name,
                           filter->slot_size,
                           SLOT_MAX_BYTES);
    return check_options(use, ret_error) && check_needs(app, use, ret_error);
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Starts one filter and gives it its place. The bytes behind its slot are lint's. */
static bool
add(struct weir__app *app, const struct weir_use *use, struct weir_error *ret_error)
{
    void *made = NULL;
    if (use->filter->start &&
        !use->filter->start(app->declared, use->options, &made, ret_error))
        return weir__error(ret_error, "chain: %s refused to start", use->filter->name);
    app->stages[app->stages_len++] = (struct weir__stage){
        .filter = use->filter,
        .made = made,
        .self = made ? made : use->options,
        .slot_offset = app->slots_bytes,
    };
    app->limited = app->limited || has_word(use->filter->provides, "ratelimit", 9);
    app->slots_bytes += aligned(use->filter->slot_size + WEIR__CANARY_BYTES);
    return true;
}

bool weir__chain_start(struct weir__app *app, struct weir_error *ret_error)
{
    const struct weir_use *use = app->declared->chain;
    if (!use)
        use = weir_chain_default;
    for (; use->filter; use++) {
        if (!check_entry(app, use, ret_error) || !add(app, use, ret_error)) {
            weir__chain_stop(app);
            return false;
        }
    }
    return true;
}

void weir__chain_stop(struct weir__app *app)
{
    while (app->stages_len > 0) {
        const struct weir__stage *stage = &app->stages[--app->stages_len];
        if (stage->filter->stop)
            stage->filter->stop(stage->made);
    }
    app->slots_bytes = 0;
}
