/* Writes one line a request in `after`: what was asked, what was answered, who decided.
 *
 * Must not write an id of a caller, a query or a cookie: a log is read by more people
 * than a database. Nothing here allocates. */
#include "access_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "request.h"
#include "source.h"

#define LINE_BYTES 2048
#define METHOD_BYTES 64
#define PATH_BYTES 1200
#define QUIET_US 1000000

/* Refusals of one status. */
struct refusals {
    int status;
    _Atomic int64_t next_us; /* no line before it */
    atomic_ulong dropped;    /* since the last line */
};

#define KINDS 2

struct access_log {
    const struct weir_access_log *options;
    struct refusals *refusals; /* KINDS of them: apart, since hooks get a const self */
};

static bool start(const struct weir_app *app,
                  const void *options,
                  void **ret_self,
                  struct weir_error *ret_error)
{
    (void)app;
    struct access_log *log = malloc(sizeof *log);
    struct refusals *refusals = calloc(KINDS, sizeof *refusals);
    if (!log || !refusals) {
        free(log);
        free(refusals);
        return weir__error(ret_error, "access_log: out of memory");
    }
    *log = (struct access_log){ .options = options, .refusals = refusals };
    log->refusals[0].status = 429;
    log->refusals[1].status = 503;
    *ret_self = log;
    return true;
}

static void stop(void *self)
{
    struct access_log *log = self;
    free(log->refusals);
    free(log);
}

/* Whether this line is written. *ret_dropped is how many before it were not. */
static bool due(struct refusals *refusals, unsigned long *ret_dropped)
{
    int64_t now_us = weir__clock_now_us();
    int64_t next_us = atomic_load(&refusals->next_us);
    if (now_us < next_us || !atomic_compare_exchange_strong(
                                &refusals->next_us, &next_us, now_us + QUIET_US)) {
        atomic_fetch_add(&refusals->dropped, 1);
        return false;
    }
    *ret_dropped = atomic_exchange(&refusals->dropped, 0);
    return true;
}

/* Copies text with each byte as \xNN that is no visible ASCII, or that has a meaning in
 * the line. What doesn't fit is cut and ends in "...". Empty is "-". */
static void encode(char *ret_text, size_t size, const char *text)
{
    size_t at = 0;
    if (*text == '\0')
        text = "-";
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        bool plain =
            byte > 0x20 && byte < 0x7f && byte != '"' && byte != '\\' && byte != '=';
        if (at + (plain ? 1 : 4) + sizeof "..." > size) {
            at += (size_t)snprintf(ret_text + at, size - at, "...");
            break;
        }
        if (plain)
            ret_text[at++] = (char)byte;
        else
            at += (size_t)snprintf(ret_text + at, size - at, "\\x%02x", byte);
    }
    ret_text[at] = '\0';
}

static void write_time(char *ret_text, size_t size)
{
    int64_t wall_us = weir__clock_wall_us();
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm utc;
    char whole[32];
    if (!gmtime_r(&seconds, &utc) || !strftime(whole, sizeof whole, "%FT%T", &utc))
        whole[0] = '\0';
    snprintf(ret_text, size, "time=%s.%03dZ ", whole, (int)(wall_us / 1000 % 1000));
}

/* One line of logfmt, which many tools read. */
static void
write_line(struct weir *w, const struct weir_access_log *options, unsigned long dropped)
{
    char line[LINE_BYTES], when[64] = "", left_out[40] = "";
    char method[METHOD_BYTES], path[PATH_BYTES];
    if (options->write)
        write_time(when, sizeof when);
    if (dropped > 0)
        snprintf(left_out, sizeof left_out, "dropped=%lu ", dropped);
    encode(method, sizeof method, w->method);
    encode(path, sizeof path, w->path);
    int64_t us = weir__clock_now_us() - w->start_us;
    snprintf(line,
             sizeof line,
             "%s%sstatus=%d ms=%lld.%03d bytes=%zu caller=%s source=%s%s%s method=%s "
             "path=%s",
             when,
             left_out,
             w->status,
             (long long)(us / 1000),
             (int)(us % 1000),
             w->sent_bytes,
             weir_caller_type_name(w->caller.type),
             weir__source_name(w->decision ? w->decision->source : WEIR_SOURCE_NONE),
             w->request_id ? " id=" : "",
             w->request_id ? w->request_id : "",
             method,
             path);
    if (options->write)
        options->write(options->arg, line);
    else
        weir__log(WEIR_LOG_INFO, "%s", line);
}

static void after(struct weir *w, const void *self, void *slot)
{
    const struct access_log *log = self;
    unsigned long dropped = 0;
    (void)slot;
    for (unsigned i = 0; i < KINDS; i++)
        if (w->status == log->refusals[i].status && !due(&log->refusals[i], &dropped))
            return;
    write_line(w, log->options, dropped);
}

const struct weir_filter weir_filter_access_log = {
    .name = "access_log",
    .options_size = sizeof(struct weir_access_log),
    .start = start,
    .stop = stop,
    .after = after,
};
