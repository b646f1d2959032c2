/* Heads of CGI output: however the output is cut, the same head and the same fields come
 * out, and a field is what a response may hold. The first eight bytes are the cuts. */
#include "fuzz.h"

#include "cgi_head.h"
#include "field.h"

#define CUTS 8

static size_t
feed(struct weir__cgi_head *head, const uint8_t *output, size_t len, const uint8_t *cuts)
{
    size_t used = 0, turn = 0;
    weir__cgi_head_init(head);
    while (used < len && head->state == WEIR__CGI_HEAD_OPEN) {
        size_t window = cuts ? fuzz_cut(cuts, CUTS, turn++) : len;
        size_t size = len - used < window ? len - used : window;
        char *copy = fuzz_copy(output + used, size);
        size_t taken = weir__cgi_head_feed(head, copy, size);
        MUST(taken <= size);
        MUST(taken == size || head->state != WEIR__CGI_HEAD_OPEN);
        used += taken;
        free(copy);
    }
    return used;
}

static void must_be_fields(const struct weir__cgi_head *head)
{
    struct weir__pair field;
    size_t at = 0, last = 0;
    while (weir__cgi_head_next(head, &at, &field) == WEIR__CGI_LINE_FIELD) {
        MUST(at > last && at <= head->len);
        last = at;
        MUST(weir__field_is_token(field.name, field.name_len));
        MUST(weir__field_is_value(field.value, field.value_len));
        MUST(field.name >= head->bytes && field.value >= field.name + field.name_len);
        MUST(field.value + field.value_len < head->bytes + at);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir__cgi_head whole, cut;
    if (size < CUTS)
        return 0;
    size_t whole_used = feed(&whole, data + CUTS, size - CUTS, NULL);
    size_t cut_used = feed(&cut, data + CUTS, size - CUTS, data);
    MUST(whole.state == cut.state);
    MUST(whole.len <= WEIR__CGI_HEAD_BYTES_MAX);
    if (whole.state == WEIR__CGI_HEAD_TOO_LARGE)
        return 0;
    MUST(whole_used == cut_used && whole.len == cut.len && whole.len == whole_used);
    MUST(memcmp(whole.bytes, cut.bytes, whole.len) == 0);
    if (whole.state == WEIR__CGI_HEAD_WHOLE)
        must_be_fields(&whole);
    return 0;
}
