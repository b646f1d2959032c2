/* A CGI program made to last: fcgi_stdio.h turns its printf and getchar into those of the
 * request at hand. One request at a time, from the socket at descriptor 0.
 *
 *     /          prints what was asked for, and a body in capitals
 *     /?BYTES    prints that many */
#include <ctype.h>
#include <fcgi_stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static void print_bytes(long bytes)
{
    printf("Content-Type: text/plain\n\n");
    for (long line = 0; bytes > 0; line++) {
        char text[64];
        int len = snprintf(text, sizeof text, "line %ld of a long text\n", line);
        if (len > bytes)
            len = (int)bytes;
        if (fwrite(text, 1, (size_t)len, stdout) != (size_t)len)
            return;
        bytes -= len;
    }
}

static void print_request(void)
{
    int c;
    printf("Content-Type: text/plain\n\n");
    printf("%s %s\n", variable("REQUEST_METHOD"), variable("REQUEST_URI"));
    while ((c = getchar()) != EOF)
        putchar(toupper(c));
    if (ferror(stdin))
        fprintf(stderr, "the body can't be read\n");
}

int main(void)
{
    while (FCGI_Accept() >= 0) {
        long bytes = atol(variable("QUERY_STRING"));
        if (bytes > 0)
            print_bytes(bytes);
        else
            print_request();
    }
    return 0;
}
