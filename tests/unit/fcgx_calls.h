/* A case for each function of fcgiapp.h that a handler, or a program with a loop of its
 * own, calls on the request that it has. The request is POST /case with FCGX_CALLS_BODY.
 */
#ifndef TESTS_FCGX_CALLS_H
#define TESTS_FCGX_CALLS_H

#include <fcgiapp.h>
#include <stdarg.h>
#include <string.h>

#define FCGX_CALLS_BODY "line one\nline two"
#define OK "Content-Type: text/plain\r\n\r\n"

/* What didn't hold in the case, NULL: all did. A case may run in a process of its own. */
static const char *fcgx_calls_failure;

#define HOLDS(condition_)                                                                \
    do {                                                                                 \
        if (!(condition_))                                                               \
            fcgx_calls_failure = #condition_;                                            \
    } while (0)

static void get_char(FCGX_Request *r)
{
    int c = FCGX_GetChar(r->in);
    FCGX_FPrintF(r->out, OK "%c", c);
}
static void un_get_char(FCGX_Request *r)
{
    int c = FCGX_GetChar(r->in);
    HOLDS(FCGX_UnGetChar(c, r->in) == c);
    HOLDS(FCGX_GetChar(r->in) == c);
    HOLDS(FCGX_UnGetChar('m', r->in) == 'm');
    FCGX_FPrintF(r->out, OK "%c%c", c, FCGX_GetChar(r->in));
}
static void get_str(FCGX_Request *r)
{
    char text[64];
    int len = FCGX_GetStr(text, sizeof text, r->in);
    FCGX_FPrintF(r->out, OK "%d %d", len, FCGX_GetStr(text, sizeof text, r->in));
}
static void get_line(FCGX_Request *r)
{
    char text[64], more[64];
    HOLDS(FCGX_GetLine(text, sizeof text, r->in));
    HOLDS(FCGX_GetLine(more, sizeof more, r->in));
    HOLDS(!FCGX_GetLine(more, sizeof more, r->in));
    FCGX_FPrintF(r->out, OK "%s", text);
}
static void has_seen_eof(FCGX_Request *r)
{
    char text[64];
    int before = FCGX_HasSeenEOF(r->in);
    FCGX_GetStr(text, sizeof text, r->in);
    FCGX_FPrintF(r->out, OK "%d %d", before, FCGX_HasSeenEOF(r->in));
}
static void put_char(FCGX_Request *r)
{
    FCGX_PutS(OK, r->out);
    HOLDS(FCGX_PutChar('x', r->out) == 'x');
}
static void put_str(FCGX_Request *r)
{
    HOLDS(FCGX_PutStr(OK "xyz", (int)strlen(OK) + 2, r->out) == (int)strlen(OK) + 2);
}
static void put_s(FCGX_Request *r)
{
    FCGX_PutS(OK "puts", r->out);
}
static void f_print_f(FCGX_Request *r)
{
    FCGX_FPrintF(r->out, OK "%s %ld %x", "a", 12L, 255);
}
static void vf_print(FCGX_Request *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    FCGX_VFPrintF(r->out, format, args);
    va_end(args);
}
static void vf_print_f(FCGX_Request *r)
{
    vf_print(r, OK "%d", 5);
}
static void f_flush(FCGX_Request *r)
{
    FCGX_PutS(OK "a", r->out);
    HOLDS(FCGX_FFlush(r->out) == 0);
    FCGX_PutS("b", r->out);
}
static void f_close(FCGX_Request *r)
{
    FCGX_PutS(OK "a", r->out);
    HOLDS(FCGX_FClose(r->out) == 0);
    HOLDS(FCGX_PutS("b", r->out) == EOF);
    HOLDS(FCGX_FClose(r->err) == 0);
    HOLDS(FCGX_FClose(r->in) == 0);
}
static void get_error(FCGX_Request *r)
{
    FCGX_FPrintF(r->out, OK "%d %d", FCGX_GetError(r->in), FCGX_GetError(r->out));
}
static void clear_error(FCGX_Request *r)
{
    FCGX_ClearError(r->out);
    FCGX_PutS(OK "clear", r->out);
}
static void get_param(FCGX_Request *r)
{
    HOLDS(!FCGX_GetParam("NO_SUCH", r->envp));
    FCGX_FPrintF(r->out, OK "%s", FCGX_GetParam("REQUEST_METHOD", r->envp));
}
static void set_exit_status(FCGX_Request *r)
{
    FCGX_SetExitStatus(3, r->out);
    FCGX_PutS(OK "status", r->out);
}
/* Of the leak finder, where there is one: FCGX_FreeStream forgets what FCGX_CreateWriter
 * allocates for a request. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static void create_writer(FCGX_Request *r)
{
    if (__lsan_disable)
        __lsan_disable();
    FCGX_Stream *own = FCGX_CreateWriter(-1, 1, 64, 6);
    FCGX_PutS("elsewhere", own);
    FCGX_FreeStream(&own);
    if (__lsan_enable)
        __lsan_enable();
    FCGX_PutS(OK "own", r->out);
}
static void start_filter_data(FCGX_Request *r)
{
    HOLDS(FCGX_StartFilterData(r->in) < 0);
    FCGX_PutS(OK "none", r->out);
}
static void attach(FCGX_Request *r)
{
    FCGX_Detach(r);
    FCGX_Attach(r);
    FCGX_PutS(OK "attached", r->out);
}

static const struct fcgx_call {
    const char *name;
    void (*run)(FCGX_Request *request);
    const char *body; /* the answer's */
} fcgx_calls[] = {
    { "FCGX_GetChar", get_char, "l" },
    { "FCGX_UnGetChar", un_get_char, "lm" },
    { "FCGX_GetStr", get_str, "17 0" },
    { "FCGX_GetLine", get_line, "line one\n" },
    { "FCGX_HasSeenEOF", has_seen_eof, "0 -1" },
    { "FCGX_PutChar", put_char, "x" },
    { "FCGX_PutStr", put_str, "xy" },
    { "FCGX_PutS", put_s, "puts" },
    { "FCGX_FPrintF", f_print_f, "a 12 ff" },
    { "FCGX_VFPrintF", vf_print_f, "5" },
    { "FCGX_FFlush", f_flush, "ab" },
    { "FCGX_FClose", f_close, "a" },
    { "FCGX_GetError", get_error, "0 0" },
    { "FCGX_ClearError", clear_error, "clear" },
    { "FCGX_GetParam", get_param, "POST" },
    { "FCGX_SetExitStatus", set_exit_status, "status" },
    { "FCGX_CreateWriter", create_writer, "own" },
    { "FCGX_FreeStream", create_writer, "own" },
    { "FCGX_StartFilterData", start_filter_data, "none" }, /* no request is a FILTER's */
    { "FCGX_Attach", attach, "attached" },
    { "FCGX_Detach", attach, "attached" },
};

#define FCGX_CALLS_LEN (sizeof fcgx_calls / sizeof *fcgx_calls)

#endif
