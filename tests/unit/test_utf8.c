#include "base/utf8.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Checks bytes in memory of exactly their size. */
static bool valid(const char *text, size_t len)
{
    char *exact = calloc(len ? len : 1, 1);
    memcpy(exact, text, len);
    bool result = weir__utf8_is_valid(exact, len);
    free(exact);
    return result;
}

/* The form in which a number would be coded, right or not, with that many bytes. */
static size_t code(uint32_t number, unsigned count, char ret_text[4])
{
    static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (unsigned i = count; i-- > 1; number >>= 6)
        ret_text[i] = (char)(0x80 | (number & 0x3f));
    ret_text[0] = (char)(first[count] | number);
    return count;
}

Test(utf8, takes_every_character_in_its_shortest_form_only)
{
    for (uint32_t number = 0x80; number < 0x120000; number++) {
        char text[4];
        unsigned shortest = number < 0x800 ? 2 : number < 0x10000 ? 3 : 4;
        bool exists = number <= 0x10ffff && (number < 0xd800 || number > 0xdfff);
        cr_assert_eq(weir__utf8_is_valid(text, code(number, shortest, text)), exists);
        if (shortest < 4)
            cr_assert_not(weir__utf8_is_valid(text, code(number, shortest + 1, text)));
    }
}

Test(utf8, takes_text_and_refuses_pieces_of_it)
{
    cr_assert(valid("", 0));
    cr_assert(valid("a\0b\x7f", 4));
    cr_assert(valid("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8a", 14));
    cr_assert_not(valid("\x80", 1));
    cr_assert_not(valid("\xc3", 1));
    cr_assert_not(valid("a\xe2\x82", 3));
    cr_assert_not(valid("\xf0\x9f\x8c", 3));
    cr_assert_not(valid("\xf0\x9f\x8c"
                        "a",
                        4));
    cr_assert_not(valid("\xc3\xc3\xa9", 3));
    cr_assert_not(valid("\xc0\x80", 2));
    cr_assert_not(valid("\xff", 1));
    cr_assert_not(valid("\xf8\x88\x80\x80\x80", 5));
}

Test(utf8, every_following_byte_is_checked)
{
    for (int byte = 0; byte < 256; byte++) {
        bool follows = byte >= 0x80 && byte <= 0xbf;
        char two[] = { '\xc3', (char)byte };
        char three[] = { '\xe1', '\x82', (char)byte };
        char four[] = { '\xf1', '\x9f', (char)byte, '\x80' };
        char last[] = { '\xf1', '\x9f', '\x80', (char)byte };
        cr_assert_eq(valid(two, 2), follows);
        cr_assert_eq(valid(three, 3), follows);
        cr_assert_eq(valid(four, 4), follows);
        cr_assert_eq(valid(last, 4), follows);
    }
}
