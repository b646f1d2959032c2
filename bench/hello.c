/* What is measured of Weir: one answer of a few bytes, as a handler that may block and as
 * one that doesn't, with and without a limit that nobody reaches. */
#include <weir/weir.h>

static int hello(struct weir *w)
{
    return weir_text(w, 200, "Hello, world.\n");
}

#define LIMITS WEIR_LIMITS(WEIR_FIXED_WINDOW("minute", 1000000000, WEIR_MINUTES(1)))

static const struct weir_endpoint endpoints[] = {
    { "GET /plain", hello, .limits = WEIR_UNLIMITED },
    { "GET /nonblocking", hello, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "GET /plain_limited", hello, .limits = LIMITS },
    { "GET /nonblocking_limited", hello, .limits = LIMITS, .nonblocking = true },
    { 0 },
};

int main(int argc, char **argv)
{
    return weir_main(argc, argv, &(struct weir_app){ WEIR_ABI, .endpoints = endpoints });
}
