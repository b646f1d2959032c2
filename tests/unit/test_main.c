/* Everything that weir_main does before it serves; serving itself is e2e/process.sh's. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

/* What one call of weir_main did: its status, what it printed, what it logged. */
struct outcome {
    int status;
    unsigned lines; /* of the log */
    char out[8192];
    char log[1024];
};

static int log_fd;

static void log_line(void *arg, enum weir_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    dprintf(log_fd, "%s\n", line);
}

static int answer(struct weir *w)
{
    return weir_text(w, 200, "");
}

static bool start(struct weir_error *ret_error)
{
    (void)ret_error;
    dprintf(log_fd, "the app starts\n");
    return true;
}

static bool refuse_start(struct weir_error *ret_error)
{
    snprintf(ret_error->text, sizeof ret_error->text, "no key");
    return false;
}

static const struct weir_endpoint endpoints[] = {
    { "GET /health", answer, .limits = WEIR_UNLIMITED },
    { 0 },
};
static const struct weir_app good = {
    WEIR_ABI, .name = "test-app", .endpoints = endpoints, .start = start, .log = log_line
};

static void read_all(int fd, char *text, size_t size)
{
    ssize_t got = pread(fd, text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    close(fd);
}

/* Calls weir_main in a child, its output in files without a name. */
static struct outcome run(const struct weir_app *app, const char *const *words)
{
    struct outcome outcome = { 0 };
    char *argv[16] = { (char *)"/usr/bin/program" };
    int argc = 1, status;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    int out_fd = fileno(tmpfile());
    log_fd = fileno(tmpfile());
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out_fd, 1);
        _exit(weir_main(argc, argv, app));
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status));
    outcome.status = WEXITSTATUS(status);
    read_all(out_fd, outcome.out, sizeof outcome.out);
    read_all(log_fd, outcome.log, sizeof outcome.log);
    for (const char *p = outcome.log; *p; p++)
        outcome.lines += *p == '\n';
    return outcome;
}
#define RUN(app_, ...) run(app_, (const char *const[]){ __VA_ARGS__, NULL })

static void expect_refusal(struct outcome outcome, int status, const char *text)
{
    cr_expect_eq(outcome.status, status);
    cr_expect_eq(outcome.lines, 1, "one line, not: %s", outcome.log);
    cr_expect(strstr(outcome.log, text), "\"%s\" isn't in: %s", text, outcome.log);
    cr_expect_str_eq(outcome.out, "");
}

Test(main, help_is_printed)
{
    struct outcome outcome = RUN(&good, "--help");
    cr_expect_eq(outcome.status, 0);
    cr_expect_eq(strncmp(outcome.out, "Usage: test-app --listen ADDRESS", 32), 0);
    cr_expect(strstr(outcome.out, "\n  --drain-time TIME"));
    cr_expect_str_eq(outcome.log, "");
}

Test(main, a_program_without_a_name_is_called_by_its_file)
{
    struct weir_app app = good;
    app.name = NULL;
    cr_expect_eq(strncmp(RUN(&app, "--help").out, "Usage: program ", 15), 0);
}

Test(main, the_version_is_printed)
{
    cr_expect_str_eq(RUN(&good, "--version").out, "test-app (Weir " WEIR_VERSION ")\n");
}

Test(main, routes_are_printed_from_checked_tables)
{
    struct outcome outcome = RUN(&good, "--routes");
    cr_expect_eq(outcome.status, 0);
    cr_expect_str_eq(outcome.out, "GET /health\n    unlimited\n");
    cr_expect_str_eq(outcome.log, "");
}

Test(main, a_check_neither_starts_the_app_nor_listens)
{
    char folder[] = "/tmp/weir-main-XXXXXX", address[64];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(address, sizeof address, "unix:%s/s", folder);
    struct outcome outcome = RUN(&good, "--check", "--listen", address);
    cr_expect_eq(outcome.status, 0);
    cr_expect_str_eq(outcome.out, "");
    cr_expect_str_eq(outcome.log, "");
    cr_expect_eq(rmdir(folder), 0);
}

Test(main, output_that_can_not_be_written_is_an_error)
{
    int status, full = open("/dev/full", O_WRONLY);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(full, 1);
        _exit(weir_main(2, (char *[]){ (char *)"p", (char *)"--help", NULL }, &good));
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(WEXITSTATUS(status), 74);
    close(full);
}

Test(main, a_mistake_on_the_command_line_is_64)
{
    expect_refusal(RUN(&good, "--wrokers=2"), 64, "--wrokers: no such option");
}

Test(main, nowhere_to_listen_is_64)
{
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    struct weir_app app = good;
    app.start = NULL;
    expect_refusal(RUN(&app, "--workers=1"), 64, "nowhere to listen");
}

Test(main, a_mistake_in_a_table_is_78_and_named)
{
    static const struct weir_rule rules[] = { WEIR_FIXED_WINDOW("minute", 5, 0), { 0 } };
    const struct weir_endpoint table[] = { { "GET /x", answer, .limits = rules }, { 0 } };
    struct weir_app app = good;
    app.endpoints = table;
    expect_refusal(RUN(&app, "--check"), 78, "GET /x");
    expect_refusal(RUN(&app, "--routes"), 78, "GET /x");
    app.start = NULL;
    expect_refusal(RUN(&app, "--listen=tcp:127.0.0.1:0"), 78, "GET /x");
}

Test(main, a_mistake_in_the_apps_options_is_78)
{
    const char *value;
    const struct weir_option options[] = { { "listen", "X", "h", &value }, { 0 } };
    struct weir_app app = good;
    app.options = options;
    expect_refusal(RUN(&app, "--help"), 78, "option --listen is Weir's own");
}

Test(main, an_app_of_another_layout_is_78)
{
    /* Its log can't be trusted to be where we read it: this goes to standard error. */
    struct weir_app app = good;
    app.abi.app += 8;
    struct outcome outcome = RUN(&app, "--help");
    cr_expect_eq(outcome.status, 78);
    cr_expect_str_eq(outcome.out, "");
    cr_expect_str_eq(outcome.log, "");
}

Test(main, an_app_that_can_not_start_is_78)
{
    struct weir_app app = good;
    app.start = refuse_start;
    expect_refusal(RUN(&app, "--listen=tcp:127.0.0.1:0"), 78, "no key");
}

Test(main, an_address_in_use_is_73)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    char folder[] = "/tmp/weir-main-XXXXXX", address[160];
    struct weir_app app = good;
    cr_assert_not_null(mkdtemp(folder));
    snprintf(un.sun_path, sizeof un.sun_path, "%s/s", folder);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
    cr_assert_eq(listen(fd, 1), 0);
    snprintf(address, sizeof address, "--listen=unix:%s", un.sun_path);
    app.start = NULL;
    expect_refusal(RUN(&app, address), 73, "/s: already in use");
    close(fd);
    unlink(un.sun_path);
    rmdir(folder);
}
