/* A worker as the layers below the process see it: stores and transports get at its loop
 * here, apps at their own pointer. process/worker.c makes it. */
#ifndef WEIR_WORKER_H
#define WEIR_WORKER_H

#include <weir/weir.h>

struct weir__loop;

struct weir_worker {
    unsigned index;          /* 0 to workers - 1 */
    struct weir__loop *loop; /* its threads' */
    void *app_data;
};

#endif
