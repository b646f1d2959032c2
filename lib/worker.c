/* The calls on a worker that apps and filters make. Starts and stops nothing. */
#include "worker.h"

#include "net/loop.h"

void weir_worker_set(struct weir_worker *worker, void *app_data)
{
    worker->app_data = app_data;
}

void *weir_worker_get(const struct weir_worker *worker)
{
    return worker->app_data;
}

int weir_thread(void)
{
    return weir__turn_index();
}
