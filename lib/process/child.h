/* The parent's book of its workers: who runs, what each said, what all have served.
 *
 * Bookkeeping and the fork; when to start, stop or kill is parent.c's to say, the only
 * caller. One thread. */
#ifndef WEIR_PROCESS_CHILD_H
#define WEIR_PROCESS_CHILD_H

#include <sys/types.h>

#include "process/control.h"
#include "process/worker.h"

struct weir__child {
    pid_t pid;      /* 0: this place is free */
    int control_fd; /* -1: closed by the worker */
    unsigned index;
    bool ready;
    int64_t ready_us;   /* since when */
    bool draining;      /* said so, or was told to */
    int64_t kill_at_us; /* 0: not before something happens */
    uint64_t answered;  /* the last question for sums that it answered */
    struct weir__control_stats stats;
};

struct weir__children {
    struct weir__child *list;
    unsigned max;

    uint64_t asked;                      /* number of the last question for sums */
    bool sums_due;                       /* answers to it are still awaited */
    bool sums_known;                     /* some worker has told its sums */
    struct weir__control_stats departed; /* of those that have ended */
};

/* Places for max workers; false when memory is short. */
bool weir__children_init(struct weir__children *children, unsigned max);
void weir__children_finish(struct weir__children *children);

/* A free place or NULL. */
struct weir__child *weir__children_free_place(const struct weir__children *children);

/* Whether somebody who doesn't drain works under that index. */
bool weir__children_is_manned(const struct weir__children *children, unsigned index);

/* Whether anybody works who doesn't drain. */
bool weir__children_is_anybody(const struct weir__children *children);

/* How many run; how many of them are ready. */
unsigned weir__children_count(const struct weir__children *children);
unsigned weir__children_ready(const struct weir__children *children);

/* Forks a worker into the place: it calls run with config, whose control_fd is made here,
 * and the process ends with what run returns. parents_fd, which it has no use for, is
 * closed in it. False (logged) where the system refuses. */
bool weir__children_start(struct weir__children *children,
                          struct weir__child *place,
                          const struct weir__worker_config *config,
                          int (*run)(const struct weir__worker_config *config),
                          int parents_fd);

/* Enters what a worker said about its sums. */
void weir__children_told(struct weir__children *children,
                         struct weir__child *child,
                         const struct weir__control_message *message);

/* The worker has ended: its sums are kept, its place is free. */
void weir__children_ended(struct weir__children *children, struct weir__child *child);

/* Asks all for their sums; they are logged by the other call once the last one has
 * answered or ended. While answers are awaited a second question is dropped. */
void weir__children_ask_sums(struct weir__children *children);
void weir__children_log_asked_sums(struct weir__children *children);

/* Logs the sums as far as they are known. */
void weir__children_log_sums(const struct weir__children *children);

#endif
