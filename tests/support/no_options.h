/* For tests of programs that take every WEIR_ variable for an option: those of the test
 * command (WEIR_BUILD, WEIR_TIME_FACTOR) are none. */
#ifndef TESTS_SUPPORT_NO_OPTIONS_H
#define TESTS_SUPPORT_NO_OPTIONS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Takes them all out of the environment. */
static inline void no_options(void)
{
    char **at = environ;
    while (at && *at) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (strncmp(name, "WEIR_", 5) != 0 || unsetenv(name) != 0)
            at++;
    }
}

#endif
