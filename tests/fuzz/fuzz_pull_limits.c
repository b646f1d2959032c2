/* Limits as text: whatever they are, they make a table or a sentence; every path of the
 * table goes to the program, every list of rules has its end. */
#include "fuzz.h"

#include "process/pull_limits.h"

static void fcgx(struct FCGX_Request *request)
{
    (void)request;
}

static void check_rules(const struct weir_rule *rules)
{
    unsigned len = 0;
    while (rules && rules[len].algorithm != WEIR_ALGORITHM_NONE)
        len++;
    MUST(len <= WEIR_RULES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__pull_limits limits;
    struct weir_error error = { "" };
    char *text = fuzz_text(&data, &size);
    if (!weir__pull_limits_parse(text, fcgx, &limits, &error)) {
        MUST(*error.text);
        free(text);
        return 0;
    }
    check_rules(limits.defaults);
    bool rest = false;
    for (const struct weir_endpoint *at = limits.endpoints; at->pattern; at++) {
        MUST(at->fcgx == fcgx && at->parallel && !at->handler);
        rest = rest || strcmp(at->pattern, "* /*") == 0;
        check_rules(at->limits);
    }
    MUST(rest);
    weir__pull_limits_finish(&limits);
    free(text);
    return 0;
}
