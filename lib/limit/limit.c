/* The arithmetic's front: sends each call to its algorithm and deals with what all of
 * them share, costs that no wait will help. No I/O, no store, no clock. */
#include "limit/limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void weir__limit_decide(const struct weir__limit *limit,
                        struct weir__limit_state state,
                        int64_t cost,
                        int64_t now_us,
                        struct weir__limit_state *ret_state,
                        struct weir_rule_answer *ret_answer)
{
    bool never = (cost > 0 ? cost : 1) > limit->max;
    int64_t decided_cost = never ? 0 : cost;
    switch (limit->algorithm) {
    case WEIR_ALGORITHM_TOKEN_BUCKET:
        weir__token_bucket_decide(
            limit, state, decided_cost, now_us, ret_state, ret_answer);
        break;
    case WEIR_ALGORITHM_SLIDING_COUNTER:
        weir__sliding_counter_decide(
            limit, state, decided_cost, now_us, ret_state, ret_answer);
        break;
    default:
        weir__fixed_window_decide(
            limit, state, decided_cost, now_us, ret_state, ret_answer);
    }
    if (never) {
        ret_answer->allowed = false;
        ret_answer->never = true;
        ret_answer->cost = cost;
        ret_answer->retry_us = 0;
    }
}

struct weir__limit_state weir__limit_refund(const struct weir__limit *limit,
                                            struct weir__limit_state state,
                                            int64_t cost,
                                            struct weir__limit_state charged,
                                            int64_t now_us)
{
    switch (limit->algorithm) {
    case WEIR_ALGORITHM_TOKEN_BUCKET:
        return weir__token_bucket_refund(limit, state, cost, charged, now_us);
    case WEIR_ALGORITHM_SLIDING_COUNTER:
        return weir__sliding_counter_refund(limit, state, cost, charged, now_us);
    default:
        return weir__fixed_window_refund(limit, state, cost, charged, now_us);
    }
}

unsigned weir__limit_level(const struct weir__limit *limit,
                           struct weir__limit_state state,
                           int64_t now_us)
{
    switch (limit->algorithm) {
    case WEIR_ALGORITHM_TOKEN_BUCKET:
        return weir__token_bucket_level(limit, state, now_us);
    case WEIR_ALGORITHM_SLIDING_COUNTER:
        return weir__sliding_counter_level(limit, state, now_us);
    default:
        return weir__fixed_window_level(limit, state, now_us);
    }
}

/* A length in its largest whole unit. */
static void print_tag(const char *tag, int64_t us, char ret_text[WEIR__TAG_BYTES])
{
    const char *unit = us % 1000000 == 0 ? "s" : us % 1000 == 0 ? "ms" : "us";
    int64_t number = us % 1000000 == 0 ? us / 1000000 : us % 1000 == 0 ? us / 1000 : us;
    snprintf(ret_text, WEIR__TAG_BYTES, "%s-%" PRId64 "%s", tag, number, unit);
}

const char *weir__limit_tag(const struct weir_rule *rule, char ret_text[WEIR__TAG_BYTES])
{
    ret_text[0] = '\0';
    switch (rule->algorithm) {
    case WEIR_ALGORITHM_FIXED_WINDOW:
        memcpy(ret_text, rule->anchor == WEIR_ANCHOR_REQUEST ? "w1" : "a1", 3);
        break;
    case WEIR_ALGORITHM_TOKEN_BUCKET:
        memcpy(ret_text, "b1", 3);
        break;
    case WEIR_ALGORITHM_SLIDING_COUNTER:
        print_tag("c1", rule->window_us, ret_text);
        break;
    case WEIR_ALGORITHM_NONE:
    case WEIR_ALGORITHM_UNLIMITED:
        break;
    }
    return ret_text;
}
