/* fork(2) and execve(2) of the program's own file, in the form of sd_listen_fds(3), which
 * process/handed.c reads on the other side; and a pipe for the new generation's word.
 *
 * Between the two calls only what is safe there: somebody may have started threads. */
#include "process/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "process/handed.h"

#define HANDED_MAX (WEIR__LISTEN_MAX + 2)
#define OURS_LEN 3 /* LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES */

extern char **environ;

/* What the new process gets, made before the fork. */
struct parcel {
    unsigned len;
    int fds[HANDED_MAX];
    char pid[32], count[32], names[HANDED_MAX * 16];
    char **environment;
};

void weir__upgrade_init(struct weir__upgrade *upgrade,
                        const struct weir__upgrade_config *config)
{
    *upgrade =
        (struct weir__upgrade){ .config = config, .word_fd = -1, .until_us = INT64_MAX };
}

void weir__upgrade_finish(struct weir__upgrade *upgrade)
{
    if (upgrade->word_fd >= 0)
        close(upgrade->word_fd);
    upgrade->word_fd = -1;
    upgrade->until_us = INT64_MAX;
}

static void put(struct parcel *parcel, int fd, const char *name)
{
    size_t at = strlen(parcel->names);
    snprintf(parcel->names + at,
             sizeof parcel->names - at,
             "%s%s",
             parcel->len > 0 ? ":" : "",
             name);
    parcel->fds[parcel->len++] = fd;
}

static bool fill(struct parcel *parcel,
                 const struct weir__upgrade_config *config,
                 const struct weir__listeners *listeners,
                 int word_fd)
{
    *parcel = (struct parcel){ .names = "LISTEN_FDNAMES=" };
    for (unsigned i = 0; i < listeners->len; i++)
        put(parcel, listeners->fds[i], "weir");
    put(parcel, word_fd, WEIR__HANDED_READY);
    if (config->shm_fd >= 0)
        put(parcel, config->shm_fd, WEIR__HANDED_SHM);
    snprintf(parcel->count, sizeof parcel->count, "LISTEN_FDS=%u", parcel->len);

    size_t len = 0, kept = 0;
    while (environ && environ[len])
        len++;
    parcel->environment = calloc(len + OURS_LEN + 1, sizeof *parcel->environment);
    if (!parcel->environment)
        return false;
    for (size_t i = 0; i < len; i++)
        if (strncmp(environ[i], "LISTEN_", 7) != 0)
            parcel->environment[kept++] = environ[i];
    parcel->environment[kept++] = parcel->pid;
    parcel->environment[kept++] = parcel->count;
    parcel->environment[kept] = parcel->names;
    return true;
}

/* The new process: puts the descriptors where the form wants them; all others close. */
static _Noreturn void become(struct parcel *parcel,
                             const struct weir__upgrade_config *config)
{
    sigset_t none;
    bool good = true;
    /* Out of the way first: a source may have the number of another's place. */
    for (unsigned i = 0; good && i < parcel->len; i++) {
        parcel->fds[i] =
            fcntl(parcel->fds[i], F_DUPFD_CLOEXEC, WEIR__HANDED_FIRST + (int)parcel->len);
        good = parcel->fds[i] >= 0;
    }
    for (unsigned i = 0; good && i < parcel->len; i++)
        good = dup2(parcel->fds[i], WEIR__HANDED_FIRST + (int)i) >= 0;
    snprintf(parcel->pid, sizeof parcel->pid, "LISTEN_PID=%d", (int)getpid());
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (good)
        execve(config->program, config->argv, parcel->environment);
    _exit(127);
}

void weir__upgrade_start(struct weir__upgrade *upgrade,
                         const struct weir__listeners *listeners,
                         int64_t now_us)
{
    struct parcel parcel;
    int word[2];
    if (!upgrade->config)
        return;
    if (upgrade->pid) {
        weir__log(
            WEIR_LOG_WARNING, "upgrade: process %d is at it already", (int)upgrade->pid);
        return;
    }
    if (pipe2(word, O_CLOEXEC | O_NONBLOCK) < 0) {
        weir__log(WEIR_LOG_ERROR, "upgrade: %s", strerror(errno));
        return;
    }
    pid_t pid = -1;
    bool filled = fill(&parcel, upgrade->config, listeners, word[1]);
    if (filled && (pid = fork()) == 0)
        become(&parcel, upgrade->config);
    int why = errno;
    close(word[1]);
    free(parcel.environment);
    if (pid < 0) {
        close(word[0]);
        weir__log(WEIR_LOG_ERROR, "upgrade: %s", strerror(filled ? why : ENOMEM));
        return;
    }
    upgrade->pid = pid;
    upgrade->word_fd = word[0];
    upgrade->until_us = now_us + (int64_t)WEIR__UPGRADE_MS * 1000;
    weir__log(WEIR_LOG_INFO,
              "upgrade: process %d starts from %s",
              (int)pid,
              upgrade->config->program);
}

bool weir__upgrade_hear(struct weir__upgrade *upgrade, int64_t now_us)
{
    char word;
    if (upgrade->word_fd < 0)
        return false;
    ssize_t got = read(upgrade->word_fd, &word, 1);
    if (got < 0 && now_us < upgrade->until_us)
        return false;
    weir__upgrade_finish(upgrade);
    if (got == 1) {
        weir__log(WEIR_LOG_INFO, "upgrade: process %d has taken over", (int)upgrade->pid);
        return true;
    }
    weir__log(WEIR_LOG_ERROR,
              "upgrade: process %d %s: this generation goes on",
              (int)upgrade->pid,
              got == 0 ? "has not started" : "is not ready in time");
    kill(upgrade->pid, SIGTERM);
    weir__upgrade_reap(upgrade);
    return false;
}

void weir__upgrade_cancel(struct weir__upgrade *upgrade)
{
    if (upgrade->word_fd < 0)
        return;
    weir__upgrade_finish(upgrade);
    kill(upgrade->pid, SIGTERM);
}

void weir__upgrade_reap(struct weir__upgrade *upgrade)
{
    /* While its word is awaited the pipe's end tells more than the process's. */
    if (upgrade->pid && upgrade->word_fd < 0 &&
        waitpid(upgrade->pid, NULL, WNOHANG) == upgrade->pid)
        upgrade->pid = 0;
}

void weir__upgrade_say_ready(const struct weir__upgrade_config *config)
{
    if (!config || config->ready_fd < 0)
        return;
    ssize_t written = write(config->ready_fd, "r", 1);
    (void)written; /* the old generation is gone then, and there is nobody to tell */
    close(config->ready_fd);
}
