#include "net/addr.h"

#include "data.h"

static bool parse(const char *text, enum weir__addr_zone zone, struct weir__addr *ret)
{
    size_t len = strlen(text);
    char *exact = malloc(len ? len : 1); /* without a NUL behind it */
    memcpy(exact, text, len);
    bool ok = weir__addr_parse(exact, len, zone, ret);
    free(exact);
    return ok;
}

static const char *text_of(const char *literal)
{
    static char text[WEIR__ADDR_TEXT_BYTES];
    struct weir__addr addr;
    cr_assert(parse(literal, WEIR__ADDR_ZONE_ALLOWED, &addr), "%s", literal);
    cr_assert_eq(weir__addr_text(&addr, text), strlen(text));
    return text;
}

static const char *key_of(const char *literal, unsigned prefix_len)
{
    static char text[WEIR__ADDR_TEXT_BYTES];
    struct weir__addr addr;
    cr_assert(parse(literal, WEIR__ADDR_ZONE_ALLOWED, &addr), "%s", literal);
    cr_assert_eq(weir__addr_key(&addr, prefix_len, text), strlen(text));
    return text;
}

Test(addr, gives_the_keys_of_the_table)
{
    json_t *data = data_load("ip-keys.json"), *row;
    size_t i;
    json_array_foreach(json_object_get(data, "rows"), i, row)
    {
        const char *input = json_string_value(json_object_get(row, "input"));
        struct weir__addr addr;
        bool valid = parse(input, WEIR__ADDR_ZONE_ALLOWED, &addr);
        cr_assert_eq(
            valid, json_is_true(json_object_get(row, "valid_literal")), "%s", input);
        if (!valid)
            continue;
        cr_assert_str_eq(key_of(input, 64),
                         json_string_value(json_object_get(row, "key_64")));
        cr_assert_str_eq(key_of(input, 56),
                         json_string_value(json_object_get(row, "key_56")));
    }
    cr_assert_eq(i, 19);
    json_decref(data);
}

Test(addr, writes_canonical_text)
{
    static const char *const rows[][2] = {
        { "192.0.2.1", "192.0.2.1" },
        { "255.255.255.255", "255.255.255.255" },
        { "::", "::" },
        { "::1", "::1" },
        { "1::", "1::" },
        { "2001:DB8::1", "2001:db8::1" },
        { "2001:0db8:0000:0000:0000:0000:0002:0001", "2001:db8::2:1" },
        { "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
        { "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" },
        { "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
        { "0:0:1:1:1:1:0:0", "::1:1:1:1:0:0" },
        { "1:1:1:1:1:1:0:0", "1:1:1:1:1:1::" },
        { "::1.2.3.4", "::102:304" },
        { "2001:db8::1.2.3.4", "2001:db8::102:304" },
        { "::ffff:0:1.2.3.4", "::ffff:0:102:304" },
        { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
          "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert_str_eq(text_of(rows[i][0]), rows[i][1]);
        cr_assert_str_eq(text_of(rows[i][1]), rows[i][1]);
    }
}

Test(addr, ipv4_inside_ipv6_is_that_ipv4)
{
    cr_assert_str_eq(text_of("::ffff:198.51.100.7"), "198.51.100.7");
    cr_assert_str_eq(text_of("::FFFF:c633:6407"), "198.51.100.7");
    cr_assert_str_eq(text_of("64:ff9b::198.51.100.7"), "198.51.100.7");
    cr_assert_str_eq(text_of("64:ff9b::c633:6407"), "198.51.100.7");
    cr_assert_str_eq(text_of("64:ff9b:0:0:0:1:198.51.100.7"), "64:ff9b::1:c633:6407");
    cr_assert_str_eq(text_of("64:ff9b:1::198.51.100.7"), "64:ff9b:1::c633:6407");
    cr_assert_str_eq(key_of("::ffff:198.51.100.7", 32), "198.51.100.7");
}

Test(addr, equal_addresses_are_equal_bytes_whatever_stood_there_before)
{
    struct weir__addr one, two;
    memset(&one, 0xff, sizeof one);
    memset(&two, 0, sizeof two);
    cr_assert(parse("10.0.0.1", WEIR__ADDR_ZONE_REFUSED, &one));
    cr_assert(parse("::ffff:10.0.0.1", WEIR__ADDR_ZONE_REFUSED, &two));
    cr_assert_eq(memcmp(&one, &two, sizeof one), 0);
}

Test(addr, a_zone_is_taken_only_where_it_is_allowed)
{
    static const char *const bad[] = {
        "fe80::1%",
        "%eth0",
        "10.0.0.1%eth0",
        "fe80::1%a%b",
        "fe80::1%a b",
        "fe80::1%\n",
        "fe80::1%aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    };
    struct weir__addr addr = { .family = WEIR__ADDR_NONE };
    cr_assert_not(parse("fe80::1%eth0", WEIR__ADDR_ZONE_REFUSED, &addr));
    cr_assert_eq(addr.family, WEIR__ADDR_NONE);
    cr_assert(parse("fe80::1%eth0.100", WEIR__ADDR_ZONE_ALLOWED, &addr));
    cr_assert_eq(addr.family, WEIR__ADDR_IPV6);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_not(parse(bad[i], WEIR__ADDR_ZONE_ALLOWED, &addr), "%s", bad[i]);
}

Test(addr, refuses_what_is_no_literal_and_leaves_the_output_alone)
{
    static const char *const bad[] = {
        "localhost",
        "unix:",
        "@",
        "/run/x.sock",
        "1.2.3.4 ",
        "1.2.3.4\n",
        "0x7f.0.0.1",
        "1.2.3.4.5",
        "2130706433",
        "1..2.3",
        "[::1]",
        ":::",
        "1::2::3",
        "12345::",
        "::1/64",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "::1.2.3",
        "::01.2.3.4",
        "unknown",
        "_obf",
        "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555",
    };
    struct weir__addr addr = { .family = WEIR__ADDR_IPV4, .bytes = { 9 } };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_not(parse(bad[i], WEIR__ADDR_ZONE_ALLOWED, &addr), "%s", bad[i]);
    cr_assert_not(weir__addr_parse("1.2.3.4\0x", 9, WEIR__ADDR_ZONE_ALLOWED, &addr));
    cr_assert_eq(addr.bytes[0], 9);
}

Test(addr, no_address_is_the_empty_text)
{
    char text[WEIR__ADDR_TEXT_BYTES] = "x";
    struct weir__addr none = { .family = WEIR__ADDR_NONE };
    cr_assert_eq(weir__addr_text(&none, text), 0);
    cr_assert_str_eq(text, "");
    cr_assert_eq(weir__addr_key(&none, 64, text), 0);
    cr_assert_str_eq(text, "");
}

Test(addr, a_key_keeps_the_bits_of_its_prefix_and_no_more)
{
    const char *full = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
    cr_assert_str_eq(key_of(full, 32), "ffff:ffff::/32");
    cr_assert_str_eq(key_of(full, 33), "ffff:ffff:8000::/33");
    cr_assert_str_eq(key_of(full, 60), "ffff:ffff:ffff:fff0::/60");
    cr_assert_str_eq(key_of(full, 127), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127");
    cr_assert_str_eq(key_of(full, 128), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128");
    cr_assert_str_eq(key_of("2001:db8::1", 128), "2001:db8::1/128");
}

/* ---- networks ---------------------------------------------------------------------- */

static bool contains(const char *network, const char *literal)
{
    struct weir__cidr cidr;
    struct weir__addr addr;
    struct weir_error error = { .text = "" };
    cr_assert(weir__cidr_parse(network, &cidr, &error), "%s", error.text);
    cr_assert(parse(literal, WEIR__ADDR_ZONE_REFUSED, &addr));
    return weir__cidr_contains(&cidr, &addr);
}

Test(cidr, contains_what_shares_its_prefix)
{
    cr_assert(contains("10.0.0.0/8", "10.255.0.1"));
    cr_assert_not(contains("10.0.0.0/8", "11.0.0.1"));
    cr_assert(contains("192.0.2.128/25", "192.0.2.200"));
    cr_assert_not(contains("192.0.2.128/25", "192.0.2.127"));
    cr_assert(contains("192.0.2.1", "192.0.2.1"));
    cr_assert_not(contains("192.0.2.1", "192.0.2.2"));
    cr_assert(contains("0.0.0.0/0", "203.0.113.9"));
    cr_assert(contains("2001:db8::/33", "2001:db8:7fff::1"));
    cr_assert_not(contains("2001:db8::/33", "2001:db8:8000::1"));
    cr_assert(contains("2001:db8::1", "2001:db8:0::1"));
    cr_assert(contains("64:ff9b::/64", "64:ff9b::1:0:0"));
}

Test(cidr, families_do_not_mix)
{
    cr_assert_not(contains("::/0", "10.0.0.1"));
    cr_assert_not(contains("0.0.0.0/0", "2001:db8::1"));
    cr_assert(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
    struct weir__cidr all = { .addr = { .family = WEIR__ADDR_NONE } };
    struct weir__addr none = { .family = WEIR__ADDR_NONE };
    cr_assert_not(weir__cidr_contains(&all, &none));
}

Test(cidr, a_mistake_is_named)
{
    static const char *const rows[][2] = {
        { "", "\"\" is no IP address or network" },
        { "10.0.0/8", "\"10.0.0/8\" is no IP address or network" },
        { "example.org", "\"example.org\" is no IP address or network" },
        { "/8", "\"/8\" is no IP address or network" },
        { "fe80::1%eth0", "\"fe80::1%eth0\" is no IP address or network" },
        { "10.0.0.0/", "\"10.0.0.0/\": the prefix length must be 0 to 32" },
        { "10.0.0.0/33", "\"10.0.0.0/33\": the prefix length must be 0 to 32" },
        { "10.0.0.0/08", "\"10.0.0.0/08\": the prefix length must be 0 to 32" },
        { "10.0.0.0/+8", "\"10.0.0.0/+8\": the prefix length must be 0 to 32" },
        { "10.0.0.0/8/8", "\"10.0.0.0/8/8\": the prefix length must be 0 to 32" },
        { "10.0.0.0/8 ", "\"10.0.0.0/8 \": the prefix length must be 0 to 32" },
        { "10.0.0.0/4294967304",
          "\"10.0.0.0/4294967304\": the prefix length must be 0 to 32" },
        { "2001:db8::/129", "\"2001:db8::/129\": the prefix length must be 0 to 128" },
        { "10.0.0.1/8", "\"10.0.0.1/8\" has bits set behind its prefix of 8" },
        { "2001:db8::1/64", "\"2001:db8::1/64\" has bits set behind its prefix of 64" },
        { "::ffff:10.0.0.0/104",
          "\"::ffff:10.0.0.0/104\" is IPv4 inside IPv6: write the IPv4 network" },
        { "64:ff9b::/96",
          "\"64:ff9b::/96\" is IPv4 inside IPv6: write the IPv4 network" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__cidr cidr = { .prefix_len = 77 };
        struct weir_error error = { .text = "" };
        cr_assert_not(weir__cidr_parse(rows[i][0], &cidr, &error), "%s", rows[i][0]);
        cr_assert_str_eq(error.text, rows[i][1]);
        cr_assert_eq(cidr.prefix_len, 77);
    }
}
