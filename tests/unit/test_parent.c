/* Real processes, a fake worker: each test starts a parent, which reports over a pipe
 * what it logs and what its workers do. The pipe's end tells that every one of them is
 * gone. */
#include <criterion/criterion.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "process/control.h"
#include "process/parent.h"
#include "process/settings.h"

#define SECOND INT64_C(1000000)
#define LONG_US (20 * SECOND) /* nothing takes so long but a failure */

enum event { STARTED, ENDED, LOGGED, GONE, SILENCE };

struct report {
    enum event event;
    pid_t pid;
    unsigned index;
    int64_t at_us;
    char line[120];
};

typedef int worker_fn(const struct weir__worker_config *config);

static int report_fds[2];
static pid_t parent_pid;
static struct weir__listeners listeners;

/* ---- the fakes ------------------------------------------------------------------- */

static void report(enum event event, unsigned index, const char *line)
{
    struct report one = {
        .event = event,
        .pid = getpid(),
        .index = index,
        .at_us = weir__clock_now_us(),
    };
    snprintf(one.line, sizeof one.line, "%s", line);
    if (write(report_fds[1], &one, sizeof one) != (ssize_t)sizeof one)
        _exit(99);
}

static void report_line(void *arg, enum weir_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    report(LOGGED, 0, line);
}

static void say(const struct weir__worker_config *config, enum weir__control_type type)
{
    weir__control_send(config->control_fd,
                       &(struct weir__control_message){ .type = type });
}

static void say_sums(const struct weir__worker_config *config, uint64_t number)
{
    weir__control_send(config->control_fd,
                       &(struct weir__control_message){
                           .type = WEIR__CONTROL_STATS,
                           .number = number,
                           .stats = { .requests = 10 + config->index, .refused = 3 },
                       });
}

static void sleep_us(int64_t us)
{
    nanosleep(&(struct timespec){ .tv_sec = us / SECOND, .tv_nsec = us % SECOND * 1000 },
              NULL);
}

/* Works until SIGTERM or the parent's end, then takes drain_us. It ends without what
 * Criterion does at an exit. */
static _Noreturn void work(const struct weir__worker_config *config, int64_t drain_us)
{
    sigset_t set;
    struct weir__control_message message;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    struct pollfd polls[2] = { { .fd = signalfd(-1, &set, 0), .events = POLLIN },
                               { .fd = config->control_fd, .events = POLLIN } };
    report(STARTED, config->index, "");
    say(config, WEIR__CONTROL_READY);
    while (poll(polls, 2, -1) > 0 && !polls[0].revents) {
        enum weir__control_result result =
            weir__control_receive(config->control_fd, &message);
        if (result == WEIR__CONTROL_CLOSED)
            break;
        if (result == WEIR__CONTROL_MESSAGE && message.type == WEIR__CONTROL_STATS_ASK)
            say_sums(config, message.number);
    }
    say(config, WEIR__CONTROL_DRAINING);
    sleep_us(drain_us);
    say_sums(config, 0);
    report(ENDED, config->index, "");
    _exit(0);
}

static int good_worker(const struct weir__worker_config *config)
{
    work(config, 0);
}

static int slow_worker(const struct weir__worker_config *config)
{
    work(config, SECOND);
}

static _Noreturn void hang(void)
{
    for (;;)
        pause();
}

static int stubborn_worker(const struct weir__worker_config *config)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody else would end it if the test fails */
    report(STARTED, config->index, "");
    say(config, WEIR__CONTROL_READY);
    hang();
}

static int first_works_second_is_stuck(const struct weir__worker_config *config)
{
    if (config->index == 0)
        work(config, 0);
    report(STARTED, config->index, "");
    say(config, WEIR__CONTROL_READY);
    alarm(60); /* nobody else would end it if the test fails */
    hang();
}

static int crashing_worker(const struct weir__worker_config *config)
{
    report(STARTED, config->index, "");
    kill(getpid(), SIGKILL);
    return 0;
}

static int leaving_worker(const struct weir__worker_config *config)
{
    report(STARTED, config->index, "");
    say(config, WEIR__CONTROL_READY);
    _exit(0);
}

static int unable_worker(const struct weir__worker_config *config)
{
    report(STARTED, config->index, "");
    _exit(1);
}

/* ---- the frame ------------------------------------------------------------------- */

static bool with_a_thread, without_forks;

/* Root may fork past any bound, so it becomes somebody else. */
static void forbid_forks(void)
{
    struct rlimit none = { 0, 0 };
    if (setrlimit(RLIMIT_NPROC, &none) < 0 || (getuid() == 0 && setuid(65534) < 0))
        _exit(97);
}

static void *sleep_for_ever(void *arg)
{
    hang();
    return arg;
}

static void start(worker_fn *run, unsigned workers, unsigned drain_ms)
{
    struct weir_error error = { "" };
    cr_assert_eq(pipe(report_fds), 0);
    fflush(NULL);
    /* Blocked already: a signal right after the fork waits for the parent's loop. */
    sigset_t set, before;
    weir__settings_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &before);
    parent_pid = fork();
    if (parent_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(report_fds[0]);
        weir__log_replace(report_line, NULL, WEIR_LOG_INFO);
        weir__settings_parent(&error);
        weir__settings_block(&error);
        if (without_forks)
            forbid_forks();
        pthread_t thread;
        if (with_a_thread && pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0)
            _exit(98);
        _exit(weir__parent_run(&(struct weir__parent_config){ .listeners = &listeners,
                                                              .workers = workers,
                                                              .drain_ms = drain_ms,
                                                              .run = run }));
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    cr_assert_gt(parent_pid, 0);
    close(report_fds[1]);
}

/* The next report; SILENCE after within_us, GONE when all processes have ended. */
static struct report next(int64_t within_us)
{
    struct report one = { .event = SILENCE };
    struct pollfd polls = { .fd = report_fds[0], .events = POLLIN };
    if (poll(&polls, 1, (int)(within_us / 1000)) <= 0)
        return one;
    ssize_t got = read(report_fds[0], &one, sizeof one);
    cr_assert(got == 0 || got == (ssize_t)sizeof one);
    if (got == 0)
        one.event = GONE;
    return one;
}

/* Skips others; fails when the event doesn't come. */
static struct report expect(enum event event)
{
    struct report one;
    do {
        one = next(LONG_US);
        cr_assert_neq(one.event, SILENCE, "event %d doesn't come", event);
        cr_assert(one.event != GONE || event == GONE, "all ended before event %d", event);
    } while (one.event != event);
    return one;
}

static struct report expect_line(const char *part)
{
    struct report one;
    do
        one = expect(LOGGED);
    while (!strstr(one.line, part));
    return one;
}

/* Waits for the parent's end: its exit status. */
static int parents_status(void)
{
    int status;
    cr_assert_eq(waitpid(parent_pid, &status, 0), parent_pid);
    cr_assert(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void expect_ready(unsigned workers)
{
    char line[32];
    snprintf(line, sizeof line, "ready: %u workers", workers);
    expect_line(line);
}

/* ---- stopping -------------------------------------------------------------------- */

static void expect_stop_by(int number)
{
    start(good_worker, 2, 5000);
    expect_ready(2);
    int64_t asked_us = weir__clock_now_us();
    kill(parent_pid, number);
    cr_expect_eq(parents_status(), 0);
    expect(GONE);
    cr_expect_lt(weir__clock_now_us() - asked_us, SECOND);
}

Test(parent, sigterm_ends_all_at_once_with_status_0)
{
    expect_stop_by(SIGTERM);
}

Test(parent, sigint_does_the_same)
{
    expect_stop_by(SIGINT);
}

Test(parent, a_signal_at_any_moment_of_the_start_is_not_lost)
{
    for (int i = 0; i < 100; i++) {
        start(good_worker, 2, 5000);
        sleep_us(i * 50);
        kill(parent_pid, SIGTERM);
        cr_assert_eq(parents_status(), 0);
        expect(GONE);
        close(report_fds[0]);
    }
}

Test(parent, a_storm_of_signals_is_one_stop)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };
    start(good_worker, 3, 5000);
    expect_ready(3);
    for (int i = 0; i < 5000; i++)
        kill(parent_pid, numbers[i % 5]);
    cr_expect_eq(parents_status(), 0);
    expect(GONE);
}

Test(parent, what_runs_is_finished_first)
{
    start(slow_worker, 2, 10000);
    expect_ready(2);
    kill(parent_pid, SIGTERM);
    expect(ENDED);
    expect(ENDED);
    cr_expect_eq(parents_status(), 0);
    expect(GONE);
}

Test(parent, who_does_not_end_in_time_is_killed)
{
    start(stubborn_worker, 2, 300);
    expect_ready(2);
    int64_t asked_us = weir__clock_now_us();
    kill(parent_pid, SIGTERM);
    cr_expect_eq(parents_status(), 0);
    expect(GONE);
    cr_expect_geq(weir__clock_now_us() - asked_us, 800000, "drain time and grace");
    cr_expect_lt(weir__clock_now_us() - asked_us, 5 * SECOND);
}

Test(parent, a_second_signal_means_now)
{
    start(stubborn_worker, 2, 600000);
    expect_ready(2);
    kill(parent_pid, SIGTERM);
    expect_line("stopping");
    sleep_us(2 * WEIR__PARENT_ECHO_MS * 1000);
    int64_t asked_us = weir__clock_now_us();
    kill(parent_pid, SIGINT);
    cr_expect_eq(parents_status(), 0);
    expect(GONE);
    cr_expect_lt(weir__clock_now_us() - asked_us, SECOND);
}

Test(parent, the_echo_of_the_first_signal_is_none)
{
    start(slow_worker, 1, 10000);
    expect_ready(1);
    kill(parent_pid, SIGTERM);
    kill(parent_pid, SIGINT);
    expect(ENDED);
    cr_expect_eq(parents_status(), 0);
}

Test(parent, other_signals_change_nothing)
{
    start(good_worker, 2, 5000);
    expect_ready(2);
    kill(parent_pid, SIGHUP);
    kill(parent_pid, SIGUSR2);
    cr_expect_eq(next(SECOND / 5).event, SILENCE);
    cr_expect_eq(kill(parent_pid, 0), 0);
    kill(parent_pid, SIGTERM);
    cr_expect_eq(parents_status(), 0);
}

Test(parent, the_socket_file_goes_when_the_stop_begins)
{
    char folder[] = "/tmp/weir-parent-XXXXXX", address[64];
    struct weir__options options;
    struct weir_error error = { "" };
    struct stat stat;
    cr_assert_not_null(mkdtemp(folder));
    snprintf(address, sizeof address, "unix:%s/s", folder);
    weir__options_defaults(&options);
    options.listen[options.listen_len++] = address;
    cr_assert_eq(weir__listen_open(&options, &listeners, &error), WEIR__LISTEN_OK);
    start(slow_worker, 1, 10000);
    expect_ready(1);
    cr_expect_eq(lstat(address + 5, &stat), 0);
    kill(parent_pid, SIGTERM);
    expect(ENDED);
    cr_expect_neq(lstat(address + 5, &stat), 0, "gone before the last worker is");
    cr_expect_eq(parents_status(), 0);
    cr_expect_eq(rmdir(folder), 0);
}

/* ---- restarts -------------------------------------------------------------------- */

Test(parent, a_killed_worker_is_replaced_at_once)
{
    pid_t pids[2];
    start(good_worker, 2, 5000);
    for (int i = 0; i < 2; i++) {
        struct report one = expect(STARTED);
        pids[one.index] = one.pid;
    }
    expect_ready(2);
    for (int i = 0; i < 4; i++) {
        unsigned index = (unsigned)i % 2;
        int64_t killed_us = weir__clock_now_us();
        kill(pids[index], SIGKILL);
        struct report one = expect(STARTED);
        cr_expect_eq(one.index, index);
        cr_expect_neq(one.pid, pids[index]);
        cr_expect_lt(one.at_us - killed_us, SECOND);
        pids[index] = one.pid;
    }
    kill(parent_pid, SIGTERM);
    cr_expect_eq(parents_status(), 0);
    expect(GONE);
}

Test(parent, a_worker_that_drains_by_itself_has_its_successor_before_it_ends)
{
    start(slow_worker, 1, 10000);
    struct report first = expect(STARTED);
    expect_ready(1);
    kill(first.pid, SIGTERM);
    struct report second = expect(STARTED);
    struct report end = expect(ENDED);
    cr_expect_eq(second.index, 0);
    cr_expect_eq(end.pid, first.pid);
    kill(parent_pid, SIGTERM);
    cr_expect_eq(parents_status(), 0);
    expect(GONE);
}

/* How often a worker is started within 3.5 s, the first ones included. */
static unsigned count_starts(unsigned *ret_alarms)
{
    unsigned starts = 0, alarms = 0;
    int64_t until_us = weir__clock_now_us() + 3500000, now_us;
    while ((now_us = weir__clock_now_us()) < until_us) {
        struct report one = next(until_us - now_us);
        starts += one.event == STARTED;
        alarms += one.event == LOGGED && strstr(one.line, "ALARM") != NULL;
    }
    *ret_alarms = alarms;
    return starts;
}

/* The processor time that the parent itself has used, in ticks. */
static long parents_ticks(void)
{
    char path[64];
    long user = -1, system = -1;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)parent_pid);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    cr_assert_eq(
        fscanf(file,
               "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld",
               &user,
               &system),
        2);
    fclose(file);
    return user + system;
}

static void expect_brake(worker_fn *run)
{
    unsigned alarms;
    start(run, 2, 5000);
    unsigned starts = count_starts(&alarms);
    cr_expect_leq(starts, 2 + 10 + 4, "%u starts", starts);
    cr_expect_geq(starts, 2 + 10 + 1, "%u starts", starts);
    cr_expect_eq(alarms, 1);
    cr_expect_lt(
        parents_ticks(), sysconf(_SC_CLK_TCK) * 3500 / 1000 / 20, "5 %% of 3.5 s");
    kill(parent_pid, SIGTERM);
    cr_expect_eq(parents_status(), 0);
    expect(GONE);
}

Test(parent, a_crash_loop_is_braked_and_raises_one_alarm)
{
    expect_brake(crashing_worker);
}

Test(parent, so_are_workers_that_leave_politely_at_once)
{
    expect_brake(leaving_worker);
}

/* Every worker is killed as soon as it has worked for 50 ms: the brake is on, and yet
 * there is mostly one. */
Test(parent, under_steady_kills_one_worker_always_comes_back_at_once)
{
    unsigned starts = 0;
    int64_t ended_us = 0, longest_us = 0, until_us = weir__clock_now_us() + 3 * SECOND;
    start(good_worker, 2, 5000);
    while (weir__clock_now_us() < until_us) {
        struct report one = next(100000);
        if (one.event != STARTED)
            continue;
        if (ended_us > 0 && one.at_us - ended_us > longest_us)
            longest_us = one.at_us - ended_us;
        starts++;
        sleep_us(50000);
        ended_us = weir__clock_now_us();
        kill(one.pid, SIGKILL);
    }
    cr_expect_geq(starts, 20, "%u starts", starts);
    cr_expect_leq(longest_us, SECOND / 2, "%ld us", (long)longest_us);
    kill(parent_pid, SIGTERM);
    cr_expect_eq(parents_status(), 0);
    expect(GONE);
}

Test(parent, a_worker_that_can_not_start_ends_the_first_start)
{
    start(unable_worker, 2, 5000);
    cr_expect_eq(parents_status(), 71);
    expect(GONE);
}

Test(parent, without_a_process_to_be_had_the_start_fails)
{
    without_forks = true;
    start(good_worker, 2, 5000);
    expect_line("worker 0: fork: ");
    cr_expect_eq(parents_status(), 71);
    expect(GONE);
}

/* ---- the parent's death ---------------------------------------------------------- */

Test(parent, when_the_parent_is_killed_no_worker_stays)
{
    start(good_worker, 3, 5000);
    expect_ready(3);
    int64_t killed_us = weir__clock_now_us();
    kill(parent_pid, SIGKILL);
    cr_assert_eq(waitpid(parent_pid, NULL, 0), parent_pid);
    expect(GONE);
    cr_expect_lt(weir__clock_now_us() - killed_us, SECOND);
}

Test(parent, a_stuck_worker_does_not_hide_the_parents_death_from_its_sibling)
{
    pid_t stuck = 0;
    start(first_works_second_is_stuck, 2, 5000);
    for (int i = 0; i < 2; i++) {
        struct report one = expect(STARTED);
        if (one.index == 1)
            stuck = one.pid;
    }
    expect_ready(2);
    kill(parent_pid, SIGKILL);
    cr_assert_eq(waitpid(parent_pid, NULL, 0), parent_pid);
    struct report end = next(SECOND);
    cr_expect_eq(end.event, ENDED);
    cr_expect_eq(end.index, 0);
    kill(stuck, SIGKILL);
    expect(GONE);
}

/* ---- what it tells --------------------------------------------------------------- */

Test(parent, sums_are_logged_when_asked_for_and_at_the_end)
{
    start(good_worker, 2, 5000);
    struct report first = expect(STARTED);
    expect_ready(2);
    kill(parent_pid, SIGUSR1);
    expect_line("21 requests, 6 of them refused, 0 failed");
    kill(first.pid, SIGTERM); /* what it has served stays in the sum */
    bool started = false, ended = false;
    while (!started || !ended) {
        struct report one = next(LONG_US);
        cr_assert(one.event != SILENCE && one.event != GONE);
        started = started || one.event == STARTED;
        ended = ended || one.event == ENDED;
    }
    kill(parent_pid, SIGTERM);
    struct report end = expect_line("requests");
    unsigned requests = 31 + first.index; /* its own twice */
    cr_expect_eq((unsigned)atoi(end.line), requests, "%s", end.line);
    cr_expect_eq(parents_status(), 0);
}

Test(parent, a_thread_before_the_fork_is_warned_of)
{
    with_a_thread = true;
    start(good_worker, 1, 5000);
    expect_line("threads run before the workers are forked (1 besides");
    kill(parent_pid, SIGTERM);
    cr_expect_eq(parents_status(), 0);
}

Test(parent, without_one_nothing_is_warned_of)
{
    start(good_worker, 1, 5000);
    cr_expect(strstr(expect(LOGGED).line, "ready"));
    kill(parent_pid, SIGTERM);
    cr_expect_eq(parents_status(), 0);
}

Test(parent, systemd_is_told_when_all_are_ready_and_when_it_stops)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    char text[32] = "";
    int len = snprintf(un.sun_path, sizeof un.sun_path, "@weir-parent-%d", (int)getpid());
    setenv("NOTIFY_SOCKET", un.sun_path, 1);
    un.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd,
                      (struct sockaddr *)&un,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)),
                 0);
    start(good_worker, 2, 5000);
    expect_ready(2);
    cr_expect_eq(recv(fd, text, sizeof text - 1, 0), 7);
    cr_expect_str_eq(text, "READY=1");
    kill(parent_pid, SIGTERM);
    cr_expect_eq(recv(fd, text, sizeof text - 1, 0), 10);
    cr_expect_str_eq(text, "STOPPING=1");
    cr_expect_eq(parents_status(), 0);
    close(fd);
}
