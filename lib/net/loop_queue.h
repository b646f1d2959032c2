/* The tasks that loop threads hand each other, and the gate that keeps one thread free.
 * Private to loop*.c. */
#ifndef WEIR_NET_LOOP_QUEUE_H
#define WEIR_NET_LOOP_QUEUE_H

#include "net/loop.h"

void weir__tasks_append(struct weir__tasks *tasks, struct weir__task *task);
struct weir__task *weir__tasks_take(struct weir__tasks *tasks);

/* Puts tasks behind the loop's queue (loop->soon or loop->block, with its length) and
 * wakes a waiting thread for them. Empties `tasks`. */
void weir__loop_push_soon(struct weir__loop *loop, struct weir__tasks *tasks);
void weir__loop_push_block(struct weir__loop *loop, struct weir__tasks *tasks);

/* Takes all of the queue of tasks that don't block. */
struct weir__tasks weir__loop_take_soon(struct weir__loop *loop);

/* Appends `fresh`, and takes the first task that may block, through the gate; NULL where
 * there is none or the gate is full. held: the caller is through the gate from its last
 * task; it is out of it where NULL is returned. Wakes another thread for what is left. */
struct weir__task *
weir__loop_take_block(struct weir__loop *loop, struct weir__tasks *fresh, bool held);

/* Whether a thread that is about to wait would find something to do. */
bool weir__loop_has_work(const struct weir__loop *loop);

/* Rouses one thread that waits. */
void weir__loop_rouse(struct weir__loop *loop);

#endif
