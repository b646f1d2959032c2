/* Whom a rule counts, written so that no caller can be taken for another.
 *
 * A subject begins with a word of ours and a colon, so that no id of one type can spell a
 * subject of another; after it stands the id as it is, or '#' and a hash, and no id that
 * stands as it is may hold a '#'. Addresses come from the address code alone and may hold
 * ':' and '/'. Braces never get through: they would choose a slot in a Redis Cluster. */
#include "limit/subject.h"

#include <stdio.h>
#include <string.h>

#include "base/sha256.h"

#define PLAIN_MAX 64  /* bytes of an id that stands as it is */
#define HASH_BYTES 16 /* 128 bits: to hit another's takes 2^128 tries */

static bool is_plain_byte(char byte, bool is_address)
{
    if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
        (byte >= '0' && byte <= '9'))
        return true;
    return byte == '.' || byte == '_' || byte == '@' || byte == '-' ||
           (is_address && (byte == ':' || byte == '/'));
}

static bool is_plain(const char *id, size_t len, bool is_address)
{
    if (len == 0 || len > PLAIN_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_plain_byte(id[i], is_address))
            return false;
    return true;
}

static size_t
write_id(enum weir_caller_type type, const char *id, size_t len, char *ret_text)
{
    bool is_address = type == WEIR_CALLER_IP;
    char *begin = stpcpy(stpcpy(ret_text, weir_caller_type_name(type)), ":");
    size_t at = (size_t)(begin - ret_text);
    if (is_plain(id, len, is_address)) {
        memcpy(ret_text + at, id, len);
        ret_text[at + len] = '\0';
        return at + len;
    }
    /* A digest nobody can aim, not a keyed one: every server must find the same name. */
    uint8_t digest[WEIR__SHA256_BYTES];
    weir__sha256(id, len, digest);
    ret_text[at++] = '#';
    for (int i = 0; i < HASH_BYTES; i++)
        at += (size_t)snprintf(ret_text + at, 3, "%02x", digest[i]);
    return at;
}

static size_t write_word(const char *word, char *ret_text)
{
    return (size_t)(stpcpy(ret_text, word) - ret_text);
}

size_t weir__subject(enum weir_by by,
                     const struct weir_caller *caller,
                     const char *address_key,
                     char ret_text[WEIR__SUBJECT_BYTES])
{
    if (by == WEIR_BY_EVERYBODY)
        return write_word("all", ret_text);
    if (by == WEIR_BY_CALLER && caller->type != WEIR_CALLER_NONE)
        return write_id(caller->type, caller->id, caller->id_len, ret_text);
    if (by == WEIR_BY_IP && address_key && address_key[0] != '\0')
        return write_id(WEIR_CALLER_IP, address_key, strlen(address_key), ret_text);
    return write_word("none", ret_text);
}
