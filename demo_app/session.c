/* The session cookie: "alice.1767225600.<64 hex digits>", that is the user, the second
 * in which the session ends, and an HMAC over both (libsodium's crypto_auth).
 *
 * A cookie is checked by making it anew from its own first two parts and comparing: only
 * one spelling is ever right. Nothing here may log a cookie, a password or the key. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sodium.h>

#include "session.h"

#define COOKIE_MAX 128     /* bytes of a cookie's value, with its NUL */
#define SESSION_SECS 43200 /* twelve hours */

static const char *const users[] = { "alice", "bob", "carol" };
static const char everybodys_password[] = "weir";

static unsigned char key[crypto_auth_KEYBYTES];

static bool read_key(const char *path, struct weir_error *ret_error)
{
    unsigned char bytes[sizeof(key) + 1];
    FILE *file = fopen(path, "rbe");
    const char *mistake = NULL;

    if (file == NULL) {
        mistake = strerror(errno);
    } else {
        if (fread(bytes, 1, sizeof(bytes), file) != sizeof(key))
            mistake = "a key has exactly 32 bytes";
        fclose(file);
    }
    if (mistake != NULL) {
        snprintf(ret_error->text,
                 sizeof(ret_error->text),
                 "--key-file: %s: %s",
                 path,
                 mistake);
        return false;
    }
    memcpy(key, bytes, sizeof(key));
    sodium_memzero(bytes, sizeof(bytes));
    return true;
}

bool session_start(const char *key_file, struct weir_error *ret_error)
{
    if (sodium_init() < 0) {
        snprintf(ret_error->text, sizeof(ret_error->text), "libsodium does not start");
        return false;
    }
    if (key_file != NULL)
        return read_key(key_file, ret_error);
    crypto_auth_keygen(key);
    return true;
}

static void hash(unsigned char ret[crypto_generichash_BYTES], const char *text)
{
    crypto_generichash(ret,
                       crypto_generichash_BYTES,
                       (const unsigned char *)text,
                       strlen(text),
                       NULL,
                       0);
}

/* A real app keeps crypto_pwhash_str() of each user's password. That is slow on purpose;
 * a handler may be. */
bool session_check_password(const char *user, const char *password)
{
    unsigned char sent[crypto_generichash_BYTES];
    unsigned char right[crypto_generichash_BYTES];
    bool known = false;

    /* Hashes have one length, so that comparing them tells nothing of how far a guess
     * was right, nor of the password's length. */
    hash(sent, password);
    hash(right, everybodys_password);
    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
        known |= strcmp(user, users[i]) == 0;
    return (sodium_memcmp(sent, right, sizeof(right)) == 0) & known;
}

/* Writes the value of a user's cookie. False where the user's name is too long for it. */
static bool
make_cookie(const char *user, size_t user_len, int64_t end_secs, char ret[COOKIE_MAX])
{
    unsigned char mac[crypto_auth_BYTES];
    char hex[2 * sizeof(mac) + 1];
    char text[COOKIE_MAX];
    int len =
        snprintf(text, sizeof(text), "%.*s.%" PRId64, (int)user_len, user, end_secs);

    if (len < 0 || (size_t)len + 1 + sizeof(hex) > sizeof(text))
        return false;
    crypto_auth(mac, (const unsigned char *)text, (size_t)len, key);
    sodium_bin2hex(hex, sizeof(hex), mac, sizeof(mac));
    memcpy(ret, text, (size_t)len);
    ret[len] = '.';
    memcpy(ret + len + 1, hex, sizeof(hex));
    return true;
}

bool session_user(struct weir *w, struct weir_caller *ret_caller)
{
    const char *cookie = weir_cookie(w, SESSION_COOKIE);
    const char *dot = cookie == NULL ? NULL : strchr(cookie, '.');
    char right[COOKIE_MAX];
    char user[COOKIE_MAX];
    size_t user_len;
    int64_t end_secs;

    if (dot == NULL)
        return false;
    user_len = (size_t)(dot - cookie);
    end_secs = strtoll(dot + 1, NULL, 10);
    if (user_len >= sizeof(user) || !make_cookie(cookie, user_len, end_secs, right))
        return false;
    if (strlen(cookie) != strlen(right) ||
        sodium_memcmp(cookie, right, strlen(right)) != 0 || end_secs <= time(NULL))
        return false;
    memcpy(user, cookie, user_len);
    user[user_len] = '\0';
    return weir_caller_user(ret_caller, user);
}

/* HttpOnly: no script reads it. SameSite: no other site's page sends it. Behind HTTPS
 * `Secure` belongs here as well; the demo is plain HTTP on 127.0.0.1. */
static bool set_cookie(struct weir *w, const char *value, int max_age_secs)
{
    const char *field =
        weir_printf(w,
                    "%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict",
                    SESSION_COOKIE,
                    value,
                    max_age_secs);

    weir_set_header(w, "Cache-Control", "no-store");
    return field != NULL && weir_add_header(w, "Set-Cookie", field);
}

bool session_begin(struct weir *w, const char *user)
{
    char value[COOKIE_MAX];

    return make_cookie(user, strlen(user), time(NULL) + SESSION_SECS, value) &&
           set_cookie(w, value, SESSION_SECS);
}

void session_end(struct weir *w)
{
    set_cookie(w, "", 0);
}
