/* What is sent and what a reply to it means. Sockets, timers and the breaker are
 * redis_connection.c's; nothing here calls done(), since the lock is held. */
#include "store/redis_flight.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "limit/limit.h"
#include "store/redis_command.h"
#include "store/redis_script.h"

#define REPLAYS_MAX 2U

static struct weir__log_kind refused_kind, greeting_kind;

void weir__redis_answers_tell(struct weir__redis_answers *answers)
{
    struct weir_store_ask *ask = answers->first;
    answers->first = answers->last = NULL;
    while (ask) {
        struct weir_store_ask *next = ask->next;
        ask->done(ask);
        ask = next;
    }
}

static void answer(struct weir__redis_answers *answers,
                   struct weir_store_ask *ask,
                   enum weir_store_result result)
{
    ask->result = result;
    ask->next = NULL;
    if (answers->last)
        answers->last->next = ask;
    else
        answers->first = ask;
    answers->last = ask;
}

/* ---- the ring ---------------------------------------------------------------------- */

static struct weir__redis_flight *at(const struct weir__redis_connection *connection,
                                     unsigned number)
{
    return &connection->flights[(connection->first + number) % WEIR__REDIS_FLIGHTS_MAX];
}

struct weir__redis_flight *weir__redis_push(struct weir__redis_connection *connection,
                                            enum weir__redis_purpose purpose,
                                            int64_t now_us)
{
    if (connection->flights_len == WEIR__REDIS_FLIGHTS_MAX)
        return NULL;
    struct weir__redis_flight *flight = at(connection, connection->flights_len++);
    *flight = (struct weir__redis_flight){ .purpose = purpose,
                                           .loads = connection->loads,
                                           .nonce = connection->nonce,
                                           .put_us = now_us };
    connection->nonce = (connection->nonce + 1) % WEIR__REDIS_NONCE_MAX;
    return flight;
}

/* ---- commands ---------------------------------------------------------------------- */

struct weir__redis_flight *weir__redis_put_ask(struct weir__redis_connection *connection,
                                               struct weir_store_ask *ask,
                                               enum weir__redis_purpose purpose,
                                               int64_t deadline_us,
                                               int64_t now_us)
{
    if (connection->flights_len == WEIR__REDIS_FLIGHTS_MAX ||
        !weir__redis_put_decide(&connection->out, ask, connection->nonce))
        return NULL;
    struct weir__redis_flight *flight = weir__redis_push(connection, purpose, now_us);
    flight->ask = ask;
    flight->deadline_us = deadline_us;
    return flight;
}

static bool put_loads(struct weir__redis_connection *connection, int64_t now_us)
{
    connection->loads++;
    for (int i = WEIR__REDIS_DECIDE_ONE; i <= WEIR__REDIS_DECIDE_MIXED; i++) {
        const char *text = weir__redis_scripts[i].text;
        struct weir__redis_flight *flight;
        if (!weir__redis_put_load(&connection->out, text, strlen(text)) ||
            !(flight = weir__redis_push(connection, WEIR__REDIS_FOR_LOAD, now_us)))
            return false;
        flight->script = (unsigned)i;
    }
    return true;
}

bool weir__redis_put_greeting(struct weir__redis_connection *connection, int64_t now_us)
{
    const struct weir__redis_settings *settings = connection->settings;
    if (settings->password &&
        (!weir__redis_put_auth(&connection->out, settings->password) ||
         !weir__redis_push(connection, WEIR__REDIS_FOR_GREETING, now_us)))
        return false;
    if (settings->database > 0 &&
        (!weir__redis_put_select(&connection->out, settings->database) ||
         !weir__redis_push(connection, WEIR__REDIS_FOR_GREETING, now_us)))
        return false;
    if (!put_loads(connection, now_us))
        return false;
    connection->greetings = connection->flights_len;
    return true;
}

void weir__redis_put_back(struct weir__redis_connection *connection,
                          const struct weir_store_ask *ask,
                          int64_t now_us)
{
    bool charged = false;
    for (unsigned i = 0; i < ask->items_len; i++)
        charged = charged || (ask->receipts[i].charged &&
                              ask->receipts[i].mark[2] == connection->epoch);
    if (charged && connection->flights_len < WEIR__REDIS_FLIGHTS_MAX &&
        weir__redis_put_refund(&connection->out, ask, connection->nonce))
        weir__redis_push(connection, WEIR__REDIS_FOR_REFUND, now_us);
}

/* ---- questions that are late ------------------------------------------------------- */

static char *copy_text(char **at, const char *text, size_t len)
{
    char *copy = *at;
    memcpy(copy, text, len);
    copy[len] = '\0';
    *at += len + 1;
    return copy;
}

/* All of a question that its refund needs: whoever asked may be gone by then, with the
 * rules. NULL when memory is short; the charge then stays. */
static struct weir_store_ask *copy_late(const struct weir_store_ask *ask)
{
    size_t texts = 0;
    for (unsigned i = 0; i < ask->items_len; i++)
        texts += ask->items[i].subject_len + strlen(ask->items[i].tail) + 2;
    size_t limits = ask->items_len * sizeof(struct weir__limit);
    struct weir_store_ask *late = malloc(sizeof *late + limits + texts);
    if (!late)
        return NULL;
    struct weir__limit *limit = (struct weir__limit *)(late + 1);
    char *at_text = (char *)(limit + ask->items_len);
    memset(late, 0, sizeof *late);
    late->items_len = ask->items_len;
    for (unsigned i = 0; i < ask->items_len; i++) {
        const struct weir_store_item *item = &ask->items[i];
        limit[i] = *(const struct weir__limit *)item->compiled;
        late->items[i] = (struct weir_store_item){
            .compiled = &limit[i],
            .subject = copy_text(&at_text, item->subject, item->subject_len),
            .subject_len = item->subject_len,
            .tail = copy_text(&at_text, item->tail, strlen(item->tail)),
            .cost = item->cost,
        };
    }
    return late;
}

unsigned weir__redis_expire(struct weir__redis_connection *connection,
                            int64_t now_us,
                            struct weir__redis_answers *answers,
                            bool *ret_probe)
{
    unsigned expired = 0;
    for (unsigned i = 0; i < connection->flights_len; i++) {
        struct weir__redis_flight *flight = at(connection, i);
        if (!flight->ask || flight->deadline_us > now_us)
            continue;
        if (flight->purpose == WEIR__REDIS_FOR_PROBE) {
            *ret_probe = true;
        } else {
            flight->late = copy_late(flight->ask);
            answer(answers, flight->ask, WEIR_STORE_UNAVAILABLE);
            expired++;
        }
        flight->ask = NULL;
    }
    return expired;
}

int64_t weir__redis_next_deadline_us(const struct weir__redis_connection *connection)
{
    int64_t next_us = INT64_MAX;
    for (unsigned i = 0; i < connection->flights_len; i++) {
        const struct weir__redis_flight *flight = at(connection, i);
        if (flight->ask && flight->deadline_us < next_us)
            next_us = flight->deadline_us;
    }
    return next_us;
}

void weir__redis_give_up(struct weir__redis_connection *connection,
                         struct weir__redis_answers *answers)
{
    for (unsigned i = 0; i < connection->flights_len; i++) {
        struct weir__redis_flight *flight = at(connection, i);
        if (flight->ask && flight->purpose == WEIR__REDIS_FOR_ASK)
            answer(answers, flight->ask, WEIR_STORE_UNAVAILABLE);
        free(flight->late);
    }
    connection->first = connection->flights_len = 0;
}

/* ---- replies ----------------------------------------------------------------------- */

static enum weir__redis_effect greeted(struct weir__redis_connection *connection,
                                       const struct weir__redis_flight *flight,
                                       const struct weir__redis_reply *reply)
{
    bool load = flight->purpose == WEIR__REDIS_FOR_LOAD;
    const char *sha1 = weir__redis_scripts[flight->script].sha1;
    bool good = load
                    ? reply->kind == WEIR__REDIS_STRING && strcmp(reply->bytes, sha1) == 0
                    : reply->kind == WEIR__REDIS_STATUS;
    if (!good) {
        weir__log_limited(&greeting_kind,
                          WEIR_LOG_ERROR,
                          "redis: the greeting was refused: %.200s",
                          reply->kind == WEIR__REDIS_ERROR ? reply->bytes
                          : load ? "a script has another name there than here"
                                 : "no error");
        return WEIR__REDIS_IS_BROKEN;
    }
    if (connection->greetings == 0 || --connection->greetings > 0)
        return WEIR__REDIS_GOES_ON;
    return WEIR__REDIS_IS_UP;
}

/* The script was unknown, so nothing has run. The first who hears of it loads the
 * scripts; each that was sent before is sent once more, behind them. */
static bool replay(struct weir__redis_connection *connection,
                   const struct weir__redis_flight *flight,
                   int64_t now_us)
{
    if (!flight->ask || flight->replays == REPLAYS_MAX || flight->deadline_us <= now_us)
        return false;
    if (flight->loads == connection->loads && !put_loads(connection, now_us))
        return false;
    struct weir__redis_flight *again = weir__redis_put_ask(
        connection, flight->ask, flight->purpose, flight->deadline_us, now_us);
    if (!again)
        return false;
    again->replays = flight->replays + 1;
    return true;
}

/* A charge that nobody waits for any more goes back. */
static void undo(struct weir__redis_connection *connection,
                 const struct weir__redis_flight *flight,
                 const struct weir__redis_reply *reply,
                 int64_t now_us)
{
    struct weir_store_ask *late = flight->late;
    if (late && weir__redis_read_decision(late, flight->nonce, reply)) {
        for (unsigned i = 0; i < late->items_len; i++)
            late->receipts[i].mark[2] = connection->epoch;
        weir__redis_put_back(connection, late, now_us);
    }
    free(late);
}

static enum weir__redis_effect asked(struct weir__redis_connection *connection,
                                     const struct weir__redis_flight *flight,
                                     const struct weir__redis_reply *reply,
                                     int64_t now_us,
                                     struct weir__redis_answers *answers)
{
    struct weir_store_ask *ask = flight->ask;
    bool probe = flight->purpose == WEIR__REDIS_FOR_PROBE;
    if (weir__redis_is_error(reply, "NOSCRIPT") && replay(connection, flight, now_us))
        return WEIR__REDIS_GOES_ON;
    if (!ask) {
        undo(connection, flight, reply, now_us);
        return WEIR__REDIS_GOES_ON;
    }
    bool good = weir__redis_read_decision(ask, flight->nonce, reply);
    for (unsigned i = 0; good && i < ask->items_len; i++)
        ask->receipts[i].mark[2] = connection->epoch;
    if (!probe)
        answer(answers, ask, good ? WEIR_STORE_READY : WEIR_STORE_UNAVAILABLE);
    if (good)
        return probe ? WEIR__REDIS_PROBED_GOOD : WEIR__REDIS_GOES_ON;
    bool error = reply->kind == WEIR__REDIS_ERROR;
    weir__log_limited(&refused_kind,
                      WEIR_LOG_ERROR,
                      "redis: a decision was answered with %s%.200s",
                      error ? "the error " : "what is none of ours",
                      error ? reply->bytes : "");
    if (!error)
        return WEIR__REDIS_IS_BROKEN;
    return probe ? WEIR__REDIS_PROBED_BAD : WEIR__REDIS_FAILED;
}

enum weir__redis_effect weir__redis_take(struct weir__redis_connection *connection,
                                         const struct weir__redis_reply *reply,
                                         int64_t now_us,
                                         struct weir__redis_answers *answers)
{
    if (connection->flights_len == 0)
        return WEIR__REDIS_IS_BROKEN;
    struct weir__redis_flight flight = *at(connection, 0);
    connection->first = (connection->first + 1) % WEIR__REDIS_FLIGHTS_MAX;
    connection->flights_len--;
    switch (flight.purpose) {
    case WEIR__REDIS_FOR_GREETING:
    case WEIR__REDIS_FOR_LOAD:
        return greeted(connection, &flight, reply);
    case WEIR__REDIS_FOR_REFUND:
        return weir__redis_is_refunded(reply, flight.nonce) ||
                       reply->kind == WEIR__REDIS_ERROR
                   ? WEIR__REDIS_GOES_ON
                   : WEIR__REDIS_IS_BROKEN;
    case WEIR__REDIS_FOR_ASK:
    case WEIR__REDIS_FOR_PROBE:
        break;
    }
    return asked(connection, &flight, reply, now_us, answers);
}
