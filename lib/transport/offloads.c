/* A short table of the addresses that have offloads in flight, looked through from first
 * to last: it has as many places as there may be offloads. Starts none. */
#include "transport/offloads.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool weir__offloads_init(struct weir__offloads *offloads,
                         unsigned max,
                         unsigned max_an_address)
{
    *offloads = (struct weir__offloads){ .max = max, .max_an_address = max_an_address };
    offloads->addresses = calloc(max ? max : 1, sizeof *offloads->addresses);
    pthread_mutex_init(&offloads->mutex, NULL);
    return offloads->addresses != NULL;
}

void weir__offloads_finish(struct weir__offloads *offloads)
{
    free(offloads->addresses);
    pthread_mutex_destroy(&offloads->mutex);
}

/* The network of one customer. */
static struct weir__addr counted_as(const struct weir__addr *addr)
{
    struct weir__addr counted = *addr;
    if (counted.family == WEIR__ADDR_IPV6)
        memset(counted.bytes + 8, 0, 8);
    return counted;
}

static bool same(const struct weir__addr *a, const struct weir__addr *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* The entry of an address; else the first free one, NULL where there is none. */
static struct weir__offload *find(struct weir__offloads *offloads,
                                  const struct weir__addr *addr)
{
    struct weir__offload *unused = NULL;
    for (unsigned i = 0; i < offloads->max; i++) {
        struct weir__offload *entry = &offloads->addresses[i];
        if (entry->in_flight > 0 && same(&entry->addr, addr))
            return entry;
        if (entry->in_flight == 0 && !unused)
            unused = entry;
    }
    return unused;
}

bool weir__offloads_begin(struct weir__offloads *offloads, const struct weir__addr *addr)
{
    struct weir__addr counted = counted_as(addr);
    bool ok = false;
    pthread_mutex_lock(&offloads->mutex);
    if (offloads->in_flight < offloads->max) {
        struct weir__offload *entry = find(offloads, &counted);
        ok = entry && entry->in_flight < offloads->max_an_address;
        if (ok) {
            entry->addr = counted;
            entry->in_flight++;
            offloads->in_flight++;
        }
    }
    pthread_mutex_unlock(&offloads->mutex);
    return ok;
}

void weir__offloads_end(struct weir__offloads *offloads, const struct weir__addr *addr)
{
    struct weir__addr counted = counted_as(addr);
    pthread_mutex_lock(&offloads->mutex);
    struct weir__offload *entry = find(offloads, &counted);
    assert(entry && entry->in_flight > 0);
    entry->in_flight--;
    offloads->in_flight--;
    pthread_mutex_unlock(&offloads->mutex);
}
