/* Runs handlers of libfcgi's form on any transport: streams that libfcgi has made, over
 * memory of ours, so that every call of libfcgi works on them. No socket is ever given to
 * it.
 *
 * The one file of the library that includes libfcgi's header, and it links nothing: a
 * program with such handlers brings libfcgi along, another has no need of it. */
#include "fcgx.h"

#include <errno.h>
#include <fcgiapp.h>
#include <stdlib.h>
#include <string.h>

#include "cgi_log.h"
#include "cgi_reply.h"
#include "field.h"

/* All that is called here. */
#pragma weak FCGX_CreateWriter
#pragma weak FCGX_FClose
#pragma weak FCGX_FreeStream
#pragma weak FCGX_SetExitStatus

#define NO_SOCKET (-1)
#define ROLE_RESPONDER 1
#define STREAM_STDOUT 6
#define OUT_BYTES ((size_t)8 * 1024) /* as libfcgi's own */
#define ERR_BYTES ((size_t)512)

/* One run of a handler. */
struct run {
    struct weir__cgi_reply reply;
    struct weir__cgi_log log;
    bool flushes; /* the program flushes */
    unsigned char out[OUT_BYTES], err[ERR_BYTES];
};

/* What libfcgi keeps behind a stream's `data`, the same in 2.4.2 to 2.4.7. Only `owner`
 * is of interest: calls that look into the request (FCGX_SetExitStatus) go by it, and the
 * one that FCGX_CreateWriter allocates is freed by nobody. */
struct behind {
    unsigned char *buff;
    int bufflen;
    unsigned char *mBuff, *buffStop;
    int type, eorStop, skip, contentLen, paddingLen, isAnythingWritten, rawWrite;
    FCGX_Request *owner;
};

/* ---- is it libfcgi as we know it? -------------------------------------------------- */

static bool is_as_known(FCGX_Stream *stream, int id)
{
    const struct behind *behind = stream->data;
    if (behind->bufflen != 32 || behind->buff < behind->mBuff ||
        behind->buff > behind->mBuff + 8 || behind->type != STREAM_STDOUT ||
        !behind->owner || behind->owner->requestId != id ||
        behind->owner->ipcFd != NO_SOCKET)
        return false;
    FCGX_SetExitStatus(id + 1, stream);
    return behind->owner->appStatus == id + 1;
}

const char *weir__fcgx_missing(void)
{
    if (!FCGX_CreateWriter || !FCGX_FClose || !FCGX_FreeStream || !FCGX_SetExitStatus)
        return ".fcgx, but the program is not linked with libfcgi";
    const int id = 4711;
    FCGX_Stream *probe = FCGX_CreateWriter(NO_SOCKET, id, 0, STREAM_STDOUT);
    bool known = is_as_known(probe, id);
    if (known)
        free(((struct behind *)probe->data)->owner);
    FCGX_FreeStream(&probe);
    return known ? NULL : ".fcgx, but this libfcgi's streams are of an unknown layout";
}

/* ---- streams ----------------------------------------------------------------------- */

/* A stream of that request, to be given its procedures and memory. */
static FCGX_Stream *make_stream(FCGX_Request *request)
{
    FCGX_Stream *stream =
        FCGX_CreateWriter(NO_SOCKET, request->requestId, 0, STREAM_STDOUT);
    struct behind *behind = stream->data;
    free(behind->owner);
    behind->owner = request;
    return stream;
}

/* The body is all there: past it is its end. */
static void fill_in(FCGX_Stream *stream)
{
    stream->isClosed = 1;
}

static FCGX_Stream *make_reader(FCGX_Request *request, const char *body, size_t len)
{
    FCGX_Stream *stream = make_stream(request);
    stream->isReader = 1;
    stream->fillBuffProc = fill_in;
    stream->emptyBuffProc = NULL;
    /* FCGX_UnGetChar writes back what was read; nothing else writes here. */
    stream->rdNext = stream->stopUnget = (unsigned char *)body;
    stream->wrNext = stream->stop = stream->rdNext + len;
    return stream;
}

/* A writer's stopUnget is of no use to libfcgi: the run stands there. */
static struct run *run_of(const FCGX_Stream *stream)
{
    return (struct run *)stream->stopUnget;
}

static void empty_to(FCGX_Stream *stream, unsigned char *buffer, size_t len)
{
    stream->rdNext = stream->stop = buffer + len;
    stream->wrNext = buffer;
}

/* The program's output is full, flushed or closed. A flush is known by the room that is
 * left; one that finds the buffer exactly full looks like more output, unless the program
 * has flushed before. */
static void empty_out(FCGX_Stream *stream, int do_close)
{
    struct run *run = run_of(stream);
    size_t len = (size_t)(stream->wrNext - run->out);
    bool wanted = weir__cgi_reply_write(&run->reply, run->out, len);
    if (len < OUT_BYTES && !do_close)
        run->flushes = true;
    if (wanted && run->flushes && !do_close)
        wanted = weir__cgi_reply_flush(&run->reply);
    empty_to(stream, run->out, wanted ? OUT_BYTES : 0);
    if (!wanted) {
        stream->isClosed = 1;
        stream->FCGI_errno = EPIPE;
    }
}

static void empty_err(FCGX_Stream *stream, int do_close)
{
    struct run *run = run_of(stream);
    size_t len = (size_t)(stream->wrNext - run->err);
    (void)do_close;
    weir__cgi_log_write(&run->log, (const char *)run->err, len);
    empty_to(stream, run->err, ERR_BYTES);
}

static FCGX_Stream *make_writer(FCGX_Request *request,
                                struct run *run,
                                unsigned char *buffer,
                                size_t len,
                                void (*empty)(FCGX_Stream *stream, int do_close))
{
    FCGX_Stream *stream = make_stream(request);
    stream->emptyBuffProc = empty;
    stream->stopUnget = (unsigned char *)run;
    empty_to(stream, buffer, len);
    return stream;
}

/* ---- parameters -------------------------------------------------------------------- */

static bool is_same(const struct weir__pair *a, const struct weir__pair *b)
{
    return a->name_len == b->name_len && memcmp(a->name, b->name, a->name_len) == 0;
}

/* "NAME=value" of a parameter, with the values of all later ones of that name. NULL where
 * memory is short. */
static char *join(struct weir *w, unsigned first)
{
    const struct weir__pair *param = &w->params[first];
    const char *joint = weir__field_joint(param->name);
    size_t joint_len = joint ? strlen(joint) : 0;
    size_t bytes = (size_t)param->name_len + 1 + param->value_len + 1;
    for (unsigned i = first + 1; joint && i < w->params_len; i++)
        if (w->params[i].value_len > 0 && is_same(&w->params[i], param))
            bytes += joint_len + w->params[i].value_len;
    char *text = weir_alloc(w, bytes);
    if (!text)
        return NULL;
    char *end = stpcpy(stpcpy(stpcpy(text, param->name), "="), param->value);
    bool any = param->value_len > 0;
    for (unsigned i = first + 1; joint && i < w->params_len; i++) {
        if (w->params[i].value_len == 0 || !is_same(&w->params[i], param))
            continue;
        end = stpcpy(any ? stpcpy(end, joint) : end, w->params[i].value);
        any = true;
    }
    return text;
}

static bool is_earlier(const struct weir *w, unsigned index)
{
    for (unsigned i = 0; i < index; i++)
        if (is_same(&w->params[i], &w->params[index]))
            return true;
    return false;
}

/* HTTP_PROXY is a client's word that some libraries take for the proxy to use (RFC 3875
 * section 9.2). */
static bool is_left_out(const struct weir *w, unsigned index)
{
    const char *name = w->params[index].name;
    return strcmp(name, "HTTP_PROXY") == 0 ||
           (w->content_length < 0 && strcmp(name, "CONTENT_LENGTH") == 0) ||
           is_earlier(w, index);
}

/* The environment of the program, each name once. */
static char **make_environment(struct weir *w)
{
    char **texts = weir_alloc(w, ((size_t)w->params_len + 3) * sizeof *texts);
    unsigned len = 0;
    if (!texts)
        return NULL;
    texts[len++] = (char *)"FCGI_ROLE=RESPONDER";
    for (unsigned i = 0; i < w->params_len; i++) {
        if (is_left_out(w, i))
            continue;
        if (!(texts[len++] = join(w, i)))
            return NULL;
    }
    /* A body without a declared length has one now that it is whole. */
    if (w->content_length < 0 && w->body_len > 0 &&
        !(texts[len++] = weir_printf(w, "CONTENT_LENGTH=%zu", w->body_len)))
        return NULL;
    texts[len] = NULL;
    return texts;
}

/* ---- the run ----------------------------------------------------------------------- */

/* What the program has closed itself, by FCGX_Finish_r, is gone. */
static void finish(FCGX_Request *request)
{
    if (request->err)
        FCGX_FClose(request->err);
    if (request->out)
        FCGX_FClose(request->out);
    FCGX_FreeStream(&request->in);
    FCGX_FreeStream(&request->out);
    FCGX_FreeStream(&request->err);
}

struct weir *weir__fcgx_request_of(const FCGX_Request *request)
{
    return run_of(request->out)->reply.w;
}

void weir__fcgx_give_up(const FCGX_Request *request, const char *why)
{
    run_of(request->out)->reply.why = why;
}

int weir__fcgx_handle(struct weir *w)
{
    struct run *run = weir_alloc(w, sizeof *run);
    FCGX_Request request = { .requestId = 1,
                             .role = ROLE_RESPONDER,
                             .ipcFd = NO_SOCKET,
                             .listen_sock = NO_SOCKET,
                             .isBeginProcessed = 1,
                             .keepConnection = 1 };
    if (run)
        request.envp = make_environment(w);
    if (!request.envp)
        return weir_problem(w, 500, "InternalError", NULL);
    run->flushes = false;
    weir__cgi_reply_init(&run->reply, w);
    weir__cgi_log_init(&run->log, w);
    request.in = make_reader(&request, w->body, w->body_len);
    request.out = make_writer(&request, run, run->out, OUT_BYTES, empty_out);
    request.err = make_writer(&request, run, run->err, ERR_BYTES, empty_err);
    w->endpoint->fcgx(&request);
    finish(&request);
    weir__cgi_log_end(&run->log);
    return weir__cgi_reply_end(&run->reply);
}
