/* A greeting, in libfcgi's oldest style: one request at a time, from the socket that
 * stands at descriptor 0, where spawn-fcgi and web servers put it.
 *
 *     /?NAME    greets NAME
 *     /moved    is somewhere else
 *     else      404 */
#include <fcgiapp.h>
#include <stdio.h>
#include <string.h>

static const char *param(const char *name, FCGX_ParamArray envp)
{
    const char *value = FCGX_GetParam(name, envp);
    return value ? value : "";
}

static void greet(FCGX_Stream *out, FCGX_ParamArray envp)
{
    const char *name = param("QUERY_STRING", envp);
    FCGX_FPrintF(out, "Content-Type: text/plain\r\nX-Greeted: %d\r\n\r\n", *name != '\0');
    FCGX_FPrintF(out, "Hello %s,\n", *name ? name : "whoever you are");
    FCGX_FPrintF(out,
                 "you asked by %s with %s.\n",
                 param("REQUEST_METHOD", envp),
                 param("HTTP_USER_AGENT", envp));
}

int main(void)
{
    FCGX_Stream *in, *out, *err;
    FCGX_ParamArray envp;

    while (FCGX_Accept(&in, &out, &err, &envp) >= 0) {
        const char *path = param("DOCUMENT_URI", envp);
        if (strcmp(path, "/") == 0) {
            greet(out, envp);
        } else if (strcmp(path, "/moved") == 0) {
            FCGX_PutS("Location: /?there\r\n\r\n", out);
        } else {
            FCGX_FPrintF(err, "no page %s\n", path);
            FCGX_PutS("Status: 404 Not Found\r\nContent-Type: text/plain\r\n\r\n", out);
            FCGX_PutS("There is no such page.\n", out);
        }
    }
    FCGX_Finish();
    return 0;
}
