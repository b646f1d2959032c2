/* Words for the tables of an app, for people. It reads what the app declares and knows
 * nothing of how limits are worked out. */
#include "process/routes.h"

#include <inttypes.h>

#include "process/units.h"

static const char *const by_words[] = {
    [WEIR_BY_CALLER] = "by caller",
    [WEIR_BY_IP] = "by IP",
    [WEIR_BY_EVERYBODY] = "for everybody together",
};

static const char *const store_error_words[] = {
    [WEIR_LOCAL] = "this instance's share",
    [WEIR_ALLOW] = "allow",
    [WEIR_DENY] = "deny",
};

static void print_time(FILE *out, int64_t us)
{
    char text[32];
    if (us % 1000 == 0) {
        weir__unit_format(WEIR__UNIT_TIME, (uint64_t)us / 1000, text, sizeof text);
        fputs(text, out);
    } else {
        fprintf(out, "%" PRId64 "us", us);
    }
}

static void print_rule(FILE *out, const struct weir_rule *rule)
{
    if (rule->algorithm == WEIR_ALGORITHM_UNLIMITED) {
        fputs("    unlimited\n", out);
        return;
    }
    fprintf(out, "    %s: ", rule->name);
    if (rule->max == WEIR_BLOCK) {
        fputs("blocked", out);
    } else if (rule->algorithm == WEIR_ALGORITHM_TOKEN_BUCKET) {
        fprintf(out,
                "token bucket of %" PRId64 ", %" PRId64 " back in ",
                rule->max,
                rule->refill);
        print_time(out, rule->window_us);
    } else {
        bool slides = rule->algorithm == WEIR_ALGORITHM_SLIDING_COUNTER;
        fprintf(out,
                "%s, %" PRId64 " in ",
                slides ? "sliding counter" : "fixed window",
                rule->max);
        if (rule->anchor == WEIR_ANCHOR_MONTH)
            fputs("a calendar month", out);
        else
            print_time(out, rule->window_us);
        if (rule->anchor == WEIR_ANCHOR_CLOCK)
            fputs(" by the clock", out);
    }
    fprintf(out, ", %s", by_words[rule->by]);
    if (rule->cost_fn)
        fputs(", cost worked out for each request", out);
    else if (rule->cost > 1)
        fprintf(out, ", cost %" PRId64, rule->cost);
    if (rule->bucket)
        fprintf(out, ", bucket \"%s\"", rule->bucket);
    if (rule->on_store_error != WEIR_LOCAL)
        fprintf(out, "; store away: %s", store_error_words[rule->on_store_error]);
    fputc('\n', out);
}

static void print_rules(FILE *out, const struct weir_rule *rules)
{
    for (const struct weir_rule *rule = rules; rule->algorithm != WEIR_ALGORITHM_NONE;
         rule++)
        print_rule(out, rule);
}

static const char *kind_of(const struct weir_endpoint *endpoint)
{
    if (endpoint->fcgx)
        return endpoint->parallel ? " (libfcgi, parallel)" : " (libfcgi)";
    return endpoint->nonblocking ? " (nonblocking)" : "";
}

void weir__routes_print(FILE *out, const struct weir_app *app)
{
    for (const struct weir_endpoint *at = app->endpoints; at && at->pattern; at++) {
        fprintf(out, "%s%s\n", at->pattern, kind_of(at));
        if (at->limits)
            print_rules(out, at->limits);
        else
            fputs(app->default_limits ? "    the default rules\n" : "    none\n", out);
    }
    if (app->default_limits) {
        fputs(
            "default rules, counted for each endpoint, and for unknown paths together\n",
            out);
        print_rules(out, app->default_limits);
    }
    if (app->global_limits) {
        fputs("global rules, beside every endpoint's own\n", out);
        print_rules(out, app->global_limits);
    }
}
