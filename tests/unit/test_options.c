#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "options.h"

#define WORDS_MAX 40

/* Parses the words (behind a program name) and says whether they were taken. */
static bool parse(struct weir__options *ret_options,
                  struct weir_error *ret_error,
                  const char *const *words)
{
    char *argv[WORDS_MAX + 2] = { (char *)"program" };
    int argc = 1;
    while (words[argc - 1]) {
        argv[argc] = (char *)words[argc - 1];
        argc++;
    }
    *ret_error = (struct weir_error){ "" };
    return weir__options_parse(ret_options, argc, argv, NULL, ret_error);
}
#define PARSE(options_, error_, ...)                                                     \
    parse(options_, error_, (const char *const[]){ __VA_ARGS__, NULL })

/* What --help prints; the caller frees it. */
static char *help(const struct weir_option *app_options)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    weir__options_help(out, "program", app_options);
    fclose(out);
    return text;
}

Test(options, the_defaults_are_those_of_the_header)
{
    struct weir__options o;
    weir__options_defaults(&o);
    cr_expect_eq(o.action, WEIR__ACTION_RUN);
    cr_expect_eq(o.listen_len, 0);
    cr_expect_eq(o.socket_mode, 0660);
    cr_expect_null(o.socket_owner);
    cr_expect_null(o.socket_group);
    cr_expect_eq(o.workers, 2);
    cr_expect_eq(o.threads, 8);
    cr_expect_eq(o.max_params_bytes, 65536);
    cr_expect_eq(o.max_param_value_bytes, 8192);
    cr_expect_eq(o.max_params, 256);
    cr_expect_eq(o.max_body_bytes, 1048576);
    cr_expect_eq(o.max_connections, 4096);
    cr_expect_eq(o.max_buffered_bytes, 268435456);
    cr_expect_eq(o.max_request_bytes, 1048576);
    cr_expect_eq(o.silent_ms, 1000);
    cr_expect_eq(o.silent_unix_ms, 200);
    cr_expect_eq(o.head_ms, 2000);
    cr_expect_eq(o.write_ms, 10000);
    cr_expect_eq(o.total_ms, 60000);
    cr_expect_eq(o.idle_ms, 75000);
    cr_expect_eq(o.drain_ms, 5000);
    cr_expect_eq(o.linger_ms, 2000);
    cr_expect_eq(o.linger_bytes, 33554432);
    cr_expect_eq(o.max_offloads, 64);
    cr_expect_eq(o.max_offloads_an_address, 4);
    cr_expect_str_eq(o.store, "shm");
    cr_expect_eq(o.shm_entries, 262144);
    cr_expect_eq(o.log_level, WEIR_LOG_INFO);
}

Test(options, both_forms_are_read_and_the_last_one_wins)
{
    struct weir__options o;
    struct weir_error e;
    cr_assert(PARSE(&o,
                    &e,
                    "--listen",
                    "unix:/run/a.sock",
                    "--workers=4",
                    "--threads",
                    "16",
                    "--listen=tcp:[::1]:9000",
                    "--max-body",
                    "64k",
                    "--drain-time=1500ms",
                    "--threads=3",
                    "--socket-mode=600",
                    "--socket-group",
                    "www-data",
                    "--log-level=debug"),
              "%s",
              e.text);
    cr_expect_eq(o.listen_len, 2);
    cr_expect_str_eq(o.listen[0], "unix:/run/a.sock");
    cr_expect_str_eq(o.listen[1], "tcp:[::1]:9000");
    cr_expect_eq(o.workers, 4);
    cr_expect_eq(o.threads, 3);
    cr_expect_eq(o.max_body_bytes, 65536);
    cr_expect_eq(o.drain_ms, 1500);
    cr_expect_eq(o.socket_mode, 0600);
    cr_expect_str_eq(o.socket_group, "www-data");
    cr_expect_eq(o.log_level, WEIR_LOG_DEBUG);
    cr_expect_eq(o.head_ms, 2000, "what was not named keeps its default");
}

Test(options, every_mistake_is_named)
{
    static const struct {
        const char *words[5];
        const char *text;
    } cases[] = {
        { { "--wrokers=2" }, "--wrokers: no such option; see --help" },
        { { "--worker=2" }, "--worker: no such option; see --help" },
        { { "-h" }, "\"-h\" is not an option; see --help" },
        { { "--" }, "\"--\" is not an option; see --help" },
        { { "" }, "\"\" is not an option; see --help" },
        { { "--workers", "2", "3" }, "\"3\" is not an option; see --help" },
        { { "--workers" }, "--workers needs an argument: COUNT" },
        { { "--check=yes" }, "--check takes no argument" },
        { { "--workers=" }, "--workers: \"\" is not a number such as 8" },
        { { "--workers=2x" }, "--workers: \"2x\" is not a number such as 8" },
        { { "--workers=0" }, "--workers: 0 is outside 1 to 256" },
        { { "--threads=1" }, "--threads: 1 is outside 2 to 256" },
        { { "--head-time=2000" },
          "--head-time: \"2000\" is not a time such as 200ms or 5s" },
        { { "--head-time=9ms" }, "--head-time: 9ms is outside 10ms to 86400s" },
        { { "--silent-time=99999999999999999999s" },
          "--silent-time: 99999999999999999999s is outside 10ms to 86400s" },
        { { "--max-params=1023" }, "--max-params: 1023 is outside 1k to 16M" },
        { { "--max-params=64kb" },
          "--max-params: \"64kb\" is not a size such as 512, 64k or 1M" },
        { { "--max-param-value=65k" },
          "--max-param-value: 65k is more than --max-params, 64k" },
        { { "--max-params=2M" },
          "--max-params: 2M is more than --max-request-memory, 1M" },
        { { "--max-body=1G" }, "--max-body: 1G is more than --max-buffered, 256M" },
        { { "--socket-mode=0888" },
          "--socket-mode: \"0888\" is not an octal mode such as 0660" },
        { { "--socket-mode=1777" },
          "--socket-mode: \"1777\" is not an octal mode such as 0660" },
        { { "--socket-group=" }, "--socket-group: the argument is empty" },
        { { "--store=redis" },
          "--store: \"redis\" is no store; there are: shm, redis:ADDRESS" },
        { { "--store=redis:tcp:localhost:6379" },
          "--store: redis: \"tcp:localhost:6379\" is not unix:PATH, tcp:ADDRESS:PORT or "
          "tcp:[IPV6]:PORT with a numeric address" },
        { { "--instances=0" }, "--instances: 0 is outside 1 to 10000" },
        { { "--log-level=loud" },
          "--log-level: \"loud\" is not one of debug, info, warning, error" },
        { { "--listen", "/run/a.sock" },
          "--listen: \"/run/a.sock\" is neither unix:PATH nor tcp:ADDRESS:PORT" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__options o = { .workers = 77 };
        struct weir_error e;
        cr_expect_not(parse(&o, &e, cases[i].words), "%s", cases[i].text);
        cr_expect_str_eq(e.text, cases[i].text);
        cr_expect_eq(o.workers, 77, "the result is left alone");
    }
}

Test(options, more_than_eight_addresses_are_refused)
{
    struct weir__options o;
    struct weir_error e;
    const char *words[WEIR__LISTEN_MAX + 2] = { NULL };
    for (int i = 0; i < WEIR__LISTEN_MAX; i++)
        words[i] = "--listen=tcp:127.0.0.1:0";
    cr_expect(parse(&o, &e, words));
    words[WEIR__LISTEN_MAX] = "--listen=tcp:127.0.0.1:0";
    cr_expect_not(parse(&o, &e, words));
    cr_expect_str_eq(e.text, "--listen: more than 8 addresses");
}

Test(options, actions_are_switches)
{
    struct weir__options o;
    struct weir_error e;
    cr_expect(PARSE(&o, &e, "--help") && o.action == WEIR__ACTION_HELP);
    cr_expect(PARSE(&o, &e, "--version") && o.action == WEIR__ACTION_VERSION);
    cr_expect(PARSE(&o, &e, "--routes") && o.action == WEIR__ACTION_ROUTES);
    cr_expect(PARSE(&o, &e, "--check") && o.action == WEIR__ACTION_CHECK);
}

/* Reads --help as a user would: each default that it shows is given as an option and must
 * change nothing. */
Test(options, help_shows_every_default_as_it_is)
{
    struct weir__options standard, seen;
    struct weir_error e;
    char *text = help(NULL), *state = NULL;
    unsigned defaults = 0, lines = 0;
    weir__options_defaults(&standard);
    for (char *line = strtok_r(text, "\n", &state); line;
         line = strtok_r(NULL, "\n", &state)) {
        char name[64], word[128], value[64];
        char *at = strstr(line, " (default: ");
        if (strncmp(line, "  --", 4) != 0)
            continue;
        lines++;
        if (!at)
            continue;
        cr_assert_eq(sscanf(line, " %63s", name), 1);
        cr_assert_eq(sscanf(at, " (default: %63[^)])", value), 1);
        snprintf(word, sizeof word, "%s=%s", name, value);
        cr_assert(PARSE(&seen, &e, word), "%s", e.text);
        seen.store = standard.store;
        cr_expect_eq(memcmp(&seen, &standard, sizeof seen), 0, "%s", word);
        defaults++;
    }
    cr_expect_eq(lines, 35);
    cr_expect_eq(defaults, 27);
    free(text);
}

static const char *key_file = "none", *instance = "none";
static const struct weir_option own[] = {
    { "key-file", "PATH", "where the key stands", &key_file },
    { "instance", "NAME", "the name of this instance (default: hostname)", &instance },
    { 0 },
};

Test(options, an_apps_own_are_read_beside_ours)
{
    struct weir__options o;
    struct weir_error e = { "" };
    char *argv[] = { (char *)"program",
                     (char *)"--key-file",
                     (char *)"/k",
                     (char *)"--workers=3",
                     (char *)"--key-file=/l" };
    cr_assert(weir__options_parse(&o, 5, argv, own, &e), "%s", e.text);
    cr_expect_str_eq(key_file, "/l");
    cr_expect_str_eq(instance, "none");
    cr_expect_eq(o.workers, 3);
}

Test(options, an_apps_own_need_their_argument)
{
    struct weir__options o;
    struct weir_error e = { "" };
    char *argv[] = { (char *)"program", (char *)"--key-file", NULL };
    cr_expect_not(weir__options_parse(&o, 2, argv, own, &e));
    cr_expect_str_eq(e.text, "--key-file needs an argument: PATH");
}

Test(options, an_apps_own_stand_in_help)
{
    char *text = help(own);
    cr_expect(strstr(text, "This program's own:"));
    cr_expect(strstr(text, "  --key-file PATH                 where the key stands\n"));
    free(text);
}

Test(options, an_apps_table_with_a_mistake_is_refused)
{
    static const struct {
        struct weir_option table[3];
        const char *text;
    } cases[] = {
        { { { "workers", "N", "h", &instance } }, "option --workers is Weir's own" },
        { { { "a", "N", "h", &instance }, { "a", "N", "h", &instance } },
          "option --a stands twice" },
        { { { "--a", "N", "h", &instance } }, "option \"--a\": bad name" },
        { { { "a=b", "N", "h", &instance } }, "option \"a=b\": bad name" },
        { { { "", "N", "h", &instance } }, "option \"\": bad name" },
        { { { "a", "N", NULL, &instance } },
          "option --a: value_name, help and ret_value are needed" },
        { { { "a", "N", "h", NULL } },
          "option --a: value_name, help and ret_value are needed" },
    };
    struct weir_error e = { "" };
    cr_expect(weir__options_check(NULL, &e));
    cr_expect(weir__options_check(own, &e));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        e.text[0] = '\0';
        cr_expect_not(weir__options_check(cases[i].table, &e));
        cr_expect_str_eq(e.text, cases[i].text);
    }
}
