/* The shared-memory store, as the library itself sees it; apps call weir_shm_create(). */
#ifndef WEIR_STORE_SHM_H
#define WEIR_STORE_SHM_H

#include <weir/store.h>

struct weir__shm_segment;

/* As weir_shm_create(); path as in weir__shm_segment_create(). */
struct weir_store *weir__shm_create_at(const struct weir_shm_options *options,
                                       const char *path,
                                       struct weir_error *ret_error);

/* As weir_shm_create(), with the counters that are in fd, the memory of an earlier store
 * (weir__shm_segment_adopt()). fd is the store's then; where it is none, or none that
 * fits, it is closed, why is logged, and the counters begin anew. */
struct weir_store *weir__shm_create_from(const struct weir_shm_options *options,
                                         int fd,
                                         struct weir_error *ret_error);

/* The memory of a store that one of the three made. Valid as long as the store. */
const struct weir__shm_segment *weir__shm_segment_of(const struct weir_store *store);

#endif
