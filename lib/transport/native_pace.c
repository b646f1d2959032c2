/* How long each handler and each filter's offload mostly takes, so that the loop knows
 * which of them need no other thread in their place. A guess that is wrong costs two
 * or three milliseconds, see net/loop_rest.c; nothing else rests on it. */
#include <stdlib.h>

#include "transport/native_impl.h"

#define BRIEF_US 200
#define UNKNOWN_US 1000 /* slow until it has been seen some times */

/* A place for each endpoint's handler, then for each filter's offload. */
static size_t places(const struct weir__native *native)
{
    return native->config.app->endpoints_len + WEIR__STAGES_MAX + 1;
}

bool weir__native_pace_init(struct weir__native *native)
{
    native->paces_us = calloc(places(native), sizeof *native->paces_us);
    for (size_t i = 0; native->paces_us && i < places(native); i++)
        atomic_store_explicit(&native->paces_us[i], UNKNOWN_US, memory_order_relaxed);
    return native->paces_us;
}

void weir__native_pace_expect(struct weir__native_request *request)
{
    const struct weir *w = &request->w;
    size_t endpoints = request->native->config.app->endpoints_len;
    size_t place = w->phase == WEIR__PHASE_HANDLER && w->endpoint_index < endpoints
                       ? w->endpoint_index
                       : endpoints + w->stage;
    request->pace_us = &request->native->paces_us[place];
    request->block.brief =
        atomic_load_explicit(request->pace_us, memory_order_relaxed) < BRIEF_US;
}

/* Goes up at once and comes down slowly. A note that is lost among threads is no harm. */
void weir__native_pace_note(struct weir__native_request *request, int64_t took_us)
{
    int64_t pace_us = atomic_load_explicit(request->pace_us, memory_order_relaxed);
    int64_t next_us = took_us > pace_us ? (pace_us + took_us) / 2
                                        : pace_us - (pace_us - took_us + 15) / 16;
    if (next_us > UINT32_MAX)
        next_us = UINT32_MAX;
    if (next_us != pace_us)
        atomic_store_explicit(request->pace_us, (uint32_t)next_us, memory_order_relaxed);
}
