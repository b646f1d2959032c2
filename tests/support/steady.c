/* A steady load over kept FastCGI connections, as a web server's pool makes it, and what
 * became of every request.
 *
 *     steady SOCKET RATE CONNECTIONS SECONDS [URI]
 *
 * So many requests a second in all, whether or not the last one has been answered in
 * time, until the seconds are over or SIGTERM comes. A connection that was closed before
 * any byte of the answer came is opened anew and the request sent again, once, as nginx
 * does with a kept connection: the close and the request have crossed. Prints
 *
 *     sent N answered N again N lost N slowest N us
 *
 * "lost" is what got no answer, or another one than 200. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support/fcgi_client.h"

#define CONNECTIONS_MAX 256
#define ANSWER_MS 10000

static const char *path, *uri = "/fast";
static int64_t pause_us, end_us;
static atomic_bool ended;
static atomic_ulong sent, answered, again, lost;
static _Atomic int64_t slowest_us;

static void end(int number)
{
    (void)number;
    atomic_store(&ended, true);
}

/* The status; 0: no answer, -1: closed before its first byte. */
static int ask(struct fcgi_client *client)
{
    struct fcgi_reply reply;
    const struct fcgi_request request = { .keep_conn = true, .uri = uri };
    if (client->fd < 0 && !fcgi_connect(client, path)) {
        client->fd = -1;
        return 0;
    }
    bool gone = !fcgi_send_request(client, &request);
    bool whole = fcgi_read_reply(client, 1, ANSWER_MS, &reply);
    int status = whole                                          ? reply.status
                 : gone || (reply.closed && reply.out.len == 0) ? -1
                                                                : 0;
    fcgi_reply_finish(&reply);
    if (!whole) {
        fcgi_close(client);
        client->fd = -1;
    }
    return status;
}

static void note_time(int64_t took_us)
{
    int64_t before_us = atomic_load(&slowest_us);
    while (took_us > before_us &&
           !atomic_compare_exchange_weak(&slowest_us, &before_us, took_us))
        continue;
}

static void *load(void *arg)
{
    struct fcgi_client client = { .fd = -1 };
    int64_t due_us = *(const int64_t *)arg;
    for (; due_us < end_us && !atomic_load(&ended); due_us += pause_us) {
        int64_t wait_us = due_us - fcgi_now_us();
        if (wait_us > 0)
            nanosleep(&(struct timespec){ .tv_sec = wait_us / 1000000,
                                          .tv_nsec = wait_us % 1000000 * 1000 },
                      NULL);
        int64_t begin_us = fcgi_now_us();
        atomic_fetch_add(&sent, 1);
        int status = ask(&client);
        if (status < 0) {
            atomic_fetch_add(&again, 1);
            status = ask(&client);
        }
        atomic_fetch_add(status == 200 ? &answered : &lost, 1);
        if (status != 200)
            fprintf(stderr, "lost: status %d\n", status);
        note_time(fcgi_now_us() - begin_us);
    }
    if (client.fd >= 0)
        fcgi_close(&client);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[CONNECTIONS_MAX];
    int64_t starts_us[CONNECTIONS_MAX];
    int rate = argc > 2 ? atoi(argv[2]) : 0, len = argc > 3 ? atoi(argv[3]) : 0;
    if (argc < 5 || rate < 1 || len < 1 || len > CONNECTIONS_MAX) {
        fprintf(stderr, "usage: steady SOCKET RATE CONNECTIONS SECONDS [URI]\n");
        return 64;
    }
    path = argv[1];
    if (argc > 5)
        uri = argv[5];
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, end);
    pause_us = (int64_t)len * 1000000 / rate;
    int64_t begin_us = fcgi_now_us();
    end_us = begin_us + (int64_t)atoi(argv[4]) * 1000000;
    for (int i = 0; i < len; i++) {
        starts_us[i] = begin_us + pause_us * i / len;
        if (pthread_create(&threads[i], NULL, load, &starts_us[i]) != 0)
            return 71;
    }
    for (int i = 0; i < len; i++)
        pthread_join(threads[i], NULL);
    printf("sent %lu answered %lu again %lu lost %lu slowest %lld us\n",
           atomic_load(&sent),
           atomic_load(&answered),
           atomic_load(&again),
           atomic_load(&lost),
           (long long)atomic_load(&slowest_us));
    return atomic_load(&lost) == 0 ? 0 : 1;
}
