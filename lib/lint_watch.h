/* The rules of the chain, watched: what life.c, wait.c and response.c report, and what
 * the lint filter adds to it. Without that filter a hook costs one comparison. */
#ifndef WEIR_LINT_WATCH_H
#define WEIR_LINT_WATCH_H

#include "request.h"

/* Bytes behind each slot that nobody may write. */
#define WEIR__CANARY_BYTES 16

/* What the lint filter was told. */
struct weir__lint_config {
    int64_t block_us; /* longest time of a hook on a thread that may not block */
    bool abort;       /* ends the process at the first breach: for tests */
    void (*report)(void *arg, const char *filter, enum weir_breach breach); /* or NULL */
    void *arg;
};

/* What it keeps of one request. */
struct weir__lint {
    const struct weir__lint_config *config;
    atomic_uint inside;   /* hooks that run right now */
    unsigned last_commit; /* position of the last one from the front, 1-based; 0: none */
    unsigned last_after;
    int64_t since_us; /* when the running hook was called */
    int status;       /* as the running hook found it */
    size_t out_bytes;
};

enum weir__hook {
    WEIR__HOOK_BEFORE,
    WEIR__HOOK_COMMIT,
    WEIR__HOOK_AFTER,
};

/* Counts and logs a breach, and tells the lint filter where the chain has it. w may be
 * any request; the filter whose hook runs is named. Any thread that owns w. */
void weir__breach(struct weir *w, enum weir_breach breach);

/* From now on the hooks of this request are watched; state is zeroed memory that lives as
 * long as it. Called in the lint filter's before. */
void weir__lint_attach(struct weir *w,
                       struct weir__lint *state,
                       const struct weir__lint_config *config);

/* Around each call of a hook or continuation of the stage with that index, only where
 * w->lint is set. first: not a continuation. */
void weir__lint_enter(struct weir *w, enum weir__hook hook, unsigned stage, bool first);
void weir__lint_leave(struct weir *w,
                      enum weir__hook hook,
                      unsigned stage,
                      bool may_block,
                      enum weir_verdict verdict);

/* The answer is complete: does its head say the body's length? */
void weir__lint_answer(struct weir *w);

#endif
