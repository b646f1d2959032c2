/* What all stores share: their end. */
#include <weir/store.h>

#include <stdlib.h>

void weir_store_destroy(struct weir_store *store)
{
    if (!store)
        return;
    if (store->ops->destroy)
        store->ops->destroy(store->self);
    free(store);
}
