/* What FCGX_OpenSocket is given, as an address of ours. */
#include "process/pull_address.h"

#include <criterion/criterion.h>
#include <string.h>

static void check(const char *path, const char *expected)
{
    char text[160] = "";
    struct weir_error error = { "" };
    cr_expect(
        weir__pull_address(path, text, sizeof text, &error), "%s: %s", path, error.text);
    cr_expect_str_eq(text, expected);
}

Test(pull_address, takes_a_path)
{
    check("/run/app.sock", "unix:/run/app.sock");
    check("app", "unix:app");
    check("", "unix:"); /* refused where it is opened */
}

Test(pull_address, takes_a_port_of_all_addresses)
{
    check(":9000", "tcp:0.0.0.0:9000");
    check("*:9000", "tcp:0.0.0.0:9000");
}

Test(pull_address, takes_a_port_of_one_address)
{
    check("127.0.0.1:9000", "tcp:127.0.0.1:9000");
    check("localhost:9000", "tcp:127.0.0.1:9000");
}

Test(pull_address, takes_a_colon_without_a_port_as_part_of_a_path)
{
    check("/tmp/a:b", "unix:/tmp/a:b");
    check("/tmp/a:0", "unix:/tmp/a:0");
    check(":", "unix::");
}

Test(pull_address, refuses_what_it_does_not_find_or_what_is_too_long)
{
    char text[160], path[300];
    struct weir_error error = { "" };
    cr_expect_not(weir__pull_address("no host:1", text, sizeof text, &error));
    cr_expect(strstr(error.text, "no host"), "%s", error.text);
    error.text[0] = '\0';
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    cr_expect_not(weir__pull_address(path, text, sizeof text, &error));
    cr_expect(strstr(error.text, "too long"));
}
