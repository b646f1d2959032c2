/* fcgi_stdio's two calls over weir_fcgx_accept(): its three streams and the environment
 * are the request's. All of it is the process's, so one request at a time.
 *
 * Never the program's own standard files: without a socket there is no request. */
#define WEIR_FCGX_KEEP_NAMES
#include "process/pull.h"

#define NO_FCGI_DEFINES
#include <fcgi_stdio.h>
#include <stdlib.h>
#include <unistd.h>

#pragma weak _fcgi_sF

static bool has_request;

static void set_streams(FCGX_Stream *in, FCGX_Stream *out, FCGX_Stream *err, char **envp)
{
    FCGX_Stream *const streams[] = { in, out, err };
    for (int i = 0; i < 3; i++) {
        _fcgi_sF[i].stdio_stream = NULL;
        _fcgi_sF[i].fcgx_stream = streams[i];
    }
    environ = envp;
}

void weir_fcgx_stdio_finish(void)
{
    if (!has_request)
        return;
    has_request = false;
    weir_fcgx_finish();
    set_streams(NULL, NULL, NULL, NULL);
}

/* The first call's streams are finished at exit() too, as libfcgi's are: a program that
 * ends in the middle of a request has answered it. That runs before what the engine does
 * there, since it is registered later. */
int weir_fcgx_stdio_accept(void)
{
    static bool called;
    FCGX_Stream *in, *out, *err;
    char **envp;
    weir_fcgx_stdio_finish();
    int result = weir_fcgx_accept(&in, &out, &err, &envp);
    if (!called)
        atexit(weir_fcgx_stdio_finish);
    called = true;
    if (result < 0)
        return result;
    set_streams(in, out, err, envp);
    has_request = true;
    return 0;
}
