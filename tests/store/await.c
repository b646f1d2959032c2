/* A lone question to Redis is answered in the turn that has put it, and a Redis that is
 * slow holds up the thread for no more than that: a real redis-server, and a loop of two
 * threads as a worker has it. */
#include "crowd.h"

#include <pthread.h>

#include "store/redis_command.h"
#include "store/redis_connection.h"
#include "support/redis_server.h"

#define THREADS 2
#define TIMEOUT_US INT64_C(200000)
#define HELD_UP_US INT64_C(20000) /* a millisecond, and what a busy machine adds */

static struct redis_server server;
static struct redis_client client;
static struct weir__breaker breaker;
static struct weir__redis_settings settings;
static struct weir__redis_connection connection;
static struct weir__loop loop;
static struct rule_kit window;

/* What a turn is to ask, and what it has found at its end. */
static struct question {
    struct weir_store_ask ask;
    enum weir_store_result put;
    atomic_bool answered;
} questions[2];
static unsigned asked_len;
static struct weir__task task;
static bool answered_at_end;
static int64_t put_us, end_us;
static atomic_bool put, ended;

static void done(struct weir_store_ask *ask)
{
    atomic_store(&((struct question *)ask->arg)->answered, true);
}

static void put_questions(struct weir__task *unused)
{
    (void)unused;
    put_us = weir__clock_now_us();
    for (unsigned i = 0; i < asked_len; i++)
        questions[i].put = weir__redis_connection_ask(&connection, &questions[i].ask);
    atomic_store(&put, true);
}

/* Comes after the connection's own turn end. */
static void turn_ended(void *unused)
{
    (void)unused;
    if (!atomic_exchange(&put, false))
        return;
    answered_at_end = atomic_load(&questions[0].answered);
    end_us = weir__clock_now_us();
    atomic_store(&ended, true);
}

static void *run(void *index)
{
    weir__loop_enter(&loop, (unsigned)(uintptr_t)index);
    weir__loop_run(&loop);
    weir__loop_leave();
    return NULL;
}

static void wait_for(atomic_bool *flag)
{
    int64_t until_us = weir__clock_now_us() + WEIR_SECONDS(4);
    while (!atomic_load(flag)) {
        CHECK(weir__clock_now_us() < until_us, "not in 4 s");
        usleep(200);
    }
}

/* So many questions of one turn, mostly while the other thread is in the poller. Waits
 * for the answers. */
static void ask(unsigned len)
{
    asked_len = len;
    atomic_store(&ended, false);
    for (unsigned i = 0; i < len; i++) {
        struct question *question = &questions[i];
        memset(&question->ask, 0, sizeof question->ask);
        ask_add(&question->ask, &window, "user:42", 1);
        question->ask.done = done;
        question->ask.arg = question;
        atomic_store(&question->answered, false);
    }
    usleep(500);
    task.run = put_questions;
    weir__loop_soon(&loop, &task);
    wait_for(&ended);
    for (unsigned i = 0; i < len; i++)
        if (questions[i].put == WEIR_STORE_PENDING)
            wait_for(&questions[i].answered);
}

static long left(unsigned i)
{
    return questions[i].put == WEIR_STORE_PENDING &&
                   questions[i].ask.result == WEIR_STORE_READY
               ? (long)questions[i].ask.decision.rules[0].remaining
               : -1;
}

/* Of several, those that found another thread in the poller and an attentive Redis. */
static void a_lone_question_is_answered_in_its_turn(void)
{
    unsigned in_turn = 0;
    for (long n = 0; n < 50; n++) {
        ask(1);
        CHECK(left(0) == 999 - n, "%ld left after %ld", left(0), n);
        in_turn += answered_at_end;
        if (!answered_at_end)
            usleep(110000);
    }
    CHECK(in_turn >= 25, "%u of 50 in their turn", in_turn);
}

/* Where this thread has to stand back at the wrong moment, the other one has them
 * answered before the turn ends. */
static void two_questions_of_one_turn_go_to_the_poller(void)
{
    unsigned in_turn = 0;
    for (long n = 0; n < 20; n++) {
        ask(2);
        CHECK(left(0) == 949 - 2 * n && left(1) == 948 - 2 * n, "left");
        in_turn += answered_at_end;
    }
    CHECK(in_turn <= 10, "%u of 20 were waited for", in_turn);
}

/* For some milliseconds. The reply is still to be taken. */
static void keep_busy(void)
{
    static const char script[] = "for i = 1, 2000000 do end return 'x'";
    const struct weir__redis_arg args[] = { { "EVAL", 4 },
                                            { script, sizeof script - 1 },
                                            { "0", 1 } };
    struct weir__buf out;
    weir__buf_init(&out, 0);
    weir__redis_put(&out, args, 3);
    redis_client_send(&client, &out);
    weir__buf_finish(&out);
}

/* The poller takes over. */
static void a_reply_that_takes_longer_is_taken_when_it_comes(void)
{
    usleep(110000);
    ask(1);
    keep_busy();
    ask(1);
    int64_t took_us = weir__clock_now_us() - put_us;
    CHECK(left(0) == 908 && !answered_at_end, "%ld left", left(0));
    CHECK(end_us - put_us < HELD_UP_US,
          "held up for %lld us",
          (long long)(end_us - put_us));
    CHECK(took_us < TIMEOUT_US - 20000, "taken after %lld us", (long long)took_us);
    struct weir__redis_reply reply;
    redis_client_take(&client, &reply);
}

static void a_silent_redis_holds_the_thread_up_for_a_millisecond(void)
{
    ask(1);
    redis_server_pause(&server);
    ask(1);
    CHECK(!answered_at_end && left(0) == -1, "nobody could answer");
    CHECK(end_us - put_us < HELD_UP_US,
          "held up for %lld us",
          (long long)(end_us - put_us));
    int64_t now_us = weir__clock_now_us();
    CHECK(now_us - put_us > TIMEOUT_US / 2, "given up after %lld us", (long long)now_us);
    redis_server_resume(&server);
    do {
        usleep(5000);
        ask(1);
    } while (left(0) == -1);
    usleep(5000);
    ask(1);
    /* What the late reply took has been given back. */
    CHECK(left(0) == 905, "%ld left", left(0));
}

static void a_connection_closed_while_nobody_listens_is_made_again(void)
{
    usleep(110000);
    ask(1);
    ask(1);
    int64_t epoch = connection.epoch;
    redis_client_ask(&client, "CLIENT KILL TYPE normal");
    int64_t until_us = weir__clock_now_us() + WEIR_SECONDS(2);
    while (left(0) != 902) {
        CHECK(weir__clock_now_us() < until_us, "%ld left", left(0));
        ask(1);
    }
    CHECK(connection.epoch == epoch + 1, "connections made");
}

int main(void)
{
    struct weir_error error = { { 0 } };
    pthread_t threads[THREADS];
    crowd_limit_seconds(60);
    kit_init(&window, (struct weir_rule)WEIR_FIXED_WINDOW("w", 1000, WEIR_HOURS(1)));
    redis_server_start(&server);
    redis_client_open(&client, server.socket);
    settings = (struct weir__redis_settings){ .timeout_us = TIMEOUT_US,
                                              .silence_us = TIMEOUT_US,
                                              .breaker = &breaker };
    CHECK(weir__redis_address_parse(server.address, &settings.address, &error) &&
              weir__loop_init(&loop, THREADS, 1, &error) &&
              weir__redis_connection_init(&connection, &settings, &loop) &&
              weir__loop_turn_end(&loop, turn_ended, NULL),
          "%s",
          error.text);
    weir__redis_connection_start(&connection, WEIR_SECONDS(2));
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, run, (void *)i) == 0, "thread");

    a_lone_question_is_answered_in_its_turn();
    two_questions_of_one_turn_go_to_the_poller();
    a_reply_that_takes_longer_is_taken_when_it_comes();
    a_silent_redis_holds_the_thread_up_for_a_millisecond();
    a_connection_closed_while_nobody_listens_is_made_again();

    weir__loop_stop(&loop);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    weir__redis_connection_finish(&connection);
    weir__loop_finish(&loop);
    redis_client_close(&client);
    redis_server_finish(&server);
    return 0;
}
