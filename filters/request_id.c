/* Makes the id of a request: 128 bits in hex, that nobody can guess from another.
 *
 * A thread draws a key from the kernel once and hashes a counter with it: no system call
 * a request. A forked child draws anew, or two workers would make the same ids. */
#include "request_id.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/random.h"
#include "base/siphash.h"
#include "request.h"

#define ID_MAX_BYTES 64
#define ID_HEX_BYTES 32

struct generator {
    uint8_t key[16];
    uint64_t counter;
    unsigned generation; /* of the process; 0: not seeded */
};

static atomic_uint generation = 1;

static void forked(void)
{
    atomic_fetch_add(&generation, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

static bool start(const struct weir_app *app,
                  const void *options,
                  void **ret_self,
                  struct weir_error *ret_error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)app, (void)options, (void)ret_self, (void)ret_error;
    pthread_once(&once, watch_forks);
    return true;
}

static char *make_id(struct weir *w)
{
    static _Thread_local struct generator own;
    static const char hex[] = "0123456789abcdef";
    unsigned now = atomic_load(&generation);
    if (own.generation != now) {
        weir__random_bytes(own.key, sizeof own.key);
        own.generation = now;
    }
    own.counter++;
    struct weir__hash128 hash =
        weir__siphash128(own.key, &own.counter, sizeof own.counter);
    char *id = weir_alloc(w, ID_HEX_BYTES + 1);
    if (!id)
        return NULL;
    for (unsigned i = 0; i < ID_HEX_BYTES; i++) {
        uint64_t half = i < ID_HEX_BYTES / 2 ? hash.hi : hash.lo;
        id[i] = hex[half >> (60 - i % 16 * 4) & 15];
    }
    id[ID_HEX_BYTES] = '\0';
    return id;
}

static bool is_id(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t len = strlen(text);
    return len >= 1 && len <= ID_MAX_BYTES && strspn(text, allowed) == len;
}

static enum weir_verdict before(struct weir *w, const void *self, void *slot)
{
    const struct weir_request_id *options = self;
    (void)slot;
    const char *given = options->trust ? weir_header(w, "X-Request-Id") : NULL;
    w->request_id = given && is_id(given) ? given : make_id(w);
    return w->request_id ? WEIR_NEXT : WEIR_FAIL;
}

static enum weir_verdict commit(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    if (w->request_id)
        weir_set_header(w, "X-Request-Id", w->request_id);
    return WEIR_NEXT;
}

const struct weir_filter weir_filter_request_id = {
    .name = "request_id",
    .provides = "request_id",
    .options_size = sizeof(struct weir_request_id),
    .start = start,
    .before = before,
    .commit = commit,
};
