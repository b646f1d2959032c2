/* A tree of segments. Each node holds the patterns that end at it and those whose `*`
 * takes the rest from it, for all methods.
 *
 * A search tries literal, {name}, `*` in this order and comes back from a branch that has
 * nothing for the method, so that no request is lost to a more specific dead end. It
 * visits a node at most once, whatever the path, and changes nothing: any thread. */
#include "router.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pattern.h"

#define METHODS_MAX 32 /* different ones in one app: the bits of an allow mask */

/* One endpoint at the node where its pattern ends. */
struct entry {
    struct entry *next;
    struct weir__span method;
    unsigned method_bit; /* no meaning for "*" */
    size_t endpoint;
    unsigned names_len;
    struct weir__span names[WEIR__CAPTURES_MAX];
};

struct node {
    struct weir__span text; /* the literal; unused in others */
    struct entry *ends;     /* patterns that end here */
    struct entry *rests;    /* patterns whose * takes the rest from here */
    struct node *name;      /* the {name} child */
    struct node **literals; /* sorted by compare_spans() */
    size_t literals_len;
};

struct weir__router {
    struct node root;
    const struct weir_endpoint *endpoints;
    struct weir__span methods[METHODS_MAX];
    unsigned methods_len;
};

static const struct weir__span head_method = { "HEAD", 4 };
static const struct weir__span options_method = { "OPTIONS", 7 };

static int compare_spans(struct weir__span one, struct weir__span two)
{
    if (one.len != two.len)
        return one.len < two.len ? -1 : 1;
    return memcmp(one.bytes, two.bytes, one.len);
}

static bool span_is(struct weir__span span, const char *text)
{
    return span.len == strlen(text) && memcmp(span.bytes, text, span.len) == 0;
}

/* The child for that literal, or NULL; *ret_place is then where it would be put. */
static struct node *
find_literal(const struct node *node, struct weir__span text, size_t *ret_place)
{
    size_t low = 0, high = node->literals_len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_spans(text, node->literals[middle]->text);
        if (order == 0)
            return node->literals[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_place = low;
    return NULL;
}

/* ---- building ---------------------------------------------------------------------- */

static struct node *literal_child(struct node *node, struct weir__span text)
{
    size_t place = 0;
    struct node *child = find_literal(node, text, &place);
    if (child)
        return child;
    struct node **grown =
        realloc(node->literals, (node->literals_len + 1) * sizeof(struct node *));
    if (!grown)
        return NULL;
    node->literals = grown;
    child = calloc(1, sizeof *child);
    if (!child)
        return NULL;
    child->text = text;
    memmove(grown + place + 1,
            grown + place,
            (node->literals_len - place) * sizeof(struct node *));
    grown[place] = child;
    node->literals_len++;
    return child;
}

static struct node *name_child(struct node *node)
{
    if (!node->name)
        node->name = calloc(1, sizeof *node->name);
    return node->name;
}

/* The list of entries to which the pattern belongs, its nodes made where they are
 * missing; NULL when memory is short. */
static struct entry **list_for(struct node *node, const struct weir__pattern *pattern)
{
    for (unsigned i = 0; i < pattern->segments_len; i++) {
        const struct weir__segment *segment = &pattern->segments[i];
        if (segment->kind == WEIR__SEGMENT_REST)
            return &node->rests;
        node = segment->kind == WEIR__SEGMENT_NAME ? name_child(node)
                                                   : literal_child(node, segment->text);
        if (!node)
            return NULL;
    }
    return &node->ends;
}

/* The number of a method in the router's sorted list, which has to hold it. */
static unsigned method_number(const struct weir__router *router, struct weir__span method)
{
    unsigned i = 0;
    while (compare_spans(router->methods[i], method) != 0)
        i++;
    return i;
}

/* Puts a method into the list, which is sorted as text: it becomes Allow. */
static bool learn_method(struct weir__router *router, struct weir__span method)
{
    unsigned place = 0;
    for (unsigned i = 0; i < router->methods_len; i++) {
        struct weir__span known = router->methods[i];
        if (compare_spans(known, method) == 0)
            return true;
        size_t shorter = known.len < method.len ? known.len : method.len;
        int order = memcmp(known.bytes, method.bytes, shorter);
        if (order < 0 || (order == 0 && known.len < method.len))
            place = i + 1;
    }
    if (router->methods_len == METHODS_MAX)
        return false;
    memmove(router->methods + place + 1,
            router->methods + place,
            (router->methods_len - place) * sizeof router->methods[0]);
    router->methods[place] = method;
    router->methods_len++;
    return true;
}

static struct entry *make_entry(const struct weir__pattern *pattern, size_t endpoint)
{
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    entry->method = pattern->method;
    entry->endpoint = endpoint;
    for (unsigned i = 0; i < pattern->segments_len; i++) {
        if (pattern->segments[i].kind != WEIR__SEGMENT_LITERAL)
            entry->names[entry->names_len++] = pattern->segments[i].text;
    }
    return entry;
}

static bool
add_endpoint(struct weir__router *router, size_t endpoint, struct weir_error *ret_error)
{
    const char *text = router->endpoints[endpoint].pattern;
    struct weir__pattern pattern;
    if (!weir__pattern_parse(text, &pattern, ret_error))
        return false;
    if (!span_is(pattern.method, "*") && !learn_method(router, pattern.method))
        return weir__error(ret_error,
                           "endpoint \"%s\": more than %d different methods",
                           text,
                           METHODS_MAX);
    struct entry **list = list_for(&router->root, &pattern);
    for (const struct entry *entry = list ? *list : NULL; entry; entry = entry->next) {
        if (compare_spans(entry->method, pattern.method) == 0)
            return weir__error(ret_error,
                               "endpoint \"%s\": matches the same requests as \"%s\"",
                               text,
                               router->endpoints[entry->endpoint].pattern);
    }
    struct entry *entry = list ? make_entry(&pattern, endpoint) : NULL;
    if (!entry)
        return weir__error(ret_error, "endpoint \"%s\": out of memory", text);
    entry->next = *list;
    *list = entry;
    return true;
}

/* Once all methods are known, gives each entry the number of its own. */
static void number_entries(const struct weir__router *router, struct node *node)
{
    struct entry *lists[] = { node->ends, node->rests };
    for (unsigned i = 0; i < 2; i++) {
        for (struct entry *entry = lists[i]; entry; entry = entry->next) {
            if (!span_is(entry->method, "*"))
                entry->method_bit = method_number(router, entry->method);
        }
    }
    if (node->name)
        number_entries(router, node->name);
    for (size_t i = 0; i < node->literals_len; i++)
        number_entries(router, node->literals[i]);
}

bool weir__router_create(const struct weir_endpoint *endpoints,
                         struct weir__router **ret_router,
                         struct weir_error *ret_error)
{
    struct weir__router *router = calloc(1, sizeof *router);
    if (!router)
        return weir__error(ret_error, "endpoints: out of memory");
    router->endpoints = endpoints;
    bool ok = learn_method(router, head_method) && learn_method(router, options_method);
    for (size_t i = 0; ok && endpoints && endpoints[i].pattern; i++)
        ok = add_endpoint(router, i, ret_error);
    if (!ok) {
        weir__router_destroy(router);
        return false;
    }
    number_entries(router, &router->root);
    *ret_router = router;
    return true;
}

static void free_entries(struct entry *entry)
{
    while (entry) {
        struct entry *next = entry->next;
        free(entry);
        entry = next;
    }
}

/* As deep as the longest pattern, which is bounded. */
static void free_below(struct node *node)
{
    free_entries(node->ends);
    free_entries(node->rests);
    for (size_t i = 0; i < node->literals_len; i++) {
        free_below(node->literals[i]);
        free(node->literals[i]);
    }
    free(node->literals);
    if (node->name)
        free_below(node->name);
    free(node->name);
}

void weir__router_destroy(struct weir__router *router)
{
    if (!router)
        return;
    free_below(&router->root);
    free(router);
}

/* ---- searching --------------------------------------------------------------------- */

/* A walk over all patterns that match a path, the most specific first. */
struct walk {
    const char *method;
    const struct entry *found;
    unsigned long allow; /* a bit for each method of router->methods */
    struct weir__span texts[WEIR__CAPTURES_MAX];
};

/* The entry that serves the method: its own, GET's for HEAD, that for any. */
static const struct entry *pick(const struct entry *entries, const char *method)
{
    const struct entry *get = NULL, *any = NULL;
    bool head = strcmp(method, "HEAD") == 0;
    for (const struct entry *entry = entries; entry; entry = entry->next) {
        if (span_is(entry->method, method))
            return entry;
        if (head && span_is(entry->method, "GET"))
            get = entry;
        if (span_is(entry->method, "*"))
            any = entry;
    }
    return get ? get : any;
}

/* Entries whose path matches: true ends the walk. */
static bool visit(struct walk *walk, const struct entry *entries)
{
    walk->found = pick(entries, walk->method);
    for (const struct entry *entry = entries; entry; entry = entry->next)
        walk->allow |= 1UL << entry->method_bit;
    return walk->found != NULL;
}

/* rest is what of the path lies below the node: "" or "/a/b". captured is how many texts
 * the nodes above took. */
static bool walk_below(struct walk *walk,
                       const struct node *node,
                       const char *rest,
                       unsigned captured)
{
    if (rest[0] == '\0') {
        if (visit(walk, node->ends))
            return true;
    } else {
        struct weir__span segment = { rest + 1, strcspn(rest + 1, "/") };
        const char *below = rest + 1 + segment.len;
        size_t place;
        const struct node *literal = find_literal(node, segment, &place);
        if (literal && walk_below(walk, literal, below, captured))
            return true;
        if (node->name && captured < WEIR__CAPTURES_MAX) {
            walk->texts[captured] = segment;
            if (walk_below(walk, node->name, below, captured + 1))
                return true;
        }
    }
    if (!node->rests || captured == WEIR__CAPTURES_MAX)
        return false;
    const char *text = rest[0] == '/' ? rest + 1 : rest;
    walk->texts[captured] = (struct weir__span){ text, strlen(text) };
    return visit(walk, node->rests);
}

/* The methods of the mask as Allow lists them, with HEAD where there is GET, and OPTIONS,
 * which is always answered. "" when the arena is full. */
static const char *allow_text(const struct weir__router *router,
                              unsigned long allow,
                              struct weir__arena *arena)
{
    size_t bytes = 1;
    for (unsigned i = 0; i < router->methods_len; i++) {
        struct weir__span method = router->methods[i];
        bytes += method.len + 2;
        if (span_is(method, "GET") && (allow & 1UL << i))
            allow |= 1UL << method_number(router, head_method);
    }
    allow |= 1UL << method_number(router, options_method);
    char *text = weir__arena_alloc(arena, bytes), *end = text;
    for (unsigned i = 0; text && i < router->methods_len; i++) {
        if (!(allow & 1UL << i))
            continue;
        if (end > text)
            end = stpcpy(end, ", ");
        end = mempcpy(end, router->methods[i].bytes, router->methods[i].len);
    }
    if (!text)
        return "";
    *end = '\0';
    return text;
}

enum weir__route weir__router_find(const struct weir__router *router,
                                   const char *method,
                                   const char *path,
                                   struct weir__arena *arena,
                                   size_t *ret_endpoint,
                                   struct weir__capture *ret_captures,
                                   unsigned *ret_captures_len,
                                   const char **ret_allow)
{
    struct walk walk = { .method = method };
    if (!walk_below(&walk, &router->root, strcmp(path, "/") == 0 ? path + 1 : path, 0)) {
        if (walk.allow == 0)
            return WEIR__ROUTE_NO_PATH;
        *ret_allow = allow_text(router, walk.allow, arena);
        return WEIR__ROUTE_NO_METHOD;
    }
    *ret_endpoint = walk.found->endpoint;
    *ret_captures_len = walk.found->names_len;
    for (unsigned i = 0; i < walk.found->names_len; i++) {
        struct weir__span name = walk.found->names[i], text = walk.texts[i];
        ret_captures[i] = (struct weir__capture){ .name = name.bytes,
                                                  .name_len = (unsigned)name.len,
                                                  .text = text.bytes,
                                                  .text_len = (unsigned)text.len };
    }
    return WEIR__ROUTE_FOUND;
}
