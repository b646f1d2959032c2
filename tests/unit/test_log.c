#include "base/log.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static char last[4096];
static enum weir_log_level last_level;
static int lines;

static void keep(void *arg, enum weir_log_level level, const char *line)
{
    cr_assert_eq(arg, (void *)last);
    snprintf(last, sizeof last, "%s", line);
    last_level = level;
    lines++;
}

static void listen_from(enum weir_log_level lowest)
{
    lines = 0;
    last[0] = '\0';
    weir__log_replace(keep, last, lowest);
}

Test(log, formats_for_the_callback)
{
    listen_from(WEIR_LOG_INFO);
    weir__log(WEIR_LOG_WARNING, "worker %d: %s", 3, "gone");
    cr_assert_str_eq(last, "worker 3: gone");
    cr_assert_eq(last_level, WEIR_LOG_WARNING);
}

Test(log, leaves_out_what_is_below_the_lowest_level)
{
    static struct weir__log_kind kind;
    listen_from(WEIR_LOG_WARNING);
    weir__log(WEIR_LOG_INFO, "x");
    weir__log_limited(&kind, WEIR_LOG_INFO, "x");
    cr_assert_eq(lines, 0);
    weir__log(WEIR_LOG_ERROR, "x");
    cr_assert_eq(lines, 1);
}

Test(log, hostile_bytes_cannot_forge_a_line)
{
    listen_from(WEIR_LOG_INFO);
    weir__log(WEIR_LOG_INFO, "user %s", "a\nb\r\x1b[2J\x7f\xc2\x9b");
    cr_assert_str_eq(last, "user a\\x0ab\\x0d\\x1b[2J\\x7f\\xc2\\x9b");
}

Test(log, a_long_line_is_cut_at_2000_bytes)
{
    char plain[3000], hostile[3000];
    memset(plain, 'x', sizeof plain - 1);
    memset(hostile, '\n', sizeof hostile - 1);
    plain[sizeof plain - 1] = hostile[sizeof hostile - 1] = '\0';
    listen_from(WEIR_LOG_INFO);
    weir__log(WEIR_LOG_INFO, "%s", plain);
    cr_assert_eq(strlen(last), 2000);
    cr_assert_str_eq(last + 1997, "...");
    weir__log(WEIR_LOG_INFO, "%s", hostile);
    cr_assert_leq(strlen(last), 2000);
    cr_assert_str_eq(last + strlen(last) - 7, "\\x0a...");
}

static int64_t now_us;

static int64_t fake_now(void)
{
    return now_us;
}

Test(log, a_limited_line_comes_once_a_second_and_counts_the_rest)
{
    static struct weir__log_kind kind, other;
    listen_from(WEIR_LOG_INFO);
    weir__clock_replace(fake_now, NULL);
    now_us = 5000000;
    for (int i = 0; i < 10; i++)
        weir__log_limited(&kind, WEIR_LOG_INFO, "line %d", i);
    cr_assert_eq(lines, 1);
    cr_assert_str_eq(last, "line 0");
    weir__log_limited(&other, WEIR_LOG_INFO, "another kind");
    cr_assert_eq(lines, 2);
    now_us += 999999;
    weir__log_limited(&kind, WEIR_LOG_INFO, "too early");
    cr_assert_eq(lines, 2);
    now_us++;
    weir__log_limited(&kind, WEIR_LOG_INFO, "again");
    cr_assert_str_eq(last, "(10 like this dropped) again");
    now_us += 1000000;
    weir__log_limited(&kind, WEIR_LOG_INFO, "again");
    cr_assert_str_eq(last, "again");
}

/* Puts standard error on a descriptor, sends one line there, puts it back. */
static void log_to(int fd, int count)
{
    int saved = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    weir__log_replace(NULL, NULL, WEIR_LOG_INFO);
    for (int i = 0; i < count; i++)
        weir__log(WEIR_LOG_ERROR, "hello %d", i);
    dup2(saved, STDERR_FILENO);
    close(saved);
}

static int64_t leap_day(void)
{
    return INT64_C(1709210096007008); /* 2024-02-29 12:34:56.007008 */
}

Test(log, standard_error_gets_time_process_level_and_text)
{
    int ends[2];
    char seen[300] = "", expected[300];
    cr_assert_eq(pipe(ends), 0);
    weir__clock_replace(NULL, leap_day);
    log_to(ends[1], 1);
    cr_assert_gt(read(ends[0], seen, sizeof seen - 1), 0);
    snprintf(expected,
             sizeof expected,
             "2024-02-29T12:34:56.007Z weir[%ld] error: hello 0\n",
             (long)getpid());
    cr_assert_str_eq(seen, expected);
    cr_assert_eq(weir__log_lost(), 0);
}

Test(log, a_full_pipe_drops_and_never_blocks, .timeout = 5)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
    log_to(ends[1], 500);
    cr_assert_gt(weir__log_lost(), 100);
    cr_assert_lt(weir__log_lost(), 500);
}

Test(log, a_full_socket_drops_and_never_blocks, .timeout = 5)
{
    int ends[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    log_to(ends[1], 10000);
    cr_assert_gt(weir__log_lost(), 1);
    cr_assert_lt(weir__log_lost(), 10000);
}

Test(log, a_reader_that_is_gone_raises_no_signal)
{
    int ends[2], pair[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    close(ends[0]);
    close(pair[0]);
    log_to(ends[1], 1);
    log_to(pair[1], 1);
    cr_assert_eq(weir__log_lost(), 2);
}

/* A full disk takes a part of a line; the next one that it takes begins a line of its
 * own. */
Test(log, a_line_that_a_full_disk_has_cut_spoils_no_other)
{
    char path[] = "/tmp/weir-log-XXXXXX", seen[600] = "";
    int fd = mkstemp(path);
    struct rlimit limit;
    cr_assert(fd >= 0 && getrlimit(RLIMIT_FSIZE, &limit) == 0);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit full = { .rlim_cur = 20, .rlim_max = limit.rlim_max };
    setrlimit(RLIMIT_FSIZE, &full);
    log_to(fd, 3);
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_expect_eq(weir__log_lost(), 3);
    log_to(fd, 1);
    cr_assert_gt(pread(fd, seen, sizeof seen - 1, 0), 0);
    cr_expect_eq(seen[20], '\n', "%s", seen);
    cr_expect(strstr(seen + 21, "error: hello 0\n"), "%s", seen);
    close(fd);
    unlink(path);
}

Test(log, a_device_that_is_always_full_drops)
{
    log_to(open("/dev/full", O_WRONLY), 3);
    cr_expect_eq(weir__log_lost(), 3);
}
