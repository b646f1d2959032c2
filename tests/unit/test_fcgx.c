/* Handlers of libfcgi's form, through the whole chain in memory: every call of fcgiapp.h
 * on them, and programs that write what is no CGI output. */
#include <weir/test.h>
#include <weir/weir.h>

#include <criterion/criterion.h>
#include <fcgiapp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fcgx_calls.h"
#include "header_names.h"

#define LARGE ((size_t)1024 * 1024)

/* ---- programs, in the usual style -------------------------------------------------- */

static void hello(FCGX_Request *request)
{
    FCGX_FPrintF(request->out,
                 "Content-Type: text/plain\r\n\r\nhello %s, %s, %d%%\n",
                 FCGX_GetParam("REQUEST_METHOD", request->envp),
                 FCGX_GetParam("HTTP_USER_AGENT", request->envp),
                 7);
}

/* What the test wants written, and in which pieces. */
static const char *script;
static size_t script_len, script_piece;

static void scripted(FCGX_Request *request)
{
    size_t piece = script_piece ? script_piece : script_len;
    for (size_t at = 0; at < script_len; at += piece) {
        size_t len = piece < script_len - at ? piece : script_len - at;
        FCGX_PutStr(script + at, (int)len, request->out);
        if (script_piece > 0)
            FCGX_FFlush(request->out);
    }
}

static void echo(FCGX_Request *request)
{
    int c;
    FCGX_PutS("Content-Type: application/octet-stream\n\n", request->out);
    while ((c = FCGX_GetChar(request->in)) != EOF)
        FCGX_PutChar(c, request->out);
    cr_assert_eq(FCGX_HasSeenEOF(request->in), EOF);
}

static int large_result;

static void large(FCGX_Request *request)
{
    char block[1000];
    memset(block, 'x', sizeof block);
    FCGX_PutS("Content-Type: text/plain\n\n", request->out);
    large_result = 0;
    for (size_t sent = 0; sent < LARGE && large_result >= 0; sent += sizeof block)
        large_result = FCGX_PutStr(block, sizeof block, request->out);
}

/* One call of libfcgi on a request, by its name, and what must hold after it. */
static void (*one_case)(FCGX_Request *request);

static void cases(FCGX_Request *request)
{
    one_case(request);
}

static void parameters(FCGX_Request *request)
{
    FCGX_PutS("Content-Type: text/plain\n\n", request->out);
    for (char **at = request->envp; *at; at++) {
        FCGX_PutS(*at, request->out);
        FCGX_PutS("\n", request->out);
    }
}

static void complains(FCGX_Request *request)
{
    FCGX_PutS("first\nsecond \x1b[31m\r\n\nunended", request->err);
    FCGX_PutS("Content-Type: text/plain\n\nok", request->out);
}

static void complains_much(FCGX_Request *request)
{
    for (int i = 0; i < 100; i++)
        FCGX_FPrintF(request->err, "line %d\n", i);
    FCGX_PutS("Content-Type: text/plain\n\nok", request->out);
}

static enum weir_verdict mark_commit(struct weir *w, const void *self, void *slot)
{
    (void)self;
    (void)slot;
    char status[16];
    snprintf(status, sizeof status, "%d", weir_status(w));
    weir_set_header(w, "X-Seen", status);
    return WEIR_NEXT;
}

static int after_status;

static void mark_after(struct weir *w, const void *self, void *slot)
{
    (void)self;
    (void)slot;
    after_status = weir_status(w);
}

static enum weir_verdict mark_before(struct weir *w, const void *self, void *slot)
{
    (void)self;
    (void)slot;
    weir_set_header(w, "Cache-Control", "no-cache");
    weir_set_header(w, "Set-Cookie", "filter=1");
    if (weir_header(w, "X-No-Cookie"))
        weir_set_header(w, "Set-Cookie", NULL);
    return WEIR_NEXT;
}

static const struct weir_filter mark = {
    .name = "mark", .before = mark_before, .commit = mark_commit, .after = mark_after
};

static const struct weir_endpoint endpoints[] = {
    { "GET /hello", .fcgx = hello },
    { "* /script", .fcgx = scripted },
    { "POST /echo", .fcgx = echo, .parallel = true },
    { "GET /large", .fcgx = large },
    { "* /case", .fcgx = cases },
    { "POST /parameters", .fcgx = parameters },
    { "GET /complains", .fcgx = complains },
    { "GET /complains-much", .fcgx = complains_much },
    { 0 },
};

static const struct weir_app app = {
    WEIR_ABI,
    .endpoints = endpoints,
    .chain = (const struct weir_use[]){ { &mark, NULL }, { NULL, NULL } },
};

static struct weir_test *t;

static void setup(void)
{
    struct weir_error error = { "" };
    t = weir_test_create(&app, NULL, &error);
    cr_assert(t, "%s", error.text);
    script_piece = 0;
    after_status = 0;
}

static void teardown(void)
{
    weir_test_destroy(t);
}

TestSuite(fcgx, .init = setup, .fini = teardown);

/* The reply to a program that writes this. */
static struct weir_test_reply *written_bytes(const char *output, size_t len)
{
    script = output;
    script_len = len;
    return weir_test_get(t, "/script", "X-No-Cookie: 1");
}

static struct weir_test_reply *written(const char *output)
{
    return written_bytes(output, strlen(output));
}

static bool says(const struct weir_test_reply *reply, const char *name, const char *value)
{
    const char *found = weir_test_header(reply, name);
    return value ? found && strcmp(found, value) == 0 : !found;
}

static bool is_bad_answer(const struct weir_test_reply *reply)
{
    return reply->status == 502 && strstr(reply->body, "\"code\":\"BackendBadAnswer\"") &&
           strstr(reply->log, "can't be answered for");
}

/* ---- replies ----------------------------------------------------------------------- */

Test(fcgx, answers_through_the_chain)
{
    struct weir_test_reply *reply = weir_test_get(t, "/hello", "User-Agent: test");
    cr_assert_eq(reply->status, 200);
    cr_assert_str_eq(reply->body, "hello GET, test, 7%\n");
    cr_assert(says(reply, "Content-Type", "text/plain"));
    cr_assert(says(reply, "Content-Length", "20"));
    cr_assert(says(reply, "X-Seen", "200"));
    cr_assert_str_eq(reply->hooks, "before:mark commit:mark after:mark");
    cr_assert_eq(after_status, 200);
    cr_assert(reply->complete);
}

Test(fcgx, takes_status_and_fields_over)
{
    struct weir_test_reply *reply = written("X-One: a\r\nStatus: 404 Nothing here\r\n"
                                            "content-type:text/html \t\r\nX-Two: b\r\n"
                                            "X-Two: c\r\nX-Empty:\r\n\r\nno\n");
    cr_assert_eq(reply->status, 404);
    cr_assert(strncmp(reply->head, "Status: 404 Not Found\r\n", 23) == 0);
    cr_assert(says(reply, "Content-Type", "text/html"));
    cr_assert(strstr(reply->head, "X-Two: b\r\nX-Two: c\r\n"));
    cr_assert(says(reply, "X-Empty", NULL));
    cr_assert(says(reply, "X-Seen", "404"));
    cr_assert_str_eq(reply->body, "no\n");
    cr_assert_eq(after_status, 404);
}

Test(fcgx, reads_every_form_of_a_status)
{
    static const struct {
        const char *head;
        int status;
    } forms[] = {
        { "Status: 404\n\n", 404 },
        { "Status:404 Gone fishing\r\n\r\n", 404 },
        { "STATUS:  503 \nContent-Type: a/b\n\n", 503 },
        { "Content-Type: a/b\nstatus: 200 OK\n\n", 200 },
        { "Content-Type: a/b\n\n", 200 },
        { "Location: http://example.org/\n\n", 302 },
        { "Location: http://example.org/\nStatus: 301 Moved\n\n", 301 },
        { "Status: 599 Of nobody\n\n", 599 },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct weir_test_reply *reply = written(forms[i].head);
        cr_expect_eq(reply->status, forms[i].status, "%s", forms[i].head);
        cr_expect_eq(after_status, forms[i].status, "%s", forms[i].head);
    }
}

Test(fcgx, puts_its_fields_in_place_of_a_filters_but_cookies_beside)
{
    script = "Content-Type: a/b\nCache-Control: max-age=5\nSet-Cookie: app=2\n\n";
    script_len = strlen(script);
    struct weir_test_reply *reply = weir_test_get(t, "/script", NULL);
    cr_assert(says(reply, "Cache-Control", "max-age=5"));
    cr_assert_not(strstr(reply->head, "no-cache"));
    cr_assert(strstr(reply->head, "Set-Cookie: filter=1\r\n"));
    cr_assert(strstr(reply->head, "Set-Cookie: app=2\r\n"));
}

Test(fcgx, reads_a_head_split_anywhere)
{
    static const char *const outputs[] = {
        ("Status: 201 Created\r\nContent-Type: text/plain\r\nX-A: "
         "b\r\n\r\nbody\r\n\r\nmore"),
        "Status: 201\nContent-Type: text/plain\nX-A: b\n\nbody\r\n\r\nmore",
        "Status: 201\r\nContent-Type: text/plain\nX-A: b\r\n\nbody\r\n\r\nmore",
        "Status: 201\nContent-Type: text/plain\nX-A: b\n\r\nbody\r\n\r\nmore",
    };
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        for (script_piece = 0; script_piece < strlen(outputs[i]); script_piece++) {
            struct weir_test_reply *reply = written(outputs[i]);
            cr_assert_eq(reply->status, 201);
            cr_assert(says(reply, "X-A", "b"));
            cr_assert_str_eq(reply->body, "body\r\n\r\nmore");
        }
    }
}

Test(fcgx, refuses_what_is_no_cgi_output)
{
    static const char *const outputs[] = {
        "hello world\n\nbody",                      /* no colon */
        "X-Only: a\n\nbody",                        /* no field of CGI's */
        "\nbody",                                   /* an empty head */
        "\r\n",                                     /* the same */
        "Content-Type: a/b\n folded: b\n\n",        /* a folded line */
        "Content-Type : a/b\n\n",                   /* a blank in the name */
        ": a\nContent-Type: a/b\n\n",               /* no name */
        "Content-Type: a/b\rX: b\n\n",              /* a lone CR */
        "Content-Type: a/b\x01\n\n",                /* a control character */
        "Content-Type: a/b\nContent-Type: a/b\n\n", /* twice */
        "Status: 200 OK\nStatus: 200 OK\nContent-Type: a/b\n\n",
        "Location: /a\nLocation: /a\n\n",
        "Content-Type: a/b\nContent-Length: 1\nContent-Length: 1\n\na",
        "Content-Type: a/b\nRetry-After: 1\nRetry-After: 1\n\n",
        "Status: 99\n\n",
        "Status: 100 Continue\n\n",
        "Status: 600\n\n",
        "Status: 2000\n\n",
        "Status: 20x OK\n\n",
        "Status: 200OK\n\n",
        "Status:\n\n",
        "Status: -20\n\n",
        "Content-Type: a/b\nContent-Length: -1\n\n",
        "Content-Type: a/b\nContent-Length: 1x\n\na",
        "Content-Type: a/b\nContent-Length: 99999999999999999999\n\na",
        "Content-Type: a/b\nContent-Length:\n\na",
        "Content-Type: a/b", /* ends in its head */
        "Content-Type: a/b\n",
        "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\n", /* not for a gateway */
    };
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        struct weir_test_reply *reply = written(outputs[i]);
        cr_assert(is_bad_answer(reply), "%s", outputs[i]);
        cr_assert(says(reply, "X-Seen", "502"));
        cr_assert_eq(after_status, 502);
        weir_test_advance(t, WEIR_SECONDS(2)); /* the log is limited */
    }
}

Test(fcgx, refuses_every_byte_that_no_field_may_hold)
{
    for (int byte = 0; byte < 256; byte++) {
        char name[] = "Content-Type: a/b\nX?X: a\n\n",
             value[] = "Status: 200\nX: a?a\n\n";
        name[19] = (char)byte;
        value[16] = (char)byte;
        bool is_token = byte == ':' || (byte != 0 && strchr("!#$%&'*+-.^_`|~", byte)) ||
                        (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                        (byte >= 'a' && byte <= 'z');
        bool is_value = byte >= ' ' ? byte != 0x7f : byte == '\t';
        struct weir_test_reply *reply = written_bytes(name, sizeof name - 1);
        cr_assert_eq(reply->status, is_token ? 200 : 502, "%d in a name", byte);
        reply = written_bytes(value, sizeof value - 1);
        cr_assert_eq(reply->status, is_value ? 200 : 502, "%d in a value", byte);
    }
}

Test(fcgx, takes_no_injected_line_as_a_field)
{
    struct weir_test_reply *reply =
        written_bytes("Content-Type: a/b\nX: a\0Set-Cookie: b\n\n", 39);
    cr_assert(is_bad_answer(reply));
    cr_assert_not(strstr(reply->head, "Set-Cookie"));
}

Test(fcgx, takes_a_head_of_8_kib_and_no_more)
{
    static char output[8194];
    for (size_t len = 8191; len <= 8193; len++) {
        memset(output, 'a', sizeof output);
        memcpy(output, "Content-Type: ", 14);
        memcpy(output + len - 2, "\n\n", 3);
        struct weir_test_reply *reply = written_bytes(output, len);
        if (len <= 8192)
            cr_assert_eq(reply->status, 200, "%zu", len);
        else
            cr_assert(is_bad_answer(reply));
    }
}

Test(fcgx, makes_a_500_of_a_program_that_writes_nothing)
{
    struct weir_test_reply *reply = written("");
    cr_assert_eq(reply->status, 500);
    cr_assert(says(reply, "Content-Type", "application/problem+json"));
    cr_assert(strstr(reply->log, "wrote nothing"));
}

Test(fcgx, drops_the_fields_of_one_connection)
{
    struct weir_test_reply *reply =
        written("Content-Type: a/b\nConnection: close\nTransfer-Encoding: chunked\n"
                "Proxy-Authenticate: x\nKeep-Alive: 1\nX: y\n\nbody");
    cr_assert_eq(reply->status, 200);
    cr_assert(says(reply, "Connection", NULL));
    cr_assert(says(reply, "Transfer-Encoding", NULL));
    cr_assert(says(reply, "Proxy-Authenticate", NULL));
    cr_assert(says(reply, "Keep-Alive", NULL));
    cr_assert(says(reply, "X", "y"));
}

/* ---- redirects --------------------------------------------------------------------- */

Test(fcgx, leaves_a_local_redirect_its_one_field)
{
    struct weir_test_reply *reply = written("Location: /other?a=b\r\n\r\n");
    cr_assert_str_eq(reply->head, "Location: /other?a=b\r\n\r\n");
    cr_assert_eq(reply->body_len, 0u);
    cr_assert_eq(after_status, 302);
}

Test(fcgx, redirects_the_client_where_a_filter_sets_a_cookie)
{
    script = "Location: /other\n\n";
    script_len = strlen(script);
    struct weir_test_reply *reply = weir_test_get(t, "/script", NULL);
    cr_assert_eq(reply->status, 302);
    cr_assert(says(reply, "Set-Cookie", "filter=1"));
    cr_assert(says(reply, "Location", "/other"));
}

Test(fcgx, redirects_the_client_in_every_other_case)
{
    static const char *const outputs[] = {
        "Location: http://example.org/\n\n",
        "Location: //example.org/\n\n",
        "Location: /a\nX: y\n\n",
        "Location: /a\n\nbody",
        "Status: 302\nLocation: /a\n\n",
    };
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        struct weir_test_reply *reply = written(outputs[i]);
        cr_assert(
            strncmp(reply->head, "Status: 302 Found\r\n", 19) == 0, "%s", outputs[i]);
        cr_assert(says(reply, "X-Seen", "302"));
    }
    struct weir_test_reply *reply = written("Location: /a\nStatus: 201 Created\n\n");
    cr_assert_eq(reply->status, 201);
}

/* ---- bodies ------------------------------------------------------------------------ */

static struct weir_test_reply *post(const char *target, const void *body, size_t len)
{
    return weir_test_send(
        t,
        &(struct weir_test_request){ .target = target, .body = body, .body_len = len });
}

Test(fcgx, reads_the_whole_body)
{
    static char body[100000];
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)(i * 7);
    for (size_t piece = 0; piece <= 7; piece += 7) {
        struct weir_test_reply *reply =
            weir_test_send(t,
                           &(struct weir_test_request){ .target = "/echo",
                                                        .body = body,
                                                        .body_len = sizeof body,
                                                        .piece_bytes = piece });
        cr_assert_eq(reply->body_len, sizeof body);
        cr_assert(memcmp(reply->body, body, sizeof body) == 0);
    }
    cr_assert_eq(post("/echo", "", 0)->body_len, 0u);
}

Test(fcgx, sends_a_large_body_in_pieces)
{
    struct weir_test_reply *reply = weir_test_get(t, "/large", NULL);
    cr_assert_eq(reply->body_len, (LARGE + 999) / 1000 * 1000);
    cr_assert_gt(reply->flushes, 1u);
    cr_assert(reply->complete);
    cr_assert_gt(large_result, 0);
}

Test(fcgx, tells_the_program_that_the_client_is_gone)
{
    struct weir_test_reply *reply = weir_test_send(
        t, &(struct weir_test_request){ .target = "/large", .gone_after_bytes = 300000 });
    cr_assert_not(reply->complete);
    cr_assert_lt(large_result, 0);
    cr_assert_eq(after_status, 200);
}

Test(fcgx, sends_no_body_for_a_head_request)
{
    static const char *const outputs[] = {
        "Content-Type: a/b\n\n12345",
        "Content-Type: a/b\nContent-Length: 5\n\n",
        "Content-Type: a/b\nContent-Length: 5\n\n12345",
        "Content-Type: a/b\n\n",
    };
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        script = outputs[i];
        script_len = strlen(script);
        struct weir_test_reply *reply = weir_test_send(
            t, &(struct weir_test_request){ .method = "HEAD", .target = "/script" });
        cr_assert_eq(reply->body_len, 0u);
        cr_assert(says(reply, "Content-Length", i < 3 ? "5" : NULL), "%zu", i);
        cr_assert_str_eq(reply->log, "");
    }
}

Test(fcgx, keeps_the_length_that_the_program_declares)
{
    script_piece = 10; /* and so flushes */
    struct weir_test_reply *reply =
        written("Content-Type: a/b\nContent-Length: 5\n\n12345");
    cr_assert_gt(reply->flushes, 0u);
    cr_assert(says(reply, "Content-Length", "5"));
    cr_assert_str_eq(reply->body, "12345");
    cr_assert(reply->complete);
}

Test(fcgx, cuts_a_body_that_is_longer_than_declared)
{
    struct weir_test_reply *reply =
        written("Content-Type: a/b\nContent-Length: 5\n\n12345678");
    cr_assert_str_eq(reply->body, "12345");
    cr_assert(says(reply, "Content-Length", "5"));
}

Test(fcgx, does_not_pass_a_short_body_on_as_whole)
{
    cr_assert(is_bad_answer(written("Content-Type: a/b\nContent-Length: 9\n\n12345")));
    script_piece = 10;
    struct weir_test_reply *reply =
        written("Content-Type: a/b\nContent-Length: 9\n\n12345");
    cr_assert_eq(reply->status, 200);
    cr_assert_not(reply->complete);
}

Test(fcgx, has_no_body_with_204)
{
    struct weir_test_reply *reply = written("Status: 204 No Content\n\n");
    cr_assert_eq(reply->status, 204);
    cr_assert(says(reply, "Content-Length", NULL));
}

/* ---- what the program sees and says ------------------------------------------------ */

Test(fcgx, gives_the_program_each_parameter_once)
{
    struct weir_test_reply *reply = weir_test_send(
        t,
        &(struct weir_test_request){
            .target = "/parameters",
            .headers = "Cookie: a=\nCookie: b=2\nX-A: 1\nX-A: 2\nProxy: evil",
            .params = "REMOTE_ADDR=192.0.2.1\nCONTENT_LENGTH=",
            .body = "12345" });
    cr_assert(strncmp(reply->body, "FCGI_ROLE=RESPONDER\n", 20) == 0);
    cr_assert(strstr(reply->body, "\nHTTP_COOKIE=a=; b=2\n"));
    cr_assert(strstr(reply->body, "\nHTTP_X_A=1, 2\n"));
    cr_assert(strstr(reply->body, "\nREMOTE_ADDR=192.0.2.1\n"));
    cr_assert(strstr(reply->body, "\nCONTENT_LENGTH=5\n"));
    cr_assert_not(strstr(reply->body, "HTTP_PROXY"));
    cr_assert_not(strstr(reply->body, "CONTENT_LENGTH=\n"));
    char *again = strstr(reply->body, "HTTP_X_A=");
    cr_assert_not(strstr(again + 1, "HTTP_X_A="));
}

Test(fcgx, logs_what_the_program_complains_of)
{
    struct weir_test_reply *reply = weir_test_get(t, "/complains", NULL);
    cr_assert_str_eq(reply->body, "ok");
    cr_assert(strstr(reply->log, "GET /complains: first\n"), "%s", reply->log);
    cr_assert(strstr(reply->log, "GET /complains: second \\x1b[31m\n"), "%s", reply->log);
    cr_assert(strstr(reply->log, "GET /complains: unended\n"), "%s", reply->log);
}

Test(fcgx, bounds_what_one_request_may_log)
{
    struct weir_test_reply *reply = weir_test_get(t, "/complains-much", NULL);
    cr_assert(strstr(reply->log, ": line 63\n"));
    cr_assert_not(strstr(reply->log, ": line 64\n"));
    cr_assert(strstr(reply->log, ": 36 more lines of standard error\n"));
}

/* ---- the tables -------------------------------------------------------------------- */

static int native(struct weir *w)
{
    return weir_text(w, 200, "native");
}

static void refuses(struct weir_endpoint endpoint, const char *text)
{
    struct weir_error error = { "" };
    struct weir_app bad = { WEIR_ABI,
                            .endpoints =
                                (const struct weir_endpoint[]){ endpoint, { 0 } } };
    weir_test_destroy(t);
    t = NULL;
    cr_assert_null(weir_test_create(&bad, NULL, &error));
    cr_assert(strstr(error.text, text), "%s", error.text);
}

Test(fcgx, is_refused_where_its_endpoint_contradicts_itself)
{
    refuses((struct weir_endpoint){ "GET /", native, .fcgx = hello },
            "a handler and .fcgx");
    refuses((struct weir_endpoint){ "GET /", .fcgx = hello, .nonblocking = true },
            "may block");
    refuses((struct weir_endpoint){ "GET /", native, .parallel = true }, ".parallel");
}

/* ---- every function of fcgiapp.h --------------------------------------------------- */

static void finish_r(FCGX_Request *r)
{
    FCGX_PutS(OK "finished", r->out);
    FCGX_PutS("said before\n", r->err);
    FCGX_Finish_r(r);
    cr_assert_null(r->out);
    FCGX_Finish_r(r);
}
static void free_request(FCGX_Request *r)
{
    FCGX_PutS(OK "freed", r->out);
    FCGX_FClose(r->out);
    FCGX_Free(r, 1);
}
static void is_cgi(FCGX_Request *r)
{
    FCGX_IsCGI();
    FCGX_PutS(OK "any", r->out);
}
static void init(FCGX_Request *r)
{
    FCGX_FPrintF(r->out, OK "%d", FCGX_Init());
}
static void accept_r(FCGX_Request *r)
{
    FCGX_Init();
    FCGX_PutS(OK "once", r->out);
    cr_assert_lt(FCGX_Accept_r(r), 0);
}
static void shutdown_pending(FCGX_Request *r)
{
    FCGX_ShutdownPending();
    FCGX_PutS(OK "goes on", r->out);
}

/* Functions that work in a handler and not alike in a program with a loop of its own;
 * those of fcgx_calls.h work in both. */
static const struct fcgx_call works[] = {
    { "FCGX_Finish_r", finish_r, "finished" },
    { "FCGX_Free", free_request, "freed" },
    { "FCGX_IsCGI", is_cgi, "any" },
    { "FCGX_Init", init, "0" },
    { "FCGX_Accept_r", accept_r, "once" }, /* the reply is done, the loop ends */
    { "FCGX_ShutdownPending", shutdown_pending, "goes on" },
};

#define WORKS_LEN (sizeof works / sizeof *works)

/* Functions that have no place in a handler. */
static const struct impossible {
    const char *name, *why;
} impossible[] = {
    { "FCGX_OpenSocket",
      "listens itself: the worker listens, and a failure would exit()" },
    { "FCGX_InitRequest", "clears the request that the handler was given" },
    { "FCGX_Accept", "has one request of the process behind it, not the handler's" },
    { "FCGX_Finish", "the same" },
};

#define IMPOSSIBLE_LEN (sizeof impossible / sizeof *impossible)

static void runs(const struct fcgx_call *calls, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        one_case = calls[i].run;
        struct weir_test_reply *reply =
            post("/case", FCGX_CALLS_BODY, strlen(FCGX_CALLS_BODY));
        cr_expect_null(fcgx_calls_failure, "%s: %s", calls[i].name, fcgx_calls_failure);
        cr_expect_eq(reply->status, 200, "%s", calls[i].name);
        cr_expect_str_eq(reply->body, calls[i].body, "%s", calls[i].name);
        cr_expect(reply->complete, "%s", calls[i].name);
        fcgx_calls_failure = NULL;
    }
}

Test(fcgx, runs_every_call_that_works)
{
    runs(fcgx_calls, FCGX_CALLS_LEN);
    runs(works, WORKS_LEN);
}

static bool is_in(const struct fcgx_call *calls, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(calls[i].name, name) == 0)
            return true;
    return false;
}

static bool is_listed(const char *name)
{
    for (size_t i = 0; i < IMPOSSIBLE_LEN; i++)
        if (strcmp(impossible[i].name, name) == 0)
            return true;
    return is_in(fcgx_calls, FCGX_CALLS_LEN, name) || is_in(works, WORKS_LEN, name);
}

Test(fcgx, lists_every_function_of_the_header)
{
    cr_assert_eq(header_names(FCGIAPP_H, "FCGX_", is_listed),
                 FCGX_CALLS_LEN + WORKS_LEN + IMPOSSIBLE_LEN);
}
