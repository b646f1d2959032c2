#include "path.h"

#include "data.h"

/* The path of a request target, NULL for a 400; a second pass must change nothing. */
static const char *path_of(const char *uri)
{
    static char *path, *again;
    size_t len = strlen(uri);
    const char *query;
    char *exact = malloc(len ? len : 1); /* without a NUL behind it */
    free(path);
    free(again);
    memcpy(exact, uri, len);
    path = malloc(WEIR__PATH_BYTES(len));
    const char *error = weir__path_from_uri(exact, len, path, &query);
    free(exact);
    again = NULL;
    if (error)
        return NULL;
    again = malloc(WEIR__PATH_BYTES(strlen(path)));
    cr_assert_null(weir__path_from_uri(path, strlen(path), again, &query));
    cr_assert_str_eq(again, path);
    return path;
}

static const char *cgi_path_of(const char *script_name, const char *path_info)
{
    static char *path;
    free(path);
    path = malloc(WEIR__PATH_BYTES(strlen(script_name) + strlen(path_info)));
    return weir__path_from_cgi(script_name, path_info, path) ? NULL : path;
}

Test(path, gives_the_paths_of_the_table)
{
    json_t *data = data_load("paths.json"), *row;
    size_t i;
    json_array_foreach(json_object_get(data, "rows"), i, row)
    {
        const char *target = json_string_value(json_object_get(row, "request_target"));
        const char *expected = json_string_value(json_object_get(row, "weir"));
        cr_assert_not_null(json_object_get(row, "weir"), "%s has no column", target);
        const char *path = path_of(target);
        if (expected)
            cr_assert_str_eq(path, expected, "%s", target);
        else
            cr_assert_null(path, "%s", target);
    }
    cr_assert_eq(i, 20);
    json_decref(data);
}

Test(path, what_servers_pass_decoded_gives_the_same_path)
{
    json_t *data = data_load("paths.json"), *row;
    size_t i;
    int seen = 0;
    json_array_foreach(json_object_get(data, "rows"), i, row)
    {
        const char *expected = json_string_value(json_object_get(row, "weir"));
        const char *script =
            json_string_value(json_object_get(row, "nginx_1_22_1_SCRIPT_NAME"));
        const char *info =
            json_string_value(json_object_get(row, "lighttpd_1_4_69_PATH_INFO"));
        if (!expected || !script || !info)
            continue;
        cr_assert_str_eq(cgi_path_of(script, ""), expected);
        cr_assert_str_eq(cgi_path_of("", info), expected);
        seen++;
    }
    cr_assert_eq(seen, 7);
    json_decref(data);
}

Test(path, no_spelling_makes_another_path)
{
    static const char *const login[] = {
        "/login",
        "/login/",
        "//login",
        "///login//",
        "/./login",
        "/login/.",
        "/x/../login",
        "/x/%2e%2E/login",
        "/../login",
        "/%6cogin",
        "/%6Cogin?x=/../y",
        "/login?",
        "/login;x",
        "/login;a=b;c=d",
        "/;x/login",
        "/x/..;y/login",
        "/.;y/login",
        "/login/;x",
        "/login/.;x",
        "/x/y/.././%2e./login",
        "http://example.org/login",
        "HTTPS://u@h:8443//login",
        "/login;x=/..;/login",
        "/login;%41?q;r",
    };
    for (size_t i = 0; i < sizeof login / sizeof login[0]; i++) {
        const char *path = path_of(login[i]);
        cr_assert(path && strcmp(path, "/login") == 0, "%s gives %s", login[i], path);
    }
}

Test(path, what_differs_stays_apart)
{
    static const char *const rows[][2] = {
        { "/LOGIN", "/LOGIN" },
        { "/login.", "/login." },
        { "/...", "/..." },
        { "/..a/.b", "/..a/.b" },
        { "/a%20b", "/a%20b" },
        { "/a+b", "/a+b" },
        { "/a%2bb", "/a%2Bb" },
        { "/a%3bb", "/a%3Bb" },
        { "/%252e%252e/b", "/%252e%252e/b" },
        { "/%25%32%65", "/%252e" },
        { "/a%3fb", "/a%3Fb" },
        { "/a%23b", "/a%23b" },
        { "/a%0ab", "/a%0Ab" },
        { "/%c3%a9", "/%C3%A9" },
        { "/!$&'()*+,=:@-._~", "/!$&'()*+,=:@-._~" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_assert_str_eq(path_of(rows[i][0]), rows[i][1]);
}

Test(path, raw_bytes_that_may_not_stand_there_are_coded)
{
    cr_assert_str_eq(path_of("/caf\xc3\xa9"), "/caf%C3%A9");
    cr_assert_str_eq(path_of("/a b\"<>^`{|}\\[]"),
                     "/a%20b%22%3C%3E%5E%60%7B%7C%7D%5C%5B%5D");
    cr_assert_str_eq(path_of("/\\..\\b"), "/%5C..%5Cb");
}

Test(path, ambiguous_or_broken_targets_are_refused)
{
    static const char *const bad[] = {
        "/a%2Fb",
        "/..%2f",
        "/;%2f",
        "/%00",
        "/a%0",
        "/a%",
        "/%",
        "/%g0",
        "/%0g",
        "/% 41",
        "/a\tb",
        "/a\x7f",
        "/a\x01",
        "/a#b",
        "/#",
        "*",
        "login",
        "a/b",
        "http:",
        "http:/",
        "http:/x",
        ":///x",
        "example.org:443",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_null(path_of(bad[i]), "%s gives %s", bad[i], path_of(bad[i]));
    char path[WEIR__PATH_BYTES(3)];
    const char *query;
    cr_assert_not_null(weir__path_from_uri("/\0a", 3, path, &query));
}

Test(path, the_reason_is_a_phrase_for_the_client)
{
    char path[100];
    const char *query;
    cr_assert_str_eq(weir__path_from_uri("/%zz", 4, path, &query),
                     "The path has a % without two hexadecimal digits behind it.");
    cr_assert_str_eq(weir__path_from_uri("/%2f", 4, path, &query),
                     "The path has a coded slash or NUL in it.");
    cr_assert_str_eq(weir__path_from_uri("*", 1, path, &query),
                     "The request target is not a path.");
}

Test(path, no_path_at_all_is_the_root)
{
    cr_assert_str_eq(path_of(""), "/");
    cr_assert_str_eq(path_of("?a"), "/");
    cr_assert_str_eq(path_of("http://example.org"), "/");
    cr_assert_str_eq(path_of("http://example.org?a=/b"), "/");
    cr_assert_str_eq(path_of("/.."), "/");
    cr_assert_str_eq(path_of("/a/../.."), "/");
    cr_assert_str_eq(path_of("/;x"), "/");
}

static const char *query_of(const char *uri)
{
    char path[100];
    const char *query = "untouched";
    weir__path_from_uri(uri, strlen(uri), path, &query);
    return query;
}

Test(path, the_query_is_split_off_raw)
{
    cr_assert_str_eq(query_of("/a?b=%2F&c#d"), "b=%2F&c#d");
    cr_assert_str_eq(query_of("/a?b?c"), "b?c");
    cr_assert_str_eq(query_of("/a?"), "");
    cr_assert_str_eq(query_of("/a"), "");
    cr_assert_str_eq(query_of("http://h?x"), "x");
    cr_assert_str_eq(query_of("/%00?x"), "untouched");
}

Test(path, decoded_names_are_coded_again)
{
    cr_assert_str_eq(cgi_path_of("/app", "/x y"), "/app/x%20y");
    cr_assert_str_eq(cgi_path_of("/app/", "/x/"), "/app/x");
    cr_assert_str_eq(cgi_path_of("/caf\xc3\xa9", ""), path_of("/caf%c3%a9"));
    cr_assert_str_eq(cgi_path_of("/%2e%2e", ""), path_of("/%252e%252e"));
    cr_assert_str_eq(cgi_path_of("/a?b#c\n", ""), path_of("/a%3fb%23c%0a"));
    cr_assert_str_eq(cgi_path_of("/x/..;y/login", ""), "/login");
    cr_assert_str_eq(cgi_path_of("", ""), "/");
    cr_assert_str_eq(cgi_path_of("", "/"), "/");
    cr_assert_null(cgi_path_of("login", ""));
    cr_assert_null(cgi_path_of("", "login"));
}

static const char *decoded(const char *piece)
{
    static char text[100];
    memset(text, 'x', sizeof text);
    return weir__path_decode(piece, strlen(piece), text) ? text : NULL;
}

Test(path, a_segment_decodes_in_full)
{
    cr_assert_str_eq(decoded("a%20b"), "a b");
    cr_assert_str_eq(decoded("%C3%A9+%2B"), "\xc3\xa9++");
    cr_assert_str_eq(decoded("%2541"), "%41");
    cr_assert_str_eq(decoded(""), "");
    cr_assert_str_eq(decoded("a/b"), "a/b");
}

Test(path, a_segment_that_is_no_text_is_refused)
{
    cr_assert_null(decoded("%FF"));
    cr_assert_null(decoded("%C3"));
    cr_assert_null(decoded("%C0%AF"));
    cr_assert_null(decoded("%ED%A0%80"));
    cr_assert_null(decoded("a%00"));
    cr_assert_null(decoded("a%4"));
    char text[4];
    cr_assert_not(weir__path_decode("a\0b", 3, text));
}
