/* Formats commands for Redis. It knows the protocol's framing and the three commands that
 * every connection begins with; what a decision needs is redis_script.c's. Nothing here
 * sends, and no byte of an argument is looked at. */
#include "store/redis_command.h"

#include <stdio.h>
#include <string.h>

static bool
put_args(struct weir__buf *out, const struct weir__redis_arg *args, unsigned args_len)
{
    if (!weir__buf_printf(out, "*%u\r\n", args_len))
        return false;
    for (unsigned i = 0; i < args_len; i++)
        if (!weir__buf_printf(out, "$%zu\r\n", args[i].len) ||
            !weir__buf_append(out, args[i].bytes, args[i].len) ||
            !weir__buf_append(out, "\r\n", 2))
            return false;
    return true;
}

bool weir__redis_put(struct weir__buf *out,
                     const struct weir__redis_arg *args,
                     unsigned args_len)
{
    size_t before = out->len;
    if (put_args(out, args, args_len))
        return true;
    out->len = before;
    return false;
}

static struct weir__redis_arg text(const char *word)
{
    return (struct weir__redis_arg){ word, strlen(word) };
}

bool weir__redis_put_auth(struct weir__buf *out, const char *password)
{
    const struct weir__redis_arg args[] = { text("AUTH"), text(password) };
    return weir__redis_put(out, args, 2);
}

bool weir__redis_put_select(struct weir__buf *out, unsigned database)
{
    char number[16];
    snprintf(number, sizeof number, "%u", database);
    const struct weir__redis_arg args[] = { text("SELECT"), text(number) };
    return weir__redis_put(out, args, 2);
}

bool weir__redis_put_load(struct weir__buf *out, const char *script, size_t len)
{
    const struct weir__redis_arg args[] = { text("SCRIPT"),
                                            text("LOAD"),
                                            { script, len } };
    return weir__redis_put(out, args, 3);
}
