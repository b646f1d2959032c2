/* Packs questions for the scripts and unpacks their answers, as little-endian doubles.
 *
 * A script says what it found and whether it admitted. All that a client is told is
 * worked out here from the counters as they were, by lib/limit, so that it can't differ
 * from what another store would say. Nothing here sends, waits or keeps anything. */
#include "store/redis_script.h"

#include <endian.h>
#include <string.h>

#include "limit/limit.h"
#include "limit/subject.h"
#include "limit/wide.h"

#include "store/redis_command.h"
#include "store/redis_scripts.h"

#define PREFIX "rate_limit:{"
#define PREFIX_LEN (sizeof PREFIX - 1)
#define TAIL_MAX 512
#define KEY_BYTES (PREFIX_LEN + WEIR__SUBJECT_BYTES + 2 + TAIL_MAX)

#define RULE_NUMBERS 7
#define REFUND_NUMBERS 8
#define NUMBERS_MAX (1 + REFUND_NUMBERS * WEIR_RULES_MAX)
#define EXACT_MAX 9007199254740992.0 /* 2^53 */
#define VALUE_MAX 4294967296.0       /* 2^32 */

enum { KIND_WINDOW = 1, KIND_BUCKET = 2, KIND_COUNTER = 3 };

const struct weir__redis_script weir__redis_scripts[WEIR__REDIS_SCRIPTS] = {
    [WEIR__REDIS_DECIDE_ONE] = { DECIDE_ONE_LUA, DECIDE_ONE_SHA1 },
    [WEIR__REDIS_DECIDE_SEVERAL] = { DECIDE_SEVERAL_LUA, DECIDE_SEVERAL_SHA1 },
    [WEIR__REDIS_DECIDE_MIXED] = { DECIDE_MIXED_LUA, DECIDE_MIXED_SHA1 },
    [WEIR__REDIS_REFUND] = { REFUND_LUA, REFUND_SHA1 },
};

/* A command while it is put together. */
struct call {
    unsigned keys_len, numbers_len;
    size_t key_lens[WEIR_RULES_MAX];
    char keys[WEIR_RULES_MAX][KEY_BYTES];
    uint64_t numbers[NUMBERS_MAX]; /* doubles as they travel */
};

/* Microseconds and N-ths of one. */
struct span {
    int64_t us, part;
};

static void add_number(struct call *call, int64_t number)
{
    double value = (double)number;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    call->numbers[call->numbers_len++] = htole64(bits);
}

/* rate_limit:{user:42}:GET /api/weather/:city:minute:w1 */
static bool add_key(struct call *call, const struct weir_store_item *item)
{
    size_t tail_len = strlen(item->tail);
    if (item->subject_len >= WEIR__SUBJECT_BYTES || tail_len > TAIL_MAX)
        return false;
    char *key = call->keys[call->keys_len];
    size_t len = PREFIX_LEN;
    memcpy(key, PREFIX, len);
    memcpy(key + len, item->subject, item->subject_len);
    len += item->subject_len;
    memcpy(key + len, "}:", 2);
    len += 2;
    memcpy(key + len, item->tail, tail_len);
    call->key_lens[call->keys_len++] = len + tail_len;
    return true;
}

/* The time in which the bucket gets so many units. */
static struct span span_of(const struct weir__limit *limit, int64_t units)
{
    weir__wide fine = (weir__wide)units * limit->period_us;
    return (struct span){ (int64_t)(fine / limit->units),
                          (int64_t)(fine % limit->units) };
}

static void add_spans(struct call *call, const struct weir__limit *limit, int64_t units)
{
    struct span asked = span_of(limit, units), fill = span_of(limit, limit->max);
    add_number(call, asked.us);
    add_number(call, asked.part);
    add_number(call, fill.us);
    add_number(call, fill.part);
    add_number(call, limit->units);
}

/* ---- asking ------------------------------------------------------------------------ */

static bool is_never(const struct weir_store_item *item)
{
    const struct weir__limit *limit = item->compiled;
    return (item->cost > 0 ? item->cost : 1) > limit->max;
}

static bool has_never(const struct weir_store_ask *ask)
{
    for (unsigned i = 0; i < ask->items_len; i++)
        if (is_never(&ask->items[i]))
            return true;
    return false;
}

static int kind_of(const struct weir__limit *limit)
{
    switch (limit->algorithm) {
    case WEIR_ALGORITHM_TOKEN_BUCKET:
        return KIND_BUCKET;
    case WEIR_ALGORITHM_SLIDING_COUNTER:
        return KIND_COUNTER;
    default:
        return KIND_WINDOW;
    }
}

static void add_rule(struct call *call, const struct weir_store_item *item, bool charge)
{
    const struct weir__limit *limit = item->compiled;
    int64_t units = item->cost > 0 && !is_never(item) ? item->cost : 1;
    int kind = kind_of(limit);
    add_number(call, kind);
    add_number(call, charge && item->cost > 0);
    if (kind == KIND_BUCKET) {
        add_spans(call, limit, units);
        return;
    }
    add_number(call, limit->max);
    add_number(call, limit->window_us);
    add_number(call, units);
    add_number(call, (int64_t)limit->anchor);
    add_number(call, 0);
}

/* The words of EVALSHA or EVAL in their order; the format only where the script takes
 * one. */
static bool put_call(struct weir__buf *out,
                     const char *command,
                     const char *script,
                     const struct call *call,
                     bool with_format)
{
    char format[NUMBERS_MAX + 1] = "<";
    char keys_len[2] = { (char)('0' + call->keys_len), '\0' };
    struct weir__redis_arg args[5 + WEIR_RULES_MAX];
    unsigned len = 0;
    args[len++] = (struct weir__redis_arg){ command, strlen(command) };
    args[len++] = (struct weir__redis_arg){ script, strlen(script) };
    args[len++] = (struct weir__redis_arg){ keys_len, 1 };
    for (unsigned i = 0; i < call->keys_len; i++)
        args[len++] = (struct weir__redis_arg){ call->keys[i], call->key_lens[i] };
    if (with_format) {
        memset(format + 1, 'd', call->numbers_len);
        args[len++] = (struct weir__redis_arg){ format, 1 + (size_t)call->numbers_len };
    }
    args[len++] = (struct weir__redis_arg){ (const char *)call->numbers,
                                            call->numbers_len * sizeof *call->numbers };
    return weir__redis_put(out, args, len);
}

enum weir__redis_script_id weir__redis_script_for(const struct weir_store_ask *ask)
{
    for (unsigned i = 0; i < ask->items_len; i++) {
        const struct weir__limit *limit = ask->items[i].compiled;
        if (limit->anchor != WEIR_ANCHOR_REQUEST || kind_of(limit) > KIND_BUCKET)
            return WEIR__REDIS_DECIDE_MIXED;
    }
    return ask->items_len > 1 ? WEIR__REDIS_DECIDE_SEVERAL : WEIR__REDIS_DECIDE_ONE;
}

bool weir__redis_put_decide(struct weir__buf *out,
                            const struct weir_store_ask *ask,
                            uint64_t nonce)
{
    struct call call;
    bool charge = !has_never(ask);
    enum weir__redis_script_id script = weir__redis_script_for(ask);
    call.keys_len = call.numbers_len = 0;
    add_number(&call, (int64_t)nonce);
    for (unsigned i = 0; i < ask->items_len; i++) {
        if (!add_key(&call, &ask->items[i]))
            return false;
        add_rule(&call, &ask->items[i], charge);
    }
    return put_call(out,
                    "EVALSHA",
                    weir__redis_scripts[script].sha1,
                    &call,
                    script != WEIR__REDIS_DECIDE_ONE);
}

/* ---- the answer -------------------------------------------------------------------- */

/* The doubles of a reply of exactly len of them, each a whole number that a double holds
 * exactly. */
static bool
read_numbers(const struct weir__redis_reply *reply, unsigned len, int64_t ret_numbers[])
{
    if (reply->kind != WEIR__REDIS_STRING || reply->len != len * sizeof(uint64_t))
        return false;
    for (unsigned i = 0; i < len; i++) {
        uint64_t bits;
        double value;
        memcpy(&bits, reply->bytes + i * sizeof bits, sizeof bits);
        bits = le64toh(bits);
        memcpy(&value, &bits, sizeof value);
        if (!(value >= 0 && value < EXACT_MAX) || value != (double)(int64_t)value)
            return false;
        ret_numbers[i] = (int64_t)value;
    }
    return true;
}

/* In a refused request a rule that would have admitted says what it has left, uncharged.
 */
static void tell_uncharged(const struct weir_store_item *item,
                           struct weir__limit_state state,
                           int64_t now_us,
                           struct weir_rule_answer *ret_answer)
{
    struct weir__limit_state same;
    weir__limit_decide(item->compiled, state, 0, now_us, &same, ret_answer);
    ret_answer->allowed = true;
    ret_answer->never = false;
    ret_answer->retry_us = 0;
    ret_answer->cost = item->cost;
}

bool weir__redis_read_decision(struct weir_store_ask *ask,
                               uint64_t nonce,
                               const struct weir__redis_reply *reply)
{
    int64_t numbers[3 + 2 * WEIR_RULES_MAX] = { 0 };
    struct weir__limit_state old[WEIR_RULES_MAX], new[WEIR_RULES_MAX];
    struct weir_decision decision = { .allowed = true, .source = WEIR_SOURCE_REDIS };
    if (!read_numbers(reply, 3 + 2 * ask->items_len, numbers) ||
        numbers[0] != (int64_t)nonce || numbers[1] == 0)
        return false;
    int64_t now_us = numbers[1];
    decision.rules_len = ask->items_len;
    for (unsigned i = 0; i < ask->items_len; i++) {
        struct weir_rule_answer *answer = &decision.rules[i];
        old[i] = (struct weir__limit_state){ numbers[3 + 2 * i], numbers[4 + 2 * i] };
        if ((double)old[i].value >= VALUE_MAX)
            return false;
        const struct weir_store_item *item = &ask->items[i];
        weir__limit_decide(item->compiled, old[i], item->cost, now_us, &new[i], answer);
        decision.allowed = decision.allowed && answer->allowed;
    }
    if (!has_never(ask) && decision.allowed != (numbers[2] == 1))
        return false;

    for (unsigned i = 0; i < ask->items_len; i++) {
        const struct weir_store_item *item = &ask->items[i];
        if (!decision.allowed && decision.rules[i].allowed)
            tell_uncharged(item, old[i], now_us, &decision.rules[i]);
        decision.rules[i].rule = item->rule;
        ask->receipts[i] = (struct weir_receipt){
            .charged = decision.allowed && item->cost > 0,
            .cost = item->cost,
            .mark = { new[i].time_us, new[i].value },
        };
    }
    ask->decision = decision;
    return true;
}

/* ---- giving back ------------------------------------------------------------------- */

bool weir__redis_put_refund(struct weir__buf *out,
                            const struct weir_store_ask *ask,
                            uint64_t nonce)
{
    struct call call;
    call.keys_len = call.numbers_len = 0;
    add_number(&call, (int64_t)nonce);
    for (unsigned i = 0; i < ask->items_len; i++) {
        const struct weir_receipt *receipt = &ask->receipts[i];
        const struct weir__limit *limit = ask->items[i].compiled;
        if (!receipt->charged)
            continue;
        if (!add_key(&call, &ask->items[i]))
            return false;
        int kind = kind_of(limit);
        add_number(&call, kind);
        add_number(&call, receipt->mark[0]);
        add_number(&call, receipt->mark[1]);
        if (kind == KIND_BUCKET) {
            add_spans(&call, limit, receipt->cost);
            continue;
        }
        add_number(&call, receipt->cost);
        add_number(&call, limit->window_us);
        for (int unused = 0; unused < 3; unused++)
            add_number(&call, 0);
    }
    return put_call(out, "EVAL", REFUND_LUA, &call, true);
}

bool weir__redis_is_refunded(const struct weir__redis_reply *reply, uint64_t nonce)
{
    int64_t number;
    return read_numbers(reply, 1, &number) && number == (int64_t)nonce;
}
