/* A handler as it may have stood in a program with libfcgi for twenty years: it reads its
 * parameters and writes CGI output, and knows nothing of Weir.
 *
 * It counts its runs, so that everyone can see that a request which the chain has refused
 * never gets here. */
#include "classic.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

static atomic_uint *runs;

bool classic_start(void)
{
    void *shared = mmap(
        NULL, sizeof *runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        return false;
    runs = shared;
    return true;
}

void classic(FCGX_Request *request)
{
    const char *address = FCGX_GetParam("REMOTE_ADDR", request->envp);
    unsigned run = atomic_fetch_add(runs, 1) + 1;

    FCGX_FPrintF(request->out,
                 "Content-Type: text/plain\r\n"
                 "Cache-Control: no-store\r\n"
                 "\r\n"
                 "run %u, for %s\n",
                 run,
                 address != NULL ? address : "nobody");
}
