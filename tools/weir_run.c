/* weir-run: starts a program that uses libfcgi, unchanged, inside Weir's chain.
 *
 * Reads its options, checks everything that can be checked before, opens the socket, and
 * becomes the program, with a library before libfcgi and what it is to do in the
 * environment. */
#include <weir/weir.h>

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "app.h"
#include "base/error.h"
#include "process/listen.h"
#include "process/pull_environment.h"
#include "run.h"
#include "run_elf.h"

#define TEXT_MAX ((size_t)64 * 1024) /* all limits together */

struct run {
    char **program; /* with its arguments */
    char path[4096];
    char library[4096];
    bool check;
    char limits[TEXT_MAX];
    char listen[256];
};

static int refuse(int status, const struct weir_error *error)
{
    fprintf(stderr, "weir-run: %s\n", error->text);
    return status;
}

static void print_help(void)
{
    fputs(
        "Usage: weir-run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
        "Runs a program that uses libfcgi, unchanged: it gets the requests that Weir "
        "lets\n"
        "through.\n\n"
        "  --limit LIMIT   [[METHOD] PATH] [NAME=]COUNT/TIME[@ip|@all]...; may be "
        "repeated:\n"
        "                  --limit 100/60s --limit 'POST /login 5/900s@ip'\n"
        "  --listen ADDRESS  unix:PATH, tcp:ADDRESS:PORT; else the program's own socket\n"
        "                  or the one at descriptor 0\n"
        "  --check         check options and program and leave\n"
        "  --version       print the version and leave\n"
        "  --help          print this and leave\n\n"
        "and the bounds, times and stores of weir(7): --max-body, --total-time, --store "
        "...\n",
        stdout);
}

/* ---- options ----------------------------------------------------------------------- */

static bool append_limit(struct run *run, const char *value, struct weir_error *ret_error)
{
    size_t len = strlen(run->limits);
    if (strchr(value, ';'))
        return weir__error(ret_error, "--limit: \"%s\": one at a time", value);
    int written = snprintf(run->limits + len, TEXT_MAX - len, "%s;", value);
    return (size_t)written < TEXT_MAX - len ||
           weir__error(ret_error, "--limit: too much text");
}

/* An option of weir(7) as the variable that the program will read: "--max-body" is
 * WEIR_MAX_BODY. What it says is looked at once all are there. */
static bool set_variable(const char *word,
                         size_t len,
                         const char *value,
                         struct weir_error *ret_error)
{
    char name[64] = WEIR__PULL_PREFIX;
    size_t at = strlen(name);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)word[i];
        if (!(islower(c) || isdigit(c) || c == '-') || at + 1 == sizeof name)
            return weir__error(
                ret_error, "--%.*s: no such option; see --help", (int)len, word);
        name[at++] = c == '-' ? '_' : (char)toupper(c);
    }
    name[at] = '\0';
    return setenv(name, value, 1) == 0 || weir__error(ret_error, "out of memory");
}

static bool is_word(const char *word, size_t len, const char *name)
{
    return strlen(name) == len && memcmp(word, name, len) == 0;
}

/* One option with its value, which may stand behind it; *at is then the last word used.
 */
static bool
read_option(struct run *run, char **argv, int *at, struct weir_error *ret_error)
{
    const char *word = argv[*at] + 2;
    size_t len = strcspn(word, "=");
    if (is_word(word, len, "check") && word[len] == '\0') {
        run->check = true;
        return true;
    }
    if (is_word(word, len, "workers") || is_word(word, len, "routes"))
        return weir__error(
            ret_error, "--%.*s has no meaning for a program's own loop", (int)len, word);
    const char *value = word[len] == '=' ? word + len + 1 : argv[++*at];
    if (!value)
        return weir__error(ret_error, "--%s needs an argument; see --help", word);
    if (is_word(word, len, "limit"))
        return append_limit(run, value, ret_error);
    if (is_word(word, len, "listen") && getenv("WEIR_LISTEN"))
        return weir__error(ret_error, "--listen: a program has one socket");
    return set_variable(word, len, value, ret_error);
}

/* False with a text; *ret_done: --help or --version has been answered. */
static bool read_command_line(struct run *run,
                              char **argv,
                              bool *ret_done,
                              struct weir_error *ret_error)
{
    int at = 1;
    for (; argv[at] && strncmp(argv[at], "--", 2) == 0 && argv[at][2]; at++) {
        *ret_done = strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "--version") == 0;
        if (*ret_done) {
            if (argv[at][2] == 'h')
                print_help();
            else
                puts("weir-run (Weir " WEIR_VERSION ")");
            return true;
        }
        if (!read_option(run, argv, &at, ret_error))
            return false;
    }
    if (argv[at] && strcmp(argv[at], "--") == 0)
        at++;
    else if (argv[at] && argv[at][0] == '-')
        return weir__error(ret_error, "\"%s\" is not an option; see --help", argv[at]);
    run->program = argv + at;
    if (!argv[at])
        return weir__error(ret_error, "no program; see --help");
    return !*run->limits || setenv(WEIR__PULL_LIMIT, run->limits, 1) == 0 ||
           weir__error(ret_error, "out of memory");
}

/* ---- checks ------------------------------------------------------------------------ */

static int stand_in(struct weir *w)
{
    (void)w;
    return 0;
}

static void no_pull(struct FCGX_Request *request)
{
    (void)request;
}

/* The tables that the program will have, with other handlers: libfcgi isn't here. */
static bool check_tables(const struct weir__options *options,
                         struct weir__pull_limits *limits,
                         struct weir_error *ret_error)
{
    struct weir__app *app = NULL;
    struct weir_app declared = { WEIR_ABI,
                                 .endpoints = limits->endpoints,
                                 .default_limits = limits->defaults };
    for (struct weir_endpoint *at = limits->endpoints; at->pattern; at++) {
        at->fcgx = NULL;
        at->parallel = false;
        at->handler = stand_in;
    }
    struct weir_store *store = weir_fake_create();
    bool ok = store ? weir__app_create(&declared, options, store, &app, ret_error)
                    : weir__error(ret_error, "out of memory");
    weir__app_destroy(app);
    weir_store_destroy(store);
    return ok;
}

/* As execvp(3) does. */
static bool find_program(struct run *run, struct weir_error *ret_error)
{
    const char *name = run->program[0], *folders = getenv("PATH");
    if (strchr(name, '/')) {
        snprintf(run->path, sizeof run->path, "%s", name);
        return true;
    }
    while (*name && folders && *folders) {
        struct stat stat_of;
        size_t len = strcspn(folders, ":");
        snprintf(run->path,
                 sizeof run->path,
                 "%.*s/%s",
                 len ? (int)len : 1,
                 len ? folders : ".",
                 name);
        if (access(run->path, X_OK) == 0 && stat(run->path, &stat_of) == 0 &&
            S_ISREG(stat_of.st_mode))
            return true;
        folders += len + (folders[len] == ':');
    }
    return weir__error(ret_error, "%s: not found in PATH", name);
}

/* Beside weir-run in a build, else where it is installed. The loader only warns where it
 * can't load one, and runs the program without it: so it is tried here. */
static bool find_library(struct run *run, struct weir_error *ret_error)
{
    ssize_t len = readlink("/proc/self/exe", run->library, sizeof run->library - 64);
    char *slash = len > 0 ? memrchr(run->library, '/', (size_t)len) : NULL;
    if (slash)
        snprintf(slash, 64, "/" RUN_LIBRARY);
    if (!slash || access(run->library, R_OK) < 0)
        snprintf(run->library, sizeof run->library, "%s", RUN_LIBRARY_INSTALLED);
    if (strpbrk(run->library, ": "))
        return weir__error(
            ret_error, "%s: the loader takes no blank and no colon", run->library);
    void *loaded = dlopen(run->library, RTLD_NOW | RTLD_LOCAL);
    return loaded || weir__error(ret_error, "%s", dlerror());
}

/* ---- the start --------------------------------------------------------------------- */

/* Puts the socket where the program looks for it. */
static bool listen_at_0(const struct weir__options *options, struct weir_error *ret_error)
{
    struct weir__listeners listeners = { 0 };
    if (options->listen_len == 0)
        return true;
    if (weir__listen_open(options, &listeners, ret_error) != WEIR__LISTEN_OK)
        return false;
    unsetenv("WEIR_LISTEN");
    return dup2(listeners.fds[0], 0) == 0 ||
           weir__error(ret_error, "descriptor 0: %s", strerror(errno));
}

static bool set_environment(const struct run *run, struct weir_error *ret_error)
{
    char pid[32], preload[8192];
    const char *others = getenv("LD_PRELOAD");
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    int written = snprintf(preload,
                           sizeof preload,
                           "%s%s%s",
                           run->library,
                           others && *others ? ":" : "",
                           others ? others : "");
    if ((size_t)written >= sizeof preload)
        return weir__error(ret_error, "LD_PRELOAD is too long");
    return (setenv(RUN_PID, pid, 1) == 0 && setenv("LD_PRELOAD", preload, 1) == 0) ||
           weir__error(ret_error, "out of memory");
}

int main(int argc, char **argv)
{
    static struct run run;
    static struct weir__pull_limits limits;
    struct weir_error error = { "" };
    struct weir__options options;
    bool done = false;
    (void)argc;
    if (!read_command_line(&run, argv, &done, &error))
        return refuse(EX_USAGE, &error);
    if (done)
        return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
    if (!weir__pull_environment(no_pull, &options, &limits, &error) ||
        !check_tables(&options, &limits, &error))
        return refuse(EX_USAGE, &error);
    if (!find_program(&run, &error) || !run_elf_can_be_preloaded(run.path, &error))
        return refuse(EX_NOINPUT, &error);
    if (!find_library(&run, &error))
        return refuse(EX_UNAVAILABLE, &error);
    if (run.check)
        return EX_OK;
    if (!listen_at_0(&options, &error))
        return refuse(EX_CANTCREAT, &error);
    if (!set_environment(&run, &error))
        return refuse(EX_OSERR, &error);
    execv(run.path, run.program);
    weir__error(&error, "%s: %s", run.path, strerror(errno));
    return refuse(EX_NOINPUT, &error);
}
