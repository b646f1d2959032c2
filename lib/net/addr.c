/* Addresses as values. Parsing leans on inet_pton, which is strict; writing does not lean
 * on inet_ntop, whose text of addresses such as ::1.2.3.4 depends on the C library.
 * Nothing here resolves a name or touches a socket. */
#include "net/addr.h"

#include "base/decimal.h"
#include "base/error.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define IPV4_BYTES 4
#define IPV6_BYTES 16
#define LITERAL_MAX (INET6_ADDRSTRLEN - 1)

/* ---- text to bytes ----------------------------------------------------------------- */

/* The length of the literal in front of a zone, len where there is no zone, 0 for a
 * malformed one. A zone is a name of the system that wrote it: it means nothing here. */
static size_t without_zone(const char *text, size_t len)
{
    const char *percent = memchr(text, '%', len);
    if (!percent)
        return len;
    size_t literal_len = (size_t)(percent - text), zone_len = len - literal_len - 1;
    if (zone_len == 0 || zone_len > 32 || !memchr(text, ':', literal_len))
        return 0;
    for (const char *at = percent + 1; at < text + len; at++)
        if (*at <= ' ' || *at > '~' || *at == '%')
            return 0;
    return literal_len;
}

/* Parses without looking for an IPv4 inside an IPv6. */
static bool parse_literal(const char *text, size_t len, struct weir__addr *ret_addr)
{
    char literal[LITERAL_MAX + 1];
    struct weir__addr addr = { .family = WEIR__ADDR_NONE };
    if (len == 0 || len > LITERAL_MAX || memchr(text, '\0', len))
        return false;
    memcpy(literal, text, len);
    literal[len] = '\0';
    if (inet_pton(AF_INET, literal, addr.bytes) == 1)
        addr.family = WEIR__ADDR_IPV4;
    else if (inet_pton(AF_INET6, literal, addr.bytes) == 1)
        addr.family = WEIR__ADDR_IPV6;
    else
        return false;
    *ret_addr = addr;
    return true;
}

/* Whether an IPv6 address is one of those that carry an IPv4 address in their last four
 * bytes: ::ffff:0:0/96 and 64:ff9b::/96. The older ::/96 is not in use. */
static bool carries_ipv4(const struct weir__addr *addr)
{
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
    static const unsigned char nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
    return addr->family == WEIR__ADDR_IPV6 &&
           (memcmp(addr->bytes, mapped, sizeof mapped) == 0 ||
            memcmp(addr->bytes, nat64, sizeof nat64) == 0);
}

bool weir__addr_parse(const char *text,
                      size_t len,
                      enum weir__addr_zone zone,
                      struct weir__addr *ret_addr)
{
    struct weir__addr addr;
    if (zone == WEIR__ADDR_ZONE_ALLOWED && len > 0)
        len = without_zone(text, len);
    if (!parse_literal(text, len, &addr))
        return false;
    if (carries_ipv4(&addr)) {
        struct weir__addr carried = { .family = WEIR__ADDR_IPV4 };
        memcpy(carried.bytes, addr.bytes + IPV6_BYTES - IPV4_BYTES, IPV4_BYTES);
        addr = carried;
    }
    *ret_addr = addr;
    return true;
}

/* ---- bytes to text ----------------------------------------------------------------- */

/* Finds the run of zero groups that `::` stands for: the longest, the first of equals, at
 * least two. *ret_start is 8 where there is none. */
static void longest_zero_run(const unsigned groups[8], int *ret_start, int *ret_len)
{
    *ret_start = 8;
    *ret_len = 1;
    for (int start = 0; start < 8; start++) {
        int len = 0;
        while (start + len < 8 && groups[start + len] == 0)
            len++;
        if (len > *ret_len) {
            *ret_start = start;
            *ret_len = len;
        }
    }
}

static size_t write_ipv4(const unsigned char bytes[4],
                         char ret_text[WEIR__ADDR_TEXT_BYTES])
{
    char *at = ret_text;
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            *at++ = '.';
        at += weir__decimal(bytes[i], at);
    }
    return (size_t)(at - ret_text);
}

static size_t write_ipv6(const unsigned char bytes[IPV6_BYTES],
                         char ret_text[WEIR__ADDR_TEXT_BYTES])
{
    unsigned groups[8];
    int zeros_start, zeros_len;
    for (int i = 0; i < 8; i++)
        groups[i] = (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1];
    longest_zero_run(groups, &zeros_start, &zeros_len);
    char *at = ret_text;
    for (int i = 0; i < 8; i++) {
        if (i == zeros_start) {
            at += sprintf(at, "::");
            i += zeros_len - 1;
            continue;
        }
        bool first = i == 0 || i == zeros_start + zeros_len;
        at += sprintf(at, first ? "%x" : ":%x", groups[i]);
    }
    return (size_t)(at - ret_text);
}

size_t weir__addr_text(const struct weir__addr *addr,
                       char ret_text[WEIR__ADDR_TEXT_BYTES])
{
    const unsigned char *b = addr->bytes;
    switch (addr->family) {
    case WEIR__ADDR_IPV4:
        return write_ipv4(b, ret_text);
    case WEIR__ADDR_IPV6:
        return write_ipv6(b, ret_text);
    case WEIR__ADDR_NONE:
        break;
    }
    ret_text[0] = '\0';
    return 0;
}

/* ---- prefixes ---------------------------------------------------------------------- */

static unsigned bits_of(enum weir__addr_family family)
{
    return family == WEIR__ADDR_IPV4 ? 32 : 128;
}

/* Clears the bits behind the prefix; returns whether any was set. */
static bool mask(struct weir__addr *addr, unsigned prefix_len)
{
    bool was_set = false;
    for (unsigned i = 0; i < IPV6_BYTES; i++) {
        unsigned kept = prefix_len >= 8 * (i + 1) ? 8
                        : prefix_len <= 8 * i     ? 0
                                                  : prefix_len - 8 * i;
        unsigned char cleared = (unsigned char)(addr->bytes[i] & 0xff00 >> kept);
        was_set |= cleared != addr->bytes[i];
        addr->bytes[i] = cleared;
    }
    return was_set;
}

size_t weir__addr_key(const struct weir__addr *addr,
                      unsigned prefix_len,
                      char ret_text[WEIR__ADDR_TEXT_BYTES])
{
    if (addr->family != WEIR__ADDR_IPV6)
        return weir__addr_text(addr, ret_text);
    struct weir__addr network = *addr;
    mask(&network, prefix_len);
    size_t len = write_ipv6(network.bytes, ret_text);
    return len + (size_t)sprintf(ret_text + len, "/%u", prefix_len);
}

/* Reads a prefix length: digits, no leading zero, at most max. */
static bool parse_prefix(const char *text, unsigned max, unsigned *ret_prefix_len)
{
    unsigned number = 0;
    size_t len = strlen(text);
    if (len == 0 || len > 3 || (text[0] == '0' && len > 1))
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        number = number * 10 + (unsigned)(*text - '0');
    }
    if (number > max)
        return false;
    *ret_prefix_len = number;
    return true;
}

bool weir__cidr_parse(const char *text,
                      struct weir__cidr *ret_cidr,
                      struct weir_error *ret_error)
{
    struct weir__cidr cidr;
    const char *slash = strchr(text, '/');
    size_t literal_len = slash ? (size_t)(slash - text) : strlen(text);
    if (!parse_literal(text, literal_len, &cidr.addr))
        return weir__error(ret_error, "\"%s\" is no IP address or network", text);
    cidr.prefix_len = bits_of(cidr.addr.family);
    if (slash && !parse_prefix(slash + 1, cidr.prefix_len, &cidr.prefix_len))
        return weir__error(ret_error,
                           "\"%s\": the prefix length must be 0 to %u",
                           text,
                           bits_of(cidr.addr.family));
    if (carries_ipv4(&cidr.addr) && cidr.prefix_len >= 8 * (IPV6_BYTES - IPV4_BYTES))
        return weir__error(
            ret_error, "\"%s\" is IPv4 inside IPv6: write the IPv4 network", text);
    if (mask(&cidr.addr, cidr.prefix_len))
        return weir__error(ret_error,
                           "\"%s\" has bits set behind its prefix of %u",
                           text,
                           cidr.prefix_len);
    *ret_cidr = cidr;
    return true;
}

bool weir__cidr_contains(const struct weir__cidr *cidr, const struct weir__addr *addr)
{
    if (addr->family == WEIR__ADDR_NONE || addr->family != cidr->addr.family)
        return false;
    struct weir__addr network = *addr;
    mask(&network, cidr->prefix_len);
    return memcmp(network.bytes, cidr->addr.bytes, sizeof network.bytes) == 0;
}
