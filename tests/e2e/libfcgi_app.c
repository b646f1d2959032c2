/* A program of libfcgi alone for weir_run.sh: its own loop on two threads, each answer
 * counted, so that a refused request that reached it would show.
 *
 *     libfcgi_app [SOCKET]      on descriptor 0, or on a socket that it opens */
#include <fcgiapp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int listen_fd;
static atomic_uint runs;

/* The method, the body's length, how many came before; /large is 1 MiB, /slow takes its
 * time. */
static void answer(FCGX_Request *request)
{
    char part[4096];
    unsigned run = atomic_fetch_add(&runs, 1);
    const char *uri = FCGX_GetParam("REQUEST_URI", request->envp);
    size_t body = 0;
    int len;
    while ((len = FCGX_GetStr(part, sizeof part, request->in)) > 0)
        body += (size_t)len;
    FCGX_FPrintF(request->out, "Content-Type: text/plain\r\nX-Run: %u\r\n\r\n", run);
    if (strcmp(uri, "/slow") == 0) {
        FCGX_PutS("slow\n", request->err);
        FCGX_FFlush(request->err);
        usleep(700000);
    }
    memset(part, 'x', sizeof part);
    for (int i = 0; strcmp(uri, "/large") == 0 && i < 256; i++)
        FCGX_PutStr(part, sizeof part, request->out);
    FCGX_FPrintF(request->out,
                 "%s %s %d\n",
                 FCGX_GetParam("REQUEST_METHOD", request->envp),
                 uri,
                 (int)body);
    FCGX_FPrintF(request->err, "run %u\n", run);
}

static void *loop(void *arg)
{
    FCGX_Request request;
    (void)arg;
    FCGX_InitRequest(&request, listen_fd, 0);
    while (FCGX_Accept_r(&request) == 0) {
        answer(&request);
        FCGX_Finish_r(&request);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    if (FCGX_Init() != 0)
        return 1;
    if (argc > 1)
        listen_fd = FCGX_OpenSocket(argv[1], 16);
    if (listen_fd < 0 || (argc == 1 && FCGX_IsCGI()))
        return 2;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, loop, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%u runs\n", atomic_load(&runs));
    return 0;
}
