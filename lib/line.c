/* A queue of parked requests behind the one whose turn it is.
 *
 * The turn is handed over under the mutex and the wake is sent under it, so that nobody
 * is woken who has left. Deadlines are the transport's: it wakes and abandons. */
#include "line.h"

#include <pthread.h>

#include "base/clock.h"
#include "wait.h"

/* One line a process: a worker is one. */
static struct {
    pthread_mutex_t mutex;
    struct weir *turn; /* whose turn it is, NULL: nobody's */
    struct weir *first, *last;
} line = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void append(struct weir *w)
{
    w->line_next = NULL;
    w->line_prev = line.last;
    if (line.last)
        line.last->line_next = w;
    else
        line.first = w;
    line.last = w;
}

static void remove_from(struct weir *w)
{
    if (w->line_prev)
        w->line_prev->line_next = w->line_next;
    else
        line.first = w->line_next;
    if (w->line_next)
        w->line_next->line_prev = w->line_prev;
    else
        line.last = w->line_prev;
}

/* Stands in line, unless it does already. Whether it is its turn. */
static bool stand(struct weir *w)
{
    pthread_mutex_lock(&line.mutex);
    if (!w->in_line) {
        w->in_line = true;
        if (line.turn)
            append(w);
        else
            line.turn = w;
    }
    bool mine = line.turn == w;
    pthread_mutex_unlock(&line.mutex);
    return mine;
}

bool weir__line_enter(struct weir *w)
{
    if (w->in_line)
        weir__wait_over(w);
    while (!stand(w)) {
        /* Any time will do: it is taken up again and stands in line on. */
        w->wait_until_us = weir__clock_now_us() + WEIR_HOURS(1);
        if (weir__wait_park(w))
            return false;
    }
    return true;
}

void weir__line_leave(struct weir *w)
{
    if (!w->in_line)
        return;
    w->in_line = false;
    pthread_mutex_lock(&line.mutex);
    if (line.turn != w) {
        remove_from(w);
    } else {
        line.turn = line.first;
        if (line.turn) {
            remove_from(line.turn);
            weir_wake(line.turn);
        }
    }
    pthread_mutex_unlock(&line.mutex);
}
