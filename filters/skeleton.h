/* The smallest filter, to copy: adds one header to every answer.
 *
 * A filter of your own: copy skeleton.c and skeleton.h under another name and replace the
 * word skeleton; write the hooks that it needs, leave the others out; put WEIR_USE(name)
 * into the chain, where its `needs` are provided before it. In an app both files stand
 * with the app's. A filter that ships with Weir stands here: its name goes into
 * meson.build, its test is tests/unit/test_<name>.c. Try it with WEIR_USE(lint) in front,
 * which tells what it does against the rules of the chain. */
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
