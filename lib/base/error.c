/* The first error wins: a check that fails because an earlier one did adds nothing. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

bool weir__error(struct weir_error *ret_error, const char *format, ...)
{
    if (ret_error && ret_error->text[0] == '\0') {
        va_list args;
        va_start(args, format);
        vsnprintf(ret_error->text, sizeof ret_error->text, format, args);
        va_end(args);
    }
    return false;
}
