/* What is measured of Weir: one answer of a few bytes, as a handler that may block, as
 * one that doesn't and as one of libfcgi's form, with and without a limit that nobody
 * reaches. */
#include <weir/weir.h>

#include <fcgiapp.h>

static int hello(struct weir *w)
{
    return weir_text(w, 200, "Hello, world.\n");
}

static void fcgx_hello(FCGX_Request *request)
{
    FCGX_PutS("Content-Type: text/plain; charset=utf-8\r\n\r\nHello, world.\n",
              request->out);
}

#define LIMITS WEIR_LIMITS(WEIR_FIXED_WINDOW("minute", 1000000000, WEIR_MINUTES(1)))

static const struct weir_endpoint endpoints[] = {
    { "GET /plain", hello, .limits = WEIR_UNLIMITED },
    { "GET /nonblocking", hello, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "GET /plain_limited", hello, .limits = LIMITS },
    { "GET /fcgx", .fcgx = fcgx_hello, .limits = WEIR_UNLIMITED, .parallel = true },
    { "GET /fcgx_one", .fcgx = fcgx_hello, .limits = WEIR_UNLIMITED },
    { "GET /nonblocking_limited", hello, .limits = LIMITS, .nonblocking = true },
    { 0 },
};

int main(int argc, char **argv)
{
    return weir_main(argc, argv, &(struct weir_app){ WEIR_ABI, .endpoints = endpoints });
}
