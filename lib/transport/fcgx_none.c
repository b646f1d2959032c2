/* In place of fcgx.c where the library is built without libfcgi's header: endpoints with
 * .fcgx are refused at start. */
#include "answer.h"
#include "fcgx.h"

const char *weir__fcgx_missing(void)
{
    return ".fcgx, but the library was built without libfcgi";
}

int weir__fcgx_handle(struct weir *w)
{
    weir__answer_internal_error(w);
    return 500;
}
