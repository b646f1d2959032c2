/* Addresses: canonical text parses back to the same bytes and is what the C library
 * writes; a key is a network that contains its address; no CIDR text does harm. The first
 * byte of the input picks the prefix length. */
#include "fuzz.h"

#include "net/addr.h"

#include <arpa/inet.h>

static void must_come_back(const struct weir__addr *addr, unsigned prefix_len)
{
    char text[WEIR__ADDR_TEXT_BYTES], theirs[INET6_ADDRSTRLEN];
    struct weir__addr again;
    size_t len = weir__addr_text(addr, text);
    MUST(len == strlen(text));
    MUST(weir__addr_parse(text, len, WEIR__ADDR_ZONE_REFUSED, &again));
    MUST(again.family == addr->family);
    MUST(memcmp(again.bytes, addr->bytes, sizeof addr->bytes) == 0);

    /* ::/96 is left out: there the C library writes the dots of an IPv4 address. */
    static const unsigned char zeros[12];
    int family = addr->family == WEIR__ADDR_IPV4 ? AF_INET : AF_INET6;
    MUST(inet_ntop(family, addr->bytes, theirs, sizeof theirs));
    if (family == AF_INET || memcmp(addr->bytes, zeros, sizeof zeros) != 0)
        MUST(strcmp(text, theirs) == 0);

    struct weir__cidr cidr;
    MUST(weir__addr_key(addr, prefix_len, text) == strlen(text));
    MUST(weir__cidr_parse(text, &cidr, NULL));
    MUST(weir__cidr_contains(&cidr, addr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    unsigned prefix_len = 32 + data[0] % 97;
    data++;
    size--;
    char *literal = fuzz_copy(data, size);
    struct weir__addr strict, lenient;
    bool strict_ok = weir__addr_parse(literal, size, WEIR__ADDR_ZONE_REFUSED, &strict);
    bool lenient_ok = weir__addr_parse(literal, size, WEIR__ADDR_ZONE_ALLOWED, &lenient);
    MUST(!strict_ok || lenient_ok);
    if (strict_ok)
        MUST(memcmp(strict.bytes, lenient.bytes, sizeof strict.bytes) == 0);
    if (lenient_ok)
        must_come_back(&lenient, prefix_len);
    free(literal);

    char *text = fuzz_text(&data, &size);
    struct weir__cidr cidr;
    if (weir__cidr_parse(text, &cidr, NULL))
        MUST(weir__cidr_contains(&cidr, &cidr.addr));
    free(text);
    return 0;
}
