/* What a program writes to its standard error, for the log: one line a line. */
#ifndef WEIR_CGI_LOG_H
#define WEIR_CGI_LOG_H

#include "request.h"

#define WEIR__CGI_LOG_LINES_MAX 64 /* a request */

/* One request's messages. */
struct weir__cgi_log {
    const struct weir *w;
    unsigned lines, dropped;
    size_t len;
    char line[1024]; /* a longer one is cut into several */
};

void weir__cgi_log_init(struct weir__cgi_log *log, const struct weir *w);

/* Logs each line that is complete, named for the endpoint; hostile bytes are encoded by
 * the log. What is past WEIR__CGI_LOG_LINES_MAX lines is counted and dropped. */
void weir__cgi_log_write(struct weir__cgi_log *log, const char *bytes, size_t len);

/* Logs a line without an end, and how many were dropped. */
void weir__cgi_log_end(struct weir__cgi_log *log);

#endif
