/* Names of the sources of decisions, as logs and the header Weir-Source say them. */
#include "source.h"

const char *weir__source_name(enum weir_source source)
{
    static const char *const names[] = {
        [WEIR_SOURCE_NONE] = "-",      [WEIR_SOURCE_SHM] = "shm",
        [WEIR_SOURCE_REDIS] = "redis", [WEIR_SOURCE_LOCAL] = "local",
        [WEIR_SOURCE_ALLOW] = "allow", [WEIR_SOURCE_DENY] = "deny",
        [WEIR_SOURCE_FAKE] = "fake",
    };
    if ((unsigned)source >= sizeof names / sizeof *names)
        return "-";
    return names[source];
}
