/* Sessions of the demo: a cookie that names the user and says until when, signed with a
 * key that only the demo has. No table of sessions is needed, and nobody can make one up.
 *
 * This is a demonstration: three users, one password that everybody knows. */
#ifndef DEMO_SESSION_H
#define DEMO_SESSION_H

#include <weir/weir.h>

#define SESSION_COOKIE "weir_demo_session"

/* Takes the key from a file of exactly 32 bytes, or makes one where key_file is NULL:
 * sessions then end with the program. Once, before any other call. False with a text
 * where the file is no such key. */
bool session_start(const char *key_file, struct weir_error *ret_error);

/* Whether this is one of the users with the right password. Takes the same time whatever
 * is wrong. Any thread. */
bool session_check_password(const char *user, const char *password);

/* Sets the cookie for a user who has proved who he is. False when memory is short. */
bool session_begin(struct weir *w, const char *user);

/* Takes the cookie away again. */
void session_end(struct weir *w);

/* For identity: the user of the request's cookie. False where there is none, where its
 * signature is wrong, or its time over. */
bool session_user(struct weir *w, struct weir_caller *ret_caller);

#endif
