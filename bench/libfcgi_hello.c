/* The same answer by plain libfcgi, without a limit: the socket on descriptor 0, a thread
 * for each connection that the front keeps (a kept connection holds its thread), and no
 * lock around the accept, which Linux doesn't need. */
#include <fcgiapp.h>
#include <pthread.h>
#include <stdlib.h>

static void *serve(void *arg)
{
    FCGX_Request request;
    (void)arg;
    FCGX_InitRequest(&request, 0, 0);
    while (FCGX_Accept_r(&request) == 0) {
        FCGX_PutS("Status: 200 OK\r\n"
                  "Content-Type: text/plain; charset=utf-8\r\n"
                  "Content-Length: 14\r\n\r\n"
                  "Hello, world.\n",
                  request.out);
        FCGX_Finish_r(&request);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 48;
    pthread_t thread;
    FCGX_Init();
    for (int i = 1; i < threads; i++)
        pthread_create(&thread, NULL, serve, NULL);
    serve(NULL);
    return 0;
}
