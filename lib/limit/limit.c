/* The arithmetic's front: sends each call to its algorithm and deals with what all of
 * them share, costs that no wait will help. No I/O, no store, no clock. */
#include "limit/limit.h"

void weir__limit_decide(const struct weir__limit *limit,
                        struct weir__limit_state state,
                        int64_t cost,
                        int64_t now_us,
                        struct weir__limit_state *ret_state,
                        struct weir_rule_answer *ret_answer)
{
    bool never = (cost > 0 ? cost : 1) > limit->max;
    int64_t decided_cost = never ? 0 : cost;
    if (limit->algorithm == WEIR_ALGORITHM_TOKEN_BUCKET)
        weir__token_bucket_decide(
            limit, state, decided_cost, now_us, ret_state, ret_answer);
    else
        weir__fixed_window_decide(
            limit, state, decided_cost, now_us, ret_state, ret_answer);
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
    if (limit->algorithm == WEIR_ALGORITHM_TOKEN_BUCKET)
        return weir__token_bucket_refund(limit, state, cost, charged, now_us);
    return weir__fixed_window_refund(limit, state, cost, charged, now_us);
}

unsigned weir__limit_level(const struct weir__limit *limit,
                           struct weir__limit_state state,
                           int64_t now_us)
{
    if (limit->algorithm == WEIR_ALGORITHM_TOKEN_BUCKET)
        return weir__token_bucket_level(limit, state, now_us);
    return weir__fixed_window_level(limit, state, now_us);
}

const char *weir__limit_tag(const struct weir_rule *rule)
{
    switch (rule->algorithm) {
    case WEIR_ALGORITHM_FIXED_WINDOW:
        return rule->anchor == WEIR_ANCHOR_REQUEST ? "w1" : "a1";
    case WEIR_ALGORITHM_TOKEN_BUCKET:
        return "b1";
    case WEIR_ALGORITHM_NONE:
    case WEIR_ALGORITHM_UNLIMITED:
        break;
    }
    return "";
}
