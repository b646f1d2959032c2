/* Every function of fcgiapp.h and fcgi_stdio.h, called by a program with a loop of its
 * own: each case answers the same whether libfcgi accepts the request or Weir does, and
 * no function of either header is forgotten. */
#define WEIR_FCGX_KEEP_NAMES
#include <weir/fcgx.h>

#include <criterion/criterion.h>
#include <fcgiapp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fcgx_calls.h"
#include "header_names.h"
#include "program.h"
#include "stdio_calls.h"

static char *failure; /* of the program's last case, shared with it */

/* ---- the programs ------------------------------------------------------------------ */

/* The functions that weir/fcgx.h replaces. */
struct build {
    const char *name;
    int (*init)(void);
    int (*open)(const char *path, int backlog);
    int (*init_request)(FCGX_Request *request, int fd, int flags);
    int (*accept_r)(FCGX_Request *request);
    void (*finish_r)(FCGX_Request *request);
    int (*stdio_accept)(void);
    void (*stdio_finish)(void);
};

static const struct build libfcgi = { "libfcgi",        FCGX_Init,     FCGX_OpenSocket,
                                      FCGX_InitRequest, FCGX_Accept_r, FCGX_Finish_r,
                                      FCGI_Accept,      FCGI_Finish };
static const struct build weir = { "weir",
                                   weir_fcgx_init_library,
                                   weir_fcgx_open_socket,
                                   weir_fcgx_init_request,
                                   weir_fcgx_accept_r,
                                   weir_fcgx_finish_r,
                                   weir_fcgx_stdio_accept,
                                   weir_fcgx_stdio_finish };
static const struct build *build;

static void tell_failure(void)
{
    snprintf(failure, 200, "%s", fcgx_calls_failure ? fcgx_calls_failure : "");
    fcgx_calls_failure = NULL;
}

static int answers_by_number(void)
{
    FCGX_Request request;
    if (build->init() != 0)
        return 3;
    if (build->init_request(&request, build->open(path, 5), 0) != 0)
        return 4;
    while (build->accept_r(&request) == 0) {
        size_t number = (size_t)atoi(FCGX_GetParam("QUERY_STRING", request.envp));
        fcgx_calls[number % FCGX_CALLS_LEN].run(&request);
        tell_failure();
        build->finish_r(&request);
    }
    return 0;
}

static int answers_by_number_with_stdio(void)
{
    if (build->init() != 0 || dup2(build->open(path, 5), 0) != 0)
        return 3;
    stdio_finish = build->stdio_finish;
    while (build->stdio_accept() >= 0) {
        size_t number = (size_t)atoi(getenv("QUERY_STRING"));
        stdio_calls[number % STDIO_CALLS_LEN].run();
        tell_failure();
    }
    return 0;
}

/* ---- the tests' side --------------------------------------------------------------- */

static void init(void)
{
    failure = program_share(200);
    program_init();
}

TestSuite(pull_calls, .init = init, .fini = program_finish, .timeout = 60);

static void expect(const char *name, size_t number, const char *body)
{
    char query[16];
    struct fcgi_reply reply;
    snprintf(query, sizeof query, "%zu", number);
    ask(
        &(struct fcgi_request){
            .method = "POST",
            .uri = "/case",
            .body = FCGX_CALLS_BODY,
            .body_len = strlen(FCGX_CALLS_BODY),
            .params = (const struct fcgi_param[]){ { "QUERY_STRING", query }, { 0 } } },
        &reply);
    cr_expect(reply.ended, "%s, %s: no whole answer", build->name, name);
    cr_expect_str_eq(reply.body, body, "%s, %s: \"%s\"", build->name, name, reply.body);
    cr_expect_str_eq(failure, "", "%s, %s: %s", build->name, name, failure);
    fcgi_reply_finish(&reply);
}

static void calls_of_fcgiapp(const struct build *which)
{
    build = which;
    run(answers_by_number);
    for (size_t i = 0; i < FCGX_CALLS_LEN; i++)
        expect(fcgx_calls[i].name, i, fcgx_calls[i].body);
    cr_expect_eq(stop(), 0);
}

static void calls_of_stdio(const struct build *which)
{
    build = which;
    run(answers_by_number_with_stdio);
    for (size_t i = 0; i < STDIO_CALLS_LEN; i++)
        expect(stdio_calls[i].name, i, stdio_calls[i].body);
    cr_expect_eq(stop(), 0);
}

/* That the cases are right. */
Test(pull_calls, of_fcgiapp_answer_so_with_libfcgi)
{
    calls_of_fcgiapp(&libfcgi);
}
Test(pull_calls, of_stdio_answer_so_with_libfcgi)
{
    calls_of_stdio(&libfcgi);
}

Test(pull_calls, of_fcgiapp_answer_so_with_weir)
{
    calls_of_fcgiapp(&weir);
}
Test(pull_calls, of_stdio_answer_so_with_weir)
{
    calls_of_stdio(&weir);
}

/* ---- the headers ------------------------------------------------------------------- */

/* Those that weir/fcgx.h replaces: test_pull.c and threads/pull.c have their cases. */
static const char *const replaced[] = {
    "FCGX_IsCGI",      "FCGX_Init",
    "FCGX_OpenSocket", "FCGX_InitRequest",
    "FCGX_Accept_r",   "FCGX_Finish_r",
    "FCGX_Free",       "FCGX_Accept",
    "FCGX_Finish",     "FCGX_ShutdownPending",
    "FCGI_Accept",
};

static bool is_listed(const char *name)
{
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
        if (strcmp(replaced[i], name) == 0)
            return true;
    for (size_t i = 0; i < FCGX_CALLS_LEN; i++)
        if (strcmp(fcgx_calls[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < STDIO_CALLS_LEN; i++)
        if (strcmp(stdio_calls[i].name, name) == 0)
            return true;
    return false;
}

Test(pull_calls, are_all_the_functions_of_both_headers)
{
    cr_expect_eq(header_names(FCGIAPP_H, "FCGX_", is_listed) +
                     header_names(FCGI_STDIO_H, "FCGI_", is_listed),
                 sizeof replaced / sizeof *replaced + FCGX_CALLS_LEN + STDIO_CALLS_LEN);
}
