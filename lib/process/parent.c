/* One loop over poll(2): a signalfd and a control channel for each worker. Signals are
 * blocked from before the first fork on, so that none falls between a check and a wait.
 *
 * A child is waited for by its own number: children that the app started are the app's.
 */
#include "process/parent.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "process/brake.h"
#include "process/child.h"
#include "process/notify.h"
#include "process/settings.h"
#include "process/upgrade.h"

#define MS_US INT64_C(1000)
#define FORK_RETRY_US INT64_C(1000000)
#define SIGNALS_A_TURN 16

struct parent {
    const struct weir__parent_config *config;
    int signal_fd;
    struct pollfd *polls;
    /* Places for twice the workers: one that drains has its successor beside it already.
     */
    struct weir__children children;
    struct weir__upgrade upgrade;

    unsigned long started;
    int64_t fork_at_us; /* after a failed fork: when to try again */
    struct weir__brake brake;
    bool braked;    /* the alarm was logged */
    bool announced; /* all were ready once */
    bool ever_ready;

    bool stopping, handed_over;
    int64_t stop_us;
    int status;
};

/* ---- starting -------------------------------------------------------------------- */

/* When another worker may be started: now, or later. */
static int64_t start_at_us(struct parent *parent, int64_t now_us)
{
    if (parent->started < parent->config->workers)
        return now_us;
    bool on = weir__brake_is_on(&parent->brake, now_us);
    if (on && !parent->braked)
        weir__log(
            WEIR_LOG_ERROR,
            "ALARM: workers end as fast as they start (%u in 10 s): from now on one "
            "start a second, besides a last one",
            parent->brake.bound);
    parent->braked = on;
    bool last = !weir__children_is_anybody(&parent->children);
    int64_t next_us = weir__brake_next_us(&parent->brake, now_us, last);
    return next_us > parent->fork_at_us ? next_us : parent->fork_at_us;
}

static bool start(struct parent *parent, struct weir__child *place, unsigned index)
{
    const struct weir__parent_config *config = parent->config;
    struct weir__worker_config worker = {
        .app = config->app,
        .index = index,
        .listen_fds = config->listeners->fds,
        .listen_unix = config->listeners->is_unix,
        .listen_len = config->listeners->len,
    };
    if (!weir__children_start(
            &parent->children, place, &worker, config->run, parent->signal_fd))
        return false;
    parent->started++;
    return true;
}

/* Puts a worker wherever one is missing. Returns when to come back, INT64_MAX for never.
 */
static int64_t start_missing(struct parent *parent, int64_t now_us)
{
    for (unsigned index = 0; index < parent->config->workers; index++) {
        if (weir__children_is_manned(&parent->children, index))
            continue;
        struct weir__child *place = weir__children_free_place(&parent->children);
        if (!place)
            return INT64_MAX; /* so many are draining that the next end makes room */
        int64_t at_us = start_at_us(parent, now_us);
        if (at_us > now_us)
            return at_us;
        bool again = parent->started >= parent->config->workers;
        if (again)
            weir__brake_count(
                &parent->brake, now_us, !weir__children_is_anybody(&parent->children));
        if (!start(parent, place, index)) {
            if (!again)
                parent->status = EX_OSERR;
            return parent->fork_at_us = now_us + FORK_RETRY_US;
        }
    }
    return INT64_MAX;
}

/* ---- stopping -------------------------------------------------------------------- */

/* The worker won't take anything more: it has its time, then it is killed. */
static void let_drain(struct parent *parent, struct weir__child *child, int64_t now_us)
{
    child->draining = true;
    if (!child->kill_at_us)
        child->kill_at_us =
            now_us + (parent->config->drain_ms + WEIR__PARENT_GRACE_MS) * MS_US;
}

static void begin_stop(struct parent *parent, int status, int64_t now_us)
{
    if (parent->stopping)
        return;
    parent->stopping = true;
    parent->stop_us = now_us;
    parent->status = status;
    if (!parent->handed_over)
        weir__notify("STOPPING=1");
    /* Whoever connects from now on is to be refused, not left waiting. */
    weir__listen_close(parent->config->listeners);
    for (unsigned i = 0; i < parent->children.max; i++) {
        struct weir__child *child = &parent->children.list[i];
        if (!child->pid)
            continue;
        let_drain(parent, child, now_us);
        kill(child->pid, SIGTERM);
    }
}

/* A new generation serves: its sockets are ours, so what waits in them is not lost. */
static void hand_over(struct parent *parent, int64_t now_us)
{
    char state[32];
    snprintf(state, sizeof state, "MAINPID=%d", (int)parent->upgrade.pid);
    weir__notify(state);
    weir__listen_leave_files(parent->config->listeners);
    parent->handed_over = true;
    begin_stop(parent, EX_OK, now_us);
}

/* SIGTERM or SIGINT. */
static void asked_to_stop(struct parent *parent, int64_t now_us)
{
    if (!parent->stopping) {
        weir__log(WEIR_LOG_INFO, "stopping");
        weir__upgrade_cancel(&parent->upgrade);
        begin_stop(parent, EX_OK, now_us);
        return;
    }
    if (now_us - parent->stop_us < WEIR__PARENT_ECHO_MS * MS_US)
        return;
    for (unsigned i = 0; i < parent->children.max; i++)
        if (parent->children.list[i].kill_at_us)
            parent->children.list[i].kill_at_us = now_us;
}

/* Kills those whose time is over. Returns when the next one's is, INT64_MAX for never. */
static int64_t kill_overdue(struct parent *parent, int64_t now_us)
{
    int64_t next_us = INT64_MAX;
    for (unsigned i = 0; i < parent->children.max; i++) {
        struct weir__child *child = &parent->children.list[i];
        if (!child->pid || !child->kill_at_us)
            continue;
        if (child->kill_at_us <= now_us) {
            weir__log(WEIR_LOG_WARNING,
                      "worker %u (process %d) has not ended in time: killed",
                      child->index,
                      (int)child->pid);
            kill(child->pid, SIGKILL);
            child->kill_at_us = 0;
        } else if (child->kill_at_us < next_us) {
            next_us = child->kill_at_us;
        }
    }
    return next_us;
}

/* ---- what workers say ------------------------------------------------------------ */

static void announce_if_complete(struct parent *parent)
{
    if (parent->announced ||
        weir__children_ready(&parent->children) < parent->config->workers)
        return;
    parent->announced = true;
    weir__log(WEIR_LOG_INFO, "ready: %u workers", parent->config->workers);
    weir__notify("READY=1");
    weir__upgrade_say_ready(parent->config->upgrade);
}

static void hear(struct parent *parent,
                 struct weir__child *child,
                 const struct weir__control_message *message,
                 int64_t now_us)
{
    switch (message->type) {
    case WEIR__CONTROL_READY:
        child->ready = parent->ever_ready = true;
        child->ready_us = now_us;
        announce_if_complete(parent);
        break;
    case WEIR__CONTROL_DRAINING:
        let_drain(parent, child, now_us);
        break;
    case WEIR__CONTROL_STATS:
        weir__children_told(&parent->children, child, message);
        break;
    case WEIR__CONTROL_STATS_ASK:
        break; /* the parent's own word */
    }
}

static void hear_all(struct parent *parent, struct weir__child *child, int64_t now_us)
{
    while (child->control_fd >= 0) {
        struct weir__control_message message;
        switch (weir__control_receive(child->control_fd, &message)) {
        case WEIR__CONTROL_MESSAGE:
            hear(parent, child, &message, now_us);
            break;
        case WEIR__CONTROL_NOTHING:
            return;
        case WEIR__CONTROL_CLOSED:
            close(child->control_fd);
            child->control_fd = -1;
        }
    }
}

/* ---- what the system says -------------------------------------------------------- */

static void
log_end(const struct parent *parent, const struct weir__child *child, int status)
{
    bool expected = parent->stopping || child->draining;
    const char *then = parent->stopping ? "" : "; another takes its place";
    if (WIFSIGNALED(status))
        weir__log(WEIR_LOG_ERROR,
                  "worker %u (process %d) was killed by signal %d, %s%s",
                  child->index,
                  (int)child->pid,
                  WTERMSIG(status),
                  strsignal(WTERMSIG(status)),
                  then);
    else
        weir__log(expected && WEXITSTATUS(status) == 0 ? WEIR_LOG_DEBUG
                                                       : WEIR_LOG_WARNING,
                  "worker %u (process %d) ended with status %d%s",
                  child->index,
                  (int)child->pid,
                  WEXITSTATUS(status),
                  then);
}

static void reap(struct parent *parent, int64_t now_us)
{
    for (unsigned i = 0; i < parent->children.max; i++) {
        struct weir__child *child = &parent->children.list[i];
        int status;
        if (!child->pid || waitpid(child->pid, &status, WNOHANG) != child->pid)
            continue;
        hear_all(parent, child, now_us); /* its last words */
        log_end(parent, child, status);
        weir__brake_ended(&parent->brake, child->ready ? now_us - child->ready_us : -1);
        weir__children_ended(&parent->children, child);
        if (!parent->ever_ready && WIFEXITED(status) && WEXITSTATUS(status) == 1)
            begin_stop(parent, EX_OSERR, now_us);
    }
    weir__upgrade_reap(&parent->upgrade);
}

static void take_signals(struct parent *parent, int64_t now_us)
{
    struct signalfd_siginfo infos[SIGNALS_A_TURN];
    ssize_t got = read(parent->signal_fd, infos, sizeof infos);
    size_t len = got > 0 ? (size_t)got / sizeof infos[0] : 0;
    for (size_t i = 0; i < len; i++) {
        switch (infos[i].ssi_signo) {
        case SIGTERM:
        case SIGINT:
            asked_to_stop(parent, now_us);
            break;
        case SIGCHLD:
            reap(parent, now_us);
            break;
        case SIGUSR1:
            weir__children_ask_sums(&parent->children);
            break;
        case SIGUSR2:
            if (!parent->stopping)
                weir__upgrade_start(&parent->upgrade, parent->config->listeners, now_us);
            break;
        default: /* SIGHUP: reserved, so that it never means the end */
            break;
        }
    }
}

/* ---- the loop -------------------------------------------------------------------- */

/* poll's time-out: whole milliseconds up, so that it never wakes too early and spins. */
static int timeout_ms(int64_t until_us, int64_t now_us)
{
    if (until_us == INT64_MAX)
        return -1;
    int64_t ms = until_us <= now_us ? 0 : (until_us - now_us + MS_US - 1) / MS_US;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

static void wait_and_hear(struct parent *parent, int64_t until_us, int64_t now_us)
{
    unsigned max = parent->children.max;
    parent->polls[0] = (struct pollfd){ .fd = parent->signal_fd, .events = POLLIN };
    for (unsigned i = 0; i < max; i++) {
        const struct weir__child *child = &parent->children.list[i];
        /* poll leaves a negative descriptor alone. */
        parent->polls[i + 1] = (struct pollfd){ .fd = child->pid ? child->control_fd : -1,
                                                .events = POLLIN };
    }
    parent->polls[max + 1] =
        (struct pollfd){ .fd = parent->upgrade.word_fd, .events = POLLIN };
    if (poll(parent->polls, max + 2, timeout_ms(until_us, now_us)) < 0)
        return;
    now_us = weir__clock_now_us();
    for (unsigned i = 0; i < max; i++)
        if (parent->polls[i + 1].revents)
            hear_all(parent, &parent->children.list[i], now_us);
    if (parent->polls[0].revents)
        take_signals(parent, now_us);
    if (weir__upgrade_hear(&parent->upgrade, now_us) && !parent->stopping)
        hand_over(parent, now_us);
}

static void loop(struct parent *parent)
{
    while (!parent->stopping || weir__children_count(&parent->children) > 0) {
        int64_t now_us = weir__clock_now_us(), start_us = INT64_MAX;
        if (!parent->stopping)
            start_us = start_missing(parent, now_us);
        if (parent->status != EX_OK && !parent->stopping) {
            begin_stop(parent, parent->status, now_us);
            continue;
        }
        int64_t until_us = kill_overdue(parent, now_us);
        if (start_us < until_us)
            until_us = start_us;
        if (parent->upgrade.until_us < until_us)
            until_us = parent->upgrade.until_us;
        weir__children_log_asked_sums(&parent->children);
        wait_and_hear(parent, until_us, now_us);
    }
}

/* A thread doesn't come along with a fork, but the locks that it holds do. */
static void warn_of_threads(void)
{
    struct stat stat_of_tasks;
    /* Two links are the folder's own. */
    if (stat("/proc/self/task", &stat_of_tasks) == 0 && stat_of_tasks.st_nlink > 3)
        weir__log(
            WEIR_LOG_WARNING,
            "threads run before the workers are forked (%lu besides this one): they "
            "won't be in the workers; start them in worker_start",
            (unsigned long)stat_of_tasks.st_nlink - 3);
}

int weir__parent_run(const struct weir__parent_config *config)
{
    struct parent parent = { .config = config, .status = EX_OK };
    unsigned places = 2 * config->workers;
    sigset_t set;
    weir__settings_signals(&set);
    weir__brake_init(&parent.brake, config->workers);
    weir__upgrade_init(&parent.upgrade, config->upgrade);
    parent.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    parent.polls = calloc(places + 2, sizeof *parent.polls);
    if (!weir__children_init(&parent.children, places) || !parent.polls ||
        parent.signal_fd < 0) {
        weir__log(WEIR_LOG_ERROR, "the parent can't start: %s", strerror(errno));
        parent.status = EX_OSERR;
    } else {
        /* What stands in a buffer now would be written by every worker. */
        fflush(NULL);
        warn_of_threads();
        loop(&parent);
        weir__children_log_sums(&parent.children);
    }
    if (parent.signal_fd >= 0)
        close(parent.signal_fd);
    weir__children_finish(&parent.children);
    weir__upgrade_finish(&parent.upgrade);
    free(parent.polls);
    return parent.status;
}
