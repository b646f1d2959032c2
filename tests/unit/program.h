/* A program in a process of its own, behind a unix socket in a folder of its own, and the
 * one client that asks it. One at a time. */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fcgi_client.h"
#include "support/no_options.h"

static char folder[64], path[96];
static pid_t pid; /* the program's; 0: none runs */

static inline void program_init(void)
{
    no_options();
    snprintf(folder, sizeof folder, "/tmp/weir-pull-XXXXXX");
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s", folder);
}

/* Memory that a program has in common with this process. */
static inline void *program_share(size_t bytes)
{
    void *shared =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(shared, MAP_FAILED);
    return shared;
}

static inline void run(int (*program)(void))
{
    pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0)
        _exit(program());
}

/* Its exit status, or 1,000 and more for a signal. */
static inline int wait_for_end(void)
{
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline int stop(void)
{
    kill(pid, SIGTERM);
    return wait_for_end();
}

static inline void program_finish(void)
{
    if (pid > 0)
        stop();
    unlink(path);
    rmdir(folder);
}

/* Sends it one request. The reply is to be finished. */
static inline void ask(const struct fcgi_request *request, struct fcgi_reply *ret_reply)
{
    struct fcgi_client client;
    for (int i = 0; !fcgi_connect(&client, path); i++) {
        cr_assert_lt(i, 5000, "%s", strerror(errno));
        usleep(1000);
    }
    cr_assert(fcgi_send_request(&client, request));
    fcgi_read_reply(&client, 1, 10000, ret_reply);
    fcgi_close(&client);
}

#endif
