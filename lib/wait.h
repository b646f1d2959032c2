/* Waits of one request: a number and a state in one atomic word, so that a wake, a
 * time-out and the parking itself may meet in any order, on any threads, and exactly one
 * of them lets the request go on. */
#ifndef WEIR_WAIT_H
#define WEIR_WAIT_H

#include "request.h"

/* Readies the word for a request; time-outs of the handle's earlier life stay stale. */
void weir__wait_init(struct weir *w);

/* Forgets a wake that came while nobody waited: it belonged to an earlier hook. */
void weir__wait_forget(struct weir *w);

/* Begins the wait that the running hook asked for. True: it is parked, the caller must
 * not touch the request any more. False: woken or timed out already, go on. */
bool weir__wait_park(struct weir *w);

/* The same for a thread that sits in the wait: returns when it is over. */
void weir__wait_sit(struct weir *w);

/* A parked request runs again: notes how the wait ended and makes its number stale. */
void weir__wait_over(struct weir *w);

#endif
