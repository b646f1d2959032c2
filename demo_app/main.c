/* The demo app, and the tutorial. Read it from top to bottom: a Weir app is a few
 * handlers, one table of endpoints with the limits beside them, a chain of filters, and
 * a main() that hands them over.
 *
 *     session.c    who is logged in: a signed cookie
 *     instance.c   a filter of one's own, in thirty lines
 *     classic.c    a handler that was written for libfcgi
 *     page.*       what the browser gets at /
 *     run.sh       starts all of it behind a real nginx
 *
 * The handlers here must not know that limits exist: that is the chain's business. */
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>
#include <weir/filters/identity.h>
#include <weir/filters/ratelimit.h>

#include "classic.h"
#include "instance.h"
#include "page_data.h"
#include "session.h"

/* ---- 1. Handlers --------------------------------------------------------------------
 *
 * A handler gets one handle, `w`, for request and response. It may block, writes an
 * answer, and returns the status. */

static int health(struct weir *w)
{
    return weir_text(w, 200, "ok\n");
}

/* Whoever identity recognised: {"type":"user","id":"alice"}, or the remote address. */
static int whoami(struct weir *w)
{
    const struct weir_caller *caller = weir_caller(w);

    weir_set_header(w, "Cache-Control", "no-store");
    return weir_json(w,
                     200,
                     "{s:s, s:s}",
                     "type",
                     weir_caller_type_name(caller->type),
                     "id",
                     caller->id);
}

/* A city's name is any text of a sensible length. What weir_path() returns is decoded,
 * valid UTF-8, and weir_json() escapes it: no more is needed to send it back safely. */
static bool is_city(const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
            return false;
    }
    return len >= 1 && len <= 64;
}

/* The forecast is made up of the name's letters: the same every time, and free. */
static int weather(struct weir *w)
{
    static const char *const skies[] = { "clear", "cloudy", "foggy", "rainy", "snowy" };
    const char *city = weir_path(w, "city");
    unsigned sum = 0;

    if (city == NULL || !is_city(city))
        return weir_problem(w, 404, "NotFound", "No such city.");
    for (const char *c = city; *c != '\0'; c++)
        sum = sum * 31 + (unsigned char)*c;
    return weir_json(w,
                     200,
                     "{s:s, s:s, s:i}",
                     "city",
                     city,
                     "sky",
                     skies[sum % 5],
                     "celsius",
                     (int)(sum % 41) - 10);
}

/* Nothing is stored here: a search finds nothing, exports, reports and feeds are
 * empty. */
static int search(struct weir *w)
{
    const char *wanted = weir_query(w, "q");

    return weir_json(w, 200, "{s:s, s:[]}", "q", wanted ? wanted : "", "found");
}

static int export_all(struct weir *w)
{
    return weir_json(w, 200, "{s:[]}", "rows");
}

/* ---- 2. Logging in ------------------------------------------------------------------
 *
 * The page's script sends JSON and reads the answer. Without a script the browser sends
 * the same fields as a form, and is sent back to the page. */

static int back_to_page(struct weir *w)
{
    weir_set_header(w, "Location", "/");
    return 303;
}

static int login(struct weir *w)
{
    bool is_form = weir_form(w, "user") != NULL;
    const char *user = is_form ? weir_form(w, "user") : weir_body_string(w, "user");
    const char *password =
        is_form ? weir_form(w, "password") : weir_body_string(w, "password");

    if (user == NULL || password == NULL)
        return weir_problem(w, 400, "BadRequest", "Send a user and a password.");
    if (!session_check_password(user, password))
        return weir_problem(w, 403, "WrongPassword", "Wrong user or password.");
    if (!session_begin(w, user))
        return weir_problem(w, 500, "InternalError", NULL);
    if (is_form)
        return back_to_page(w);
    return weir_json(w, 200, "{s:s, s:s}", "type", "user", "id", user);
}

static int logout(struct weir *w)
{
    session_end(w);
    return weir_form(w, "page") != NULL ? back_to_page(w) : 204;
}

/* ---- 3. The page --------------------------------------------------------------------
 *
 * Three small files that the build puts into the program (meson.build). Nothing is loaded
 * from elsewhere, and the policy tells the browser to refuse what tries. */

static int send_file(struct weir *w, const char *type, const char *text)
{
    weir_set_header(w, "Content-Type", type);
    weir_set_header(w, "X-Content-Type-Options", "nosniff");
    weir_set_header(w, "Cache-Control", "no-cache");
    weir_write(w, text, strlen(text));
    return 200;
}

static int page(struct weir *w)
{
    weir_set_header(w,
                    "Content-Security-Policy",
                    "default-src 'none'; script-src 'self'; style-src 'self'; "
                    "connect-src 'self'; img-src data:; form-action 'self'; "
                    "base-uri 'none'; frame-ancestors 'none'");
    weir_set_header(w, "Referrer-Policy", "no-referrer");
    return send_file(w, "text/html; charset=utf-8", page_html);
}

static int page_style(struct weir *w)
{
    return send_file(w, "text/css; charset=utf-8", page_css);
}

static int page_script(struct weir *w)
{
    return send_file(w, "text/javascript; charset=utf-8", page_js);
}

/* ---- 4. Endpoints, with their limits beside them ------------------------------------
 *
 * A rule has a name, which clients see in RateLimit, its numbers, and by name what
 * differs from the defaults. Rules count by caller unless they say otherwise. An endpoint
 * that says nothing has the default limits below, in a budget of its own. */

static const struct weir_endpoint endpoints[] = {
    { "GET /", page },
    { "GET /page.css", page_style },
    { "GET /page.js", page_script },
    { "GET /whoami", whoami },

    /* 100 a minute for each caller; the minute begins with the first request. */
    { "GET /api/weather/{city}",
      weather,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("minute", 100, WEIR_MINUTES(1))) },

    /* Twenty at once, then four a second. */
    { "GET /api/search",
      search,
      .limits = WEIR_LIMITS(WEIR_TOKEN_BUCKET("search", 20, 4, WEIR_SECONDS(1))) },

    /* The same numbers in a bucket of its own; an export costs ten units. */
    { "POST /api/export",
      export_all,
      .limits =
          WEIR_LIMITS(WEIR_TOKEN_BUCKET("export", 20, 4, WEIR_SECONDS(1), .cost = 10)) },

    /* Thirty an hour and a thousand a month, for all callers at the same time: the hour
     * begins with the clock's, the month with the calendar's. Both must admit. */
    { "GET /api/report",
      export_all,
      .limits = WEIR_LIMITS(
          WEIR_FIXED_WINDOW("hour", 30, WEIR_HOURS(1), .anchor = WEIR_ANCHOR_CLOCK),
          WEIR_CALENDAR_MONTH("month", 1000)) },

    /* Sixty in any minute, as near as two counts can tell. */
    { "GET /api/feed",
      export_all,
      .limits = WEIR_LIMITS(WEIR_SLIDING_COUNTER("feed", 60, WEIR_MINUTES(1))) },

    /* Guessing passwords is limited by address, since a guesser is nobody yet. Where the
     * counters are out of reach nobody logs in: better than unlimited guesses. */
    { "POST /api/login",
      login,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW(
          "login", 5, WEIR_MINUTES(1), .by = WEIR_BY_IP, .on_store_error = WEIR_DENY)) },
    { "POST /api/logout", logout },

    /* A handler that was written for libfcgi, unchanged, behind the same chain: 10 a
     * minute, and the 11th request never reaches it. */
    { "GET /classic",
      .fcgx = classic,
      .limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("classic", 10, WEIR_MINUTES(1))) },

    /* A health check is never refused, and since its handler never blocks, it is answered
     * even while every other handler is stuck. */
    { "GET /health", health, .limits = WEIR_UNLIMITED, .nonblocking = true },
    { 0 },
};

/* ---- 5. Options of our own ----------------------------------------------------------
 *
 * They stand in --help beside Weir's: --listen, --workers, --threads and the others. */

static const char *instance_name;
static const char *session_key_file;

static const struct weir_option options[] = {
    { "instance",
      "NAME",
      "sent in Demo-Instance (default: host and process id)",
      &instance_name },
    { "key-file",
      "PATH",
      "32 bytes that sign the session cookies (default: made at start)",
      &session_key_file },
    { 0 },
};

/* Once, before there are workers: all of them check cookies with the same key, and
 * count the classic handler's runs in one place. */
static bool start(struct weir_error *ret_error)
{
    if (!classic_start()) {
        snprintf(ret_error->text, sizeof ret_error->text, "classic: out of memory");
        return false;
    }
    return session_start(session_key_file, ret_error);
}

/* ---- 6. The chain, and main ---------------------------------------------------------
 *
 * Filters run in this order on the way in, and in reverse on the way out. ratelimit needs
 * to know the caller, so identity stands before it; the other way round would be refused
 * at start. identity asks session_user on a thread that may block, as a real app's
 * session table needs it, and only for requests that have the cookie at all. */

static const struct weir_app app = {
    WEIR_ABI,
    .name = "weir-demo",
    .endpoints = endpoints,
    .default_limits = WEIR_LIMITS(WEIR_FIXED_WINDOW("default", 600, WEIR_MINUTES(1))),
    .chain = WEIR_CHAIN(WEIR_USE(instance, .name = &instance_name),
                        WEIR_USE(identity,
                                 .session_user = session_user,
                                 .session_cookie = SESSION_COOKIE),
                        WEIR_USE(ratelimit, .source = WEIR_ON)),
    .options = options,
    .start = start,
};

int main(int argc, char **argv)
{
    return weir_main(argc, argv, &app);
}
