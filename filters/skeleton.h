/* The smallest filter, to copy: adds one header to every answer. */
#ifndef WEIR_FILTERS_SKELETON_H
#define WEIR_FILTERS_SKELETON_H

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_skeleton {
    size_t size;       /* set by WEIR_USE */
    const char *value; /* of the header Weir-Skeleton; NULL: "hello" */
    int abi;           /* set by WEIR_USE */
};

extern WEIR_API const struct weir_filter weir_filter_skeleton;

#ifdef __cplusplus
}
#endif

#endif
