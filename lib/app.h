/* The frozen app: what start-up makes of an app's tables, shared read-only by all workers
 * and threads. */
#ifndef WEIR_APP_H
#define WEIR_APP_H

#include <weir/store.h>
#include <weir/weir.h>
#include "options.h"

#define WEIR__STAGES_MAX 32

struct weir__policy; /* limit/policy.h */
struct weir__router; /* router.h */

/* One filter of the chain. */
struct weir__stage {
    const struct weir_filter *filter;
    void *made;         /* by its start, for its stop; NULL where that made nothing */
    const void *self;   /* for its hooks: made, else its options */
    size_t slot_offset; /* into a request's slots */
};

struct weir__app {
    const struct weir_app *declared;
    const struct weir__options *options;
    struct weir__router *router;
    struct weir__policy *policy;
    struct weir_store *store;
    bool store_is_ours;          /* made by us: destroyed with the app */
    struct weir_store *fallback; /* ours: decides for WEIR_LOCAL while store can't; NULL
                                    where store is shared memory itself */
    size_t endpoints_len;
    unsigned stages_len;
    struct weir__stage stages[WEIR__STAGES_MAX];
    size_t slots_bytes;
    bool limited; /* a filter provides "ratelimit" */
};

/* Checks every table of declared and freezes it. store may be NULL: then the declared
 * one, else shared memory by the options. False with a text that names the endpoint,
 * filter and field. Everything declared must outlive the app. Not for several threads. */
bool weir__app_create(const struct weir_app *declared,
                      const struct weir__options *options,
                      struct weir_store *store,
                      struct weir__app **ret_app,
                      struct weir_error *ret_error);

/* Whether the app was compiled against this layout of the structs that it fills in; the
 * check that weir__app_create() begins with, for who reads a table before. Any thread. */
bool weir__app_check_abi(const struct weir_abi *abi, struct weir_error *ret_error);

/* The memory with the counters of the shared-memory store that was made here, to be
 * handed on; -1 where there is none. Any thread. */
int weir__app_shm_fd(const struct weir__app *app);

/* Stops the filters, frees everything; takes NULL. */
void weir__app_destroy(struct weir__app *app);

#endif
