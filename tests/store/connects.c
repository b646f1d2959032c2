/* How the Redis store connects, and what it makes of connections that don't come about or
 * don't last: a real redis-server, and a listener that lets nobody in.
 *
 *   store_connects [CASE] */
#include "redis_kit.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/log.h"

static char logged[4096];

static void note(void *unused, enum weir_log_level level, const char *line)
{
    (void)unused, (void)level;
    size_t len = strlen(logged);
    snprintf(logged + len, sizeof logged - len, "%s\n", line);
}

/* A full queue drops what else wants to connect, as a firewall does that says nothing. */
static void an_address_that_drops_connects_holds_up_nobody(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    char text[64];
    int fillers[8];
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, len) == 0 &&
              listen(listener, 0) == 0 &&
              getsockname(listener, (struct sockaddr *)&address, &len) == 0,
          "listener");
    for (int i = 0; i < 8; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(fillers[i], (struct sockaddr *)&address, len);
    }
    snprintf(text, sizeof text, "tcp:127.0.0.1:%u", ntohs(address.sin_port));
    int64_t begin_us = weir__clock_now_us();
    store = open_store(text, NULL);
    for (int i = 0; i < 100; i++)
        CHECK(ask(&window, "user:42", 1) == -1, "nobody is there");
    int64_t took_us = weir__clock_now_us() - begin_us;
    CHECK(took_us < WEIR_SECONDS(1), "100 took %lld us", (long long)took_us);
    weir_store_destroy(store);
    for (int i = 0; i < 8; i++)
        close(fillers[i]);
    close(listener);
}

static void idle_closes(const char *address)
{
    store = open_store(address, NULL);
    CHECK(ask_patiently(&window, "user:42", 1) == 4, "before");
    redis_client_ask(&client, "CONFIG SET timeout 1");
    redis_client_close(&client); /* or it would be closed as well */
    for (int left = 3; left >= 2; left--) {
        usleep(3300000);
        CHECK(ask(&window, "user:42", 1) == left, "after %d left", left);
    }
    weir_store_destroy(store);
}

static void a_server_that_closes_idle_connections_costs_no_answer(void)
{
    redis_server_start(&server);
    redis_client_open(&client, server.socket);
    idle_closes(server.address);
    redis_client_open(&client, server.socket);
    redis_client_ask(&client, "FLUSHALL");
    redis_client_ask(&client, "CONFIG SET timeout 0");
    idle_closes(server.tcp_address);
    redis_server_finish(&server);
}

static void a_server_that_was_restarted_meanwhile_is_found_again(void)
{
    open_all();
    CHECK(ask(&window, "user:42", 1) == 4, "before");
    usleep(600000);
    redis_client_close(&client);
    redis_server_kill(&server);
    redis_server_again(&server);
    CHECK(ask_patiently(&window, "user:42", 1) == 4, "an empty one");
    redis_client_open(&client, server.socket);
    close_all();
}

static long connections_made(void)
{
    static const char script[] =
        "return string.match(redis.call('INFO', 'stats'), 'connections_received:(%d+)')";
    const struct weir__redis_arg args[] = { { "EVAL", 4 },
                                            { script, sizeof script - 1 },
                                            { "0", 1 } };
    struct weir__buf out;
    struct weir__redis_reply reply;
    weir__buf_init(&out, 0);
    weir__redis_put(&out, args, 3);
    redis_client_send(&client, &out);
    weir__buf_finish(&out);
    redis_client_take(&client, &reply);
    return atol(reply.bytes);
}

static void where_the_database_is_refused_nothing_is_counted(void)
{
    redis_server_start(&server);
    redis_client_open(&client, server.socket);
    redis_client_ask(&client, "ACL SETUSER default -select");
    long before = connections_made();
    logged[0] = '\0';
    weir__log_replace(note, NULL, WEIR_LOG_WARNING);
    store = open_store_of(server.address, NULL, 3);
    for (int i = 0; i < 100; i++) {
        CHECK(ask(&window, "user:42", 1) == -1, "it was counted somewhere");
        usleep(10000);
    }
    weir_store_destroy(store);
    weir__log_replace(NULL, NULL, WEIR_LOG_INFO);
    CHECK(strstr(logged, "NOPERM"), "the log says only: %s", logged);
    CHECK(strcmp(redis_client_ask(&client, "RANDOMKEY"), "") == 0,
          "database 0 has a key");
    long made = connections_made() - before;
    CHECK(made >= 2 && made <= 12, "%ld connections in a second", made);
    redis_client_ask(&client, "ACL SETUSER default +select");
    store = open_store_of(server.address, NULL, 3);
    CHECK(ask_patiently(&window, "user:42", 1) == 4, "with leave to");
    close_all();
}

static const struct test_case cases[] = {
    CASE(an_address_that_drops_connects_holds_up_nobody),
    CASE(a_server_that_closes_idle_connections_costs_no_answer),
    CASE(a_server_that_was_restarted_meanwhile_is_found_again),
    CASE(where_the_database_is_refused_nothing_is_counted),
};

int main(int argc, char **argv)
{
    crowd_limit_seconds(60);
    signal(SIGPIPE, SIG_DFL);
    kits_init();
    return run_cases(cases, sizeof cases / sizeof *cases, argc > 1 ? argv[1] : NULL);
}
