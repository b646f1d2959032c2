/* Redis commands as bytes: arrays of bulk strings (RESP2), binary safe, no format that
 * user data could break out of. Pure: nothing is sent here.
 *
 * Each returns false where the buffer is full; what it had written by then stays out. */
#ifndef WEIR_STORE_REDIS_COMMAND_H
#define WEIR_STORE_REDIS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct weir__redis_arg {
    const char *bytes;
    size_t len;
};

/* A command of args_len words. */
bool weir__redis_put(struct weir__buf *out,
                     const struct weir__redis_arg *args,
                     unsigned args_len);

/* AUTH with a password, SELECT, SCRIPT LOAD with a script's text. */
bool weir__redis_put_auth(struct weir__buf *out, const char *password);
bool weir__redis_put_select(struct weir__buf *out, unsigned database);
bool weir__redis_put_load(struct weir__buf *out, const char *script, size_t len);

#endif
