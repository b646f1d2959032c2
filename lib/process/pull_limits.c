/* The little language of WEIR_LIMIT. Cuts the text where it stands, in one copy that
 * patterns and names then point into.
 *
 * Knows the form alone: a pattern or number that makes no sense is found by the same
 * checks as a table's. */
#include "process/pull_limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "process/units.h"

#define BLANKS " \t\r\n"
#define ENDPOINTS_MAX 512 /* patterns, with those that are added */

/* The rules of one limit. */
struct weir__pull_rules {
    struct weir__pull_rules *next;
    struct weir_rule rules[WEIR_RULES_MAX + 1];
};

struct reader {
    weir_fcgx_fn *fcgx;
    struct weir__pull_rules *rules;
    struct weir_endpoint *endpoints;
    unsigned endpoints_len;
    const struct weir_rule *defaults;
    struct weir_error *error;
};

/* ---- rules ------------------------------------------------------------------------- */

static bool read_by(const char *word, enum weir_by *ret_by)
{
    static const struct {
        const char *word;
        enum weir_by by;
    } words[] = { { "caller", WEIR_BY_CALLER },
                  { "ip", WEIR_BY_IP },
                  { "all", WEIR_BY_EVERYBODY } };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i].word) == 0) {
            *ret_by = words[i].by;
            return true;
        }
    }
    return false;
}

/* "100/60s", "minute=100/60s@ip"; cuts the word. */
static bool read_window(char *word, struct weir_rule *ret_rule)
{
    uint64_t max = 0, window_ms = 0;
    enum weir_by by = WEIR_BY_CALLER;
    char *at = strrchr(word, '@');
    char *equals = strchr(word, '=');
    char *count = equals ? equals + 1 : word;
    char *slash = strchr(count, '/');
    if (!slash || equals == word || (at && !read_by(at + 1, &by)))
        return false;
    if (at)
        *at = '\0';
    if (equals)
        *equals = '\0';
    *slash = '\0';
    if (!weir__unit_parse(WEIR__UNIT_COUNT, count, &max) || max > INT64_MAX ||
        !weir__unit_parse(WEIR__UNIT_TIME, slash + 1, &window_ms) ||
        window_ms > INT64_MAX / 1000)
        return false;
    *ret_rule = (struct weir_rule)WEIR_FIXED_WINDOW(
        equals ? word : "limit", (int64_t)max, (int64_t)window_ms * 1000, .by = by);
    return true;
}

static bool read_rule(struct reader *reader, char *word, struct weir_rule *ret_rule)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "%s", word);
    if (strcmp(word, "unlimited") == 0) {
        *ret_rule = WEIR_UNLIMITED[0];
        return true;
    }
    return read_window(word, ret_rule) ||
           weir__error(reader->error,
                       "limit: \"%s\" is no rule such as 100/60s, day=1000/86400s@ip "
                       "or unlimited",
                       quoted);
}

/* The words from `word` on. NULL with a text. */
static const struct weir_rule *read_rules(struct reader *reader, char *word, char **rest)
{
    struct weir__pull_rules *rules = calloc(1, sizeof *rules);
    unsigned len = 0;
    if (!rules) {
        weir__error(reader->error, "limit: out of memory");
        return NULL;
    }
    rules->next = reader->rules;
    reader->rules = rules;
    for (; word; word = strtok_r(NULL, BLANKS, rest)) {
        if (len == WEIR_RULES_MAX) {
            weir__error(reader->error, "limit: more than %d rules", WEIR_RULES_MAX);
            return NULL;
        }
        if (!read_rule(reader, word, &rules->rules[len++]))
            return NULL;
    }
    return rules->rules;
}

/* ---- paths ------------------------------------------------------------------------- */

static const char *path_of(const char *pattern)
{
    return strchr(pattern, ' ') + 1;
}

/* Whether the two are one path: what {name} is called makes no difference. */
static bool is_same_path(const char *a, const char *b)
{
    while (*a && *b) {
        if (*a == '{' && *b == '{') {
            a += strcspn(a, "}");
            b += strcspn(b, "}");
        }
        if (*a != *b)
            return false;
        a += *a != '\0';
        b += *b != '\0';
    }
    return *a == *b;
}

static bool has_any_method(const struct reader *reader, const char *path)
{
    for (unsigned i = 0; i < reader->endpoints_len; i++)
        if (strncmp(reader->endpoints[i].pattern, "* ", 2) == 0 &&
            is_same_path(path_of(reader->endpoints[i].pattern), path))
            return true;
    return false;
}

static bool add(struct reader *reader,
                const char *method,
                const char *path,
                const struct weir_rule *rules)
{
    size_t bytes = strlen(method) + 1 + strlen(path) + 1;
    if (reader->endpoints_len == ENDPOINTS_MAX)
        return weir__error(reader->error, "limit: more than %d paths", ENDPOINTS_MAX / 2);
    char *pattern = malloc(bytes);
    if (!pattern)
        return weir__error(reader->error, "limit: out of memory");
    snprintf(pattern, bytes, "%s %s", method, path);
    struct weir_endpoint *endpoint = &reader->endpoints[reader->endpoints_len++];
    endpoint->pattern = pattern;
    endpoint->limits = rules;
    endpoint->fcgx = reader->fcgx;
    endpoint->parallel = true;
    return true;
}

/* ---- the text ---------------------------------------------------------------------- */

/* [[METHOD] PATH] RULE... */
static bool read_limit(struct reader *reader, char *text)
{
    char *rest = NULL;
    const char *method = "*", *path = NULL;
    char *word = strtok_r(text, BLANKS, &rest);
    if (!word)
        return true; /* nothing between two semicolons */
    if (word[0] != '/' && !strchr(word, '/') && strcmp(word, "unlimited") != 0) {
        method = word;
        word = strtok_r(NULL, BLANKS, &rest);
        if (!word || word[0] != '/')
            return weir__error(
                reader->error, "limit: \"%s\" is no rule, and no path follows", method);
    }
    if (word[0] == '/') {
        path = word;
        word = strtok_r(NULL, BLANKS, &rest);
    }
    if (!word)
        return weir__error(reader->error, "limit: %s has no rule such as 100/60s", path);
    const struct weir_rule *rules = read_rules(reader, word, &rest);
    if (!rules)
        return false;
    if (path)
        return add(reader, method, path, rules);
    if (reader->defaults)
        return weir__error(reader->error, "limit: two are without a path");
    reader->defaults = rules;
    return true;
}

static bool read_all(struct reader *reader, char *text)
{
    char *rest = NULL;
    for (char *limit = strtok_r(text, ";", &rest); limit;
         limit = strtok_r(NULL, ";", &rest))
        if (!read_limit(reader, limit))
            return false;
    return true;
}

/* Where a path has limits for some methods the others go to the program too. */
static bool add_other_methods(struct reader *reader)
{
    unsigned len = reader->endpoints_len;
    for (unsigned i = 0; i < len; i++) {
        const char *path = path_of(reader->endpoints[i].pattern);
        if (!has_any_method(reader, path) && !add(reader, "*", path, NULL))
            return false;
    }
    return has_any_method(reader, "/*") || add(reader, "*", "/*", NULL);
}

void weir__pull_limits_finish(struct weir__pull_limits *limits)
{
    for (struct weir_endpoint *at = limits->endpoints; at && at->pattern; at++)
        free((void *)at->pattern);
    while (limits->rules) {
        struct weir__pull_rules *next = limits->rules->next;
        free(limits->rules);
        limits->rules = next;
    }
    free(limits->endpoints);
    free(limits->text);
}

bool weir__pull_limits_parse(const char *text,
                             weir_fcgx_fn *fcgx,
                             struct weir__pull_limits *ret_limits,
                             struct weir_error *ret_error)
{
    struct reader reader = {
        .fcgx = fcgx,
        .error = ret_error,
        .endpoints = calloc(ENDPOINTS_MAX + 1, sizeof(struct weir_endpoint)),
    };
    char *copy = strdup(text);
    if (!copy || !reader.endpoints) {
        free(copy);
        free(reader.endpoints);
        return weir__error(ret_error, "limit: out of memory");
    }
    bool ok = read_all(&reader, copy);
    bool has_paths = reader.endpoints_len > 0;
    ok = ok && add_other_methods(&reader);
    struct weir__pull_limits limits = { .endpoints = reader.endpoints,
                                        .defaults = reader.defaults,
                                        .has_paths = has_paths,
                                        .rules = reader.rules,
                                        .text = copy };
    if (ok)
        *ret_limits = limits;
    else
        weir__pull_limits_finish(&limits);
    return ok;
}
