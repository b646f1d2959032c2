/* The functions that a header of libfcgi's declares, read from the one that the test was
 * compiled with, so that a function which a newer libfcgi brings is noticed. */
#ifndef TESTS_HEADER_NAMES_H
#define TESTS_HEADER_NAMES_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WORD_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

/* The names in a line that a parenthesis follows; each must be listed. */
static inline unsigned header_names_of_line(const char *line,
                                            const char *prefix,
                                            bool (*is_listed)(const char *name))
{
    unsigned found = 0;
    for (const char *name = strstr(line, prefix); name; name = strstr(name, prefix)) {
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

/* How many functions whose names begin with prefix the header at path declares. */
static inline unsigned
header_names(const char *path, const char *prefix, bool (*is_listed)(const char *name))
{
    char line[512];
    unsigned found = 0;
    bool comment = false;
    FILE *header = fopen(path, "r");
    cr_assert(header, "%s", path);
    while (fgets(line, sizeof line, header)) {
        comment = comment || strstr(line, "/*");
        if (!comment && line[0] != '#')
            found += header_names_of_line(line, prefix, is_listed);
        comment = comment && !strstr(line, "*/");
    }
    fclose(header);
    return found;
}

#endif
