/* libfcgi's calls that accept and end requests, over Weir's engine: a request that has
 * come through the chain waits in a queue, in its handler, until a thread of the program
 * takes it, and its handler goes on when that thread has finished it.
 *
 * While the program has a request its thread stands in for the handler's: it has that
 * one's place in the loop, so that hooks which run at a flush find the thread they know.
 * Includes libfcgi's header; what is called of it is bound weakly. */
#define WEIR_FCGX_KEEP_NAMES
#include "process/pull.h"

#include <fcgiapp.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "fcgx.h"
#include "net/loop.h"
#include "process/pull_engine.h"
#include "../worker.h" /* not process/worker.h */

#pragma weak FCGX_FClose

#define LOOK_MS 200 /* how often a request that waits looks whether its client does */

/* A request in its handler, on that one's stack. */
struct hand {
    struct hand *next;
    FCGX_Request *request;
    struct weir *w;
    unsigned thread; /* the handler's, in the loop */
    bool done;       /* the handler may go on */
    bool taken;
    pthread_cond_t done_cond;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    struct hand *first, *last;
    bool closed; /* the process ends: nobody takes any more */
    bool ended;  /* the engine has: no request will come */
} queue = { .mutex = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER };

/* What the calling thread has in hand, for an exit() in the middle of it. */
static _Thread_local FCGX_Request *in_hand;

static FCGX_Request the_request; /* FCGX_Accept's */

/* ---- the handler's side ------------------------------------------------------------ */

static void put(struct hand *hand)
{
    if (queue.last)
        queue.last->next = hand;
    else
        queue.first = hand;
    queue.last = hand;
    pthread_cond_signal(&queue.arrived);
}

static void take_back(const struct hand *hand)
{
    struct hand *before = NULL;
    for (struct hand *at = queue.first; at != hand; at = at->next)
        before = at;
    if (before)
        before->next = hand->next;
    else
        queue.first = hand->next;
    if (queue.last == hand)
        queue.last = before;
}

/* Under the mutex, until the program has taken the request and is done with it; false:
 * until it can't be taken any more. */
static bool wait_for_end(struct hand *hand)
{
    while (!hand->done) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (hand->taken)
            pthread_cond_wait(&hand->done_cond, &queue.mutex);
        else
            pthread_cond_timedwait(&hand->done_cond, &queue.mutex, &until);
        if (!hand->taken && (queue.closed || weir_gone(hand->w))) {
            take_back(hand);
            return false;
        }
    }
    return true;
}

void weir_fcgx_pull(FCGX_Request *request)
{
    struct hand hand = { .request = request,
                         .w = weir__fcgx_request_of(request),
                         .thread = (unsigned)weir__turn_index(),
                         .done_cond = PTHREAD_COND_INITIALIZER };
    pthread_mutex_lock(&queue.mutex);
    put(&hand);
    if (!wait_for_end(&hand))
        weir__fcgx_give_up(request, "the program ends");
    pthread_mutex_unlock(&queue.mutex);
    pthread_cond_destroy(&hand.done_cond);
}

/* ---- the program's side ------------------------------------------------------------ */

/* The next request; NULL: the end. */
static struct hand *take(void)
{
    pthread_mutex_lock(&queue.mutex);
    while (!queue.first && !queue.ended && !queue.closed)
        pthread_cond_wait(&queue.arrived, &queue.mutex);
    struct hand *hand = queue.closed ? NULL : queue.first;
    if (hand) {
        hand->taken = true;
        queue.first = hand->next;
        if (!queue.first)
            queue.last = NULL;
    }
    pthread_mutex_unlock(&queue.mutex);
    return hand;
}

/* A request that we gave out has its hand where libfcgi has its parameters. */
static struct hand *hand_of(const FCGX_Request *request)
{
    return (struct hand *)request->paramsPtr;
}

/* The handler goes on; the hand is gone then. */
static void let_go(struct hand *hand)
{
    pthread_mutex_lock(&queue.mutex);
    hand->done = true;
    pthread_cond_signal(&hand->done_cond);
    pthread_mutex_unlock(&queue.mutex);
}

/* Not for a child of the process, in which the request is a copy without a client. */
static void end(FCGX_Request *request)
{
    struct hand *hand = hand_of(request);
    if (!hand || !weir__pull_engine_is_here())
        return;
    FCGX_FClose(hand->request->err);
    FCGX_FClose(hand->request->out);
    request->in = request->out = request->err = NULL;
    request->envp = NULL;
    request->paramsPtr = NULL;
    in_hand = NULL;
    weir__loop_leave();
    let_go(hand);
}

/* In exit(): the request in this thread's hand, if there is one, is never answered, and
 * what waits isn't either. Other threads may still end theirs. */
static void leaving(void)
{
    pthread_mutex_lock(&queue.mutex);
    queue.closed = true;
    for (struct hand *hand = queue.first; hand; hand = hand->next)
        pthread_cond_signal(&hand->done_cond);
    pthread_cond_broadcast(&queue.arrived);
    pthread_mutex_unlock(&queue.mutex);
    if (in_hand) {
        weir__fcgx_give_up(hand_of(in_hand)->request, "the program ended meanwhile");
        end(in_hand);
    }
}

static void ended(void)
{
    pthread_mutex_lock(&queue.mutex);
    queue.ended = true;
    pthread_cond_broadcast(&queue.arrived);
    pthread_mutex_unlock(&queue.mutex);
}

int weir_fcgx_accept_r(FCGX_Request *request)
{
    static const struct weir__pull_events events = { .leaving = leaving, .ended = ended };
    end(request);
    if (weir_fcgx_init_library() < 0 ||
        !weir__pull_engine_start(request->listen_sock, &events))
        return -1;
    struct hand *hand = take();
    if (!hand)
        return -1;
    request->requestId = hand->request->requestId;
    request->role = hand->request->role;
    request->in = hand->request->in;
    request->out = hand->request->out;
    request->err = hand->request->err;
    request->envp = hand->request->envp;
    request->paramsPtr = (struct Params *)hand;
    request->isBeginProcessed = 1;
    in_hand = request;
    weir__loop_enter(weir_worker(hand->w)->loop, hand->thread);
    return 0;
}

void weir_fcgx_finish_r(FCGX_Request *request)
{
    if (request)
        end(request);
}

/* libfcgi loses what was not flushed here; nobody can want that. */
void weir_fcgx_free(FCGX_Request *request, int close_it)
{
    (void)close_it;
    if (request)
        end(request);
}

int weir_fcgx_init_request(FCGX_Request *request, int listen_fd, int flags)
{
    memset(request, 0, sizeof *request);
    request->listen_sock = listen_fd;
    request->flags = flags;
    request->ipcFd = -1;
    return 0;
}

int weir_fcgx_accept(FCGX_Stream **in,
                     FCGX_Stream **out,
                     FCGX_Stream **err,
                     FCGX_ParamArray *envp)
{
    int result = weir_fcgx_accept_r(&the_request);
    *in = the_request.in;
    *out = the_request.out;
    *err = the_request.err;
    *envp = the_request.envp;
    return result;
}

void weir_fcgx_finish(void)
{
    weir_fcgx_finish_r(&the_request);
}

/* ---- the process ------------------------------------------------------------------- */

bool weir_fcgx_init(const struct weir_app *app, struct weir_error *ret_error)
{
    struct weir_error error = { "" };
    bool ok = weir__pull_engine_init(app, weir_fcgx_pull, &error);
    if (ok)
        weir__pull_engine_signals();
    else if (ret_error)
        *ret_error = error;
    return ok;
}

int weir_fcgx_init_library(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static bool called;
    struct weir_error error = { "" };
    pthread_mutex_lock(&mutex);
    bool ok = weir__pull_engine_is_init() ||
              weir__pull_engine_init(NULL, weir_fcgx_pull, &error);
    if (ok && !called)
        weir__pull_engine_signals();
    called = called || ok;
    pthread_mutex_unlock(&mutex);
    if (!ok)
        weir__log(WEIR_LOG_ERROR, "%s", error.text);
    return ok ? 0 : -1;
}

int weir_fcgx_open_socket(const char *path, int backlog)
{
    (void)backlog; /* the kernel's bound holds */
    return weir_fcgx_init_library() < 0 ? -1 : weir__pull_engine_open(path);
}

int weir_fcgx_is_cgi(void)
{
    return weir_fcgx_init_library() == 0 && !weir__pull_engine_can_listen(0);
}

void weir_fcgx_shutdown_pending(void)
{
    weir__pull_engine_stop();
}
