/* The scripts in Redis: what they are sent and what they answer. Pure: no socket, no
 * clock. The scripts themselves are lua/ *.lua, which say what their numbers mean. */
#ifndef WEIR_STORE_REDIS_SCRIPT_H
#define WEIR_STORE_REDIS_SCRIPT_H

#include <weir/store.h>

#include "base/buf.h"
#include "store/redis_reply.h"

enum weir__redis_script_id {
    WEIR__REDIS_DECIDE_ONE,
    WEIR__REDIS_DECIDE_SEVERAL,
    WEIR__REDIS_DECIDE_MIXED,
    WEIR__REDIS_REFUND,
    WEIR__REDIS_SCRIPTS
};

struct weir__redis_script {
    const char *text, *sha1;
};
extern const struct weir__redis_script weir__redis_scripts[WEIR__REDIS_SCRIPTS];

/* Nonces tell replies apart. They travel as doubles, so they stay below this. */
#define WEIR__REDIS_NONCE_MAX (UINT64_C(1) << 52)

/* Which script decides the ask: the quick ones know windows from the first request and
 * token buckets, the mixed one all. */
enum weir__redis_script_id weir__redis_script_for(const struct weir_store_ask *ask);

/* Appends the EVALSHA that decides the ask. A question of which a rule can never admit
 * its cost is sent so that it charges nothing. False where the buffer is full. */
bool weir__redis_put_decide(struct weir__buf *out,
                            const struct weir_store_ask *ask,
                            uint64_t nonce);

/* Reads the reply to it: fills ask's decision and receipts, whose mark[0] and mark[1] are
 * the counter right after the charge. False, and the ask is untouched, where it is no
 * answer to this question: of another form or nonce, numbers that no script of ours
 * makes, or a verdict that the arithmetic here doesn't share. */
bool weir__redis_read_decision(struct weir_store_ask *ask,
                               uint64_t nonce,
                               const struct weir__redis_reply *reply);

/* Appends the EVAL that gives back what the ask's receipts say was charged; at least one
 * must have been. The script goes with it whole: it is rare, and can't be unknown then.
 */
bool weir__redis_put_refund(struct weir__buf *out,
                            const struct weir_store_ask *ask,
                            uint64_t nonce);

/* Whether that was answered. */
bool weir__redis_is_refunded(const struct weir__redis_reply *reply, uint64_t nonce);

#endif
