/* The app's calls on the head of what goes out: status and fields.
 *
 * Everything is checked when it is set, so that building the head can't fail on a value.
 * What comes after the answer is complete is a breach of the chain's rules (lint.h) and
 * is dropped. Nothing is sent from here. */
#include "response.h"

#include <string.h>
#include <strings.h>

#include "field.h"
#include "lint_watch.h"

#define FIELDS_FIRST 16

/* Weir's own, and those of one connection only (RFC 9110 7.6.1, RFC 3875 6.3.4). A `*`
 * stands for any end. */
static const char *const reserved[] = {
    "Status", "Content-Length", "Connection", "Keep-Alive", "Transfer-Encoding",
    "TE",     "Trailer",        "Upgrade",    "Proxy-*",
};

/* Fields that may stand once: a second line is read differently by every client. */
static const char *const single[] = { "Content-Type", "Location", "Retry-After" };

/* ---- status and fields ------------------------------------------------------------- */

bool weir__response_is_open(struct weir *w)
{
    if (!w->head_text)
        return true;
    if (!w->sealed)
        weir__breach(w, WEIR_BREACH_LATE);
    return false;
}

bool weir_set_status(struct weir *w, int status)
{
    if (!weir__response_is_open(w))
        return false;
    if (status < 200 || status > 599) {
        weir__breach(w, WEIR_BREACH_STATUS);
        return false;
    }
    w->status = status;
    return true;
}

int weir_status(const struct weir *w)
{
    return w->status;
}

bool weir__response_is_reserved(const char *name)
{
    for (unsigned i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        size_t len = strcspn(reserved[i], "*");
        if (strncasecmp(name, reserved[i], len) == 0 &&
            (reserved[i][len] == '*' || name[len] == '\0'))
            return true;
    }
    return false;
}

static bool is_one_of(const char *name, const char *const *names, unsigned names_len)
{
    for (unsigned i = 0; i < names_len; i++) {
        if (strcasecmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static bool is_single(const char *name)
{
    return is_one_of(name, single, sizeof single / sizeof single[0]);
}

/* Checks a field before it is set. */
static bool check_field(struct weir *w, const char *name, const char *value)
{
    if (!weir__response_is_open(w))
        return false;
    if (!weir__field_is_token(name, strlen(name)) || weir__response_is_reserved(name) ||
        (value && !weir__field_is_value(value, strlen(value)))) {
        weir__breach(w, WEIR_BREACH_HEADER);
        return false;
    }
    return true;
}

static bool copy_pair(struct weir *w,
                      const char *name,
                      const char *value,
                      struct weir__pair *ret_pair)
{
    size_t name_len = strlen(name), value_len = strlen(value);
    const char *name_copy = weir__arena_copy(&w->arena, name, name_len);
    const char *value_copy = weir__arena_copy(&w->arena, value, value_len);
    if (!name_copy || !value_copy)
        return false;
    *ret_pair = (struct weir__pair){ .name = name_copy,
                                     .value = value_copy,
                                     .name_len = (unsigned)name_len,
                                     .value_len = (unsigned)value_len };
    return true;
}

static bool append_pair(struct weir *w, const struct weir__pair *pair)
{
    if (w->fields_len == w->fields_capacity) {
        unsigned capacity = w->fields_capacity ? w->fields_capacity * 2 : FIELDS_FIRST;
        struct weir__pair *grown =
            weir__arena_alloc(&w->arena, capacity * sizeof grown[0]);
        if (!grown)
            return false;
        if (w->fields_len > 0)
            memcpy(grown, w->fields, w->fields_len * sizeof grown[0]);
        w->fields = grown;
        w->fields_capacity = capacity;
    }
    w->fields[w->fields_len++] = *pair;
    return true;
}

/* Removes all fields of that name from `first` on. */
static void remove_fields(struct weir *w, const char *name, unsigned first)
{
    unsigned kept = first;
    for (unsigned i = first; i < w->fields_len; i++) {
        if (strcasecmp(w->fields[i].name, name) != 0)
            w->fields[kept++] = w->fields[i];
    }
    w->fields_len = kept;
}

void weir__response_drop(struct weir *w, const char *const *names, unsigned names_len)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < w->fields_len; i++) {
        if (!is_one_of(w->fields[i].name, names, names_len))
            w->fields[kept++] = w->fields[i];
    }
    w->fields_len = kept;
}

/* The index of the first field of that name, or fields_len. */
static unsigned find_field(const struct weir *w, const char *name)
{
    unsigned i = 0;
    while (i < w->fields_len && strcasecmp(w->fields[i].name, name) != 0)
        i++;
    return i;
}

bool weir_set_header(struct weir *w, const char *name, const char *value)
{
    if (!check_field(w, name, value))
        return false;
    unsigned place = find_field(w, name);
    if (!value || !*value) {
        remove_fields(w, name, place);
        return true;
    }
    struct weir__pair pair;
    if (!copy_pair(w, name, value, &pair))
        return false;
    if (place == w->fields_len)
        return append_pair(w, &pair);
    w->fields[place] = pair;
    remove_fields(w, name, place + 1);
    return true;
}

bool weir_add_header(struct weir *w, const char *name, const char *value)
{
    if (!check_field(w, name, value))
        return false;
    if (!value || !*value)
        return true;
    if (is_single(name) && find_field(w, name) < w->fields_len) {
        weir__breach(w, WEIR_BREACH_HEADER);
        return false;
    }
    struct weir__pair pair;
    return copy_pair(w, name, value, &pair) && append_pair(w, &pair);
}

const char *weir_response_header(const struct weir *w, const char *name)
{
    unsigned place = find_field(w, name);
    return place < w->fields_len ? w->fields[place].value : NULL;
}

void weir__response_reset(struct weir *w)
{
    w->status = 0;
    w->fields_len = 0;
    w->body_length = -1;
    w->no_length = w->local_redirect = false;
    weir__buf_reset(&w->out, WEIR__OUT_HIGH_WATER);
}

bool weir__response_begin(struct weir *w, int status, const char *content_type)
{
    if (!weir_set_status(w, status) || !weir_set_header(w, "Content-Type", content_type))
        return false;
    w->out.len = 0;
    return true;
}
