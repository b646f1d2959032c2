/* A filter of the demo's own: every answer says in Demo-Instance which instance gave it,
 * so that one sees whether two instances behind one nginx share a limit. */
#ifndef DEMO_INSTANCE_H
#define DEMO_INSTANCE_H

#include <weir/weir.h>

/* The options of WEIR_USE(instance, ...). */
struct weir_instance {
    size_t size;
    const char **name; /* where the name will stand once the options are read: 1 to 64 of
                          [A-Za-z0-9._-]; NULL there: host and process id */
    int abi;
};

extern const struct weir_filter weir_filter_instance;

#endif
