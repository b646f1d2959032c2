#include <criterion/criterion.h>

#include <string.h>

#include "transport/offloads.h"

static struct weir__offloads offloads;

static void init(void)
{
    cr_assert(weir__offloads_init(&offloads, 4, 2));
}

static void finish(void)
{
    weir__offloads_finish(&offloads);
}

TestSuite(offloads, .init = init, .fini = finish);

static struct weir__addr addr(const char *text)
{
    struct weir__addr parsed = { 0 };
    cr_assert(weir__addr_parse(text, strlen(text), WEIR__ADDR_ZONE_REFUSED, &parsed),
              "%s",
              text);
    return parsed;
}

static bool begin(const char *text)
{
    struct weir__addr from = addr(text);
    return weir__offloads_begin(&offloads, &from);
}

static void end(const char *text)
{
    struct weir__addr from = addr(text);
    weir__offloads_end(&offloads, &from);
}

Test(offloads, of_one_address_are_bounded_and_others_are_not_hit)
{
    cr_expect(begin("192.0.2.1"));
    cr_expect(begin("192.0.2.1"));
    cr_expect_not(begin("192.0.2.1"));
    cr_expect(begin("192.0.2.2"));
    end("192.0.2.1");
    cr_expect(begin("192.0.2.1"));
}

Test(offloads, are_bounded_in_all)
{
    cr_expect(begin("192.0.2.1"));
    cr_expect(begin("192.0.2.2"));
    cr_expect(begin("192.0.2.3"));
    cr_expect(begin("192.0.2.4"));
    cr_expect_not(begin("192.0.2.5"));
    end("192.0.2.3");
    cr_expect(begin("192.0.2.5"));
    cr_expect_not(begin("192.0.2.3"));
}

Test(offloads, count_an_ipv6_network_as_one_address)
{
    cr_expect(begin("2001:db8::1"));
    cr_expect(begin("2001:db8::2:3:4:5"));
    cr_expect_not(begin("2001:db8::9"));
    cr_expect(begin("2001:db8:0:1::1"));
    end("2001:db8::77"); /* the same network's */
    cr_expect(begin("2001:db8::9"));
}

Test(offloads, without_an_address_are_one_address)
{
    struct weir__addr none = { 0 };
    cr_expect(weir__offloads_begin(&offloads, &none));
    cr_expect(weir__offloads_begin(&offloads, &none));
    cr_expect_not(weir__offloads_begin(&offloads, &none));
}
