/* Whom a rule counts, as a piece of a key. */
#ifndef WEIR_LIMIT_SUBJECT_H
#define WEIR_LIMIT_SUBJECT_H

#include <weir/weir.h>

#define WEIR__SUBJECT_BYTES 80 /* for any subject, with its NUL */

/* Writes "user:42", "ip:198.51.100.7", "all" for a rule that counts `by`. An id of
 * [A-Za-z0-9._@-] up to 64 bytes (for addresses also ':' and '/') stands as it is, others
 * as a 128-bit hash in hex, of a form that no plain id has. address_key is the name under
 * which the remote address is counted; NULL, like a caller of type NONE, is "none": one
 * subject shared by all who have no address. Returns the length. Pure; any thread. */
size_t weir__subject(enum weir_by by,
                     const struct weir_caller *caller,
                     const char *address_key,
                     char ret_text[WEIR__SUBJECT_BYTES]);

#endif
