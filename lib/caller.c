/* Callers as values: their words, and making one of what an app has verified.
 *
 * Who a caller is, is the identity filter's business. */
#include <weir/weir.h>

#include <string.h>

const char *weir_caller_type_name(enum weir_caller_type type)
{
    static const char *const names[] = {
        [WEIR_CALLER_NONE] = "none",
        [WEIR_CALLER_USER] = "user",
        [WEIR_CALLER_KEY] = "key",
        [WEIR_CALLER_IP] = "ip",
        [WEIR_CALLER_REMOTE_USER] = "remote_user",
    };
    return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : "none";
}

bool weir_caller_user(struct weir_caller *ret_caller, const char *id)
{
    size_t len = id ? strnlen(id, WEIR_CALLER_ID_MAX + 1) : 0;
    if (len == 0 || len > WEIR_CALLER_ID_MAX)
        return false;
    ret_caller->type = WEIR_CALLER_USER;
    ret_caller->id_len = (unsigned)len;
    memcpy(ret_caller->id, id, len + 1);
    return true;
}
