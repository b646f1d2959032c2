/* The app under faults: answers at once, after a while, with a large body, with the
 * length of what came, and refusals; and it counts for itself how many requests were
 * begun and ended, in all of its workers, so that nobody has to believe the clients
 * alone. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <weir/filters/identity.h>
#include <weir/filters/ratelimit.h>
#include <weir/weir.h>

/* Shared by all workers. */
struct counts {
    atomic_ulong begun; /* requests whose chain began */
    atomic_ulong ended; /* and whose `after` has run */
    atomic_ulong handled;
    atomic_ulong gone; /* handlers that were told that the client is gone */
};
static struct counts *counts;

static void sleep_us(long us)
{
    nanosleep(
        &(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 },
        NULL);
}

static long number(struct weir *w, const char *name)
{
    const char *text = weir_query(w, name);
    return text ? strtol(text, NULL, 10) : 0;
}

/* ---- handlers --------------------------------------------------------------------- */

static int fast(struct weir *w)
{
    atomic_fetch_add(&counts->handled, 1);
    return weir_text(w, 200, "fast\n");
}

/* As many milliseconds as ?ms= says, whatever happens. */
static int slow(struct weir *w)
{
    atomic_fetch_add(&counts->handled, 1);
    sleep_us(number(w, "ms") * 1000);
    return weir_text(w, 200, "slow\n");
}

/* The same, but ends as soon as it hears that the client is gone. */
static int watch(struct weir *w)
{
    atomic_fetch_add(&counts->handled, 1);
    for (long i = number(w, "ms") * 4; i > 0; i--) {
        if (weir_gone(w)) {
            atomic_fetch_add(&counts->gone, 1);
            break;
        }
        sleep_us(250);
    }
    return weir_text(w, 200, "watched\n");
}

/* ?kib= times 1,024 bytes, as fast as the client takes them. */
static int large(struct weir *w)
{
    static const char kib[1024];
    atomic_fetch_add(&counts->handled, 1);
    for (long i = number(w, "kib"); i > 0; i--)
        if (!weir_write(w, kib, sizeof kib))
            break;
    return 200;
}

static int length(struct weir *w)
{
    size_t len;
    atomic_fetch_add(&counts->handled, 1);
    weir_body(w, &len);
    return weir_text(w, 200, weir_printf(w, "%zu\n", len));
}

static int tell(struct weir *w)
{
    return weir_text(w,
                     200,
                     weir_printf(w,
                                 "%lu %lu %lu %lu\n",
                                 atomic_load(&counts->begun),
                                 atomic_load(&counts->ended),
                                 atomic_load(&counts->handled),
                                 atomic_load(&counts->gone)));
}

/* ---- the counting filter ---------------------------------------------------------- */

/* Who asks for the counts is not among them. */
static bool asks_only(const struct weir *w)
{
    return strcmp(weir_request_path(w), "/tell") == 0;
}

static enum weir_verdict count_begin(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    if (!asks_only(w))
        atomic_fetch_add(&counts->begun, 1);
    return WEIR_NEXT;
}

static void count_end(struct weir *w, const void *self, void *slot)
{
    (void)self, (void)slot;
    if (!asks_only(w))
        atomic_fetch_add(&counts->ended, 1);
}

struct weir_count {
    size_t size;
    int abi;
};

static const struct weir_filter weir_filter_count = {
    .name = "count",
    .options_size = sizeof(struct weir_count),
    .before = count_begin,
    .after = count_end,
};

/* ---- the app ---------------------------------------------------------------------- */

static const struct weir_endpoint endpoints[] = {
    { "* /fast", fast, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "* /slow", slow, .limits = WEIR_UNLIMITED },
    { "* /watch", watch, .limits = WEIR_UNLIMITED },
    { "* /large", large, .limits = WEIR_UNLIMITED },
    { "* /length", length, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "GET /tell", tell, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "* /limited",
      length,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("day", 5, WEIR_DAYS(1))) },
    { 0 },
};

int main(int argc, char **argv)
{
    counts = mmap(
        NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED)
        return 71;
    return weir_main(argc,
                     argv,
                     &(struct weir_app){ WEIR_ABI,
                                         .name = "faults-app",
                                         .endpoints = endpoints,
                                         .chain = WEIR_CHAIN(WEIR_USE(count),
                                                             WEIR_USE(identity),
                                                             WEIR_USE(ratelimit)) });
}
