#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/settings.h"

/* These change the whole process, so each runs in a child: 0 is good, else the number of
 * the check that failed. */
static int in_child(int (*fn)(void))
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(fn());
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_blocked(int number)
{
    sigset_t set;
    sigprocmask(SIG_BLOCK, NULL, &set);
    return sigismember(&set, number);
}

static bool handled_by(int number, void (*handler)(int))
{
    struct sigaction action;
    sigaction(number, NULL, &action);
    return action.sa_handler == handler;
}

static int parents_signals(void)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD };
    struct weir_error error = { "" };
    signal(SIGCHLD, SIG_IGN); /* as a careless starter leaves it */
    signal(SIGPIPE, SIG_DFL);
    if (!weir__settings_parent(&error) || is_blocked(SIGTERM))
        return 1;
    if (!weir__settings_block(&error))
        return 5;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!is_blocked(numbers[i]))
            return 2;
    if (!handled_by(SIGCHLD, SIG_DFL) || !handled_by(SIGPIPE, SIG_IGN))
        return 3;
    return is_blocked(SIGQUIT) || is_blocked(SIGSEGV) ? 4 : 0;
}

static int workers_signals(void)
{
    static const int ignored[] = { SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE };
    struct weir_error error = { "" };
    if (!weir__settings_parent(&error) || !weir__settings_block(&error))
        return 1;
    raise(SIGINT); /* waits, blocked: must not kill the worker */
    weir__settings_worker();
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        if (!handled_by(ignored[i], SIG_IGN) || is_blocked(ignored[i]))
            return 2;
    if (!is_blocked(SIGTERM) || !handled_by(SIGTERM, SIG_DFL))
        return 3;
    return is_blocked(SIGCHLD) ? 4 : 0;
}

static int closed_standard_files(void)
{
    struct weir_error error = { "" };
    close(0);
    close(1);
    close(2);
    if (!weir__settings_parent(&error))
        return 1;
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) != 0) /* open, and passed on to programs */
            return 2;
    return open("/dev/null", O_RDONLY) > 2 ? 0 : 3;
}

static int inherited_files(void)
{
    struct weir_error error = { "" };
    int low = open("/dev/null", O_RDONLY), high = fcntl(low, F_DUPFD, 700);
    if (high != 700 || fcntl(high, F_GETFD) != 0)
        return 1;
    if (!weir__settings_parent(&error))
        return 2;
    return fcntl(low, F_GETFD) == FD_CLOEXEC && fcntl(high, F_GETFD) == FD_CLOEXEC ? 0
                                                                                   : 3;
}

static int open_files(void)
{
    struct weir_error error = { "" };
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    rlim_t hard = limit.rlim_max;
    limit.rlim_cur = 64;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || !weir__settings_parent(&error))
        return 1;
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur == hard && limit.rlim_max == hard ? 0 : 2;
}

Test(settings, the_parent_blocks_what_it_reads_and_nothing_else)
{
    cr_expect_eq(in_child(parents_signals), 0);
}

Test(settings, a_worker_hears_only_sigterm)
{
    cr_expect_eq(in_child(workers_signals), 0);
}

Test(settings, closed_standard_files_are_opened)
{
    cr_expect_eq(in_child(closed_standard_files), 0);
}

Test(settings, inherited_files_are_closed_on_exec)
{
    cr_expect_eq(in_child(inherited_files), 0);
}

Test(settings, the_bound_of_open_files_is_raised)
{
    cr_expect_eq(in_child(open_files), 0);
}
