/* Variables of the environment as a command line, which the same table then reads: a name
 * or a number that is wrong is refused in the same words. */
#include "process/pull_environment.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define ARGUMENTS_MAX 64

/* "--max-body=10M" for WEIR_MAX_BODY=10M; NULL for a variable that is no option, or where
 * memory is short. */
static char *argument_of(const char *variable)
{
    size_t prefix = sizeof WEIR__PULL_PREFIX - 1, limit = sizeof WEIR__PULL_LIMIT - 1;
    if (strncmp(variable, WEIR__PULL_PREFIX, prefix) != 0 ||
        (strncmp(variable, WEIR__PULL_LIMIT, limit) == 0 && variable[limit] == '='))
        return NULL;
    char *argument = malloc(strlen(variable) + 3);
    if (!argument)
        return NULL;
    char *at = stpcpy(argument, "--");
    stpcpy(at, variable + prefix);
    for (; *at && *at != '='; at++)
        *at = *at == '_' ? '-' : (char)tolower((unsigned char)*at);
    return argument;
}

bool weir__pull_environment(weir_fcgx_fn *fcgx,
                            struct weir__options *ret_options,
                            struct weir__pull_limits *ret_limits,
                            struct weir_error *ret_error)
{
    static char *arguments[ARGUMENTS_MAX + 1];
    struct weir__options options;
    const char *limits = getenv(WEIR__PULL_LIMIT);
    int len = 1;
    arguments[0] = (char *)"weir";
    for (char **at = environ; at && *at; at++) {
        char *argument = argument_of(*at);
        if (argument && len == ARGUMENTS_MAX) {
            free(argument);
            return weir__error(
                ret_error, "environment: more than %d variables", ARGUMENTS_MAX - 1);
        }
        if (argument)
            arguments[len++] = argument;
    }
    arguments[len] = NULL;
    if (!weir__options_parse(&options, len, arguments, NULL, ret_error))
        return false;
    const char *servers = getenv("FCGI_WEB_SERVER_ADDRS");
    if (servers && *servers)
        return weir__error(ret_error,
                           "FCGI_WEB_SERVER_ADDRS is libfcgi's, Weir lets every peer in: "
                           "unset it once only the web server reaches the socket");
    if (options.action != WEIR__ACTION_RUN)
        return weir__error(ret_error, "environment: an option that only prints");
    if (!weir__pull_limits_parse(limits ? limits : "", fcgx, ret_limits, ret_error))
        return false;
    *ret_options = options;
    return true;
}
