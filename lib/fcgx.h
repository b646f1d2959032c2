/* Handlers of libfcgi's form, `void (*)(FCGX_Request *)`: what app.c and life.c need of
 * transport/fcgx.c, which alone knows libfcgi. */
#ifndef WEIR_FCGX_H
#define WEIR_FCGX_H

#include "request.h"

/* Whether such handlers can be run: libfcgi is in the program, and is one whose streams
 * are understood. NULL, or what is missing. Any thread. */
const char *weir__fcgx_missing(void);

/* The weir_handler_fn of an endpoint with .fcgx: runs that over streams of ours and takes
 * its output as CGI output. May block. */
int weir__fcgx_handle(struct weir *w);

/* The request behind what such a handler was given, while it has its streams. */
struct FCGX_Request;
struct weir *weir__fcgx_request_of(const struct FCGX_Request *request);

/* Such a handler can't answer: what it has written is dropped, the answer is 502, and why
 * (a constant) is logged. Returns to it. */
void weir__fcgx_give_up(const struct FCGX_Request *request, const char *why);

#endif
