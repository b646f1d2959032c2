/* A program with a libfcgi loop of its own: four threads accept, eight clients ask, every
 * answer is the right one, and SIGTERM ends all threads once what is in flight has been
 * answered.
 *
 *     threads_pull [REQUESTS]      of each client; from 10,000 on the program's memory is
 *                                  looked at too */
#include <weir/fcgx.h>

#include <fcgiapp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "support/fcgi_client.h"
#include "support/no_options.h"

enum { ACCEPTORS = 4, CLIENTS = 8 };

static char folder[64], path[96];
static int requests = 500;

/* What the program tells this process. */
static struct shared {
    atomic_uint slow; /* requests of /slow in hand */
} * shared;

/* ---- the program, in the usual style ----------------------------------------------- */

static int listen_fd;

/* Answers with the query and the body; every third request is ended by hand, the others
 * by the next accept. */
static void answer(FCGX_Request *request, unsigned turn)
{
    char body[256];
    int len = FCGX_GetStr(body, sizeof body, request->in);
    const char *query = FCGX_GetParam("QUERY_STRING", request->envp);
    const char *uri = FCGX_GetParam("REQUEST_URI", request->envp);
    if (strcmp(uri, "/slow") == 0) {
        atomic_fetch_add(&shared->slow, 1);
        usleep(200000);
    }
    FCGX_FPrintF(
        request->out, "Content-Type: text/plain\r\n\r\n%s ", query ? query : "-");
    if (turn % 2)
        FCGX_FFlush(request->out);
    FCGX_PutStr(body, len, request->out);
    if (turn % 3 == 0)
        FCGX_Finish_r(request);
}

static void *accept_all(void *arg)
{
    FCGX_Request request;
    unsigned turn = 0;
    (void)arg;
    CHECK(FCGX_InitRequest(&request, listen_fd, 0) == 0);
    int result;
    while ((result = FCGX_Accept_r(&request)) == 0)
        answer(&request, turn++);
    CHECK(result < 0);
    CHECK(FCGX_Accept_r(&request) < 0); /* and from then on */
    return NULL;
}

static int program(void)
{
    pthread_t threads[ACCEPTORS];
    CHECK(FCGX_Init() == 0);
    listen_fd = FCGX_OpenSocket(path, 100);
    CHECK(listen_fd > 0);
    for (int i = 0; i < ACCEPTORS; i++)
        CHECK(pthread_create(&threads[i], NULL, accept_all, NULL) == 0);
    for (int i = 0; i < ACCEPTORS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* ---- the clients ------------------------------------------------------------------- */

static struct fcgi_client connect_to(void)
{
    struct fcgi_client client;
    for (int i = 0; !fcgi_connect(&client, path); i++) {
        CHECK(i < 5000);
        usleep(1000);
    }
    return client;
}

static bool ask(struct fcgi_client *client, const char *query, const char *body)
{
    char uri[64], wanted[256];
    struct fcgi_reply reply;
    struct fcgi_param params[] = { { "QUERY_STRING", query }, { NULL, NULL } };
    snprintf(uri, sizeof uri, "/any/path?%s", query);
    snprintf(wanted, sizeof wanted, "%s %s", query, body);
    CHECK(fcgi_send_request(client,
                            &(struct fcgi_request){ .method = "POST",
                                                    .uri = uri,
                                                    .keep_conn = true,
                                                    .body = body,
                                                    .body_len = strlen(body),
                                                    .params = params }));
    bool ended = fcgi_read_reply(client, 1, 20000, &reply);
    bool right = ended && reply.status == 200 && strcmp(reply.body, wanted) == 0;
    if (!right)
        fprintf(stderr, "%d \"%s\" for \"%s\"\n", reply.status, reply.body, wanted);
    fcgi_reply_finish(&reply);
    return right;
}

struct asker {
    unsigned id;
    int requests;
};

static void *ask_all(void *arg)
{
    const struct asker *asker = arg;
    unsigned id = asker->id;
    struct fcgi_client client = connect_to();
    for (int i = 0; i < asker->requests; i++) {
        char query[32], body[64];
        snprintf(query, sizeof query, "c=%u&n=%d", id, i);
        snprintf(body, sizeof body, "body %d of %u", i * 7, id);
        CHECK(ask(&client, query, body));
    }
    fcgi_close(&client);
    return NULL;
}

static void many_answers(int count)
{
    pthread_t threads[CLIENTS];
    struct asker askers[CLIENTS];
    int64_t begin_us = fcgi_now_us();
    for (unsigned i = 0; i < CLIENTS; i++) {
        askers[i] = (struct asker){ .id = i, .requests = count };
        CHECK(pthread_create(&threads[i], NULL, ask_all, &askers[i]) == 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    printf("%d requests, %.1f us each\n",
           CLIENTS * count,
           (double)(fcgi_now_us() - begin_us) / (CLIENTS * count));
}

/* What is resident of the program, in KiB (proc(5)). */
static long resident_kib(pid_t pid)
{
    char name[64];
    long pages = 0;
    snprintf(name, sizeof name, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(name, "r");
    CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Once it is warm it needs no more, however many come. */
static void many_more_answers(pid_t pid)
{
    many_answers(requests / 10);
    long warm_kib = resident_kib(pid);
    many_answers(requests);
    long end_kib = resident_kib(pid);
    printf("%ld KiB resident, %ld KiB at the end\n", warm_kib, end_kib);
    if (requests >= 10000)
        CHECK(end_kib - warm_kib < 1024);
}

/* Four are in the program's hands, one waits, one connection idles. */
static void term_answers_what_is_in_flight(pid_t pid)
{
    struct fcgi_client busy[ACCEPTORS + 1], idle = connect_to();
    int status;
    for (int i = 0; i <= ACCEPTORS; i++) {
        busy[i] = connect_to();
        CHECK(fcgi_send_request(
            &busy[i], &(struct fcgi_request){ .uri = "/slow", .keep_conn = true }));
    }
    for (int i = 0; atomic_load(&shared->slow) < ACCEPTORS; i++) {
        CHECK(i < 5000);
        usleep(1000);
    }
    usleep(20000); /* the fifth is read */
    int64_t begin_us = fcgi_now_us();
    kill(pid, SIGTERM);
    for (int i = 0; i <= ACCEPTORS; i++) {
        struct fcgi_reply reply;
        CHECK(fcgi_read_reply(&busy[i], 1, 10000, &reply) && reply.status == 200);
        fcgi_reply_finish(&reply);
        fcgi_close(&busy[i]);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("ended %.0f ms after SIGTERM\n", (double)(fcgi_now_us() - begin_us) / 1000);
    fcgi_close(&idle);
}

int main(int argc, char **argv)
{
    no_options();
    if (argc > 1)
        requests = atoi(argv[1]);
    snprintf(folder, sizeof folder, "/tmp/weir-pull-XXXXXX");
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s", folder);
    shared = mmap(
        NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when a check fails here */
        exit(program());
    }
    many_more_answers(pid);
    term_answers_what_is_in_flight(pid);
    unlink(path);
    rmdir(folder);
    return 0;
}
