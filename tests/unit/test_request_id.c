/* Ids that nobody can guess, choose or meet twice. */
#include "kit.h"

#include <sys/wait.h>
#include <unistd.h>

#include <weir/filters/request_id.h>

static int problem(struct weir *w)
{
    return weir_problem(w, 418, "Teapot", NULL);
}

static const struct weir_endpoint endpoints[] = { { "GET /", problem }, { 0 } };
static const struct weir_use chain[] = { WEIR_USE(request_id), { NULL, NULL } };
static const struct weir_use trusting[] = { WEIR_USE(request_id, .trust = true),
                                            { NULL, NULL } };

static void open_plain(void)
{
    kit_open(endpoints, chain);
}

TestSuite(request_id, .init = open_plain, .fini = kit_close);

static const char *ask_with(const char *given)
{
    kit_request("GET", "/");
    if (given)
        kit_param("HTTP_X_REQUEST_ID", given);
    kit_begin();
    cr_assert(kit_run());
    return kit_sent_header("X-Request-Id");
}

static void expect_made(const char *id)
{
    cr_assert_eq(strlen(id), 32u, "%s", id);
    cr_assert_eq(strspn(id, "0123456789abcdef"), 32u, "%s", id);
}

Test(request_id, makes_128_bits_in_hex)
{
    char first[64];
    snprintf(first, sizeof first, "%s", ask_with(NULL));
    expect_made(first);
    const char *second = ask_with(NULL);
    expect_made(second);
    cr_assert_str_neq(first, second);
}

Test(request_id, stands_in_a_problem)
{
    char expected[128];
    const char *id = ask_with(NULL);
    snprintf(expected, sizeof expected, ",\"request_id\":\"%s\"}", id);
    cr_assert(strstr(kit_sent_body(), expected), "%s", kit_sent_body());
}

Test(request_id, stands_on_answers_that_weir_gives_itself)
{
    kit_get("GET", "/nowhere");
    expect_made(kit_sent_header("X-Request-Id"));
}

Test(request_id, takes_none_from_the_client_by_default)
{
    expect_made(ask_with("abc"));
}

Test(request_id, takes_one_from_a_front_that_is_trusted)
{
    kit_close();
    kit_open(endpoints, trusting);
    cr_assert_str_eq(ask_with("Abc-1_2.3"), "Abc-1_2.3");
    expect_made(ask_with(""));
    expect_made(ask_with("two words"));
    expect_made(ask_with("a\"b"));
    expect_made(ask_with("a, b"));
    expect_made(
        ask_with("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

Test(request_id, differs_in_a_forked_worker)
{
    char here[64], there[64] = "";
    int ends[2];
    ask_with(NULL); /* seeds this thread */
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        const char *id = ask_with(NULL);
        _exit(write(ends[1], id, 32) == 32 ? 0 : 1);
    }
    cr_assert_eq(read(ends[0], there, 32), 32);
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    snprintf(here, sizeof here, "%s", ask_with(NULL));
    cr_assert_str_neq(here, there);
}
