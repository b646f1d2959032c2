/* IP addresses and networks as values: text to bytes, bytes to canonical text, prefixes.
 *
 * Pure; any thread. An IPv4 address that travels inside IPv6 (mapped, RFC 4291 section
 * 2.5.5.2; NAT64's 64:ff9b::/96, RFC 6052) is that IPv4 address from the parser on, so
 * that a client has one identity whatever the road it came by. */
#ifndef WEIR_NET_ADDR_H
#define WEIR_NET_ADDR_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/weir.h>

enum weir__addr_family { WEIR__ADDR_NONE, WEIR__ADDR_IPV4, WEIR__ADDR_IPV6 };

/* An address in network byte order; IPv4 uses the first four bytes, the others are 0. All
 * zero is no address. */
struct weir__addr {
    enum weir__addr_family family;
    unsigned char bytes[16];
};

/* Whether "fe80::1%eth0" is taken (and its zone dropped): a web server may write a zone
 * into REMOTE_ADDR, from a header it is refused. */
enum weir__addr_zone { WEIR__ADDR_ZONE_REFUSED, WEIR__ADDR_ZONE_ALLOWED };

/* Parses one literal, as strict as inet_pton: no port, brackets, blanks, prefix, leading
 * zeros or short forms. False for anything else. */
bool weir__addr_parse(const char *text,
                      size_t len,
                      enum weir__addr_zone zone,
                      struct weir__addr *ret_addr);

#define WEIR__ADDR_TEXT_BYTES 48 /* for any text written here, with its NUL */

/* Writes the canonical text (RFC 5952 section 4; never the mixed form with dots), "" for
 * no address. Returns its length. */
size_t weir__addr_text(const struct weir__addr *addr,
                       char ret_text[WEIR__ADDR_TEXT_BYTES]);

/* Writes the name under which an address is counted: an IPv4 address as it is, an IPv6
 * address by its first prefix_len bits (32 to 128), "2001:db8::/64"; "" for no address.
 * Returns its length. */
size_t weir__addr_key(const struct weir__addr *addr,
                      unsigned prefix_len,
                      char ret_text[WEIR__ADDR_TEXT_BYTES]);

/* A network: the addresses of one family whose first prefix_len bits are these. */
struct weir__cidr {
    struct weir__addr addr;
    unsigned prefix_len;
};

/* Parses "10.0.0.0/8", "2001:db8::/32", or an address alone, which is itself only. False
 * with a text where it is none: also for bits set behind the prefix, a zone, and IPv4
 * inside IPv6, where one must write the IPv4 network that is meant. */
bool weir__cidr_parse(const char *text,
                      struct weir__cidr *ret_cidr,
                      struct weir_error *ret_error);

/* Whether the address lies in the network. Never for no address. */
bool weir__cidr_contains(const struct weir__cidr *cidr, const struct weir__addr *addr);

#endif
