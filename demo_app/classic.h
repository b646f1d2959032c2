/* A handler in libfcgi's form. */
#ifndef CLASSIC_H
#define CLASSIC_H

#include <fcgiapp.h>
#include <stdbool.h>

/* Once, before there are workers: all of them count in one place. False where memory is
 * short. */
bool classic_start(void);

void classic(FCGX_Request *request);

#endif
