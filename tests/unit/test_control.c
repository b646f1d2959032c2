#include <criterion/criterion.h>

#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "process/control.h"

static int pair[2];
static unsigned logged;

static void count_line(void *arg, enum weir_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
    logged++;
}

static void open_pair(void)
{
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    weir__log_replace(count_line, NULL, WEIR_LOG_DEBUG);
}

static void close_pair(void)
{
    close(pair[0]);
    close(pair[1]);
}

TestSuite(control, .init = open_pair, .fini = close_pair);

Test(control, messages_arrive_whole_and_in_order)
{
    struct weir__control_message got;
    for (uint64_t i = 1; i <= 3; i++)
        cr_assert(
            weir__control_send(pair[0],
                               &(struct weir__control_message){
                                   .type = WEIR__CONTROL_STATS,
                                   .number = i,
                                   .stats = { .requests = i * 10, .refused = i } }));
    for (uint64_t i = 1; i <= 3; i++) {
        cr_assert_eq(weir__control_receive(pair[1], &got), WEIR__CONTROL_MESSAGE);
        cr_expect_eq(got.type, WEIR__CONTROL_STATS);
        cr_expect_eq(got.number, i);
        cr_expect_eq(got.stats.requests, i * 10);
        cr_expect_eq(got.stats.refused, i);
    }
    cr_expect_eq(weir__control_receive(pair[1], &got), WEIR__CONTROL_NOTHING);
}

Test(control, the_end_of_the_peer_is_told_behind_its_last_words)
{
    struct weir__control_message got;
    cr_assert(weir__control_send(
        pair[0], &(struct weir__control_message){ .type = WEIR__CONTROL_DRAINING }));
    close(pair[0]);
    cr_expect_eq(weir__control_receive(pair[1], &got), WEIR__CONTROL_MESSAGE);
    cr_expect_eq(weir__control_receive(pair[1], &got), WEIR__CONTROL_CLOSED);
}

Test(control, sending_to_nobody_fails_without_a_signal)
{
    close(pair[1]);
    cr_expect_not(weir__control_send(
        pair[0], &(struct weir__control_message){ .type = WEIR__CONTROL_READY }));
}

Test(control, a_peer_that_does_not_read_blocks_nobody)
{
    unsigned sent = 0;
    while (sent < 100000 &&
           weir__control_send(
               pair[0], &(struct weir__control_message){ .type = WEIR__CONTROL_READY }))
        sent++;
    cr_expect_gt(sent, 10);
    cr_expect_lt(sent, 100000);
}

Test(control, a_packet_of_another_size_is_skipped_and_logged)
{
    struct weir__control_message got;
    static const char large[2 * sizeof got];
    cr_assert_eq(send(pair[0], "x", 1, 0), 1);
    cr_assert_eq(send(pair[0], large, sizeof large, 0), (ssize_t)sizeof large);
    cr_assert(weir__control_send(
        pair[0], &(struct weir__control_message){ .type = WEIR__CONTROL_READY }));
    cr_expect_eq(weir__control_receive(pair[1], &got), WEIR__CONTROL_MESSAGE);
    cr_expect_eq(got.type, WEIR__CONTROL_READY);
    cr_expect_eq(logged, 2);
}
