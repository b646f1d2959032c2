/* The life of a request: READ, ROUTE, BEFORE, (WAIT), BODY, HANDLER, COMMIT, SEND, AFTER.
 *
 * A state machine, not recursion: it runs until it needs something that only a transport
 * can give, and says what. It knows nothing of sockets. */
#ifndef WEIR_LIFE_H
#define WEIR_LIFE_H

#include "request.h"

/* What the machine needs of the transport before it is run again. */
enum weir__need {
    WEIR__NEED_RESUME, /* parked: resume() of the transport will be called; the caller of
                          run must not touch the request any more */
    WEIR__NEED_BODY,   /* set w->body and w->body_len, or abandon it, then run; where the
                          client is gone, run without */
    WEIR__NEED_THREAD, /* run again, with may_block, on a thread that may */
    WEIR__NEED_SEND    /* send head_text (unless head_sent) and out, end the reply, then
                          weir__life_end(). Where w->torn is set the reply is not ended
                          but the connection closed, so that the front sees that it is
                          cut; where w->dropped is set the transport has answered already
                          and only ends the request */
};

/* What a transport does for a request. All may be called from any thread. */
struct weir__transport_ops {
    const char *name;

    /* Hands head_text (unless head_sent; sets it) and out to the peer, empties out.
     * Called from a handler's thread; waits up to the write deadline where the peer
     * doesn't read. False when the client is gone. */
    bool (*send)(struct weir *w);

    /* A parked request may go on: arranges one weir__life_run() soon. Never runs it
     * inside this call. */
    void (*resume)(struct weir *w);

    /* A request is about to park until w->wait_until_us: by then, if it is still parked,
     * weir__life_timeout(w, wait) is to be called. Called before it parks. */
    void (*arm)(struct weir *w, uint64_t wait);

    /* Counts an offload for the remote address in and out. False: too many in flight,
     * 503 Overloaded. NULL: no bound. */
    bool (*offload_begin)(struct weir *w);
    void (*offload_end)(struct weir *w);

    /* Told before each first call of a hook ("before", "commit", "after") of a filter.
     * NULL: nobody listens. For tests. */
    void (*hook)(struct weir *w, const struct weir_filter *filter, const char *hook);
};

/* Readies a zeroed or ended handle for a new request: fields to their start values, the
 * arena reset. The arena and out must have been initialised once by the transport. */
void weir__life_init(struct weir *w,
                     const struct weir__app *app,
                     struct weir_worker *worker,
                     const struct weir__transport_ops *transport,
                     void *connection);

/* The parameters are complete: parses and routes. */
void weir__life_begin(struct weir *w);

/* Runs until something is needed. may_block: this thread may run a handler or an offload.
 */
enum weir__need weir__life_run(struct weir *w, bool may_block);

/* Weir itself refuses (413, 431, 504, 503): the next run answers a problem body with this
 * status and code. What was charged goes back, unless the handler has been called or the
 * status is 400. Also before begin; then no hook runs. Only by the owner of the request:
 * of a parked one that is whoever resume() was told to run it, so that a transport whose
 * time is up ends the wait with weir_wake() and abandons it then; the continuation is not
 * called. The texts must outlive the request. */
void weir__life_abandon(struct weir *w, int status, const char *code, const char *detail);

/* The wait of that number is over. Any thread; a no-op where it has ended already. */
void weir__life_timeout(struct weir *w, uint64_t wait);

/* The last byte has left: runs the after hooks, frees what the request holds but its
 * arena. By the owner, never while parked. A client that went away is no reason to call
 * it early: set w->gone and run on (no handler is started then, and 499 stands for the
 * status), so that the commit hooks have their turn. Called before NEED_SEND, which is
 * for a worker that ends, commit hooks that have not run are left out. */
void weir__life_end(struct weir *w);

/* First flush inside a handler: runs the commit hooks here (they may wait: this thread
 * does) and builds the head. False: no answer can be made, or the client is gone. */
bool weir__life_commit_now(struct weir *w);

#endif
