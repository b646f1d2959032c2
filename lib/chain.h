/* The chain of an app: checks the order of its filters and starts them. */
#ifndef WEIR_CHAIN_H
#define WEIR_CHAIN_H

#include "app.h"

/* Fills in app->stages, stages_len and slots_bytes from the declared chain, or the
 * default one, and starts each filter in order. False with a text that names the filter:
 * a malformed or repeated name, options of another size, a word that is needed but not
 * provided before, too many, or a start that failed. What was started is stopped then. */
bool weir__chain_start(struct weir__app *app, struct weir_error *ret_error);

/* Stops the filters, last first. */
void weir__chain_stop(struct weir__app *app);

#endif
