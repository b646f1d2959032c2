/* Programs with a libfcgi loop of their own, behind Weir's chain. Installed as
 * weir/fcgx.h.
 *
 *     cc -include weir/fcgx.h program.c -lweir -lfcgi
 *
 * is all that such a program needs. Its calls of FCGX_Init, FCGX_OpenSocket,
 * FCGX_InitRequest, FCGX_Accept_r and the others below then are Weir's, also the
 * FCGI_Accept of fcgi_stdio.h: it gets the requests that the chain let through, on as
 * many threads as it likes, and its output goes back through the chain. All other calls
 * stay libfcgi's. The engine runs in threads of the program and never forks.
 *
 * As with libfcgi, FCGX_Init (or weir_fcgx_init) is called before there are threads.
 * SIGTERM and SIGUSR1, where the program doesn't handle them itself, end the loops: each
 * FCGX_Accept_r returns a number below 0 once what is in flight has been answered. A
 * handler of its own calls FCGX_ShutdownPending for that.
 *
 * Without weir_fcgx_init() the environment says what the chain is to do:
 * WEIR_LIMIT="100/60s; POST /login 5/900s@ip" limits each caller, and every option of
 * weir_main() has a variable, WEIR_LISTEN for --listen, WEIR_MAX_BODY for --max-body. */
#ifndef WEIR_FCGX_LOOP_H
#define WEIR_FCGX_LOOP_H

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

struct FCGX_Request;
struct FCGX_Stream;

/* Sets the chain and the limits of this process, once, from main before any thread, in
 * place of what FCGX_Init would. Endpoints whose `.fcgx` is weir_fcgx_pull (they should
 * be `.parallel`) go to the program's loop; others may stand beside them. app may be
 * NULL: every path goes to the loop, behind the default chain. It must outlive the
 * process. The variables of the environment are read in both cases. False with a text in
 * ret_error, which may be NULL. */
WEIR_API bool weir_fcgx_init(const struct weir_app *app, struct weir_error *ret_error);

/* The handler that hands a request to a thread in FCGX_Accept_r and waits for its end. */
WEIR_API void weir_fcgx_pull(struct FCGX_Request *request);

/* In place of libfcgi's calls of these names; fcgiapp.h says what they do. What differs:
 * a socket that can't be opened is -1, not the end of the process; weir_fcgx_accept_r()
 * returns -1 when the process is to end, also without another request, and where there is
 * nothing to listen on (a CGI program's start is not served);
 * weir_fcgx_shutdown_pending() wakes every thread that accepts. Any thread, but for the
 * two without a request; in a signal's handler only the last. */
WEIR_API int weir_fcgx_is_cgi(void);
WEIR_API int weir_fcgx_init_library(void);
WEIR_API int weir_fcgx_open_socket(const char *path, int backlog);
WEIR_API int
weir_fcgx_init_request(struct FCGX_Request *request, int listen_fd, int flags);
WEIR_API int weir_fcgx_accept_r(struct FCGX_Request *request);
WEIR_API void weir_fcgx_finish_r(struct FCGX_Request *request);
WEIR_API void weir_fcgx_free(struct FCGX_Request *request, int close_it);
WEIR_API int weir_fcgx_accept(struct FCGX_Stream **in,
                              struct FCGX_Stream **out,
                              struct FCGX_Stream **err,
                              char ***envp);
WEIR_API void weir_fcgx_finish(void);
WEIR_API void weir_fcgx_shutdown_pending(void);

/* The same for fcgi_stdio.h: standard input, output and error, and the environment, are
 * the request's until the next call. One request at a time. */
WEIR_API int weir_fcgx_stdio_accept(void);
WEIR_API void weir_fcgx_stdio_finish(void);

#ifdef __cplusplus
}
#endif

/* fcgiapp.h and fcgi_stdio.h, where they come later, declare these once more. */
#ifndef WEIR_FCGX_KEEP_NAMES
#define FCGX_IsCGI weir_fcgx_is_cgi
#define FCGX_Init weir_fcgx_init_library
#define FCGX_OpenSocket weir_fcgx_open_socket
#define FCGX_InitRequest weir_fcgx_init_request
#define FCGX_Accept_r weir_fcgx_accept_r
#define FCGX_Finish_r weir_fcgx_finish_r
#define FCGX_Free weir_fcgx_free
#define FCGX_Accept weir_fcgx_accept
#define FCGX_Finish weir_fcgx_finish
#define FCGX_ShutdownPending weir_fcgx_shutdown_pending
#define FCGI_Accept weir_fcgx_stdio_accept
#define FCGI_Finish weir_fcgx_stdio_finish
#endif

#endif
