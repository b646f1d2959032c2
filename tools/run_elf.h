/* Whether the loader can put a library before a program's libfcgi: what the program's
 * file says, read without running anything. */
#ifndef WEIR_TOOLS_RUN_ELF_H
#define WEIR_TOOLS_RUN_ELF_H

#include <weir/weir.h>

/* True where `path` is a dynamically linked program of this machine that needs libfcgi,
 * loaded by the same loader as the calling program, and to which the loader gives the
 * environment whole (it is not set-user-ID). False with a text that says what it is
 * instead. Any file may be given; nothing in it is trusted. */
bool run_elf_can_be_preloaded(const char *path, struct weir_error *ret_error);

/* The same for the bytes of its file, aligned for any type, beside those of a program
 * that runs here. NULL, or what it is instead. Pure. */
const char *
run_elf_hindrance(const void *bytes, size_t len, const void *self, size_t self_len);

#endif
