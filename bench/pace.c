/* Asks for one page at an even pace, whether answers come or not, and says how long they
 * took: "COUNT P50 P90 P99 WORST" in microseconds, and how many were no 200.
 *
 *   pace PORT PATH REQUESTS_A_SECOND SECONDS
 *
 * A request is taken from when it was due; what a sleeping processor adds before it is
 * sent is not the server's, so that one sent on an idle connection counts from there. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 64

static struct connection {
    int64_t since_ns; /* 0: idle */
} connections[CONNECTIONS];
static struct pollfd fds[CONNECTIONS];
static char request[512];
static uint32_t *took_ns;
static unsigned took_len, bad;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void open_all(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    for (int i = 0; i < CONNECTIONS; i++) {
        fds[i] = (struct pollfd){ socket(AF_INET, SOCK_STREAM, 0), POLLIN, 0 };
        if (fds[i].fd < 0 ||
            connect(fds[i].fd, (struct sockaddr *)&address, sizeof address) < 0)
            die("connect");
    }
}

/* Connections are used in turn, as those of many clients would be. False: none is idle.
 */
static bool send_one(int64_t late_ns)
{
    static unsigned next;
    for (unsigned n = 0; n < CONNECTIONS; n++) {
        unsigned i = next++ % CONNECTIONS;
        if (connections[i].since_ns)
            continue;
        connections[i].since_ns = late_ns ? late_ns : now_ns();
        if (send(fds[i].fd, request, strlen(request), MSG_NOSIGNAL) < 0)
            die("send");
        return true;
    }
    return false;
}

/* Answers are small and come in one piece. */
static void take(unsigned i)
{
    char bytes[8192];
    ssize_t len = recv(fds[i].fd, bytes, sizeof bytes, 0);
    if (len <= 0)
        die("recv");
    took_ns[took_len++] = (uint32_t)(now_ns() - connections[i].since_ns);
    bad += len < 12 || memcmp(bytes + 9, "200", 3) != 0;
    connections[i].since_ns = 0;
}

static int compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static void wait_until(int64_t at_ns)
{
    int64_t left_ns = at_ns - now_ns();
    struct timespec left = { left_ns / 1000000000, left_ns % 1000000000 };
    if (left_ns > 0 && ppoll(fds, CONNECTIONS, &left, NULL) > 0)
        for (unsigned i = 0; i < CONNECTIONS; i++)
            if (fds[i].revents)
                take(i);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 64;
    int rate = atoi(argv[3]), count = rate * atoi(argv[4]);
    took_ns = calloc((size_t)count, sizeof *took_ns);
    if (!took_ns || count <= 0)
        return 64;
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: b\r\n\r\n", argv[2]);
    prctl(PR_SET_TIMERSLACK, 1UL);
    open_all(atoi(argv[1]));
    int64_t begin_ns = now_ns(), due_ns = begin_ns;
    for (int sent = 0; sent < count;) {
        bool had_to_wait = false;
        due_ns = begin_ns + sent * INT64_C(1000000000) / rate;
        while (now_ns() < due_ns)
            wait_until(due_ns);
        while (!send_one(had_to_wait ? due_ns : 0)) {
            wait_until(now_ns() + 1000000);
            had_to_wait = true;
        }
        sent++;
    }
    for (int64_t end_ns = now_ns() + 2000000000;
         took_len < (unsigned)count && now_ns() < end_ns;)
        wait_until(now_ns() + 10000000);
    bad += (unsigned)count - took_len;
    qsort(took_ns, took_len, sizeof *took_ns, compare);
    printf("%u %u %u %u %u %u\n",
           took_len,
           took_ns[took_len / 2] / 1000,
           took_ns[took_len / 10 * 9] / 1000,
           took_ns[(unsigned)(took_len * 0.99)] / 1000,
           took_ns[took_len - 1] / 1000,
           bad);
    return bad != 0;
}
