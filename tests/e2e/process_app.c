/* The app of process.sh, upgrade.sh and log.sh: an answer at once, one that takes its
 * time, one with a limit, and one that says which worker serves. With PROCESS_APP_LOG in
 * the environment each request is logged. */
#include <stdlib.h>
#include <time.h>

#include <weir/filters/access_log.h>
#include <weir/filters/identity.h>
#include <weir/filters/ratelimit.h>
#include <weir/weir.h>

static int fast(struct weir *w)
{
    return weir_text(w, 200, "fast\n");
}

/* As many milliseconds as ?ms= says. */
static int slow(struct weir *w)
{
    const char *text = weir_query(w, "ms");
    long ms = text ? strtol(text, NULL, 10) : 0;
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 },
              NULL);
    return weir_text(w, 200, "slow\n");
}

static const struct weir_endpoint endpoints[] = {
    { "GET /fast", fast, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { "GET /slow", slow, .limits = WEIR_UNLIMITED },
    { "GET /rolling", slow, .limits = WEIR_UNLIMITED },
    { "GET /limited",
      fast,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("day", 5, WEIR_DAYS(1))) },
    { 0 },
};

/* A worker that can't start where it is told so. */
static const char *broken;
static const struct weir_option options[] = {
    { "broken", "YES", "no worker starts (default: no)", &broken },
    { 0 },
};

static bool worker_start(struct weir_worker *worker)
{
    (void)worker;
    return !broken;
}

static const struct weir_use *const logged =
    WEIR_CHAIN(WEIR_USE(access_log), WEIR_USE(identity), WEIR_USE(ratelimit));

int main(int argc, char **argv)
{
    return weir_main(
        argc,
        argv,
        &(struct weir_app){ WEIR_ABI,
                            .name = "process-app",
                            .endpoints = endpoints,
                            .options = options,
                            .chain = getenv("PROCESS_APP_LOG") ? logged : NULL,
                            .worker_start = worker_start });
}
