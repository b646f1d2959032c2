/* Process-wide state is touched here and nowhere else in the library. Only what a server
 * that forks can't do without: it sets no umask, changes no folder, drops no rights. */
#include "process/settings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <linux/close_range.h>

#include "base/error.h"
#include "base/log.h"

static const int parents_own[] = { SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };
#define PARENTS_OWN_LEN (sizeof parents_own / sizeof parents_own[0])

void weir__settings_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGTERM);
    sigaddset(ret_set, SIGCHLD);
    for (size_t i = 0; i < PARENTS_OWN_LEN; i++)
        sigaddset(ret_set, parents_own[i]);
}

static bool open_standard_files(struct weir_error *ret_error)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* The lowest free number is fd, since those below it are open. */
        if (open("/dev/null", O_RDWR) != fd)
            return weir__error(ret_error, "/dev/null: %s", strerror(errno));
    }
    return true;
}

/* For kernels before 5.11, which have no close_range(2) with this flag. */
static void close_on_exec_one_by_one(void)
{
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        int fd = atoi(entry->d_name);
        int flags = fd > 2 ? fcntl(fd, F_GETFD) : -1;
        if (flags >= 0)
            fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
    }
    closedir(folder);
}

static void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        weir__log(
            WEIR_LOG_WARNING, "the bound of open files stays low: %s", strerror(errno));
}

bool weir__settings_parent(struct weir_error *ret_error)
{
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return weir__error(ret_error, "signals: %s", strerror(errno));
    if (!open_standard_files(ret_error))
        return false;
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        close_on_exec_one_by_one();
    raise_open_files();
    return true;
}

bool weir__settings_block(struct weir_error *ret_error)
{
    sigset_t set;
    weir__settings_signals(&set);
    /* Whoever started us may have ignored SIGCHLD, and then waitpid(2) finds nobody. */
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || signal(SIGCHLD, SIG_DFL) == SIG_ERR)
        return weir__error(ret_error, "signals: %s", strerror(errno));
    return true;
}

void weir__settings_worker(void)
{
    sigset_t set;
    for (size_t i = 0; i < PARENTS_OWN_LEN; i++)
        signal(parents_own[i], SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_SETMASK, &set, NULL);
}
