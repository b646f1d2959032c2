/* Reads a body and sends it back behind its length and checksum: one thread with a
 * request and a socket of its own. "body SOCKET", where a path or ":PORT" names the
 * socket.
 *
 *     /          reads with FCGX_GetStr
 *     /?char     with FCGX_GetChar, after a look ahead
 *     /?line     with FCGX_GetLine: for text */
#include <fcgiapp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BODY_MAX (4 * 1024 * 1024)

struct body {
    char *bytes; /* BODY_MAX + 1 of them */
    int len;
};

static void read_by_char(FCGX_Stream *in, struct body *body)
{
    int c = FCGX_GetChar(in);
    if (c != EOF)
        FCGX_UnGetChar(c, in);
    while (body->len <= BODY_MAX && (c = FCGX_GetChar(in)) != EOF)
        body->bytes[body->len++] = (char)c;
}

static void read_by_line(FCGX_Stream *in, struct body *body)
{
    char line[80];
    while (body->len <= BODY_MAX - (int)sizeof line &&
           FCGX_GetLine(line, sizeof line, in)) {
        size_t len = strlen(line);
        memcpy(body->bytes + body->len, line, len);
        body->len += (int)len;
    }
}

/* 0: in no such way. */
static int read_body(FCGX_Request *request, struct body *body)
{
    const char *how = FCGX_GetParam("QUERY_STRING", request->envp);
    body->len = 0;
    if (!how || !*how)
        body->len = FCGX_GetStr(body->bytes, BODY_MAX + 1, request->in);
    else if (strcmp(how, "char") == 0)
        read_by_char(request->in, body);
    else if (strcmp(how, "line") == 0)
        read_by_line(request->in, body);
    else
        return 0;
    return 1;
}

/* Adler-32, as in RFC 1950. */
static uint32_t checksum(const struct body *body)
{
    uint32_t a = 1, b = 0;
    for (int i = 0; i < body->len; i++) {
        a = (a + (unsigned char)body->bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static void refuse(FCGX_Request *request, const char *status, const char *why)
{
    FCGX_PutStr(why, (int)strlen(why), request->err);
    FCGX_PutStr("\n", 1, request->err);
    FCGX_SetExitStatus(1, request->out);
    FCGX_FPrintF(request->out, "Status: %s\r\nContent-Type: text/plain\r\n\r\n", status);
    FCGX_FPrintF(request->out, "%s\n", why);
}

static void answer(FCGX_Request *request, struct body *body)
{
    const char *declared = FCGX_GetParam("CONTENT_LENGTH", request->envp);
    if (!read_body(request, body)) {
        refuse(request, "400 Bad Request", "no such way to read");
        return;
    }
    if (body->len > BODY_MAX) {
        refuse(request, "413 Payload Too Large", "more than 4 MiB");
        return;
    }
    if (declared && *declared && body->len < atoi(declared)) {
        refuse(request, "400 Bad Request", "the body ended early");
        return;
    }
    FCGX_PutS("Content-Type: application/octet-stream\n", request->out);
    FCGX_FPrintF(request->out, "X-Adler: %08x\n", (unsigned)checksum(body));
    FCGX_FPrintF(request->out, "Content-Length: %d\n\n", body->len);
    FCGX_PutStr(body->bytes, body->len, request->out);
}

int main(int argc, char **argv)
{
    FCGX_Request request;
    struct body body = { malloc(BODY_MAX + 1), 0 };

    if (argc != 2 || !body.bytes || FCGX_Init() != 0) {
        fprintf(stderr, "usage: body SOCKET\n");
        return 1;
    }
    umask(0); /* the web server is somebody else */
    int fd = FCGX_OpenSocket(argv[1], 100);
    if (fd < 0 || FCGX_InitRequest(&request, fd, 0) != 0)
        return 1;
    while (FCGX_Accept_r(&request) == 0)
        answer(&request, &body);
    FCGX_Free(&request, 1);
    free(body.bytes);
    return 0;
}
