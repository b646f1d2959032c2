/* Makes one list of compiled rules for each endpoint out of an app's tables, and names
 * the mistakes that only show when rules are seen together. Runs at start alone; knows
 * nothing of requests or stores. */
#include "limit/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"

#define BLOCK_BYTES ((size_t)16 * 1024)
#define WORD_UNMATCHED "*"
#define WORD_GLOBAL "@global"

/* A rule that has a bucket of its own, for the comparison with its like. */
struct shared_rule {
    struct shared_rule *next;
    const struct weir_rule *rule;
    const char *where; /* for a text: its list */
};

struct weir__policy {
    struct weir__arena arena; /* holds all that follows */
    size_t endpoints_len;
    struct weir__policy_entry *entries; /* one more: unmatched requests */
};

/* While the policy is being made. */
struct maker {
    const struct weir_app *app;
    struct weir__policy *policy;
    struct shared_rule *shared;
    const char *meeting; /* whose requests bring the present rules together */
    struct weir_error *error;
};

/* A table of rules and how it is called in texts and keys. */
struct list {
    const struct weir_rule *rules; /* may be NULL: none */
    const char *where;             /* "endpoint \"GET /a\": limits" */
    const char *word;              /* bucket of those that name none */
};

static bool is_unlimited(const struct weir_rule *rules)
{
    return rules && rules[0].algorithm == WEIR_ALGORITHM_UNLIMITED &&
           rules[1].algorithm == WEIR_ALGORITHM_NONE;
}

static bool no_memory(struct maker *maker)
{
    return weir__error(maker->error, "limits: out of memory");
}

__attribute__((format(printf, 2, 3))) static char *
print(struct maker *maker, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = weir__arena_printf(&maker->policy->arena, NULL, format, args);
    va_end(args);
    if (!text)
        no_memory(maker);
    return text;
}

/* ---- the words of keys ------------------------------------------------------------- */

/* One segment of a pattern, without its slash. A key has no braces but those around its
 * subject: {city} is :city there, and the colon of a literal one is doubled, so that it
 * isn't taken for a name. */
static char *
segment_word(struct maker *maker, const char *pattern, const char *segment, size_t len)
{
    bool is_name = len > 2 && segment[0] == '{' && segment[len - 1] == '}';
    const char *text = is_name ? segment + 1 : segment;
    int text_len = (int)(is_name ? len - 2 : len);
    for (int i = 0; i < text_len; i++)
        if (text[i] == '{' || text[i] == '}') {
            weir__error(
                maker->error, "endpoint \"%s\": a brace within a segment", pattern);
            return NULL;
        }
    return print(
        maker, "%s%.*s", is_name || segment[0] == ':' ? ":" : "", text_len, text);
}

/* "GET /api/weather/{city}" as "GET /api/weather/:city". */
static const char *pattern_word(struct maker *maker, const char *pattern)
{
    const char *at = pattern;
    char *word = print(maker, "%s", "");
    while (word) {
        size_t len = strcspn(at, "/");
        char *segment = segment_word(maker, pattern, at, len);
        word = segment ? print(maker, "%s%s", word, segment) : NULL;
        at += len;
        if (*at == '\0')
            break;
        at++;
        word = word ? print(maker, "%s/", word) : NULL;
    }
    return word;
}

/* ---- single rules ------------------------------------------------------------------ */

static const char *rule_name(const struct weir_rule *rule)
{
    return rule->name ? rule->name : "";
}

static bool bad_rule(struct maker *maker,
                     const struct list *list,
                     const struct weir_rule *rule,
                     const char *why)
{
    return weir__error(maker->error,
                       "%s[%zu] \"%.80s\": %s",
                       list->where,
                       (size_t)(rule - list->rules),
                       rule_name(rule),
                       why ? why : "out of memory");
}

static bool same_budget(const struct weir_rule *a, const struct weir_rule *b)
{
    return a->algorithm == b->algorithm && a->max == b->max && a->refill == b->refill &&
           a->window_us == b->window_us && a->anchor == b->anchor && a->by == b->by;
}

/* Rules of one name and bucket share one counter, which can have one set of numbers. */
static bool
check_shared(struct maker *maker, const struct list *list, const struct weir_rule *rule)
{
    if (!rule->bucket)
        return true;
    for (struct shared_rule *other = maker->shared; other; other = other->next) {
        if (other->rule == rule)
            return true;
        if (strcmp(other->rule->bucket, rule->bucket) == 0 &&
            strcmp(other->rule->name, rule->name) == 0 &&
            !same_budget(other->rule, rule)) {
            const char *why = print(maker,
                                    "bucket: \"%s\" has a rule of this name with another "
                                    "algorithm, numbers or by in %s",
                                    rule->bucket,
                                    other->where);
            return why && bad_rule(maker, list, rule, why);
        }
    }
    struct shared_rule *own = weir__arena_alloc(&maker->policy->arena, sizeof *own);
    if (!own)
        return no_memory(maker);
    *own = (struct shared_rule){ maker->shared, rule, list->where };
    maker->shared = own;
    return true;
}

static const struct weir__policy_rule *
make_rule(struct maker *maker, const struct list *list, const struct weir_rule *rule)
{
    struct weir__policy_rule *made =
        weir__arena_alloc(&maker->policy->arena, sizeof *made);
    struct weir_error error = { { 0 } };
    if (!made) {
        no_memory(maker);
        return NULL;
    }
    if (!weir__limit_compile(rule, &made->limit, &error)) {
        bad_rule(maker, list, rule, error.text);
        return NULL;
    }
    if (!check_shared(maker, list, rule))
        return NULL;
    char tag[WEIR__TAG_BYTES];
    made->tail = print(maker,
                       "%s:%s:%s",
                       rule->bucket ? rule->bucket : list->word,
                       rule->name,
                       weir__limit_tag(rule, tag));
    return made->tail ? made : NULL;
}

/* ---- rules that meet --------------------------------------------------------------- */

static const char *too_many(struct maker *maker)
{
    return print(maker,
                 "limits: the ninth rule that meets in one request, for %s; %d may (its "
                 "own or the default ones, and the global ones)",
                 maker->meeting,
                 WEIR_RULES_MAX);
}

static const char *name_twice(struct maker *maker)
{
    return print(maker,
                 "name: another rule that meets it in one request has it, for %s",
                 maker->meeting);
}

static bool
add_list(struct maker *maker, const struct list *list, struct weir__policy_entry *entry)
{
    if (!list->rules)
        return true;
    for (const struct weir_rule *rule = list->rules;
         rule->algorithm != WEIR_ALGORITHM_NONE;
         rule++) {
        if (rule->algorithm == WEIR_ALGORITHM_UNLIMITED)
            return weir__error(
                maker->error, "%s: unlimited stands among other rules", list->where);
        if (entry->rules_len == WEIR_RULES_MAX)
            return bad_rule(maker, list, rule, too_many(maker));
        const struct weir__policy_rule *made = make_rule(maker, list, rule);
        if (!made)
            return false;
        for (unsigned i = 0; i < entry->rules_len; i++)
            if (strcmp(entry->rules[i]->limit.rule->name, rule->name) == 0)
                return bad_rule(maker, list, rule, name_twice(maker));
        entry->rules[entry->rules_len++] = made;
    }
    return true;
}

/* own is NULL where the default rules hold. */
static bool make_entry(struct maker *maker,
                       const struct list *own,
                       const char *word,
                       struct weir__policy_entry *entry)
{
    struct list defaults = { maker->app->default_limits, "default_limits", word };
    struct list globals = { maker->app->global_limits, "global_limits", WORD_GLOBAL };
    const struct list *first = own ? own : &defaults;
    if (is_unlimited(first->rules))
        return true;
    if (is_unlimited(globals.rules))
        return weir__error(maker->error, "global_limits: can't be unlimited");
    return add_list(maker, first, entry) && add_list(maker, &globals, entry);
}

static bool make_entries(struct maker *maker)
{
    struct weir__policy *policy = maker->policy;
    const struct weir_endpoint *endpoints = maker->app->endpoints;
    while (endpoints && endpoints[policy->endpoints_len].pattern)
        policy->endpoints_len++;
    policy->entries = weir__arena_zalloc(
        &policy->arena, (policy->endpoints_len + 1) * sizeof *policy->entries);
    if (!policy->entries)
        return no_memory(maker);

    for (size_t i = 0; i < policy->endpoints_len; i++) {
        assert(endpoints);
        const char *pattern = endpoints[i].pattern;
        struct list own = { endpoints[i].limits, NULL, pattern_word(maker, pattern) };
        own.where = print(maker, "endpoint \"%s\": limits", pattern);
        maker->meeting = print(maker, "endpoint \"%s\"", pattern);
        if (!own.word || !own.where || !maker->meeting ||
            !make_entry(maker, own.rules ? &own : NULL, own.word, &policy->entries[i]))
            return false;
    }
    maker->meeting = "paths that match no endpoint";
    return make_entry(
        maker, NULL, WORD_UNMATCHED, &policy->entries[policy->endpoints_len]);
}

/* Hands the policy out, or frees what of it was made. */
static bool finish(struct maker *maker, bool made, struct weir__policy **ret_policy)
{
    if (!made) {
        weir__policy_destroy(maker->policy);
        return false;
    }
    *ret_policy = maker->policy;
    return true;
}

static bool begin(struct maker *maker)
{
    maker->policy = calloc(1, sizeof *maker->policy);
    if (!maker->policy)
        return no_memory(maker);
    weir__arena_init(&maker->policy->arena, SIZE_MAX, BLOCK_BYTES);
    return true;
}

bool weir__policy_create(const struct weir_app *declared,
                         struct weir__policy **ret_policy,
                         struct weir_error *ret_error)
{
    struct maker maker = { .app = declared, .error = ret_error };
    return begin(&maker) && finish(&maker, make_entries(&maker), ret_policy);
}

static bool make_lone(struct maker *maker, const struct list *list)
{
    struct weir__policy *policy = maker->policy;
    policy->entries = weir__arena_zalloc(&policy->arena, sizeof *policy->entries);
    return policy->entries ? add_list(maker, list, policy->entries) : no_memory(maker);
}

bool weir__policy_create_lone(const char *bucket,
                              const struct weir_rule *rules,
                              struct weir__policy **ret_policy,
                              struct weir_error *ret_error)
{
    struct maker maker = { .meeting = "the limiter", .error = ret_error };
    struct list list = { rules, "limits", bucket };
    return begin(&maker) && finish(&maker, make_lone(&maker, &list), ret_policy);
}

void weir__policy_destroy(struct weir__policy *policy)
{
    if (!policy)
        return;
    weir__arena_finish(&policy->arena);
    free(policy);
}

const struct weir__policy_entry *weir__policy_find(const struct weir__policy *policy,
                                                   size_t endpoint_index)
{
    size_t unmatched = policy->endpoints_len;
    return &policy->entries[endpoint_index < unmatched ? endpoint_index : unmatched];
}
