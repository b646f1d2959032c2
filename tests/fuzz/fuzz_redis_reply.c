/* What a Redis may send: whatever the bytes, cut however, what waits stays bounded, a
 * reply's bytes end within its struct, and a stream that broke stays broken. A string may
 * then be read as a decision of one rule. The first byte picks how it is cut. */
#include "fuzz.h"

#include "store/redis_script.h"
#include "support/asks.h"

static struct weir__redis_reply reply;

static void must_be_whole(void)
{
    MUST(reply.kind <= WEIR__REDIS_OTHER);
    MUST(reply.len <= WEIR__REDIS_STRING_MAX);
    MUST(reply.bytes[reply.len] == '\0');
    weir__redis_is_error(&reply, "NOSCRIPT");
}

static void may_be_a_decision(void)
{
    static struct rule_kit kit;
    struct weir_store_ask ask = { .items_len = 0 };
    uint64_t nonce = 0;
    if (!kit.rule.name)
        kit_init(&kit, (struct weir_rule)WEIR_TOKEN_BUCKET("b", 20, 7, 60000000));
    ask_add(&ask, &kit, "user:42", 1);
    if (!weir__redis_read_decision(&ask, nonce, &reply))
        return;
    MUST(ask.decision.rules[0].remaining >= 0 && ask.decision.rules[0].remaining <= 20);
    MUST(ask.decision.allowed || ask.decision.rules[0].retry_us > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t cut = (size_t)data[0] + 1;
    struct weir__redis_replies *replies = weir__redis_replies_create();
    enum weir__redis_next next = WEIR__REDIS_MORE;
    MUST(replies);
    for (size_t at = 1; at < size && next != WEIR__REDIS_BROKEN; at += cut) {
        size_t len = size - at < cut ? size - at : cut;
        unsigned char *piece = fuzz_copy(data + at, len);
        weir__redis_replies_feed(replies, piece, len);
        free(piece);
        while ((next = weir__redis_replies_next(replies, &reply)) == WEIR__REDIS_READY) {
            must_be_whole();
            may_be_a_decision();
        }
    }
    if (next == WEIR__REDIS_BROKEN) {
        MUST(!weir__redis_replies_feed(replies, "+OK\r\n", 5));
        MUST(weir__redis_replies_next(replies, &reply) == WEIR__REDIS_BROKEN);
    }
    weir__redis_replies_destroy(replies);
    return 0;
}
