/* The tasks that loop threads hand each other, and the gate that keeps one thread free.
 * Private to loop*.c. */
#ifndef WEIR_NET_LOOP_QUEUE_H
#define WEIR_NET_LOOP_QUEUE_H

#include "net/loop.h"

void weir__tasks_append(struct weir__tasks *tasks, struct weir__task *task);
struct weir__task *weir__tasks_take(struct weir__tasks *tasks);

/* Puts tasks behind the loop's queue (loop->soon or loop->block, with its length) and
 * wakes a thread for them. Empties `tasks`. */
void weir__loop_push_soon(struct weir__loop *loop, struct weir__tasks *tasks);
void weir__loop_push_block(struct weir__loop *loop, struct weir__tasks *tasks);

/* Takes all of the queue of tasks that don't block. */
struct weir__tasks weir__loop_take_soon(struct weir__loop *loop);

/* Queues the turn's tasks, and takes the first of all that may block, through the gate;
 * NULL where there is none or the gate is full. A turn that is through the gate with its
 * last task comes out first. Sees to it that another thread is there for what is left. */
struct weir__task *weir__loop_take_block(struct weir__loop *loop,
                                         struct weir__turn *turn);

/* Whether a thread that is about to wait would find something to do. */
bool weir__loop_has_work(const struct weir__loop *loop);

/* Rouses a thread that waits in the poller. */
void weir__loop_rouse(struct weir__loop *loop);

#endif
