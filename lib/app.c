/* Makes of an app's tables what the workers run on, and takes it apart again.
 *
 * Every mistake that a table can hold is found here or below, before anything listens;
 * what is created here is only read afterwards. */
#include "app.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "chain.h"
#include "fcgx.h"
#include "limit/policy.h"
#include "router.h"
#include "store/shm.h"
#include "store/shm_segment.h"

#define REDIS "redis:" /* as --store begins */

/* One struct that the app fills in: its size there and here. */
struct layout {
    const char *name;
    size_t app_bytes, our_bytes;
};

bool weir__app_check_abi(const struct weir_abi *abi, struct weir_error *ret_error)
{
    const struct layout layouts[] = {
        { "weir_app", abi->app, sizeof(struct weir_app) },
        { "weir_endpoint", abi->endpoint, sizeof(struct weir_endpoint) },
        { "weir_rule", abi->rule, sizeof(struct weir_rule) },
        { "weir_filter", abi->filter, sizeof(struct weir_filter) },
        { "weir_use", abi->use, sizeof(struct weir_use) },
        { "weir_option", abi->option, sizeof(struct weir_option) },
    };
    if (abi->app == 0)
        return weir__error(ret_error, "app: WEIR_ABI is missing");
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].app_bytes != layouts[i].our_bytes)
            return weir__error(ret_error,
                               "app: struct %s has %zu bytes in the app and %zu in the "
                               "library: they were built against different headers",
                               layouts[i].name,
                               layouts[i].app_bytes,
                               layouts[i].our_bytes);
    return true;
}

/* What an endpoint without .fcgx, or with it, may not say. NULL, or what is wrong. */
static const char *handler_fault(const struct weir_endpoint *endpoint)
{
    if (!endpoint->fcgx && !endpoint->handler)
        return "no handler";
    if (!endpoint->fcgx)
        return endpoint->parallel ? ".parallel is for .fcgx: other handlers always are"
                                  : NULL;
    if (endpoint->handler)
        return "a handler and .fcgx";
    if (endpoint->nonblocking)
        return "a handler of libfcgi's form may block: .nonblocking is not for it";
    return weir__fcgx_missing();
}

static bool check_endpoints(struct weir__app *app, struct weir_error *ret_error)
{
    const struct weir_endpoint *endpoint = app->declared->endpoints;
    if (!endpoint)
        return weir__error(ret_error, "app: no endpoints");
    for (; endpoint->pattern; endpoint++) {
        const char *fault = handler_fault(endpoint);
        if (fault)
            return weir__error(
                ret_error, "endpoint \"%s\": %s", endpoint->pattern, fault);
    }
    app->endpoints_len = (size_t)(endpoint - app->declared->endpoints);
    return true;
}

static struct weir_store *make_shm(const struct weir__options *options,
                                   struct weir_error *ret_error)
{
    return weir__shm_create_from(
        &(struct weir_shm_options){ .entries = options->shm_entries },
        options->shm_fd > 0 ? options->shm_fd : -1,
        ret_error);
}

static struct weir_store *make_redis(const struct weir__options *options,
                                     struct weir_error *ret_error)
{
    return weir_redis_create(
        &(struct weir_redis_options){
            .address = options->store + sizeof REDIS - 1,
            .password_file = options->redis_password_file,
            .database = options->redis_database,
            .timeout_us = (int64_t)options->redis_timeout_ms * 1000,
        },
        ret_error);
}

static struct weir_store *make_store(const struct weir__options *options,
                                     struct weir_error *ret_error)
{
    bool is_redis =
        options->store && strncmp(options->store, REDIS, sizeof REDIS - 1) == 0;
    return is_redis ? make_redis(options, ret_error) : make_shm(options, ret_error);
}

static bool is_shm(const struct weir_store *store)
{
    return strcmp(store->ops->name, "shm") == 0;
}

/* A store elsewhere can be away: what its rules do locally then needs shared memory. */
static bool
open_stores(struct weir__app *app, struct weir_store *store, struct weir_error *ret_error)
{
    app->store = store ? store : app->declared->store;
    if (!app->store) {
        app->store = make_store(app->options, ret_error);
        app->store_is_ours = true;
    }
    if (!app->store || is_shm(app->store))
        return app->store != NULL;
    app->fallback = make_shm(app->options, ret_error);
    return app->fallback != NULL;
}

/* An app may do so on purpose, while it is tried out: it is told, and starts. */
static void warn_of_limits_that_nobody_enforces(const struct weir__app *app)
{
    for (size_t i = 0; !app->limited && i <= app->endpoints_len; i++) {
        if (weir__policy_find(app->policy, i)->rules_len == 0)
            continue;
        weir__log(
            WEIR_LOG_WARNING,
            "chain: %s has limits, but no filter enforces them: WEIR_USE(ratelimit) "
            "is missing",
            i < app->endpoints_len ? app->declared->endpoints[i].pattern : "the app");
        return;
    }
}

bool weir__app_create(const struct weir_app *declared,
                      const struct weir__options *options,
                      struct weir_store *store,
                      struct weir__app **ret_app,
                      struct weir_error *ret_error)
{
    if (!weir__app_check_abi(&declared->abi, ret_error))
        return false;
    struct weir__app *app = calloc(1, sizeof *app);
    if (!app)
        return weir__error(ret_error, "app: out of memory");
    app->declared = declared;
    app->options = options;
    if (!check_endpoints(app, ret_error) ||
        !weir__router_create(declared->endpoints, &app->router, ret_error) ||
        !weir__policy_create(declared, &app->policy, ret_error) ||
        !open_stores(app, store, ret_error) || !weir__chain_start(app, ret_error)) {
        weir__app_destroy(app);
        return false;
    }
    warn_of_limits_that_nobody_enforces(app);
    *ret_app = app;
    return true;
}

int weir__app_shm_fd(const struct weir__app *app)
{
    if (app->fallback)
        return weir__shm_segment_of(app->fallback)->fd;
    return app->store_is_ours && is_shm(app->store) ? weir__shm_segment_of(app->store)->fd
                                                    : -1;
}

void weir__app_destroy(struct weir__app *app)
{
    if (!app)
        return;
    weir__chain_stop(app);
    weir_store_destroy(app->fallback);
    if (app->store_is_ours)
        weir_store_destroy(app->store);
    weir__policy_destroy(app->policy);
    weir__router_destroy(app->router);
    free(app);
}
