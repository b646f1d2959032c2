/* Two queues under one mutex: tasks for the next turn of any thread, tasks that may
 * block. No task is run here.
 *
 * No wake-up is lost: a thread counts itself waiting before it looks at the lengths, and
 * who lengthens a queue does so before it looks at those that wait. */
#include "net/loop_queue.h"

#include <unistd.h>

#include "net/loop_rest.h"

void weir__tasks_append(struct weir__tasks *tasks, struct weir__task *task)
{
    task->next = NULL;
    task->prev = tasks->last;
    if (tasks->last)
        tasks->last->next = task;
    else
        tasks->first = task;
    tasks->last = task;
}

static void tasks_remove(struct weir__tasks *tasks, struct weir__task *task)
{
    if (task->prev)
        task->prev->next = task->next;
    else
        tasks->first = task->next;
    if (task->next)
        task->next->prev = task->prev;
    else
        tasks->last = task->prev;
    task->prev = task->next = NULL;
}

struct weir__task *weir__tasks_take(struct weir__tasks *tasks)
{
    struct weir__task *task = tasks->first;
    if (task)
        tasks_remove(tasks, task);
    return task;
}

void weir__loop_rouse(struct weir__loop *loop)
{
    if (atomic_load(&loop->waiting) == 0 || atomic_exchange(&loop->wake_sent, true))
        return;
    /* Edge-triggered: each write wakes a thread, nobody needs to read. */
    uint64_t one = 1;
    ssize_t written = write(loop->wake_fd, &one, sizeof one);
    (void)written;
}

/* Under the mutex: moves all of `tasks` behind `queue`. */
static void move(struct weir__tasks *queue, atomic_uint *len, struct weir__tasks *tasks)
{
    for (struct weir__task *task; (task = weir__tasks_take(tasks));) {
        weir__tasks_append(queue, task);
        task->shared = true;
        atomic_fetch_add(len, 1);
    }
}

void weir__loop_push_soon(struct weir__loop *loop, struct weir__tasks *tasks)
{
    pthread_mutex_lock(&loop->mutex);
    move(&loop->soon, &loop->soon_len, tasks);
    pthread_mutex_unlock(&loop->mutex);
    weir__loop_rouse(loop);
}

static bool gate_is_open(const struct weir__loop *loop)
{
    return atomic_load(&loop->blocked) < loop->threads - 1;
}

void weir__loop_push_block(struct weir__loop *loop, struct weir__tasks *tasks)
{
    pthread_mutex_lock(&loop->mutex);
    move(&loop->block, &loop->block_len, tasks);
    if (gate_is_open(loop))
        weir__loop_lean(loop, false);
    pthread_mutex_unlock(&loop->mutex);
}

struct weir__tasks weir__loop_take_soon(struct weir__loop *loop)
{
    struct weir__tasks taken = { 0 };
    if (atomic_load(&loop->soon_len) == 0)
        return taken;
    pthread_mutex_lock(&loop->mutex);
    taken = loop->soon;
    loop->soon = (struct weir__tasks){ 0 };
    atomic_store(&loop->soon_len, 0);
    pthread_mutex_unlock(&loop->mutex);
    return taken;
}

/* Under the mutex. */
static void leave_gate(struct weir__loop *loop, struct weir__turn *turn)
{
    if (turn->gated)
        atomic_fetch_sub(&loop->blocked, 1);
    if (turn->slow)
        atomic_fetch_sub(&loop->slow, 1);
    turn->gated = turn->slow = false;
}

/* Under the mutex. */
static struct weir__task *enter_gate(struct weir__loop *loop, struct weir__turn *turn)
{
    if (!loop->block.first || !gate_is_open(loop))
        return NULL;
    struct weir__task *task = weir__tasks_take(&loop->block);
    task->shared = false;
    atomic_fetch_sub(&loop->block_len, 1);
    atomic_fetch_add(&loop->blocked, 1);
    turn->gated = true;
    turn->slow = !task->brief;
    if (turn->slow)
        atomic_fetch_add(&loop->slow, 1);
    return task;
}

struct weir__task *weir__loop_take_block(struct weir__loop *loop, struct weir__turn *turn)
{
    if (!turn->gated && !turn->block.first && atomic_load(&loop->block_len) == 0)
        return NULL;
    pthread_mutex_lock(&loop->mutex);
    leave_gate(loop, turn);
    move(&loop->block, &loop->block_len, &turn->block);
    struct weir__task *task = enter_gate(loop, turn);
    bool more = task && loop->block.first && gate_is_open(loop);
    if (task && (more || atomic_load(&loop->waiting) == 0))
        weir__loop_lean(loop, task->brief && (!more || loop->block.first->brief));
    pthread_mutex_unlock(&loop->mutex);
    return task;
}

bool weir__loop_unblock(struct weir__loop *loop, struct weir__task *task)
{
    pthread_mutex_lock(&loop->mutex);
    bool queued = task->shared;
    if (queued) {
        tasks_remove(&loop->block, task);
        task->shared = false;
        atomic_fetch_sub(&loop->block_len, 1);
    }
    pthread_mutex_unlock(&loop->mutex);
    return queued;
}

bool weir__loop_has_work(const struct weir__loop *loop)
{
    return atomic_load(&loop->soon_len) > 0 ||
           (atomic_load(&loop->block_len) > 0 && gate_is_open(loop));
}
