/* The functions that libfcgi's header declares, read from the header that the test was
 * compiled with, so that one which a newer libfcgi brings is noticed. */
#ifndef TESTS_FCGIAPP_NAMES_H
#define TESTS_FCGIAPP_NAMES_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WORD_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

/* The names in a line that a parenthesis follows; each must be listed. */
static inline unsigned fcgiapp_names_of_line(const char *line,
                                             bool (*is_listed)(const char *name))
{
    unsigned found = 0;
    for (const char *name = strstr(line, "FCGX_"); name; name = strstr(name, "FCGX_")) {
        size_t len = strspn(name, WORD_CHARACTERS);
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)len, name);
        name += len;
        if (*name == '(') {
            cr_expect(is_listed(word), "%s is in neither list", word);
            found++;
        }
    }
    return found;
}

/* How many functions the header declares. */
static inline unsigned fcgiapp_names(bool (*is_listed)(const char *name))
{
    char line[512];
    unsigned found = 0;
    bool comment = false;
    FILE *header = fopen(FCGIAPP_H, "r");
    cr_assert(header, "%s", FCGIAPP_H);
    while (fgets(line, sizeof line, header)) {
        comment = comment || strstr(line, "/*");
        if (!comment)
            found += fcgiapp_names_of_line(line, is_listed);
        comment = comment && !strstr(line, "*/");
    }
    fclose(header);
    return found;
}

#endif
