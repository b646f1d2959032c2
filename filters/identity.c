/* Finds out who calls: the app's session user, else REMOTE_USER, else the address.
 *
 * Counts nothing (ratelimit.c), and believes no header of the client's. What
 * the app's callback says is taken only if it is a user or a key with an id. */
#include "identity.h"

#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "question.h"
#include "request.h"

#define IPV6_PREFIX 64
#define IPV6_PREFIX_MIN 32
#define IPV6_PREFIX_MAX 128

static bool start(const struct weir_app *app,
                  const void *options,
                  void **ret_self,
                  struct weir_error *ret_error)
{
    const struct weir_identity *identity = options;
    (void)app, (void)ret_self;
    unsigned prefix = identity->ipv6_prefix;
    if (prefix != 0 && (prefix < IPV6_PREFIX_MIN || prefix > IPV6_PREFIX_MAX))
        return weir__error(ret_error,
                           "identity: ipv6_prefix is %u, must be %d to %d",
                           prefix,
                           IPV6_PREFIX_MIN,
                           IPV6_PREFIX_MAX);
    if (identity->session_cookie && !identity->session_user)
        return weir__error(ret_error, "identity: session_cookie without session_user");
    return true;
}

/* The name under which the address is counted. NULL when memory is short. */
static const char *address_key(struct weir *w, const struct weir_identity *options)
{
    if (w->remote.family != WEIR__ADDR_IPV6)
        return w->remote_text;
    char *key = weir_alloc(w, WEIR__ADDR_TEXT_BYTES);
    unsigned prefix = options->ipv6_prefix ? options->ipv6_prefix : IPV6_PREFIX;
    if (key)
        weir__addr_key(&w->remote, prefix, key);
    return key;
}

/* The address, where there is one; else nobody. */
static bool take_address(struct weir *w, const struct weir_identity *options)
{
    w->caller.type = WEIR_CALLER_NONE;
    const char *key = address_key(w, options);
    if (!key || !*key)
        return key != NULL;
    w->address_key = key;
    w->caller.type = WEIR_CALLER_IP;
    w->caller.id_len = (unsigned)strlen(key);
    memcpy(w->caller.id, key, w->caller.id_len + 1);
    return true;
}

static void take_remote_user(struct weir *w)
{
    const char *name = weir_param(w, "REMOTE_USER");
    struct weir_caller caller;
    if (!name || !weir_caller_user(&caller, name))
        return;
    caller.type = WEIR_CALLER_REMOTE_USER;
    w->caller = caller;
}

static bool is_verified(const struct weir_caller *caller)
{
    return (caller->type == WEIR_CALLER_USER || caller->type == WEIR_CALLER_KEY) &&
           caller->id_len > 0 && caller->id_len <= WEIR_CALLER_ID_MAX &&
           caller->id[caller->id_len] == '\0';
}

/* On a thread that may block. */
static enum weir_verdict look_up(struct weir *w, const void *self, void *slot)
{
    static struct weir__log_kind kind;
    const struct weir_identity *options = self;
    struct weir_caller caller = { .type = WEIR_CALLER_NONE };
    (void)slot;
    if (!options->session_user(w, &caller))
        return WEIR_NEXT;
    if (is_verified(&caller))
        w->caller = caller;
    else
        weir__log_limited(&kind,
                          WEIR_LOG_ERROR,
                          "identity: session_user() said yes to a caller of type %s "
                          "with %u bytes of id; ignored",
                          weir_caller_type_name(caller.type),
                          caller.id_len);
    return WEIR_NEXT;
}

/* Whether a rule that counts the address, whoever is logged in, refuses already: then
 * nothing is gained by a look-up, and a flood must not buy one for each request. Only
 * where the store answers at once. */
static bool is_refused(struct weir *w)
{
    struct weir_store *store = w->app->store;
    if (!w->app->limited || store->ops->may_pend)
        return false;
    struct weir__question *question =
        weir__question_create(w, store, WEIR__ABOUT_ADDRESS, 0);
    if (!question || question->ask.items_len == 0 ||
        weir__question_put(question) != WEIR_STORE_READY ||
        question->ask.decision.allowed)
        return false;
    w->refused = &question->ask.decision;
    return true;
}

static bool may_have_session(struct weir *w, const struct weir_identity *options)
{
    if (!options->session_user)
        return false;
    return !options->session_cookie || weir_cookie(w, options->session_cookie);
}

static enum weir_verdict before(struct weir *w, const void *self, void *slot)
{
    const struct weir_identity *options = self;
    (void)slot;
    if (!take_address(w, options))
        return WEIR_FAIL;
    if (options->remote_user)
        take_remote_user(w);
    if (!may_have_session(w, options) || is_refused(w))
        return WEIR_NEXT;
    return weir_offload(w, look_up);
}

const struct weir_filter weir_filter_identity = {
    .name = "identity",
    .provides = "caller",
    .options_size = sizeof(struct weir_identity),
    .start = start,
    .before = before,
};
