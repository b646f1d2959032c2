/* From a request as a test writes it to the parameters of a web server. */
#ifndef WEIR_TEST_REQUEST_H
#define WEIR_TEST_REQUEST_H

#include <weir/test.h>
#include "base/arena.h"
#include "base/pair.h"

/* Makes the parameters in the arena. NULL, or why it can't be done. */
const char *weir__test_params(const struct weir_test_request *request,
                              size_t body_len,
                              struct weir__arena *arena,
                              struct weir__pair **ret_params,
                              unsigned *ret_params_len);

#endif
