/* Addresses as FCGX_OpenSocket takes them. */
#ifndef WEIR_PROCESS_PULL_ADDRESS_H
#define WEIR_PROCESS_PULL_ADDRESS_H

#include <weir/weir.h>

/* Writes libfcgi's ":PORT", "*:PORT", "HOST:PORT" or path as an address of --listen. What
 * follows the first colon makes the difference: a number above 0 is a port, as it is
 * there. A name is looked up (IPv4, as there), which may block. False with a text for a
 * name that isn't known or a text that doesn't fit. Any thread. */
bool weir__pull_address(const char *path,
                        char *text,
                        size_t size,
                        struct weir_error *ret_error);

#endif
