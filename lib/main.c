/* weir_main: from a command line and an app's tables to running workers.
 *
 * The one place of the library that prints, and only what was asked for (--help and the
 * like, to standard output); mistakes go to the log. It returns statuses, it never exits.
 */
#include <weir/weir.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "app.h"
#include "base/error.h"
#include "base/log.h"
#include "options.h"
#include "process/handed.h"
#include "process/listen.h"
#include "process/notify.h"
#include "process/parent.h"
#include "process/routes.h"
#include "process/settings.h"
#include "process/upgrade.h"

static int refuse(int status, const struct weir_error *error)
{
    weir__log(WEIR_LOG_ERROR, "%s", error->text);
    return status;
}

static const char *program_name(const struct weir_app *app, char **argv)
{
    if (app->name)
        return app->name;
    const char *slash = argv[0] ? strrchr(argv[0], '/') : NULL;
    return slash ? slash + 1 : argv[0] ? argv[0] : "weir";
}

/* Checks the tables without touching anything that a running instance has: the counters
 * are a script's. */
static int check(const struct weir_app *app, const struct weir__options *options)
{
    struct weir_error error = { "" };
    struct weir__app *frozen = NULL;
    struct weir_store *store = weir_fake_create();
    if (!store)
        weir__error(&error, "out of memory");
    bool good = store && weir__app_create(app, options, store, &frozen, &error);
    if (good && options->action == WEIR__ACTION_ROUTES)
        weir__routes_print(stdout, app);
    weir__app_destroy(frozen);
    weir_store_destroy(store);
    return good ? EX_OK : refuse(EX_CONFIG, &error);
}

static void log_listeners(const struct weir__listeners *listeners)
{
    for (unsigned i = 0; i < listeners->len; i++) {
        char text[160];
        weir__listen_text(listeners->fds[i], text, sizeof text);
        weir__log(WEIR_LOG_INFO, "listening on %s", text);
    }
}

/* The path of the program's own file, for a new generation; what stands there may be
 * replaced meanwhile. */
static bool find_program(char *ret_path, size_t size)
{
    ssize_t len = readlink("/proc/self/exe", ret_path, size - 1);
    if (len <= 0)
        return false;
    ret_path[len] = '\0';
    return true;
}

/* Listens only when all else has gone well, so that nobody waits at a socket in vain. */
static int listen_and_run(const struct weir__app *frozen,
                          const struct weir__options *options,
                          char **argv,
                          const struct weir__handed *handed)
{
    char program[PATH_MAX];
    struct weir_error error = { "" };
    struct weir__listeners listeners = { 0 };
    if (!weir__settings_block(&error))
        return refuse(EX_OSERR, &error);
    switch (weir__listen_take_over(options, handed, &listeners, &error)) {
    case WEIR__LISTEN_NONE:
        weir__error(&error,
                    "nowhere to listen: name an address with --listen; see --help");
        return refuse(EX_USAGE, &error);
    case WEIR__LISTEN_FAILED:
        return refuse(EX_CANTCREAT, &error);
    case WEIR__LISTEN_OK:
        break;
    }
    log_listeners(&listeners);
    struct weir__upgrade_config upgrade = {
        .program = program,
        .argv = argv,
        .shm_fd = weir__app_shm_fd(frozen),
        .ready_fd = handed->ready_fd,
    };
    int status = weir__parent_run(&(struct weir__parent_config){
        .app = frozen,
        .listeners = &listeners,
        .workers = options->workers,
        .drain_ms = options->drain_ms,
        .upgrade = find_program(program, sizeof program) ? &upgrade : NULL,
        .run = weir__worker_run,
    });
    weir__listen_close(&listeners);
    return status;
}

static int serve(const struct weir_app *app, struct weir__options *options, char **argv)
{
    struct weir_error error = { "" };
    struct weir__app *frozen = NULL;
    struct weir__handed handed;
    weir__handed_take(&handed);
    options->shm_fd = handed.shm_fd > 0 ? handed.shm_fd : 0;
    if (!weir__settings_parent(&error))
        return refuse(EX_OSERR, &error);
    if (app->start && !app->start(&error)) {
        weir__error(&error, "the app's start failed");
        return refuse(EX_CONFIG, &error);
    }
    if (!weir__app_create(app, options, NULL, &frozen, &error))
        return refuse(EX_CONFIG, &error);
    int shm_fd = weir__app_shm_fd(frozen);
    if (shm_fd >= 0 && shm_fd != handed.shm_fd)
        weir__notify_keep(WEIR__HANDED_SHM, shm_fd);
    int status = listen_and_run(frozen, options, argv, &handed);
    weir__app_destroy(frozen);
    return status;
}

int weir_main(int argc, char **argv, const struct weir_app *app)
{
    struct weir_error error = { "" };
    struct weir__options options;
    /* Before any other member is read: of another layout they mean something else. */
    if (!weir__app_check_abi(&app->abi, &error))
        return refuse(EX_CONFIG, &error);
    weir__log_replace(app->log, app->log_arg, WEIR_LOG_INFO);
    if (!weir__options_check(app->options, &error))
        return refuse(EX_CONFIG, &error);
    if (!weir__options_parse(&options, argc, argv, app->options, &error))
        return refuse(EX_USAGE, &error);
    weir__log_replace(app->log, app->log_arg, options.log_level);

    int status = EX_OK;
    switch (options.action) {
    case WEIR__ACTION_RUN:
        return serve(app, &options, argv);
    case WEIR__ACTION_HELP:
        weir__options_help(stdout, program_name(app, argv), app->options);
        break;
    case WEIR__ACTION_VERSION:
        printf("%s (Weir %s)\n", program_name(app, argv), WEIR_VERSION);
        break;
    case WEIR__ACTION_ROUTES:
    case WEIR__ACTION_CHECK:
        status = check(app, &options);
        break;
    }
    if (fflush(stdout) != 0 && status == EX_OK)
        status = EX_IOERR;
    return status;
}
