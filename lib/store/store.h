/* What a store of counters is: installed as weir/store.h, so that an app can bring its
 * own. Shared memory and the fake for tests are made here. */
#ifndef WEIR_STORE_H
#define WEIR_STORE_H

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One rule of a request, with whom it counts. Rules of one subject are one group. */
struct weir_store_item {
    const struct weir_rule *rule; /* checked at start; lives as long as the policy */
    const void *compiled;         /* the library's own form of the rule (lib/limit) */
    const char *subject;          /* "user:42", "ip:198.51.100.7", "all": key-safe text */
    unsigned subject_len;         /* in bytes */
    const char *tail;             /* "GET /api/weather/:city:minute:w1": bucket, rule,
                                     algorithm and state version; NUL-ended */
    int64_t cost;                 /* units, 0 or more; 0 asks without charging */
};

/* What a decision took of one rule, so that it can be given back. Store-private. */
struct weir_receipt {
    bool charged;
    int64_t cost;
    int64_t mark[3]; /* the store's: which window, epoch, node */
};

enum weir_store_result {
    WEIR_STORE_READY,      /* decision is filled in */
    WEIR_STORE_PENDING,    /* done() will be called */
    WEIR_STORE_UNAVAILABLE /* it can't know: the rules' on_store_error decides */
};

/* One question: all rules of one request, decided all or nothing. The caller owns it and
 * keeps it until it is answered. */
struct weir_store_ask {
    /* The question. */
    unsigned items_len; /* 1 to WEIR_RULES_MAX */
    struct weir_store_item items[WEIR_RULES_MAX];
    int64_t deadline_us; /* weir's monotonic clock: no answer after it is of use */

    /* Called once, on any thread, if decide() said PENDING. */
    void (*done)(struct weir_store_ask *ask);
    void *arg;
    struct weir_store_ask *next; /* the store's, while the question is pending */

    /* The answer. */
    enum weir_store_result result; /* for done(): READY or UNAVAILABLE */
    struct weir_decision decision;
    struct weir_receipt receipts[WEIR_RULES_MAX];
};

/* A store. Every call may come from any thread of any worker at the same time, except
 * where said. None may block past the ask's deadline. */
struct weir_store_ops {
    const char *name; /* "shm", "redis", "fake" */
    bool may_pend;    /* decide may say PENDING. done() then comes in any case, also long
                         after the deadline: until then the ask belongs to the store */

    /* In each worker after fork, before its threads: open connections here, never before
     * the fork. NULL: nothing to do. */
    bool (*worker_start)(void *self, struct weir_worker *worker, struct weir_error *ret);
    void (*worker_stop)(void *self);

    enum weir_store_result (*decide)(void *self, struct weir_store_ask *ask);

    /* Gives back what a READY or done() decision took, at most once. In a window that has
     * rolled on it is a no-op. */
    void (*refund)(void *self, struct weir_store_ask *ask);

    void (*destroy)(void *self);
};

struct weir_store {
    const struct weir_store_ops *ops;
    void *self;
};

/* ---- shared memory ----------------------------------------------------------------- */

struct weir_shm_options {
    size_t entries; /* counters it can hold; 0: 262,144. Rounded up. 17 bytes each */
};

/* A table of fixed size in anonymous shared memory, to be made before the workers fork;
 * all pages are reserved and touched here, too little memory is an error now. NULL with a
 * text on failure. The caller destroys it with weir_store_destroy(). */
WEIR_API struct weir_store *weir_shm_create(const struct weir_shm_options *options,
                                            struct weir_error *ret_error);

/* ---- Redis ---------------------------------------------------------------------------
 */

struct weir_redis_options {
    const char *address;       /* required: "unix:PATH", "tcp:192.0.2.1:6379",
                                  "tcp:[2001:db8::1]:6379"; numeric, no name is looked up */
    const char *password_file; /* its first line is the password; NULL: none */
    unsigned database;         /* SELECTed on every connection; default 0 */
    int64_t timeout_us;        /* for a decision; 0: 20,000 */
};

/* Counters in one Redis (7.0, standalone) that any number of hosts share. Each worker has
 * one connection, made in worker_start; a process that isn't a worker gets one, with two
 * threads of its own, when it first asks. Nothing is connected here: a Redis that is away
 * is no error, its questions are UNAVAILABLE. Decides with Redis's clock, one script call
 * for all rules of a question. Made before the workers fork; the memory that they share
 * says to all of them when one has found that Redis doesn't answer. NULL with a text for
 * a bad address or password file. The caller destroys it with weir_store_destroy(). */
WEIR_API struct weir_store *weir_redis_create(const struct weir_redis_options *options,
                                              struct weir_error *ret_error);

/* ---- the fake, for tests of apps --------------------------------------------------- */

/* A store that answers from a script: decide(i) gets what weir_fake_push() put i-th; when
 * the script is over it admits as if nothing had been used. It remembers the last
 * question. NULL when memory is short; the caller destroys it with weir_store_destroy().
 * Any thread of one process. */
WEIR_API struct weir_store *weir_fake_create(void);

enum weir_fake_kind {
    WEIR_FAKE_ALLOW,        /* remaining as given */
    WEIR_FAKE_REFUSE,       /* rule `rule` refuses, retry_us as given */
    WEIR_FAKE_UNAVAILABLE,  /* the store is away */
    WEIR_FAKE_PENDING_ALLOW /* answers later, from another thread, after delay_us */
};
struct weir_fake_answer {
    enum weir_fake_kind kind;
    unsigned rule;     /* index of the rule that refuses */
    int64_t remaining; /* units; below 0: as if nothing had been used */
    int64_t retry_us;
    int64_t delay_us;
};
/* Appends to the script; false when memory is short. */
WEIR_API bool weir_fake_push(struct weir_store *fake,
                             const struct weir_fake_answer *answer);
/* How often it was asked, and how often something was given back. */
WEIR_API unsigned weir_fake_asked(const struct weir_store *fake);
WEIR_API unsigned weir_fake_refunded(const struct weir_store *fake);
/* The subject and tail of item `rule` in the last question, "" where there was none.
 * Overwritten by the next question. */
WEIR_API const char *weir_fake_subject(const struct weir_store *fake, unsigned rule);
WEIR_API const char *weir_fake_tail(const struct weir_store *fake, unsigned rule);

/* Frees a store; takes NULL. No other thread may use it any more. */
WEIR_API void weir_store_destroy(struct weir_store *store);

#ifdef __cplusplus
}
#endif

#endif
