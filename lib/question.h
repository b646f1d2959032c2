/* One question to a store, with the memory that must live until it is answered. */
#ifndef WEIR_QUESTION_H
#define WEIR_QUESTION_H

#include <stdatomic.h>

#include <weir/store.h>
#include "limit/policy.h"
#include "limit/subject.h"
#include "request.h"

#define WEIR__SUBJECTS_MAX 3 /* one for each value of enum weir_by */

struct weir__question {
    struct weir_store_ask ask;
    struct weir_store *store;
    struct weir *w;
    atomic_int state; /* only where the store may answer later */
    bool on_heap;     /* it may outlive the request */
    char subjects[WEIR__SUBJECTS_MAX][WEIR__SUBJECT_BYTES];
};

/* Which rules of an endpoint it asks about. */
enum weir__question_about {
    WEIR__ABOUT_ALL,
    WEIR__ABOUT_LOCAL,   /* those that say WEIR_LOCAL */
    WEIR__ABOUT_ADDRESS, /* those that count the remote address whoever calls; they are
                            only looked at, not charged */
};

/* A question of this request, about the rules in force where it goes. Which may be none:
 * then ask.items_len is 0, and it must not be put. deadline_us is from now. NULL when
 * memory is short. */
struct weir__question *weir__question_create(struct weir *w,
                                             struct weir_store *store,
                                             enum weir__question_about about,
                                             int64_t deadline_us);

/* Puts it. PENDING: weir_wake() will be called, and then weir__question_woken() is to be
 * asked. */
enum weir_store_result weir__question_put(struct weir__question *question);

/* How far a pending question is. */
enum weir__question_state {
    WEIR__QUESTION_OPEN,     /* not answered yet: wait on */
    WEIR__QUESTION_ANSWERED, /* ask.result says what came */
    WEIR__QUESTION_LOST,     /* it is late and belongs to the store now, which frees it */
};

/* For the continuation of the wait, and how long it is to wait on where it is OPEN. */
enum weir__question_state weir__question_look(struct weir__question *question,
                                              bool timed_out);
int64_t weir__question_left_us(const struct weir__question *question);

/* Ends it, in whatever state but LOST; takes NULL. give_back: what it took goes back.
 * What a question that isn't answered yet takes goes back in any case. */
void weir__question_end(struct weir__question *question, bool give_back);

#endif
