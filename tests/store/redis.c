/* The Redis store as a program meets it, with a real redis-server that is stopped,
 * killed, flushed and paused under it.
 *
 *   store_redis [CASE]
 *
 * Each case is a fault from the field; its name says which. Without CASE all are run. */
#include "redis_kit.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "store/redis_script.h"

/* ---- the cases -----------------------------------------------------------------------
 */

static void a_key_that_lost_its_lifetime_is_repaired(void)
{
    struct rule_kit kit;
    kit_init(&kit, (struct weir_rule)WEIR_FIXED_WINDOW("w", 3, 300000));
    open_all();
    for (int left = 2; left >= 0; left--)
        CHECK(ask(&kit, "user:42", 1) == left, "left");
    redis_client_ask(&client, "PERSIST rate_limit:{user:42}:GET /t:w:w1");
    CHECK(ask(&kit, "user:42", 1) == -2, "over");
    usleep(310000);
    CHECK(ask(&kit, "user:42", 1) == 2, "a new window");
    close_all();
}

static void a_key_of_another_type_is_replaced(void)
{
    open_all();
    const struct weir__redis_arg args[] = { { "RPUSH", 5 },
                                            { "rate_limit:{user:42}:GET /t:w:w1", 32 },
                                            { "x", 1 } };
    struct weir__buf out;
    struct weir__redis_reply reply;
    weir__buf_init(&out, 0);
    weir__redis_put(&out, args, 3);
    redis_client_send(&client, &out);
    weir__buf_finish(&out);
    redis_client_take(&client, &reply);
    CHECK(ask(&window, "user:42", 1) == 4, "as if never seen");
    CHECK(ask(&window, "user:42", 1) == 3, "and counted from there");
    close_all();
}

static void a_refund_comes_back(void)
{
    struct weir_store_ask asked = { .items_len = 0 };
    open_all();
    ask_add(&asked, &window, "user:42", 2);
    ask_add(&asked, &bucket, "user:42", 20);
    CHECK(ask_wait(store, &asked) == WEIR_STORE_READY, "no answer");
    CHECK(ask(&bucket, "user:42", 1) == -2, "the bucket is empty");
    store->ops->refund(store->self, &asked);
    CHECK(ask(&window, "user:42", 0) == 5, "the window");
    CHECK(ask(&bucket, "user:42", 0) == 20, "the bucket");
    close_all();
}

static void a_silent_redis_is_waited_for_no_longer_than_said(void)
{
    open_all();
    redis_server_pause(&server);
    int64_t begin_us = weir__clock_now_us();
    for (int i = 0; i < 100; i++)
        CHECK(ask(&window, "user:42", 1) == -1, "no answer can come");
    int64_t took_us = weir__clock_now_us() - begin_us;
    CHECK(took_us < WEIR_SECONDS(1), "100 took %lld us", (long long)took_us);
    redis_server_resume(&server);
    CHECK(ask_patiently(&window, "user:43", 1) == 4, "back");
    /* What the late replies took has been given back. */
    CHECK(ask(&window, "user:42", 0) == 5, "undone");
    close_all();
}

static void a_long_silence_ends_the_connection_and_it_comes_back(void)
{
    open_all();
    redis_server_pause(&server);
    for (int i = 0; i < 25; i++) {
        ask(&window, "user:42", 1);
        usleep(100000);
    }
    redis_server_resume(&server);
    int64_t begin_us = weir__clock_now_us();
    CHECK(ask_patiently(&bucket, "user:43", 1) == 19, "back");
    CHECK(weir__clock_now_us() - begin_us < WEIR_SECONDS(2), "within 2 s");
    close_all();
}

static void it_starts_without_redis_and_finds_it_later(void)
{
    redis_server_start(&server);
    redis_server_kill(&server);
    store = open_store(server.address, NULL);
    for (int i = 0; i < 3; i++) {
        CHECK(ask(&window, "user:42", 1) == -1, "nobody is there");
        redis_server_again(&server);
        int64_t begin_us = weir__clock_now_us();
        CHECK(ask_patiently(&window, "user:42", 1) == 4, "counted there");
        CHECK(weir__clock_now_us() - begin_us < WEIR_SECONDS(2), "within 2 s");
        for (int left = 3; left >= 0; left--)
            CHECK(ask(&window, "user:42", 1) == left, "left");
        CHECK(ask(&window, "user:42", 1) == -2, "the sixth");
        redis_server_kill(&server);
        for (int n = 0; n < 20; n++)
            CHECK(ask(&window, "user:42", 1) == -1, "away");
    }
    redis_server_again(&server);
    redis_client_open(&client, server.socket);
    close_all();
}

static void an_empty_script_cache_is_filled_again(void)
{
    struct weir_store_ask asked = { .items_len = 0 };
    open_all();
    CHECK(ask(&window, "user:42", 1) == 4 && ask(&window, "user:42", 1) == 3, "2 used");
    redis_client_ask(&client, "SCRIPT FLUSH");
    CHECK(ask(&window, "user:42", 1) == 2, "after the flush");
    redis_client_ask(&client, "SCRIPT FLUSH");
    ask_add(&asked, &window, "user:42", 1);
    ask_add(&asked, &bucket, "user:42", 1);
    CHECK(ask_wait(store, &asked) == WEIR_STORE_READY, "no answer");
    CHECK(asked.decision.rules[0].remaining == 1, "after another");
    close_all();
}

static void a_connection_that_was_closed_while_idle_is_made_again(void)
{
    open_all();
    CHECK(ask(&window, "user:42", 1) == 4, "before");
    redis_client_ask(&client, "CLIENT KILL TYPE normal");
    CHECK(ask_patiently(&window, "user:42", 1) == 3, "the count goes on");
    close_all();
}

static void over_tcp_it_is_the_same(void)
{
    redis_server_start(&server);
    redis_client_open(&client, server.socket);
    store = open_store(server.tcp_address, NULL);
    CHECK(ask(&window, "user:42", 1) == 4, "before");
    redis_client_ask(&client, "CLIENT KILL TYPE normal");
    CHECK(ask_patiently(&window, "user:42", 1) == 3, "the count goes on");
    redis_server_pause(&server);
    CHECK(ask(&window, "user:42", 1) == -1, "silent");
    redis_server_resume(&server);
    CHECK(ask_patiently(&window, "user:42", 0) == 3, "and undone");
    close_all();
}

static void a_reconnect_remembers_password_and_database(void)
{
    char path[] = "/tmp/weir-redis-password-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, "s3 cret\n", 8) == 8, "password file");
    close(fd);
    redis_server_start_with(&server, "s3 cret");
    redis_client_open(&client, server.socket);
    const struct weir__redis_arg args[] = { { "AUTH", 4 }, { "s3 cret", 7 } };
    struct weir__buf out;
    struct weir__redis_reply reply;
    weir__buf_init(&out, 0);
    weir__redis_put(&out, args, 2);
    redis_client_send(&client, &out);
    weir__buf_finish(&out);
    redis_client_take(&client, &reply);
    store = open_store(server.address, path);
    CHECK(ask(&window, "user:42", 1) == 4 && ask(&window, "user:42", 1) == 3, "2 used");
    redis_client_ask(&client, "CLIENT KILL TYPE normal");
    CHECK(ask_patiently(&window, "user:42", 1) == 2, "the third");
    CHECK(strcmp(redis_client_ask(&client, "RANDOMKEY"), "") == 0, "database 0 is empty");
    redis_client_ask(&client, "SELECT 3");
    CHECK(strncmp(redis_client_ask(&client, "RANDOMKEY"), "rate_limit:{", 12) == 0,
          "database 3 is not");
    weir_store_destroy(store);
    store = open_store(server.address, NULL);
    CHECK(ask(&window, "user:42", 1) == -1, "without a password: no answer, no refusal");
    unlink(path);
    close_all();
}

static void an_error_is_no_refusal(void)
{
    open_all();
    redis_client_ask(&client, "CONFIG SET maxmemory 1");
    for (int i = 0; i < 10; i++)
        CHECK(ask(&window, "user:42", 1) == -1, "out of memory");
    usleep(300000);
    CHECK(ask(&window, "user:42", 1) == -1, "the probe writes as well");
    redis_client_ask(&client, "CONFIG SET maxmemory 0");
    CHECK(ask_patiently(&window, "user:42", 1) == 4, "back");
    close_all();
}

/* Each process makes a connection of its own. */
__attribute__((unused)) static void a_forked_child_has_its_own_connection(void)
{
    pid_t children[8];
    open_all();
    for (int i = 0; i < 8; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            char subject[32];
            snprintf(subject, sizeof subject, "user:%d", i);
            for (int n = 0; n < 500; n++)
                CHECK(ask_patiently(&window, subject, n < 5) == (n < 5 ? 4 - n : 0) ||
                          n >= 5,
                      "another's answer");
            _exit(0);
        }
    }
    CHECK(ask(&window, "parent", 1) == 4, "the parent's goes on");
    crowd_join(children, 8);
    CHECK(ask(&window, "parent", 1) == 3, "the parent's goes on");
    close_all();
}

/* ---- a server that is none -----------------------------------------------------------
 */

/* What a stub says to each script call, after a greeting that is all right. */
static const char *const hostile[] = {
    "-READONLY You can't write against a read only replica.\r\n",
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "-LOADING Redis is loading the dataset in memory\r\n",
    "-MISCONF Redis is configured to save RDB snapshots\r\n",
    "-NOAUTH Authentication required.\r\n",
    "-BUSY Redis is busy running a script.\r\n",
    "-NOSCRIPT No matching script. Please use EVAL.\r\n",
    "$-1\r\n",
    "*-1\r\n",
    ":0\r\n",
    "*0\r\n",
    "*1\r\n:1\r\n",
    "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
    "*1\r\n*1\r\n:1\r\n",
    "$0\r\n\r\n",
    "$8\r\n12345678\r\n",
    "$40\r\n0000000000000000000000000000000000000000\r\n",
    "+OK\r\n",
    "$1000000\r\n",
    "*2147483647\r\n",
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    "",  /* says nothing */
    NULL /* closes the connection */
};

static struct {
    int listener;
    atomic_int reply, asked;
    atomic_bool misnames; /* scripts */
} stub;

/* The scripts come in their order, all but the last. */
static void send_name(int fd, unsigned script)
{
    char text[64];
    const char *sha1 = atomic_load(&stub.misnames)
                           ? "1111111111111111111111111111111111111111"
                           : weir__redis_scripts[script].sha1;
    int len = snprintf(text, sizeof text, "$40\r\n%s\r\n", sha1);
    send(fd, text, (size_t)len, MSG_NOSIGNAL);
}

/* One command after the other, by the stars that begin them: scripts have none at the
 * beginning of a line. */
static void stub_serve(int fd)
{
    unsigned loads = 0;
    char bytes[16384];
    ssize_t len;
    while ((len = recv(fd, bytes, sizeof bytes - 1, 0)) > 0) {
        bytes[len] = '\0';
        for (const char *at = bytes; (at = strstr(at, "SCRIPT\r\n$4\r\nLOAD")); at++)
            send_name(fd, loads++ % WEIR__REDIS_REFUND);
        for (const char *at = bytes; (at = strstr(at, "EVALSHA")); at++) {
            atomic_fetch_add(&stub.asked, 1);
            const char *reply = hostile[atomic_load(&stub.reply)];
            if (!reply)
                return;
            send(fd, reply, strlen(reply), MSG_NOSIGNAL);
        }
    }
}

static void *stub_run(void *unused)
{
    int fd;
    while ((fd = accept(stub.listener, NULL, NULL)) >= 0) {
        stub_serve(fd);
        close(fd);
    }
    return unused;
}

static void stub_open(char *ret_path, size_t bytes)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    pthread_t thread;
    snprintf(ret_path, bytes, "/tmp/weir-redis-stub-%d", (int)getpid());
    snprintf(address.sun_path, sizeof address.sun_path, "%s", ret_path);
    unlink(ret_path);
    stub.listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(stub.listener, (struct sockaddr *)&address, sizeof address) == 0 &&
              listen(stub.listener, 64) == 0 &&
              pthread_create(&thread, NULL, stub_run, NULL) == 0,
          "stub");
    pthread_detach(thread);
}

static void what_is_no_decision_is_never_read_as_one(void)
{
    char path[64], address[80];
    stub_open(path, sizeof path);
    snprintf(address, sizeof address, "unix:%s", path);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        atomic_store(&stub.reply, (int)i);
        store = open_store(address, NULL);
        for (int n = 0; n < 3; n++)
            CHECK(ask(&window, "user:42", 1) == -1, "reply %zu was taken", i);
        weir_store_destroy(store);
    }
    CHECK(atomic_load(&stub.asked) >= (int)(sizeof hostile / sizeof *hostile),
          "not asked");
    shutdown(stub.listener, SHUT_RDWR);
    close(stub.listener);
    unlink(path);
}

static void scripts_of_another_name_are_not_called(void)
{
    char path[64], address[80];
    stub_open(path, sizeof path);
    snprintf(address, sizeof address, "unix:%s", path);
    atomic_store(&stub.misnames, true);
    atomic_store(&stub.asked, 0);
    store = open_store(address, NULL);
    for (int n = 0; n < 3; n++)
        CHECK(ask(&window, "user:42", 1) == -1, "an answer");
    CHECK(atomic_load(&stub.asked) == 0, "it was asked");
    weir_store_destroy(store);
    atomic_store(&stub.misnames, false);
    shutdown(stub.listener, SHUT_RDWR);
    close(stub.listener);
    unlink(path);
}

/* ---- under load ----------------------------------------------------------------------
 */

#define LOADERS 8

static struct rule_kit wide;
static atomic_bool stop_load;
static atomic_long load_asked, load_failed, load_charged;

/* Every caller sees its own count, one less each time. */
static void *load(void *arg)
{
    char subject[32];
    long left = (long)wide.rule.max;
    snprintf(subject, sizeof subject, "user:%d", (int)(intptr_t)arg);
    while (!atomic_load(&stop_load)) {
        struct weir_store_ask asked = { .items_len = 0 };
        ask_add(&asked, &wide, subject, 1);
        atomic_fetch_add(&load_asked, 1);
        if (ask_wait(store, &asked) != WEIR_STORE_READY) {
            atomic_fetch_add(&load_failed, 1);
            usleep(1000);
            continue;
        }
        atomic_fetch_add(&load_charged, 1);
        CHECK((long)asked.decision.rules[0].remaining == left - 1,
              "%s: %ld left after %ld",
              subject,
              (long)asked.decision.rules[0].remaining,
              left);
        left--;
    }
    return NULL;
}

static void run_load(pthread_t *threads)
{
    atomic_store(&stop_load, false);
    atomic_store(&load_asked, 0);
    atomic_store(&load_failed, 0);
    for (intptr_t i = 0; i < LOADERS; i++)
        CHECK(pthread_create(&threads[i], NULL, load, (void *)i) == 0, "thread");
}

static void end_load(pthread_t *threads)
{
    atomic_store(&stop_load, true);
    for (int i = 0; i < LOADERS; i++)
        pthread_join(threads[i], NULL);
}

static void script_flush_under_load_loses_and_doubles_nothing(void)
{
    pthread_t threads[LOADERS];
    struct weir_error error = { { 0 } };
    redis_server_start(&server);
    redis_client_open(&client, server.socket);
    store =
        weir_redis_create(&(struct weir_redis_options){ .address = server.address,
                                                        .timeout_us = WEIR_SECONDS(10) },
                          &error);
    CHECK(store, "%s", error.text);
    run_load(threads);
    for (int i = 0; i < 20; i++) {
        usleep(100000);
        redis_client_ask(&client, "SCRIPT FLUSH");
    }
    end_load(threads);
    printf("%ld asked\n", atomic_load(&load_asked));
    CHECK(atomic_load(&load_failed) == 0, "%ld failed", atomic_load(&load_failed));
    close_all();
}

/* ---- all of them ---------------------------------------------------------------------
 */

static const struct test_case cases[] = {
    CASE(a_key_that_lost_its_lifetime_is_repaired),
    CASE(a_key_of_another_type_is_replaced),
    CASE(a_refund_comes_back),
    CASE(a_silent_redis_is_waited_for_no_longer_than_said),
    CASE(a_long_silence_ends_the_connection_and_it_comes_back),
    CASE(it_starts_without_redis_and_finds_it_later),
    CASE(an_empty_script_cache_is_filled_again),
    CASE(a_connection_that_was_closed_while_idle_is_made_again),
    CASE(over_tcp_it_is_the_same),
    CASE(a_reconnect_remembers_password_and_database),
    CASE(an_error_is_no_refusal),
    CASE(what_is_no_decision_is_never_read_as_one),
    CASE(scripts_of_another_name_are_not_called),
#ifndef __SANITIZE_THREAD__ /* which starts no threads after a fork */
    CASE(a_forked_child_has_its_own_connection),
#endif
    CASE(script_flush_under_load_loses_and_doubles_nothing),
};

int main(int argc, char **argv)
{
    crowd_limit_seconds(120);
    signal(SIGPIPE, SIG_DFL); /* whoever raises it ends this program */
    kits_init();
    kit_init(&wide, (struct weir_rule)WEIR_FIXED_WINDOW("x", 1000000, WEIR_HOURS(1)));
    return run_cases(cases, sizeof cases / sizeof *cases, argc > 1 ? argv[1] : NULL);
}
