/* The fork and the books. In the new process everything that belongs to the parent alone
 * must go: a worker that kept a sibling's channel open would hide the parent's death from
 * it. */
#include "process/child.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "process/settings.h"

bool weir__children_init(struct weir__children *children, unsigned max)
{
    *children = (struct weir__children){ .max = max };
    children->list = calloc(max, sizeof *children->list);
    return children->list;
}

void weir__children_finish(struct weir__children *children)
{
    free(children->list);
    children->list = NULL;
}

struct weir__child *weir__children_free_place(const struct weir__children *children)
{
    for (unsigned i = 0; i < children->max; i++)
        if (!children->list[i].pid)
            return &children->list[i];
    return NULL;
}

bool weir__children_is_manned(const struct weir__children *children, unsigned index)
{
    for (unsigned i = 0; i < children->max; i++) {
        const struct weir__child *child = &children->list[i];
        if (child->pid && child->index == index && !child->draining)
            return true;
    }
    return false;
}

bool weir__children_is_anybody(const struct weir__children *children)
{
    for (unsigned i = 0; i < children->max; i++)
        if (children->list[i].pid && !children->list[i].draining)
            return true;
    return false;
}

unsigned weir__children_count(const struct weir__children *children)
{
    unsigned count = 0;
    for (unsigned i = 0; i < children->max; i++)
        count += children->list[i].pid != 0;
    return count;
}

unsigned weir__children_ready(const struct weir__children *children)
{
    unsigned count = 0;
    for (unsigned i = 0; i < children->max; i++)
        count += children->list[i].pid && children->list[i].ready;
    return count;
}

bool weir__children_start(struct weir__children *children,
                          struct weir__child *place,
                          const struct weir__worker_config *config,
                          int (*run)(const struct weir__worker_config *config),
                          int parents_fd)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
        weir__log(
            WEIR_LOG_ERROR, "worker %u: socketpair: %s", config->index, strerror(errno));
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) {
        struct weir__worker_config mine = *config;
        mine.control_fd = pair[1];
        close(pair[0]);
        close(parents_fd);
        for (unsigned i = 0; i < children->max; i++)
            if (children->list[i].pid && children->list[i].control_fd >= 0)
                close(children->list[i].control_fd);
        weir__settings_worker();
        exit(run(&mine));
    }
    int why = errno;
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        weir__log(WEIR_LOG_ERROR, "worker %u: fork: %s", config->index, strerror(why));
        return false;
    }
    *place =
        (struct weir__child){ .pid = pid, .control_fd = pair[0], .index = config->index };
    weir__log(WEIR_LOG_DEBUG, "worker %u is process %d", config->index, (int)pid);
    return true;
}

/* ---- sums ------------------------------------------------------------------------ */

static void add(struct weir__control_stats *sum, const struct weir__control_stats *one)
{
    sum->requests += one->requests;
    sum->refused += one->refused;
    sum->failed += one->failed;
    sum->accepted += one->accepted;
    sum->connections += one->connections;
}

void weir__children_told(struct weir__children *children,
                         struct weir__child *child,
                         const struct weir__control_message *message)
{
    children->sums_known = true;
    child->stats = message->stats;
    if (message->number > child->answered)
        child->answered = message->number;
}

void weir__children_ended(struct weir__children *children, struct weir__child *child)
{
    if (child->control_fd >= 0)
        close(child->control_fd);
    child->stats.connections = 0;
    add(&children->departed, &child->stats);
    *child = (struct weir__child){ .control_fd = -1 };
}

void weir__children_ask_sums(struct weir__children *children)
{
    if (children->sums_due)
        return;
    children->asked++;
    children->sums_due = true;
    for (unsigned i = 0; i < children->max; i++) {
        struct weir__child *child = &children->list[i];
        if (child->pid && child->control_fd >= 0 &&
            !weir__control_send(
                child->control_fd,
                &(struct weir__control_message){ .type = WEIR__CONTROL_STATS_ASK,
                                                 .number = children->asked }))
            child->answered = children->asked;
    }
}

void weir__children_log_asked_sums(struct weir__children *children)
{
    if (!children->sums_due)
        return;
    for (unsigned i = 0; i < children->max; i++) {
        const struct weir__child *child = &children->list[i];
        if (child->pid && child->ready && child->control_fd >= 0 &&
            child->answered < children->asked)
            return;
    }
    children->sums_due = false;
    weir__children_log_sums(children);
}

void weir__children_log_sums(const struct weir__children *children)
{
    struct weir__control_stats sum = children->departed;
    if (!children->sums_known)
        return;
    for (unsigned i = 0; i < children->max; i++)
        if (children->list[i].pid)
            add(&sum, &children->list[i].stats);
    weir__log(WEIR_LOG_INFO,
              "%" PRIu64 " requests, %" PRIu64 " of them refused, %" PRIu64
              " failed; %" PRIu64 " connections, %" PRIu64 " open",
              sum.requests,
              sum.refused,
              sum.failed,
              sum.accepted,
              sum.connections);
}
