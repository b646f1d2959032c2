/* Cuts what a program says into lines for the log.
 *
 * A request has so many lines and no more, so that a program that runs wild doesn't fill
 * the disk. */
#include "cgi_log.h"

#include <string.h>

#include "base/log.h"

void weir__cgi_log_init(struct weir__cgi_log *log, const struct weir *w)
{
    log->w = w;
    log->lines = log->dropped = 0;
    log->len = 0;
}

/* Logs the line under way, unless it is empty. */
static void put(struct weir__cgi_log *log)
{
    size_t len = log->len;
    log->len = 0;
    if (len > 0 && log->line[len - 1] == '\r')
        len--;
    if (len == 0)
        return;
    if (log->lines == WEIR__CGI_LOG_LINES_MAX) {
        log->dropped++;
        return;
    }
    log->lines++;
    /* A NUL would hide what stands behind it. */
    for (char *nul; (nul = memchr(log->line, '\0', len));)
        *nul = ' ';
    weir__log(WEIR_LOG_WARNING,
              "%s: %.*s",
              log->w->endpoint ? log->w->endpoint->pattern : "program",
              (int)len,
              log->line);
}

void weir__cgi_log_write(struct weir__cgi_log *log, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n') {
            put(log);
            continue;
        }
        if (log->len == sizeof log->line)
            put(log);
        log->line[log->len++] = bytes[i];
    }
}

void weir__cgi_log_end(struct weir__cgi_log *log)
{
    put(log);
    if (log->dropped > 0)
        weir__log(WEIR_LOG_WARNING,
                  "%s: %u more lines of standard error",
                  log->w->endpoint ? log->w->endpoint->pattern : "program",
                  log->dropped);
}
