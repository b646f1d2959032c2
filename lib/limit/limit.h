/* The arithmetic of limits: pure functions (state, limit, cost, now) to (state, answer).
 *
 * No I/O, no store, no clock of its own: time is an argument, in microseconds of whatever
 * clock the store keeps. One file per algorithm implements these. All integers; nothing
 * rounds but where it is said. */
#ifndef WEIR_LIMIT_LIMIT_H
#define WEIR_LIMIT_LIMIT_H

#include <weir/weir.h>

/* Bounds of a rule, checked once by weir__limit_compile(). */
#define WEIR__MAX_UNITS INT64_C(4000000000)   /* max, capacity, refill: below 2^32 */
#define WEIR__COUNTER_MAX INT64_C(1000000000) /* max of a sliding counter */
#define WEIR__WINDOW_MIN_US INT64_C(1000)     /* 1 ms */
#define WEIR__WINDOW_MAX_US (WEIR_DAYS(366))  /* windows, periods */
#define WEIR__SPAN_MAX_US (WEIR_DAYS(3660))   /* a bucket's time to fill */

/* A rule that passed the check, with what the arithmetic needs worked out. */
struct weir__limit {
    const struct weir_rule *rule;
    enum weir_algorithm algorithm;
    int64_t max; /* units; 0 for WEIR_BLOCK */
    enum weir_anchor anchor;
    int64_t window_us; /* fixed window; 31 days for a month */
    /* Token bucket: n units in p microseconds, reduced by their divisor. The interval of
     * a cost c is c * period / units microseconds. */
    int64_t units, period_us;
};

/* The state of one counter. All zero is "never seen": nothing used.
 *
 * fixed window: time_us is where the window ends, value the units used in it. With an
 * anchor times are microseconds since 1970, since windows end when the wall clock says.
 * token bucket: time_us is the theoretical arrival time (TAT), value its fraction in
 * 1/units of a microsecond, 0 to units - 1.
 *
 * sliding counter: time_us is the end of the window after the open one, plus the units of
 * the window before, which are fewer than its microseconds; value the units of the open
 * one.
 *
 * In all of them the state is worth nothing once time_us (and fraction) is not after now.
 *
 * What is kept when a rule changes while its state lives: a fixed window keeps its units
 * and its end, though never an end further away than the new length; a token bucket keeps
 * the time until it is full, though never more than the new one takes to fill; a sliding
 * counter keeps its units while its max changes, with another window it starts anew. */
struct weir__limit_state {
    int64_t time_us;
    int64_t value;
};

/* Whether text is 1 to 64 of [A-Za-z0-9._-], as names and buckets have to be: no colon,
 * so that a key can be taken apart, and no brace, so that it can't choose a Redis slot.
 */
bool weir__limit_is_word(const char *text);

/* Checks one rule and works out *ret. False with a text that names the field where it is
 * a mistake: no name or a bad one, window 0 or too long, negative or too large max,
 * constant cost negative or above max, bucket with bad bytes. Pure; any thread. */
bool weir__limit_compile(const struct weir_rule *rule,
                         struct weir__limit *ret,
                         struct weir_error *ret_error);

/* One of so many equal parts (1 or more) of a limit, for an instance that can't ask what
 * the others have admitted: max and capacity rounded up, at least 1, a bucket's rate
 * exact (but where it would then take longer to fill than any may). WEIR_BLOCK stays so.
 * Pure; any thread. */
struct weir__limit weir__limit_share(const struct weir__limit *limit, int64_t parts);

/* Decides cost units at now_us (above 0): fills *ret_answer but for .rule, and
 * *ret_state, which is the state after it: unchanged where refused or where cost is 0,
 * though clamped (a time further ahead than the limit can have put it, because the clock
 * stepped back or the rule changed, is brought back to the furthest possible). cost 0
 * asks without charging: allowed says whether one unit would pass. Pure; any thread. */
void weir__limit_decide(const struct weir__limit *limit,
                        struct weir__limit_state state,
                        int64_t cost,
                        int64_t now_us,
                        struct weir__limit_state *ret_state,
                        struct weir_rule_answer *ret_answer);

/* Gives cost units back that a decision took: charged is the state right after that
 * decision. A fixed window that has rolled on is left alone. A token bucket gets back
 * what time has not given back already, so that never more comes back than if the charge
 * had not been made. Never below nothing used. Pure; any thread. */
struct weir__limit_state weir__limit_refund(const struct weir__limit *limit,
                                            struct weir__limit_state state,
                                            int64_t cost,
                                            struct weir__limit_state charged,
                                            int64_t now_us);

/* How much of the budget is used, 0 to 14 by fifteenths, rounded down; 15 where not one
 * more unit would pass. For a store's choice of a victim. Pure; any thread. */
unsigned weir__limit_level(const struct weir__limit *limit,
                           struct weir__limit_state state,
                           int64_t now_us);

#define WEIR__TAG_BYTES 32 /* for any tag, with its NUL */

/* Algorithm and version of its state, the end of every key: "w1" fixed window, "a1" one
 * with an anchor, "b1" token bucket; "c1-60s" sliding counter, whose state means nothing
 * with another window. "" where nothing is counted. Returns ret_text. */
const char *weir__limit_tag(const struct weir_rule *rule, char ret_text[WEIR__TAG_BYTES]);

/* Each algorithm's part; called through the functions above, which have dealt with costs
 * that no budget can hold. */
void weir__fixed_window_decide(const struct weir__limit *limit,
                               struct weir__limit_state state,
                               int64_t cost,
                               int64_t now_us,
                               struct weir__limit_state *ret_state,
                               struct weir_rule_answer *ret_answer);
struct weir__limit_state weir__fixed_window_refund(const struct weir__limit *limit,
                                                   struct weir__limit_state state,
                                                   int64_t cost,
                                                   struct weir__limit_state charged,
                                                   int64_t now_us);
unsigned weir__fixed_window_level(const struct weir__limit *limit,
                                  struct weir__limit_state state,
                                  int64_t now_us);

void weir__token_bucket_decide(const struct weir__limit *limit,
                               struct weir__limit_state state,
                               int64_t cost,
                               int64_t now_us,
                               struct weir__limit_state *ret_state,
                               struct weir_rule_answer *ret_answer);
struct weir__limit_state weir__token_bucket_refund(const struct weir__limit *limit,
                                                   struct weir__limit_state state,
                                                   int64_t cost,
                                                   struct weir__limit_state charged,
                                                   int64_t now_us);
unsigned weir__token_bucket_level(const struct weir__limit *limit,
                                  struct weir__limit_state state,
                                  int64_t now_us);

void weir__sliding_counter_decide(const struct weir__limit *limit,
                                  struct weir__limit_state state,
                                  int64_t cost,
                                  int64_t now_us,
                                  struct weir__limit_state *ret_state,
                                  struct weir_rule_answer *ret_answer);
struct weir__limit_state weir__sliding_counter_refund(const struct weir__limit *limit,
                                                      struct weir__limit_state state,
                                                      int64_t cost,
                                                      struct weir__limit_state charged,
                                                      int64_t now_us);
unsigned weir__sliding_counter_level(const struct weir__limit *limit,
                                     struct weir__limit_state state,
                                     int64_t now_us);

#endif
