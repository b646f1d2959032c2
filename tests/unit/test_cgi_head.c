#include "cgi_head.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct weir__cgi_head head;

/* Feeds the text and says how much of it was head. */
static size_t feed(const char *text)
{
    weir__cgi_head_init(&head);
    return weir__cgi_head_feed(&head, text, strlen(text));
}

/* The lines as "name=value|...", "!" for a bad one, which ends it. */
static const char *lines(void)
{
    static char text[512];
    struct weir__pair field;
    enum weir__cgi_line line;
    size_t at = 0, len = 0;
    text[0] = '\0';
    while ((line = weir__cgi_head_next(&head, &at, &field)) == WEIR__CGI_LINE_FIELD)
        len += (size_t)snprintf(text + len,
                                sizeof text - len,
                                "%.*s=%.*s|",
                                (int)field.name_len,
                                field.name,
                                (int)field.value_len,
                                field.value);
    if (line == WEIR__CGI_LINE_BAD)
        snprintf(text + len, sizeof text - len, "!");
    return text;
}

Test(cgi_head, ends_with_the_first_empty_line)
{
    cr_expect_eq(feed("A: b\n\nbody\n\n"), 6u);
    cr_expect_eq(head.state, WEIR__CGI_HEAD_WHOLE);
    cr_expect_str_eq(lines(), "A=b|");
    cr_expect_eq(feed("A: b\r\nC:d\r\n\r\n\r\n"), 13u);
    cr_expect_str_eq(lines(), "A=b|C=d|");
    cr_expect_eq(feed("A: b\r\n\n"), 7u);
    cr_expect_eq(feed("A: b\n\r\n"), 7u);
    cr_expect_eq(feed("\nA: b\n\n"), 1u);
    cr_expect_str_eq(lines(), "");
}

Test(cgi_head, is_open_until_then)
{
    static const char *const texts[] = { "", "A", "A: b", "A: b\n", "A: b\r\n\r", "\r" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cr_expect_eq(feed(texts[i]), strlen(texts[i]));
        cr_expect_eq(head.state, WEIR__CGI_HEAD_OPEN, "%zu", i);
    }
    /* A CR that no LF follows is no empty line. */
    feed("A: b\n\rC: d\n");
    cr_expect_eq(head.state, WEIR__CGI_HEAD_OPEN);
}

Test(cgi_head, takes_blanks_off_values)
{
    feed("A:\t b c \t\r\nB:\nC: \n\n");
    cr_expect_str_eq(lines(), "A=b c|B=|C=|");
}

Test(cgi_head, stops_at_a_bad_line)
{
    feed("A: b\nno colon\nC: d\n\n");
    cr_expect_str_eq(lines(), "A=b|!");
    feed("A: b\n folded\n\n");
    cr_expect_str_eq(lines(), "A=b|!");
    feed("A : b\n\n");
    cr_expect_str_eq(lines(), "!");
    feed("A: b\r\r\n\n");
    cr_expect_str_eq(lines(), "!");
}

Test(cgi_head, has_a_bound)
{
    static char text[WEIR__CGI_HEAD_BYTES_MAX + 1];
    memset(text, 'a', sizeof text);
    weir__cgi_head_init(&head);
    cr_expect_eq(weir__cgi_head_feed(&head, text, sizeof text - 1), sizeof text - 1);
    cr_expect_eq(head.state, WEIR__CGI_HEAD_OPEN);
    cr_expect_eq(weir__cgi_head_feed(&head, text, 1), 0u);
    cr_expect_eq(head.state, WEIR__CGI_HEAD_TOO_LARGE);
    cr_expect_eq(weir__cgi_head_feed(&head, text, 1), 0u);
}
