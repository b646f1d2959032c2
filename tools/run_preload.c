/* What weir-run has the loader put before a program's libfcgi: its calls that accept and
 * end requests, as weir/fcgx.h has them. Everything else stays libfcgi's.
 *
 * Counters are made before main, so that processes which the program forks share them. */
#define WEIR_FCGX_KEEP_NAMES
#include "process/pull.h"

#define NO_FCGI_DEFINES
#include <fcgi_stdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "process/pull_engine.h"
#include "run.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int FCGX_IsCGI(void)
{
    return weir_fcgx_is_cgi();
}

EXPORT int FCGX_Init(void)
{
    return weir_fcgx_init_library();
}

EXPORT int FCGX_OpenSocket(const char *path, int backlog)
{
    return weir_fcgx_open_socket(path, backlog);
}

EXPORT int FCGX_InitRequest(FCGX_Request *request, int sock, int flags)
{
    return weir_fcgx_init_request(request, sock, flags);
}

EXPORT int FCGX_Accept_r(FCGX_Request *request)
{
    return weir_fcgx_accept_r(request);
}

EXPORT void FCGX_Finish_r(FCGX_Request *request)
{
    weir_fcgx_finish_r(request);
}

EXPORT void FCGX_Free(FCGX_Request *request, int close_it)
{
    weir_fcgx_free(request, close_it);
}

EXPORT int
FCGX_Accept(FCGX_Stream **in, FCGX_Stream **out, FCGX_Stream **err, FCGX_ParamArray *envp)
{
    return weir_fcgx_accept(in, out, err, envp);
}

EXPORT void FCGX_Finish(void)
{
    weir_fcgx_finish();
}

EXPORT void FCGX_ShutdownPending(void)
{
    weir_fcgx_shutdown_pending();
}

/* libfcgi's own would call those above; but not where it was linked with -Bsymbolic. */
EXPORT int FCGI_Accept(void)
{
    return weir_fcgx_stdio_accept();
}

EXPORT void FCGI_Finish(void)
{
    weir_fcgx_stdio_finish();
}

/* Only in the program that weir-run has become: what that executes in turn inherits the
 * variable, and makes its own should it accept. A program must not run without what was
 * asked for it. */
__attribute__((constructor)) static void begin(void)
{
    struct weir_error error = { "" };
    const char *pid = getenv(RUN_PID);
    if (!pid || atol(pid) != (long)getpid())
        return;
    if (!weir__pull_engine_init(NULL, weir_fcgx_pull, &error)) {
        dprintf(STDERR_FILENO, "weir-run: %s\n", error.text);
        _exit(EX_CONFIG);
    }
}
