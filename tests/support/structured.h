/* A strict parser of structured fields (RFC 9651 section 4.2), lists of items and single
 * items: the judge of what the library writes, with which it shares no line. It knows
 * strings, tokens, integers, decimals, byte sequences and booleans; inner lists, dates
 * and display strings, which no field of ours has, are errors to it. */
#ifndef TESTS_SUPPORT_STRUCTURED_H
#define TESTS_SUPPORT_STRUCTURED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SF_TEXT_MAX 1024 /* bytes of a string, token or byte sequence (3.3.3) */
#define SF_KEY_MAX 64    /* of a parameter's key (3.1.2) */
#define SF_PARAMS_MAX 8
#define SF_ITEMS_MAX 16

enum sf_type { SF_INTEGER, SF_DECIMAL, SF_STRING, SF_TOKEN, SF_BYTES, SF_BOOLEAN };

struct sf_value {
    enum sf_type type;
    int64_t number; /* a decimal's is in thousandths, a boolean's 0 or 1 */
    char text[SF_TEXT_MAX + 1];
    size_t len; /* of text, which may hold a NUL where it is a byte sequence */
};

struct sf_param {
    char key[SF_KEY_MAX + 1];
    struct sf_value value;
};

struct sf_item {
    struct sf_value value;
    unsigned params_len;
    struct sf_param params[SF_PARAMS_MAX];
};

struct sf_list {
    unsigned len;
    struct sf_item items[SF_ITEMS_MAX];
};

/* What is left to read. */
struct sf_rest {
    const char *at, *end;
};

/* The next byte, -1 at the end. */
static inline int sf_peek(const struct sf_rest *rest)
{
    return rest->at < rest->end ? (unsigned char)*rest->at : -1;
}

static inline bool sf_take(struct sf_rest *rest, int byte)
{
    if (sf_peek(rest) != byte)
        return false;
    rest->at++;
    return true;
}

static inline bool sf_is_digit(int byte)
{
    return byte >= '0' && byte <= '9';
}

static inline bool sf_is_lower(int byte)
{
    return byte >= 'a' && byte <= 'z';
}

static inline bool sf_is_alpha(int byte)
{
    return sf_is_lower(byte) || (byte >= 'A' && byte <= 'Z');
}

static inline bool sf_is_one_of(int byte, const char *bytes)
{
    return byte > 0 && strchr(bytes, byte) != NULL;
}

/* 4.2.4. */
static inline bool sf_parse_number(struct sf_rest *rest, struct sf_value *ret)
{
    bool minus = sf_take(rest, '-');
    int64_t number = 0;
    unsigned whole = 0, fraction = 0;
    for (; sf_is_digit(sf_peek(rest)); rest->at++) {
        number = number * 10 + (*rest->at - '0');
        if (++whole > 15)
            return false;
    }
    if (whole == 0)
        return false;
    ret->type = SF_INTEGER;
    if (sf_take(rest, '.')) {
        for (; sf_is_digit(sf_peek(rest)); rest->at++) {
            number = number * 10 + (*rest->at - '0');
            if (++fraction > 3)
                return false;
        }
        if (fraction == 0 || whole > 12)
            return false;
        for (; fraction < 3; fraction++)
            number *= 10;
        ret->type = SF_DECIMAL;
    }
    ret->number = minus ? -number : number;
    return true;
}

static inline bool sf_keep(struct sf_value *value, int byte)
{
    if (value->len == SF_TEXT_MAX)
        return false;
    value->text[value->len++] = (char)byte;
    value->text[value->len] = '\0';
    return true;
}

/* 4.2.5. */
static inline bool sf_parse_string(struct sf_rest *rest, struct sf_value *ret)
{
    ret->type = SF_STRING;
    rest->at++;
    while (rest->at < rest->end) {
        int byte = (unsigned char)*rest->at++;
        if (byte == '"')
            return true;
        if (byte == '\\') {
            byte = sf_peek(rest);
            rest->at++;
            if (byte != '"' && byte != '\\')
                return false;
        } else if (byte < 0x20 || byte > 0x7e) {
            return false;
        }
        if (!sf_keep(ret, byte))
            return false;
    }
    return false;
}

/* 4.2.6; tchar of RFC 9110, and colon and slash. */
static inline bool sf_parse_token(struct sf_rest *rest, struct sf_value *ret)
{
    ret->type = SF_TOKEN;
    while (sf_is_alpha(sf_peek(rest)) || sf_is_digit(sf_peek(rest)) ||
           sf_is_one_of(sf_peek(rest), "!#$%&'*+-.^_`|~:/"))
        if (!sf_keep(ret, *rest->at++))
            return false;
    return true;
}

/* 4.2.7: base 64 with its padding; bits beside the bytes may be anything, as the RFC lets
 * a parser choose. */
static inline bool sf_parse_bytes(struct sf_rest *rest, struct sf_value *ret)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    ret->type = SF_BYTES;
    rest->at++;
    unsigned bits = 0, bits_len = 0, count = 0, padding = 0;
    for (; sf_peek(rest) != ':'; rest->at++, count++) {
        int byte = sf_peek(rest);
        if (byte == '=') {
            padding++;
            continue;
        }
        if (!sf_is_one_of(byte, digits) || padding > 0)
            return false;
        bits = bits << 6 | (unsigned)(strchr(digits, byte) - digits);
        bits_len += 6;
        if (bits_len >= 8) {
            bits_len -= 8;
            if (!sf_keep(ret, (int)(bits >> bits_len & 0xff)))
                return false;
        }
    }
    rest->at++;
    return count % 4 == 0 && padding <= 2;
}

/* 4.2.3.1. */
static inline bool sf_parse_value(struct sf_rest *rest, struct sf_value *ret)
{
    int byte = sf_peek(rest);
    memset(ret, 0, sizeof *ret);
    if (byte == '-' || sf_is_digit(byte))
        return sf_parse_number(rest, ret);
    if (byte == '"')
        return sf_parse_string(rest, ret);
    if (byte == '*' || sf_is_alpha(byte))
        return sf_parse_token(rest, ret);
    if (byte == ':')
        return sf_parse_bytes(rest, ret);
    if (byte != '?')
        return false;
    rest->at++;
    ret->type = SF_BOOLEAN;
    ret->number = sf_peek(rest) == '1';
    return sf_take(rest, '1') || sf_take(rest, '0');
}

/* 4.2.3.3. */
static inline bool sf_parse_key(struct sf_rest *rest, char ret_key[SF_KEY_MAX + 1])
{
    size_t len = 0;
    if (sf_peek(rest) != '*' && !sf_is_lower(sf_peek(rest)))
        return false;
    while (sf_is_lower(sf_peek(rest)) || sf_is_digit(sf_peek(rest)) ||
           sf_is_one_of(sf_peek(rest), "_-.*")) {
        if (len == SF_KEY_MAX)
            return false;
        ret_key[len++] = *rest->at++;
    }
    ret_key[len] = '\0';
    return true;
}

/* The place of a parameter: of two with one key the last wins (4.2.3.2). */
static inline struct sf_param *sf_place(struct sf_item *item, const char *key)
{
    for (unsigned i = 0; i < item->params_len; i++)
        if (strcmp(item->params[i].key, key) == 0)
            return &item->params[i];
    return item->params_len < SF_PARAMS_MAX ? &item->params[item->params_len++] : NULL;
}

/* An item with its parameters (4.2.3). */
static inline bool sf_parse_inner(struct sf_rest *rest, struct sf_item *ret)
{
    ret->params_len = 0;
    if (!sf_parse_value(rest, &ret->value))
        return false;
    while (sf_take(rest, ';')) {
        char key[SF_KEY_MAX + 1];
        while (sf_take(rest, ' '))
            continue;
        if (!sf_parse_key(rest, key))
            return false;
        struct sf_param *param = sf_place(ret, key);
        if (!param)
            return false;
        strcpy(param->key, key);
        param->value = (struct sf_value){ .type = SF_BOOLEAN, .number = 1 };
        if (sf_take(rest, '=') && !sf_parse_value(rest, &param->value))
            return false;
    }
    return true;
}

static inline struct sf_rest sf_begin(const char *text, size_t len)
{
    struct sf_rest rest = { text, text + len };
    while (sf_take(&rest, ' '))
        continue;
    return rest;
}

static inline bool sf_is_end(struct sf_rest *rest)
{
    while (sf_take(rest, ' '))
        continue;
    return rest->at == rest->end;
}

static inline bool sf_parse_item(const char *text, size_t len, struct sf_item *ret)
{
    struct sf_rest rest = sf_begin(text, len);
    return sf_parse_inner(&rest, ret) && sf_is_end(&rest);
}

/* 4.2.1. Of several lines: joined with ", " first. */
static inline bool sf_parse_list(const char *text, size_t len, struct sf_list *ret)
{
    struct sf_rest rest = sf_begin(text, len);
    ret->len = 0;
    if (rest.at == rest.end)
        return true;
    while (ret->len < SF_ITEMS_MAX) {
        if (!sf_parse_inner(&rest, &ret->items[ret->len++]))
            return false;
        while (sf_take(&rest, ' ') || sf_take(&rest, '\t'))
            continue;
        if (rest.at == rest.end)
            return true;
        if (!sf_take(&rest, ','))
            return false;
        while (sf_take(&rest, ' ') || sf_take(&rest, '\t'))
            continue;
    }
    return false;
}

/* NULL where the item has none of that key. */
static inline const struct sf_value *sf_param(const struct sf_item *item, const char *key)
{
    for (unsigned i = 0; i < item->params_len; i++)
        if (strcmp(item->params[i].key, key) == 0)
            return &item->params[i].value;
    return NULL;
}

#endif
