/* A name and its value. */
#ifndef WEIR_BASE_PAIR_H
#define WEIR_BASE_PAIR_H

/* A CGI parameter, or a header of the response. Both texts end with a NUL. */
struct weir__pair {
    const char *name, *value;
    unsigned name_len, value_len;
};

#endif
