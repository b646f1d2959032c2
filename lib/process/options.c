/* The command line of weir_main. One table drives everything: the defaults are its texts
 * read by the same setters as the user's, so that --help can't disagree with them.
 *
 * It only reads and checks texts: no file is opened, no address bound here. */
#include "options.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "process/listen.h"
#include "process/units.h"
#include "store/redis_socket.h"

struct option {
    const char *name;         /* without its dashes */
    const char *argument;     /* in --help; NULL: a switch */
    const char *default_text; /* NULL: none */
    const char *help;
    bool (*set)(const struct option *option,
                const char *value,
                struct weir__options *options,
                struct weir_error *ret_error);
    size_t offset; /* of the field that set_unsigned, set_size or set_text fills */
    uint64_t min, max;
    enum weir__unit unit;
    enum weir__action action;
};

static bool set_number(const struct option *option,
                       const char *value,
                       uint64_t *ret_number,
                       struct weir_error *ret_error)
{
    uint64_t number = 0;
    bool too_large = weir__unit_is_too_large(option->unit, value);
    if (!too_large && !weir__unit_parse(option->unit, value, &number))
        return weir__error(ret_error,
                           "--%s: \"%s\" is not %s",
                           option->name,
                           value,
                           weir__unit_example(option->unit));
    if (too_large || number < option->min || number > option->max) {
        char min[32], max[32];
        weir__unit_format(option->unit, option->min, min, sizeof min);
        weir__unit_format(option->unit, option->max, max, sizeof max);
        return weir__error(
            ret_error, "--%s: %s is outside %s to %s", option->name, value, min, max);
    }
    *ret_number = number;
    return true;
}

static bool set_unsigned(const struct option *option,
                         const char *value,
                         struct weir__options *options,
                         struct weir_error *ret_error)
{
    uint64_t number = 0;
    if (!set_number(option, value, &number, ret_error))
        return false;
    *(unsigned *)((char *)options + option->offset) = (unsigned)number;
    return true;
}

static bool set_size(const struct option *option,
                     const char *value,
                     struct weir__options *options,
                     struct weir_error *ret_error)
{
    uint64_t number = 0;
    if (!set_number(option, value, &number, ret_error))
        return false;
    *(size_t *)((char *)options + option->offset) = (size_t)number;
    return true;
}

static bool set_text(const struct option *option,
                     const char *value,
                     struct weir__options *options,
                     struct weir_error *ret_error)
{
    if (*value == '\0')
        return weir__error(ret_error, "--%s: the argument is empty", option->name);
    *(const char **)((char *)options + option->offset) = value;
    return true;
}

static bool set_action(const struct option *option,
                       const char *value,
                       struct weir__options *options,
                       struct weir_error *ret_error)
{
    (void)value;
    (void)ret_error;
    options->action = option->action;
    return true;
}

static bool set_listen(const struct option *option,
                       const char *value,
                       struct weir__options *options,
                       struct weir_error *ret_error)
{
    struct weir__listen_address address;
    struct weir_error why = { "" };
    if (!weir__listen_parse(value, &address, &why))
        return weir__error(ret_error, "--%s: %s", option->name, why.text);
    if (options->listen_len == WEIR__LISTEN_MAX)
        return weir__error(
            ret_error, "--%s: more than %d addresses", option->name, WEIR__LISTEN_MAX);
    options->listen[options->listen_len++] = value;
    return true;
}

static bool set_mode(const struct option *option,
                     const char *value,
                     struct weir__options *options,
                     struct weir_error *ret_error)
{
    unsigned mode = 0;
    const char *p = value;
    for (; *p >= '0' && *p <= '7' && mode <= 0777; p++)
        mode = mode * 8 + (unsigned)(*p - '0');
    if (p == value || *p != '\0' || mode > 0777)
        return weir__error(ret_error,
                           "--%s: \"%s\" is not an octal mode such as 0660",
                           option->name,
                           value);
    options->socket_mode = mode;
    return true;
}

static bool set_store(const struct option *option,
                      const char *value,
                      struct weir__options *options,
                      struct weir_error *ret_error)
{
    struct weir__redis_address address;
    struct weir_error why = { "" };
    bool is_redis = strncmp(value, "redis:", 6) == 0;
    if (!is_redis && strcmp(value, "shm") != 0)
        return weir__error(ret_error,
                           "--%s: \"%s\" is no store; there are: shm, redis:ADDRESS",
                           option->name,
                           value);
    if (is_redis && !weir__redis_address_parse(value + 6, &address, &why))
        return weir__error(ret_error, "--%s: %s", option->name, why.text);
    options->store = value;
    return true;
}

static bool set_log_level(const struct option *option,
                          const char *value,
                          struct weir__options *options,
                          struct weir_error *ret_error)
{
    static const char *const levels[] = {
        [WEIR_LOG_DEBUG] = "debug",
        [WEIR_LOG_INFO] = "info",
        [WEIR_LOG_WARNING] = "warning",
        [WEIR_LOG_ERROR] = "error",
    };
    for (unsigned i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(value, levels[i]) == 0) {
            options->log_level = (enum weir_log_level)i;
            return true;
        }
    }
    return weir__error(ret_error,
                       "--%s: \"%s\" is not one of debug, info, warning, error",
                       option->name,
                       value);
}

#define FIELD(name_) .offset = offsetof(struct weir__options, name_)
#define COUNT(name_, min_, max_)                                                         \
    set_unsigned, FIELD(name_), .unit = WEIR__UNIT_COUNT, .min = (min_), .max = (max_)
#define TIME(name_, min_ms_, max_ms_)                                                    \
    set_unsigned, FIELD(name_), .unit = WEIR__UNIT_TIME, .min = (min_ms_),               \
                                .max = (max_ms_)
#define SIZE(name_, min_, max_)                                                          \
    set_size, FIELD(name_), .unit = WEIR__UNIT_BYTES, .min = (min_), .max = (max_)
#define KIB(n_) (UINT64_C(n_) << 10)
#define MIB(n_) (UINT64_C(n_) << 20)
#define DAY_MS 86400000

/* clang-format off */
static const struct option table[] = {
    { "listen", "ADDRESS", NULL,
      "unix:PATH, tcp:ADDRESS:PORT or tcp:[IPV6]:PORT; may be repeated", set_listen },
    { "socket-mode", "MODE", "0660", "mode of a unix socket's file", set_mode },
    { "socket-owner", "USER", NULL, "its owner: a name or a number",
      set_text, FIELD(socket_owner) },
    { "socket-group", "GROUP", NULL, "its group: a name or a number",
      set_text, FIELD(socket_group) },
    { "workers", "COUNT", "2", "processes", COUNT(workers, 1, 256) },
    { "threads", "COUNT", "8", "threads of each worker", COUNT(threads, 2, 256) },

    { "max-params", "SIZE", "64k", "all parameters of a request, headers included",
      SIZE(max_params_bytes, KIB(1), MIB(16)) },
    { "max-param-value", "SIZE", "8k", "one parameter's value",
      SIZE(max_param_value_bytes, 256, MIB(16)) },
    { "max-param-count", "COUNT", "256", "parameters of a request",
      COUNT(max_params, 32, 65536) },
    { "max-body", "SIZE", "1M", "a request's body", SIZE(max_body_bytes, 0, MIB(1024)) },
    { "max-connections", "COUNT", "4096", "connections of a worker",
      COUNT(max_connections, 1, 1000000) },
    { "max-buffered", "SIZE", "256M", "all buffers of a worker; past it, it stops reading",
      SIZE(max_buffered_bytes, MIB(1), MIB(1048576)) },
    { "max-request-memory", "SIZE", "1M", "what a request's parameters, filters and handler use",
      SIZE(max_request_bytes, KIB(64), MIB(1024)) },

    { "silent-time", "TIME", "1s", "a new connection, to its first whole record",
      TIME(silent_ms, 10, DAY_MS) },
    { "silent-unix-time", "TIME", "200ms", "the same on a unix socket",
      TIME(silent_unix_ms, 10, DAY_MS) },
    { "head-time", "TIME", "2s", "from a request's first byte to its last parameter",
      TIME(head_ms, 10, DAY_MS) },
    { "write-time", "TIME", "10s", "a peer that doesn't read", TIME(write_ms, 10, DAY_MS) },
    { "total-time", "TIME", "60s", "a whole request, then 504", TIME(total_ms, 10, DAY_MS) },
    { "idle-time", "TIME", "75s", "a kept connection without a request",
      TIME(idle_ms, 10, DAY_MS) },
    { "drain-time", "TIME", "5s", "what runs at a stop may end within it",
      TIME(drain_ms, 0, DAY_MS) },
    { "linger-time", "TIME", "2s", "reading on after an early answer",
      TIME(linger_ms, 0, DAY_MS) },
    { "linger-size", "SIZE", "32M", "the same, in bytes",
      SIZE(linger_bytes, 0, MIB(1048576)) },

    { "max-offloads", "COUNT", "64", "offloaded look-ups in flight in a worker",
      COUNT(max_offloads, 1, 65536) },
    { "max-offloads-address", "COUNT", "4", "the same for one remote address",
      COUNT(max_offloads_an_address, 1, 65536) },

    { "store", "STORE", "shm",
      "where counters live: shm, redis:unix:PATH, redis:tcp:ADDRESS:PORT", set_store },
    { "redis-password-file", "PATH", NULL, "its first line is the password",
      set_text, FIELD(redis_password_file) },
    { "redis-db", "COUNT", "0", "database that is selected",
      COUNT(redis_database, 0, 1000000) },
    { "redis-timeout", "TIME", "20ms", "how long a decision may take",
      TIME(redis_timeout_ms, 5, 10000) },
    { "instances", "COUNT", "1",
      "that share the store; each enforces its share while the store is away",
      COUNT(instances, 1, 10000) },
    { "shm-entries", "COUNT", "262144", "counters in shared memory, 17 bytes each",
      set_size, FIELD(shm_entries), .unit = WEIR__UNIT_COUNT,
      .min = 64, .max = UINT64_C(1) << 31 },
    { "log-level", "LEVEL", "info", "lowest that is logged: debug, info, warning, error",
      set_log_level },

    { "routes", NULL, NULL, "check the tables, print every endpoint with its limits",
      set_action, .action = WEIR__ACTION_ROUTES },
    { "check", NULL, NULL, "check the tables and leave",
      set_action, .action = WEIR__ACTION_CHECK },
    { "version", NULL, NULL, "print the version and leave",
      set_action, .action = WEIR__ACTION_VERSION },
    { "help", NULL, NULL, "print this and leave", set_action, .action = WEIR__ACTION_HELP },
    { NULL },
};
/* clang-format on */

void weir__options_defaults(struct weir__options *ret)
{
    struct weir__options options = { 0 };
    struct weir_error error = { "" };
    for (const struct option *option = table; option->name; option++)
        if (option->default_text)
            option->set(option, option->default_text, &options, &error);
    *ret = options;
}

static const struct option *find(const char *name, size_t len)
{
    for (const struct option *option = table; option->name; option++)
        if (strlen(option->name) == len && memcmp(option->name, name, len) == 0)
            return option;
    return NULL;
}

static const struct weir_option *
find_app(const struct weir_option *app_options, const char *name, size_t len)
{
    for (const struct weir_option *own = app_options; own && own->name; own++)
        if (strlen(own->name) == len && memcmp(own->name, name, len) == 0)
            return own;
    return NULL;
}

/* Reads argv[*at], and the argument behind it where it needs one; *at is then the last
 * word that was used. */
static bool parse_one(struct weir__options *options,
                      char **argv,
                      int *at,
                      const struct weir_option *app_options,
                      struct weir_error *ret_error)
{
    const char *word = argv[*at];
    if (strncmp(word, "--", 2) != 0 || word[2] == '\0')
        return weir__error(ret_error, "\"%s\" is not an option; see --help", word);
    const char *name = word + 2;
    size_t len = strcspn(name, "=");
    const struct option *ours = find(name, len);
    const struct weir_option *own = find_app(app_options, name, len);
    if (!ours && !own)
        return weir__error(
            ret_error, "--%.*s: no such option; see --help", (int)len, name);
    bool is_switch = ours && !ours->argument;
    const char *value = name[len] == '=' ? name + len + 1 : NULL;
    if (is_switch && value)
        return weir__error(ret_error, "--%.*s takes no argument", (int)len, name);
    if (!is_switch && !value) {
        if (!argv[*at + 1])
            return weir__error(ret_error,
                               "--%s needs an argument: %s",
                               name,
                               ours ? ours->argument : own->value_name);
        value = argv[++*at];
    }
    if (ours)
        return ours->set(ours, value, options, ret_error);
    *own->ret_value = value;
    return true;
}

/* Bounds that make no sense together. */
static bool check_together(const struct weir__options *options,
                           struct weir_error *ret_error)
{
    const struct {
        const char *inner, *outer;
        size_t inner_bytes, outer_bytes;
    } pairs[] = {
        { "max-param-value",
          "max-params",
          options->max_param_value_bytes,
          options->max_params_bytes },
        { "max-params",
          "max-request-memory",
          options->max_params_bytes,
          options->max_request_bytes },
        { "max-request-memory",
          "max-buffered",
          options->max_request_bytes,
          options->max_buffered_bytes },
        { "max-body",
          "max-buffered",
          options->max_body_bytes,
          options->max_buffered_bytes },
    };
    for (unsigned i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].inner_bytes <= pairs[i].outer_bytes)
            continue;
        char inner[32], outer[32];
        weir__unit_format(WEIR__UNIT_BYTES, pairs[i].inner_bytes, inner, sizeof inner);
        weir__unit_format(WEIR__UNIT_BYTES, pairs[i].outer_bytes, outer, sizeof outer);
        return weir__error(ret_error,
                           "--%s: %s is more than --%s, %s",
                           pairs[i].inner,
                           inner,
                           pairs[i].outer,
                           outer);
    }
    return true;
}

bool weir__options_parse(struct weir__options *ret_options,
                         int argc,
                         char **argv,
                         const struct weir_option *app_options,
                         struct weir_error *ret_error)
{
    struct weir__options options;
    weir__options_defaults(&options);
    for (int at = 1; at < argc; at++)
        if (!parse_one(&options, argv, &at, app_options, ret_error))
            return false;
    if (!check_together(&options, ret_error))
        return false;
    *ret_options = options;
    return true;
}

bool weir__options_check(const struct weir_option *app_options,
                         struct weir_error *ret_error)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    for (const struct weir_option *own = app_options; own && own->name; own++) {
        size_t len = strlen(own->name);
        if (len == 0 || own->name[0] == '-' || strspn(own->name, letters) != len)
            return weir__error(ret_error, "option \"%s\": bad name", own->name);
        if (!own->value_name || !own->help || !own->ret_value)
            return weir__error(ret_error,
                               "option --%s: value_name, help and ret_value are needed",
                               own->name);
        if (find(own->name, len))
            return weir__error(ret_error, "option --%s is Weir's own", own->name);
        if (find_app(app_options, own->name, len) != own)
            return weir__error(ret_error, "option --%s stands twice", own->name);
    }
    return true;
}

static void help_line(FILE *out,
                      const char *name,
                      const char *argument,
                      const char *help,
                      const char *default_text)
{
    int used =
        fprintf(out, "  --%s%s%s", name, argument ? " " : "", argument ? argument : "");
    fprintf(out, "%*s  %s", used < 32 ? 32 - used : 0, "", help);
    if (default_text)
        fprintf(out, " (default: %s)", default_text);
    fputc('\n', out);
}

void weir__options_help(FILE *out,
                        const char *program,
                        const struct weir_option *app_options)
{
    fprintf(
        out, "Usage: %s --listen ADDRESS [--listen ADDRESS]... [OPTION]...\n", program);
    fputs("Serves FastCGI. Without --listen: on the sockets that systemd passes, or on\n"
          "the one at descriptor 0.\n\n"
          "Counts are plain numbers, sizes end in k, M, G or nothing, times in ms or "
          "s.\n\n",
          out);
    for (const struct option *option = table; option->name; option++)
        help_line(
            out, option->name, option->argument, option->help, option->default_text);
    if (app_options && app_options->name)
        fputs("\nThis program's own:\n\n", out);
    for (const struct weir_option *own = app_options; own && own->name; own++)
        help_line(out, own->name, own->value_name, own->help, NULL);
}
