/* Programs with a libfcgi loop of their own, each in a process: what reaches the loop,
 * what the environment says, how it ends. */
#include <weir/fcgx.h>

#include <criterion/criterion.h>
#define NO_FCGI_DEFINES
#include <fcgi_stdio.h>
#include <fcgiapp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

/* What the program tells this process. */
static struct shared {
    atomic_uint reached; /* requests that its loop saw */
    atomic_uint ready;   /* threads that are about to accept */
} * shared;

/* ---- programs ---------------------------------------------------------------------- */

static void answer(FCGX_Stream *out, FCGX_ParamArray envp)
{
    atomic_fetch_add(&shared->reached, 1);
    if (strcmp(FCGX_GetParam("REQUEST_URI", envp), "/slow") == 0)
        usleep(600000);
    FCGX_FPrintF(out,
                 "Content-Type: text/plain\n\n%s %s",
                 FCGX_GetParam("REQUEST_METHOD", envp),
                 FCGX_GetParam("REQUEST_URI", envp));
}

static void *accept_all(void *arg)
{
    FCGX_Request request;
    FCGX_InitRequest(&request, *(int *)arg, 0);
    atomic_fetch_add(&shared->ready, 1);
    while (FCGX_Accept_r(&request) == 0) {
        answer(request.out, request.envp);
        FCGX_Finish_r(&request);
    }
    return NULL;
}

/* One thread, on a socket that it opens. */
static int loops(void)
{
    if (FCGX_Init() != 0)
        return 3;
    int fd = FCGX_OpenSocket(path, 5);
    if (fd < 0)
        return 4;
    accept_all(&fd);
    return 0;
}

/* The oldest form: on what stands at descriptor 0. */
static int loops_on_descriptor_0(void)
{
    FCGX_Stream *in, *out, *err;
    FCGX_ParamArray envp;
    if (dup2(FCGX_OpenSocket(path, 5), 0) != 0 || FCGX_IsCGI())
        return 4;
    while (FCGX_Accept(&in, &out, &err, &envp) >= 0)
        answer(out, envp);
    FCGX_Finish();
    return 0;
}

static int stops_itself(void)
{
    pthread_t threads[3];
    FCGX_Init();
    int fd = FCGX_OpenSocket(path, 5);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, accept_all, &fd);
    while (atomic_load(&shared->reached) == 0)
        usleep(1000);
    FCGX_ShutdownPending();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static int native(struct weir *w)
{
    return weir_text(w, 200, "native");
}

static const struct weir_endpoint endpoints[] = {
    { "GET /native", native },
    { "GET /loop", .fcgx = weir_fcgx_pull, .parallel = true },
    { 0 },
};

static const struct weir_app app = { WEIR_ABI, .endpoints = endpoints };

static int has_an_app(void)
{
    struct weir_error error = { "" };
    if (!weir_fcgx_init(&app, &error) || weir_fcgx_init(&app, &error))
        return 5;
    return loops();
}

/* fcgi_stdio's macros would make every file of this test one of libfcgi's: the calls
 * that they stand for, by name. */
static int loops_by_stdio(void)
{
    char body[16];
    if (dup2(FCGX_OpenSocket(path, 5), 0) != 0)
        return 4;
    while (FCGI_Accept() >= 0) {
        size_t len = FCGI_fread(body, 1, sizeof body, FCGI_stdin);
        atomic_fetch_add(&shared->reached, 1);
        FCGI_printf(
            "Content-Type: text/plain\n\n%s %.*s", getenv("REQUEST_URI"), (int)len, body);
        if (strcmp(getenv("REQUEST_URI"), "/last") == 0)
            exit(0);
        if (strcmp(getenv("REQUEST_URI"), "/status") == 0)
            FCGI_SetExitStatus(3);
        if (strcmp(getenv("REQUEST_URI"), "/finish") == 0)
            FCGI_Finish();
    }
    return 0;
}

/* Ends by itself, after its answer or in the middle of it. */
static int leaves(void)
{
    FCGX_Request request;
    FCGX_Init();
    FCGX_InitRequest(&request, FCGX_OpenSocket(path, 5), 0);
    while (FCGX_Accept_r(&request) == 0) {
        answer(request.out, request.envp);
        if (strcmp(FCGX_GetParam("REQUEST_URI", request.envp), "/middle") == 0)
            exit(0);
        bool last = strcmp(FCGX_GetParam("REQUEST_URI", request.envp), "/last") == 0;
        FCGX_Finish_r(&request);
        if (last)
            exit(0);
    }
    return 0;
}

static void handle_term(int number)
{
    (void)number;
    atomic_store(&shared->ready, 100);
    FCGX_ShutdownPending();
}

static int handles_term_itself(void)
{
    signal(SIGTERM, handle_term);
    return loops();
}

static int is_cgi(void)
{
    return FCGX_IsCGI() ? 0 : 6; /* descriptor 0 is no socket here */
}

/* ---- the tests' side --------------------------------------------------------------- */

static void init(void)
{
    shared = program_share(sizeof *shared);
    program_init();
}

TestSuite(pull, .init = init, .fini = program_finish, .timeout = 60);

/* The status; the body in ret_body, which may be NULL. */
static int get(const char *uri, char *ret_body)
{
    struct fcgi_reply reply;
    ask(&(struct fcgi_request){ .uri = uri }, &reply);
    int status = reply.ended ? reply.status : 0;
    if (ret_body)
        snprintf(ret_body, 64, "%s", reply.body ? reply.body : "");
    fcgi_reply_finish(&reply);
    return status;
}

Test(pull, hands_every_path_to_the_loop)
{
    char body[64];
    run(loops);
    cr_expect_eq(get("/", body), 200);
    cr_expect_str_eq(body, "GET /");
    cr_expect_eq(get("/a/b/c?d", body), 200);
    cr_expect_str_eq(body, "GET /a/b/c?d");
    cr_expect_eq(stop(), 0);
}

Test(pull, never_hands_it_a_request_that_the_chain_refused)
{
    setenv("WEIR_LIMIT", "3/60s", 1);
    run(loops);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(get("/one", NULL), 200);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(get("/one", NULL), 429);
    cr_expect_eq(shared->reached, 3u);
    cr_expect_eq(stop(), 0);
}

Test(pull, takes_limits_for_paths_from_the_environment)
{
    setenv("WEIR_LIMIT", "3/60s; GET /one 1/60s; POST /two 1/60s; /free unlimited", 1);
    run(loops);
    cr_expect_eq(get("/one", NULL), 200);
    cr_expect_eq(get("/one", NULL), 429);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(get("/two", NULL), 200); /* GET: the default */
    cr_expect_eq(get("/two", NULL), 429);
    for (int i = 0; i < 5; i++)
        cr_expect_eq(get("/free", NULL), 200);
    cr_expect_eq(stop(), 0);
}

Test(pull, leaves_the_paths_to_a_program_that_has_a_table)
{
    setenv("WEIR_LIMIT", "GET /loop 1/60s", 1);
    run(has_an_app);
    cr_expect_eq(wait_for_end(), 5);
}

Test(pull, takes_options_from_the_environment)
{
    setenv("WEIR_TOTAL_TIME", "200ms", 1);
    run(loops);
    cr_expect_eq(get("/slow", NULL), 504);
    int status = 0;
    for (int i = 0; i < 20 && status != 200; i++) /* the loop goes on, when it can */
        status = get("/after", NULL);
    cr_expect_eq(status, 200);
    cr_expect_eq(stop(), 0);
}

Test(pull, refuses_a_start_with_a_mistake_in_the_environment)
{
    static const char *const mistakes[][2] = {
        { "WEIR_LIMIT", "many" },   { "WEIR_LIMIT", "3" },
        { "WEIR_LIMIT", "3/x" },    { "WEIR_LIMIT", "0x3/60s" },
        { "WEIR_NO_SUCH", "1" },    { "WEIR_THREADS", "no" },
        { "WEIR_HELP", "" },        { "FCGI_WEB_SERVER_ADDRS", "127.0.0.1" },
        { "WEIR_LIMIT", "-1/60s" },
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        setenv(mistakes[i][0], mistakes[i][1], 1);
        run(loops);
        cr_expect_eq(wait_for_end(), 3, "%s=%s", mistakes[i][0], mistakes[i][1]);
        unsetenv(mistakes[i][0]);
    }
}

Test(pull, serves_the_socket_at_descriptor_0)
{
    char body[64];
    run(loops_on_descriptor_0);
    cr_expect_eq(get("/one", NULL), 200);
    cr_expect_eq(get("/two", body), 200);
    cr_expect_str_eq(body, "GET /two");
    cr_expect_eq(stop(), 0);
}

Test(pull, serves_programs_in_the_style_of_stdio)
{
    char body[64];
    run(loops_by_stdio);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(get("/one", body), 200);
        cr_expect_str_eq(body, "/one ");
        cr_expect_eq(get("/status", body), 200);
        cr_expect_eq(get("/finish", body), 200);
        cr_expect_str_eq(body, "/finish ");
    }
    cr_expect_eq(stop(), 0);
    cr_expect_eq(shared->reached, 6u);
}

Test(pull, answers_what_a_program_in_the_style_of_stdio_leaves_at_its_exit)
{
    char body[64];
    run(loops_by_stdio);
    cr_expect_eq(get("/last", body), 200);
    cr_expect_str_eq(body, "/last ");
    cr_expect_eq(wait_for_end(), 0);
}

Test(pull, answers_before_the_process_ends)
{
    run(leaves);
    cr_expect_eq(get("/one", NULL), 200);
    cr_expect_eq(get("/last", NULL), 200);
    cr_expect_eq(wait_for_end(), 0);
}

Test(pull, answers_502_for_what_the_program_has_left_unfinished)
{
    run(leaves);
    int64_t begin_us = fcgi_now_us();
    cr_expect_eq(get("/middle", NULL), 502);
    cr_expect_eq(wait_for_end(), 0);
    cr_expect_lt(fcgi_now_us() - begin_us, 2000000);
}

Test(pull, leaves_a_handler_of_sigterm_to_the_program)
{
    run(handles_term_itself);
    cr_expect_eq(get("/one", NULL), 200);
    cr_expect_eq(stop(), 0);
    cr_expect_geq(shared->ready, 100u); /* the loop may have counted on meanwhile */
}

Test(pull, knows_that_there_is_no_socket)
{
    run(is_cgi);
    cr_expect_eq(wait_for_end(), 0);
}

Test(pull, fails_to_open_a_socket_without_ending_the_process)
{
    snprintf(path, sizeof path, "/nowhere/at/all/s");
    run(loops);
    cr_expect_eq(wait_for_end(), 4);
}

Test(pull, ends_all_its_threads_when_it_wants_to)
{
    run(stops_itself);
    cr_expect_eq(get("/one", NULL), 200);
    cr_expect_eq(wait_for_end(), 0);
}

Test(pull, ends_at_once_when_idle)
{
    run(loops);
    cr_expect_eq(get("/one", NULL), 200);
    int64_t begin_us = fcgi_now_us();
    cr_expect_eq(stop(), 0);
    cr_expect_lt(fcgi_now_us() - begin_us, 2000000);
}

Test(pull, stands_beside_other_endpoints)
{
    char body[64];
    run(has_an_app);
    cr_expect_eq(get("/native", body), 200);
    cr_expect_str_eq(body, "native");
    cr_expect_eq(get("/loop", body), 200);
    cr_expect_str_eq(body, "GET /loop");
    cr_expect_eq(get("/other", NULL), 404);
    cr_expect_eq(shared->reached, 1u);
    cr_expect_eq(stop(), 0);
}

/* Free ends a request as Finish_r does; a second end is none. */
static int frees(void)
{
    FCGX_Request request;
    if (FCGX_Init() != 0)
        return 3;
    FCGX_InitRequest(&request, FCGX_OpenSocket(path, 5), 0);
    while (FCGX_Accept_r(&request) == 0) {
        answer(request.out, request.envp);
        FCGX_Free(&request, 1);
        FCGX_Finish_r(&request);
        if (request.out)
            return 7;
    }
    return 0;
}

Test(pull, ends_a_request_that_is_freed)
{
    run(frees);
    cr_expect_eq(get("/one", NULL), 200);
    cr_expect_eq(get("/two", NULL), 200);
    cr_expect_eq(stop(), 0);
}
