/* One event, one line: formats it, makes it safe to read, and sends it to the sink.
 *
 * Standard error may be a pipe whose reader has stopped, and it may be shared with other
 * programs, so that its flags must not be changed: a write goes out only when it doesn't
 * have to wait. Nothing here allocates. */
#include "base/log.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2000
#define LIMITED_US INT64_C(1000000)

static atomic_ulong lost;
static atomic_bool torn; /* the last line was cut by a full disk: it has no end yet */

static bool write_now(int fd, const char *bytes, size_t len)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return false;
    if (S_ISREG(status.st_mode)) {
        ssize_t written = write(fd, bytes, len);
        if (written > 0)
            atomic_store(&torn, written < (ssize_t)len);
        return written == (ssize_t)len;
    }
    if (S_ISSOCK(status.st_mode))
        return send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
    struct pollfd ready = { .fd = fd, .events = POLLOUT };
    if (poll(&ready, 1, 0) != 1 || ready.revents != POLLOUT)
        return false; /* POLLERR: nobody reads any more, a write would raise SIGPIPE */
    /* Another writer may have filled the pipe since poll(): RWF_NOWAIT covers that where
     * the kernel has it for pipes. A line is shorter than PIPE_BUF, so it isn't torn. */
    struct iovec piece = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
    ssize_t sent = pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);
    if (sent < 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
        sent = write(fd, bytes, len);
    return sent == (ssize_t)len;
}

static void to_stderr(void *arg, enum weir_log_level level, const char *line)
{
    static const char *const names[] = {
        [WEIR_LOG_DEBUG] = "debug",
        [WEIR_LOG_INFO] = "info",
        [WEIR_LOG_WARNING] = "warning",
        [WEIR_LOG_ERROR] = "error",
    };
    (void)arg;
    int64_t wall_us = weir__clock_wall_us();
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm utc;
    char when[32], text[LINE_MAX_BYTES + 128];
    if (!gmtime_r(&seconds, &utc) || !strftime(when, sizeof when, "%FT%T", &utc))
        when[0] = '\0';
    int len = snprintf(text,
                       sizeof text,
                       "%s%s.%03dZ weir[%ld] %s: %s\n",
                       atomic_load(&torn) ? "\n" : "",
                       when,
                       (int)(wall_us / 1000 % 1000),
                       (long)getpid(),
                       names[level],
                       line);
    if (len < 0 || (size_t)len >= sizeof text ||
        !write_now(STDERR_FILENO, text, (size_t)len))
        atomic_fetch_add(&lost, 1);
}

static weir_log_fn *sink = to_stderr;
static void *sink_arg;
static enum weir_log_level sink_lowest = WEIR_LOG_INFO;

void weir__log_replace(weir_log_fn *fn, void *arg, enum weir_log_level lowest)
{
    sink = fn ? fn : to_stderr;
    sink_arg = arg;
    sink_lowest = lowest;
}

unsigned long weir__log_lost(void)
{
    return atomic_load(&lost);
}

/* Copies text, with every byte but printable ASCII as \xNN. A terminal obeys control
 * bytes, and some of them stand above 0x7f. A line that is too long ends in "...". */
static void encode(char ret_line[LINE_MAX_BYTES + 1], const char *text)
{
    static const char hex[] = "0123456789abcdef";
    size_t at = 0;
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        bool plain = byte >= 0x20 && byte < 0x7f;
        if (at + (plain ? 1 : 4) > LINE_MAX_BYTES - 3) {
            memcpy(ret_line + at, "...", 3);
            at += 3;
            break;
        }
        if (plain) {
            ret_line[at++] = (char)byte;
        } else {
            ret_line[at++] = '\\';
            ret_line[at++] = 'x';
            ret_line[at++] = hex[byte >> 4];
            ret_line[at++] = hex[byte & 15];
        }
    }
    ret_line[at] = '\0';
}

static void send_line(enum weir_log_level level,
                      unsigned long dropped,
                      const char *format,
                      va_list args) __attribute__((format(printf, 3, 0)));

static void send_line(enum weir_log_level level,
                      unsigned long dropped,
                      const char *format,
                      va_list args)
{
    char text[LINE_MAX_BYTES + 2], line[LINE_MAX_BYTES + 1];
    size_t at = 0;
    if (dropped > 0)
        at = (size_t)snprintf(text, sizeof text, "(%lu like this dropped) ", dropped);
    if (vsnprintf(text + at, sizeof text - at, format, args) < 0)
        text[at] = '\0';
    encode(line, text);
    sink(sink_arg, level, line);
}

void weir__log(enum weir_log_level level, const char *format, ...)
{
    if (level < sink_lowest)
        return;
    va_list args;
    va_start(args, format);
    send_line(level, 0, format, args);
    va_end(args);
}

void weir__log_limited(struct weir__log_kind *kind,
                       enum weir_log_level level,
                       const char *format,
                       ...)
{
    if (level < sink_lowest)
        return;
    long long now_us = weir__clock_now_us();
    long long next_us = atomic_load(&kind->next_us);
    if (now_us < next_us ||
        !atomic_compare_exchange_strong(&kind->next_us, &next_us, now_us + LIMITED_US)) {
        atomic_fetch_add(&kind->dropped, 1);
        return;
    }
    va_list args;
    va_start(args, format);
    send_line(level, atomic_exchange(&kind->dropped, 0), format, args);
    va_end(args);
}
