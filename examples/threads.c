/* Four threads that accept and answer side by side, as is usual with FCGX_Accept_r and
 * FCGX_Finish_r. "threads SOCKET", where a path or ":PORT" names the socket.
 *
 *     /          says what was asked for
 *     /?BYTES    sends that many */
#include <fcgiapp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define THREADS 4

static int listen_fd;

static void send_bytes(FCGX_Request *request, long bytes)
{
    char block[1000];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)('a' + i % 26);
    FCGX_FPrintF(request->out,
                 "Content-Type: application/octet-stream\r\nContent-Length: %ld\r\n\r\n",
                 bytes);
    for (long sent = 0; sent < bytes;) {
        long len = bytes - sent < (long)sizeof block ? bytes - sent : (long)sizeof block;
        if (FCGX_PutStr(block, (int)len, request->out) < 0) {
            fprintf(stderr, "gone before byte %ld of %ld bytes\n", sent + len, bytes);
            return;
        }
        sent += len;
    }
}

static void answer(FCGX_Request *request)
{
    const char *query = FCGX_GetParam("QUERY_STRING", request->envp);
    long bytes = query ? atol(query) : 0;
    if (bytes > 0) {
        send_bytes(request, bytes);
        return;
    }
    const char *method = FCGX_GetParam("REQUEST_METHOD", request->envp);
    const char *uri = FCGX_GetParam("REQUEST_URI", request->envp);
    FCGX_PutS("Content-Type: text/plain\r\n\r\n", request->out);
    FCGX_FPrintF(request->out, "%s %s\n", method ? method : "", uri ? uri : "");
}

static void *accept_all(void *arg)
{
    FCGX_Request request;
    if (FCGX_InitRequest(&request, listen_fd, 0) != 0)
        return arg;
    while (FCGX_Accept_r(&request) == 0) {
        answer(&request);
        FCGX_Finish_r(&request);
    }
    return arg;
}

int main(int argc, char **argv)
{
    if (argc != 2 || FCGX_Init() != 0) {
        fprintf(stderr, "usage: threads SOCKET\n");
        return 1;
    }
    umask(0); /* the web server is somebody else */
    listen_fd = FCGX_OpenSocket(argv[1], 100);
    if (listen_fd < 0)
        return 1;
    for (int i = 1; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, accept_all, NULL) != 0)
            return 1;
        pthread_detach(thread);
    }
    accept_all(NULL);
    return 0;
}
