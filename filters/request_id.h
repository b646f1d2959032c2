/* Gives each request an id, for log lines, problem bodies and the client.
 *
 * Sets the response header X-Request-Id. Put it first, so that all that follow have it.
 */
#ifndef WEIR_FILTERS_REQUEST_ID_H
#define WEIR_FILTERS_REQUEST_ID_H

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_request_id {
    size_t size; /* set by WEIR_USE */
    bool trust;  /* takes the id from the request header X-Request-Id, where that is 1 to
                    64 of [A-Za-z0-9._-]. Only behind a front that sets or strips it: else
                    a client chooses what stands in the logs */
    int abi;     /* set by WEIR_USE */
};

/* Provides "request_id". */
extern WEIR_API const struct weir_filter weir_filter_request_id;

#ifdef __cplusplus
}
#endif

#endif
