/* What `--routes` prints: every endpoint with the limits that hold for it. */
#ifndef WEIR_PROCESS_ROUTES_H
#define WEIR_PROCESS_ROUTES_H

#include <stdio.h>

#include <weir/weir.h>

/* Prints an app whose tables have been checked (weir__app_create). One thread. */
void weir__routes_print(FILE *out, const struct weir_app *app);

#endif
