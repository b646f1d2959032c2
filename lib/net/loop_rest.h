/* Where the threads of a loop are that have nothing to do. Private to loop*.c. */
#ifndef WEIR_NET_LOOP_REST_H
#define WEIR_NET_LOOP_REST_H

#include "net/loop.h"

bool weir__loop_rest_init(struct weir__loop *loop);
void weir__loop_rest_finish(struct weir__loop *loop);

/* The calling thread has nothing to do: counts it among those that wait in the poller,
 * and returns; but first lets it rest for as long as there are enough of them. */
void weir__loop_join_waiting(struct weir__loop *loop);

/* Counts the events that a thread begins its turn with. */
void weir__loop_count(struct weir__loop *loop, unsigned events, int64_t now_us);

/* Under the mutex: a task is about to be run, or left in the queue, and perhaps nobody is
 * in the poller. Calls a thread; or, on a busy loop and where all that lies ahead is
 * brief, the guard. */
void weir__loop_lean(struct weir__loop *loop, bool brief);

/* Calls a thread to wait in the poller beside the caller, who is busy with many events,
 * where a processor may be free for it. */
void weir__loop_call_for_many(struct weir__loop *loop);

/* Nobody is in the poller although a thread would like to wait a little: one is called to
 * it, unless the loop is busy. */
void weir__loop_call_to_wait(struct weir__loop *loop);

/* Lets all that rest see that the loop stops. */
void weir__loop_rest_stop(struct weir__loop *loop);

#endif
