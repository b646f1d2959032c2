/* The one form of a path on which routes and rules match, so that no spelling of it
 * dodges a rule (RFC 3986 sections 5.2.4 and 6.2.2, and stricter).
 *
 * Pure; any thread. */
#ifndef WEIR_PATH_H
#define WEIR_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* What ret_path must hold for len bytes of input, with the NUL. */
#define WEIR__PATH_BYTES(len_) (3 * (size_t)(len_) + 2)

/* Normalises a request target in origin-form ("/a?b") or absolute-form ("http://h/a?b").
 *
 * The query is cut at the first `?`; *ret_query points behind it, or to the end of uri
 * where there is none. Then, segment by segment: `;` and what follows is cut; %XX of an
 * unreserved character is decoded, once; another %XX is written in upper case; a raw byte
 * that may not stand in a path (blank, `"`, `\`, 0x80 and above, ...) is percent-coded;
 * `//` is merged, `.` and `..` are resolved, and a trailing slash goes, except of "/". No
 * path at all is "/". Normalising the result again changes nothing.
 *
 * Returns NULL, or why the target is a 400, a phrase for the client: %2F, %00, a `%`
 * without two hex digits, a control byte, `#`, a target of another form ("*"). Outputs
 * are then untouched, but for the bytes of ret_path. */
const char *
weir__path_from_uri(const char *uri, size_t len, char *ret_path, const char **ret_query);

/* The same path from SCRIPT_NAME and PATH_INFO, for a server that passes no REQUEST_URI;
 * ret_path needs WEIR__PATH_BYTES of both lengths. The server has decoded them, so that
 * `%` is a byte like others here and every byte that is not allowed is coded again. What
 * the decoding lost stays lost: `;` is taken as the start of a parameter, and %2F is
 * whatever the server made of it. Returns NULL, or why it is a 400. */
const char *
weir__path_from_cgi(const char *script_name, const char *path_info, char *ret_path);

/* Decodes a piece of a normalised path in full; ret_text needs len + 1 bytes and is
 * NUL-ended. False where that isn't UTF-8 or holds a NUL. */
bool weir__path_decode(const char *piece, size_t len, char *ret_text);

#endif
