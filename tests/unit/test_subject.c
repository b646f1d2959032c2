#include "limit/subject.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static char text[WEIR__SUBJECT_BYTES];

static const char *of(enum weir_caller_type type, const char *id, size_t len)
{
    struct weir_caller caller = { .type = type, .id_len = (unsigned)len };
    memcpy(caller.id, id, len);
    size_t written = weir__subject(WEIR_BY_CALLER, &caller, NULL, text);
    cr_expect_eq(written, strlen(text));
    cr_expect_lt(written, WEIR__SUBJECT_BYTES);
    return text;
}

#define OF(type_, id_) of(type_, id_, sizeof(id_) - 1)

Test(subject, leaves_plain_ids_as_they_are)
{
    cr_expect_str_eq(OF(WEIR_CALLER_USER, "42"), "user:42");
    cr_expect_str_eq(OF(WEIR_CALLER_USER, "Bob_x.y-z@example.org"),
                     "user:Bob_x.y-z@example.org");
    cr_expect_str_eq(OF(WEIR_CALLER_KEY, "k1"), "key:k1");
    cr_expect_str_eq(OF(WEIR_CALLER_REMOTE_USER, "bob"), "remote_user:bob");
    cr_expect_str_eq(OF(WEIR_CALLER_IP, "198.51.100.7"), "ip:198.51.100.7");
    cr_expect_str_eq(OF(WEIR_CALLER_IP, "2001:db8:1:2::/64"), "ip:2001:db8:1:2::/64");
}

/* SHA-256 of the id, its first 128 bits: every server finds the same name. */
Test(subject, hashes_what_a_key_can_not_hold)
{
    cr_expect_str_eq(OF(WEIR_CALLER_USER, "a b"),
                     "user:#c8687a08aa5d6ed2044328fa6a697ab8");
    static const char *const odd[] = {
        "{x}", "a:b", "a/b", "#a", "\n", "caf\xc3\xa9", ""
    };
    for (int i = 0; i < 7; i++) {
        of(WEIR_CALLER_USER, odd[i], strlen(odd[i]));
        cr_expect_eq(strlen(text), strlen("user:#") + 32);
        cr_expect_eq(strncmp(text, "user:#", 6), 0);
        cr_expect_null(strpbrk(text, "{}\n /"));
    }
}

Test(subject, tells_apart_ids_that_differ_behind_a_nul)
{
    char first[WEIR__SUBJECT_BYTES];
    strcpy(first, OF(WEIR_CALLER_USER, "a\0b"));
    cr_expect_str_neq(first, OF(WEIR_CALLER_USER, "a\0c"));
    cr_expect_str_neq(first, OF(WEIR_CALLER_USER, "a"));
}

Test(subject, hashes_ids_over_64_bytes)
{
    char id[WEIR_CALLER_ID_MAX];
    memset(id, 'x', sizeof id);
    cr_expect_null(strchr(of(WEIR_CALLER_REMOTE_USER, id, 64), '#'));
    cr_expect_not_null(strchr(of(WEIR_CALLER_REMOTE_USER, id, 65), '#'));
    cr_expect_not_null(strchr(of(WEIR_CALLER_REMOTE_USER, id, sizeof id), '#'));
}

/* Ids that try to look like another caller's subject, or like a hash. */
Test(subject, lets_no_id_spell_the_subject_of_another_caller)
{
    static const char victim_hash[] = "#c8687a08aa5d6ed2044328fa6a697ab8";
    cr_expect_str_neq(OF(WEIR_CALLER_USER, victim_hash),
                      "user:#c8687a08aa5d6ed2044328fa6a697ab8");
    cr_expect_str_eq(OF(WEIR_CALLER_KEY, "42"), "key:42");
    cr_expect_eq(strncmp(OF(WEIR_CALLER_USER, "ip:198.51.100.7"), "user:#", 6), 0);
    cr_expect_eq(strncmp(OF(WEIR_CALLER_IP, "1.2.3.4}x{"), "ip:#", 4), 0);
    cr_expect_str_neq(OF(WEIR_CALLER_USER, "all"), "all");
    cr_expect_str_neq(OF(WEIR_CALLER_USER, "none"), "none");
}

Test(subject, takes_the_address_or_everybody_where_the_rule_says_so)
{
    struct weir_caller caller = { .type = WEIR_CALLER_USER, .id_len = 2, .id = "42" };
    weir__subject(WEIR_BY_IP, &caller, "198.51.100.7", text);
    cr_expect_str_eq(text, "ip:198.51.100.7");
    weir__subject(WEIR_BY_IP, &caller, NULL, text);
    cr_expect_str_eq(text, "none");
    weir__subject(WEIR_BY_IP, &caller, "", text);
    cr_expect_str_eq(text, "none");
    weir__subject(WEIR_BY_EVERYBODY, &caller, "198.51.100.7", text);
    cr_expect_str_eq(text, "all");
    caller.type = WEIR_CALLER_NONE;
    weir__subject(WEIR_BY_CALLER, &caller, "198.51.100.7", text);
    cr_expect_str_eq(text, "none");
}
