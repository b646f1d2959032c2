/* A case for each function of fcgi_stdio.h, by its own name and not by the macro that
 * takes stdio's for it. The request is POST /case with FCGX_CALLS_BODY. */
#ifndef TESTS_STDIO_CALLS_H
#define TESTS_STDIO_CALLS_H

#define NO_FCGI_DEFINES
#define HAVE_FPOS /* else two functions are not declared */
#include <fcgi_stdio.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fcgx_calls.h"

/* The function that ends a request in the build under test, FCGI_Finish or Weir's. */
static void (*stdio_finish)(void);

static void head(void)
{
    FCGI_fputs(OK, FCGI_stdout);
}

static void finish_early(void)
{
    FCGI_fputs(OK "finished", FCGI_stdout);
    stdio_finish();
}
static void stdio_filter_data(void)
{
    HOLDS(FCGI_StartFilterData() < 0);
    FCGI_fputs(OK "none", FCGI_stdout);
}
static void stdio_exit_status(void)
{
    FCGI_SetExitStatus(3);
    FCGI_fputs(OK "status", FCGI_stdout);
}

/* ---- on the request's streams ------------------------------------------------------ */

static void stdio_perror(void)
{
    FCGI_perror("said");
    FCGI_fputs(OK "perror", FCGI_stdout);
}
static void stdio_fflush(void)
{
    FCGI_fputs(OK "a", FCGI_stdout);
    HOLDS(FCGI_fflush(FCGI_stdout) == 0);
    FCGI_fputs("b", FCGI_stdout);
}
static void stdio_fclose(void)
{
    FCGI_fputs(OK "a", FCGI_stdout);
    HOLDS(FCGI_fclose(FCGI_stdout) == 0);
    HOLDS(FCGI_fclose(FCGI_stderr) == 0);
}
static void stdio_freopen(void)
{
    FCGI_fputs(OK "before", FCGI_stdout);
    HOLDS(FCGI_freopen("/dev/null", "w", FCGI_stdout) == FCGI_stdout);
    FCGI_fputs("after", FCGI_stdout);
    HOLDS(FCGI_fclose(FCGI_stdout) == 0);
}
static void stdio_setvbuf(void)
{
    HOLDS(FCGI_setvbuf(FCGI_stdout, NULL, _IONBF, 0) == -1);
    FCGI_fputs(OK "setvbuf", FCGI_stdout);
}
static void stdio_setbuf(void)
{
    FCGI_setbuf(FCGI_stdout, NULL);
    FCGI_fputs(OK "setbuf", FCGI_stdout);
}
static void stdio_fgetc(void)
{
    head();
    FCGI_fputc(FCGI_fgetc(FCGI_stdin), FCGI_stdout);
}
static void stdio_getchar(void)
{
    int c, len = 0;
    head();
    while ((c = FCGI_getchar()) != EOF)
        len++;
    FCGI_printf("%d", len);
}
static void stdio_ungetc(void)
{
    head();
    int c = FCGI_getchar();
    HOLDS(FCGI_ungetc(c, FCGI_stdin) == c);
    FCGI_putchar(FCGI_getchar());
}
static void stdio_fgets(void)
{
    char text[64];
    head();
    while (FCGI_fgets(text, sizeof text, FCGI_stdin))
        FCGI_printf("[%s]", text);
}
static void stdio_gets(void)
{
    char text[64];
    head();
    while (FCGI_gets(text))
        FCGI_printf("[%s]", text);
}
static void stdio_fputc(void)
{
    head();
    HOLDS(FCGI_fputc('x', FCGI_stdout) == 'x');
}
static void stdio_putchar(void)
{
    head();
    HOLDS(FCGI_putchar('y') == 'y');
}
static void stdio_fputs(void)
{
    HOLDS(FCGI_fputs(OK "fputs", FCGI_stdout) >= 0);
}
static void stdio_puts(void)
{
    head();
    HOLDS(FCGI_puts("puts") >= 0);
}
static void stdio_fprintf(void)
{
    HOLDS(FCGI_fprintf(FCGI_stdout, OK "%s %5.2f", "a", 1.5) > 0);
}
static void stdio_printf(void)
{
    HOLDS(FCGI_printf(OK "%d", 12) > 0);
}
static void print_to(FCGI_FILE *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    HOLDS((file ? FCGI_vfprintf(file, format, args) : FCGI_vprintf(format, args)) > 0);
    va_end(args);
}
static void stdio_vfprintf(void)
{
    print_to(FCGI_stdout, OK "%c", 'z');
}
static void stdio_vprintf(void)
{
    print_to(NULL, OK "%x", 255);
}
static void stdio_fread(void)
{
    char text[64];
    head();
    HOLDS(FCGI_fread(text, 5, 3, FCGI_stdin) == 3);
    FCGI_printf("%.15s|", text);
    HOLDS(FCGI_fread(text, 1, sizeof text, FCGI_stdin) == 2);
    FCGI_printf("%.2s", text);
}
static void stdio_fwrite(void)
{
    char text[] = "abcdef";
    head();
    HOLDS(FCGI_fwrite(text, 2, 3, FCGI_stdout) == 3);
}
static void stdio_feof(void)
{
    char text[64];
    head();
    HOLDS(!FCGI_feof(FCGI_stdin));
    FCGI_fread(text, 1, sizeof text, FCGI_stdin);
    HOLDS(FCGI_feof(FCGI_stdin));
}
static void stdio_ferror(void)
{
    head();
    HOLDS(FCGI_ferror(FCGI_stdin) == 0 && FCGI_ferror(FCGI_stdout) == 0);
}
static void stdio_clearerr(void)
{
    FCGI_clearerr(FCGI_stdout);
    FCGI_fputs(OK "clear", FCGI_stdout);
}
static void stdio_fileno(void)
{
    HOLDS(FCGI_fileno(FCGI_stdout) == -1);
    FCGI_fputs(OK "none", FCGI_stdout);
}
static void stdio_fseek(void)
{
    FCGI_fputs(OK "first ", FCGI_stdout);
    HOLDS(FCGI_fseek(FCGI_stdout, 0, SEEK_SET) != 0);
    HOLDS(FCGI_ftell(FCGI_stdout) == -1);
    FCGI_rewind(FCGI_stdout);
    FCGI_fputs("last", FCGI_stdout);
}

/* ---- on files ---------------------------------------------------------------------- */

/* Prints what stands from here on, and closes. */
static void print_rest(FCGI_FILE *file)
{
    char text[64];
    size_t len = FCGI_fread(text, 1, sizeof text, file);
    head();
    FCGI_printf("%.*s", (int)len, text);
    HOLDS(FCGI_feof(file));
    HOLDS(FCGI_fclose(file) == 0);
}
static void stdio_fopen(void)
{
    char name[] = "/tmp/weir-stdio-XXXXXX";
    int fd = mkstemp(name);
    HOLDS(write(fd, "file", 4) == 4 && close(fd) == 0);
    FCGI_FILE *file = FCGI_fopen(name, "r");
    unlink(name);
    HOLDS(FCGI_fileno(file) >= 0);
    print_rest(file);
}
static void stdio_tmpfile(void)
{
    FCGI_FILE *file = FCGI_tmpfile();
    HOLDS(FCGI_setvbuf(file, NULL, _IOFBF, 4096) == 0);
    FCGI_fputs("temporary", file);
    HOLDS(FCGI_ftell(file) == 9);
    FCGI_rewind(file);
    print_rest(file);
}
static void stdio_fgetpos(void)
{
    FCGI_FILE *file = FCGI_tmpfile();
    fpos_t there;
    FCGI_fputs("ab", file);
    HOLDS(FCGI_fgetpos(file, &there) == 0);
    FCGI_fputs("cd", file);
    HOLDS(FCGI_fsetpos(file, &there) == 0);
    print_rest(file);
}
static void stdio_fdopen(void)
{
    int ends[2];
    HOLDS(pipe(ends) == 0 && write(ends[1], "piped", 5) == 5 && close(ends[1]) == 0);
    print_rest(FCGI_fdopen(ends[0], "r"));
}
static void stdio_popen(void)
{
    char text[64];
    FCGI_FILE *file = FCGI_popen("echo of $REQUEST_METHOD", "r");
    head();
    HOLDS(FCGI_fgets(text, sizeof text, file));
    FCGI_fputs(text, FCGI_stdout);
    HOLDS(FCGI_pclose(file) == 0);
}

static const struct stdio_call {
    const char *name;
    void (*run)(void);
    const char *body; /* the answer's */
} stdio_calls[] = {
    { "FCGI_Finish", finish_early, "finished" },
    { "FCGI_StartFilterData", stdio_filter_data, "none" },
    { "FCGI_SetExitStatus", stdio_exit_status, "status" },
    { "FCGI_perror", stdio_perror, "perror" },
    { "FCGI_fopen", stdio_fopen, "file" },
    { "FCGI_fclose", stdio_fclose, "a" },
    { "FCGI_fflush", stdio_fflush, "ab" },
    { "FCGI_freopen", stdio_freopen, "before" },
    { "FCGI_setvbuf", stdio_setvbuf, "setvbuf" },
    { "FCGI_setbuf", stdio_setbuf, "setbuf" },
    { "FCGI_fseek", stdio_fseek, "first last" },
    { "FCGI_ftell", stdio_fseek, "first last" },
    { "FCGI_rewind", stdio_fseek, "first last" },
    { "FCGI_fgetpos", stdio_fgetpos, "cd" },
    { "FCGI_fsetpos", stdio_fgetpos, "cd" },
    { "FCGI_fgetc", stdio_fgetc, "l" },
    { "FCGI_getchar", stdio_getchar, "17" },
    { "FCGI_ungetc", stdio_ungetc, "l" },
    { "FCGI_fgets", stdio_fgets, "[line one\n][line two]" },
    { "FCGI_gets", stdio_gets, "[line one][line two]" },
    { "FCGI_fputc", stdio_fputc, "x" },
    { "FCGI_putchar", stdio_putchar, "y" },
    { "FCGI_fputs", stdio_fputs, "fputs" },
    { "FCGI_puts", stdio_puts, "puts\n" },
    { "FCGI_fprintf", stdio_fprintf, "a  1.50" },
    { "FCGI_printf", stdio_printf, "12" },
    { "FCGI_vfprintf", stdio_vfprintf, "z" },
    { "FCGI_vprintf", stdio_vprintf, "ff" },
    { "FCGI_fread", stdio_fread, "line one\nline t|wo" },
    { "FCGI_fwrite", stdio_fwrite, "abcdef" },
    { "FCGI_feof", stdio_feof, "" },
    { "FCGI_ferror", stdio_ferror, "" },
    { "FCGI_clearerr", stdio_clearerr, "clear" },
    { "FCGI_tmpfile", stdio_tmpfile, "temporary" },
    { "FCGI_fileno", stdio_fileno, "none" },
    { "FCGI_fdopen", stdio_fdopen, "piped" },
    { "FCGI_popen", stdio_popen, "of POST\n" },
    { "FCGI_pclose", stdio_popen, "of POST\n" },
};

#define STDIO_CALLS_LEN (sizeof stdio_calls / sizeof *stdio_calls)

#endif
