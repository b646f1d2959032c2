/* How many offloads are in flight, in all and for each remote address, so that a flood
 * from one address doesn't buy one database query a request. IPv6 counts by /64. */
#ifndef WEIR_TRANSPORT_OFFLOADS_H
#define WEIR_TRANSPORT_OFFLOADS_H

#include <pthread.h>

#include "net/addr.h"

struct weir__offload {
    struct weir__addr addr;
    unsigned in_flight; /* 0: free */
};

struct weir__offloads {
    pthread_mutex_t mutex;
    unsigned in_flight, max, max_an_address;
    struct weir__offload *addresses; /* max of them: no more can differ */
};

/* False when memory is short. */
bool weir__offloads_init(struct weir__offloads *offloads,
                         unsigned max,
                         unsigned max_an_address);
void weir__offloads_finish(struct weir__offloads *offloads);

/* Counts one in; false, and nothing, where there are too many. Requests without an
 * address are one address. Any thread. */
bool weir__offloads_begin(struct weir__offloads *offloads, const struct weir__addr *addr);

/* Counts it out, with the same address. Any thread. */
void weir__offloads_end(struct weir__offloads *offloads, const struct weir__addr *addr);

#endif
