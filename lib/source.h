/* The words for who decided about a request's limits. */
#ifndef WEIR_SOURCE_H
#define WEIR_SOURCE_H

#include <weir/weir.h>

/* "shm", "redis", "local", "allow", "deny", "fake"; "-" where no rule applied. Any
 * thread. */
const char *weir__source_name(enum weir_source source);

#endif
