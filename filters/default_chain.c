/* The one default order: who calls, and then whether it is too often. */
#include "identity.h"
#include "ratelimit.h"

static const struct weir_use uses[] = {
    WEIR_USE(identity),
    WEIR_USE(ratelimit),
    { NULL, NULL },
};

const struct weir_use *const weir_chain_default = uses;
