// SPDX-License-Identifier: MIT
#pragma once
// What every Check program shares: running one suite, comparing error messages, finding reference data.

#include <check.h>
#include <glib.h>
#include <stdlib.h>

// Runs a suite to the end and gives main()'s exit status.
static inline int nj_test_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// The call failed with exactly this message; frees the error.
#define nj_assert_error(error, expected)                                                                     \
    do {                                                                                                     \
        ck_assert_msg((error) != NULL, "no error; expected: %s", expected);                                  \
        ck_assert_str_eq((error)->message, expected);                                                        \
        g_clear_error(&(error));                                                                             \
    } while (0)

#define nj_assert_ok(condition, error)                                                                       \
    ck_assert_msg((condition) && (error) == NULL, "%s",                                                      \
                  (error) != NULL ? (error)->message : "failed without error")

// Path of a reference file, or NULL where reference data is absent. In CI its absence is a failure, elsewhere
// the caller prints why it skips. Transfer full.
static inline char *nj_test_reference(const char *name)
{
    const char *dir = g_getenv("NJ_REFERENCE");
    g_autofree char *path = g_build_filename(dir != NULL ? dir : "../shared/reference", name, NULL);
    if (g_file_test(path, G_FILE_TEST_EXISTS))
        return g_steal_pointer(&path);
    ck_assert_msg(g_getenv("CI") == NULL, "reference data is absent in CI: %s", path);
    g_printerr("skipped: no reference data at %s\n", path);
    return NULL;
}

// Path of a file under tests/fixtures. Transfer full.
static inline char *nj_test_fixture(const char *name)
{
    return g_build_filename(g_getenv("NJ_FIXTURES"), name, NULL);
}

// A valid text with up to 8 bytes or short runs of it changed, dropped or doubled at random, for "never
// crashes" tests; the same seed gives the same text. Transfer full; NUL-terminated, and without NUL inside.
static inline char *nj_test_mutate(const char *text, guint32 seed)
{
    static const char SPICE[] = "[](),'\"#\n \\-+.e09@:_FBNx\x80\xff";
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    GString *out = g_string_new(text);
    for (gint32 n = g_rand_int_range(rand, 1, 9); n > 0 && out->len > 0; n--) {
        const gint32 at = g_rand_int_range(rand, 0, (gint32)out->len);
        const gint32 run = g_rand_int_range(rand, 1, 20);
        const gint32 length = MIN(run, (gint32)out->len - at);
        g_autofree char *piece = g_strndup(out->str + at, (gsize)length);
        switch (g_rand_int_range(rand, 0, 4)) {
        case 0:
            out->str[at] = SPICE[g_rand_int_range(rand, 0, sizeof SPICE - 1)];
            break;
        case 1:
            g_string_insert_c(out, at, SPICE[g_rand_int_range(rand, 0, sizeof SPICE - 1)]);
            break;
        case 2:
            g_string_erase(out, at, length);
            break;
        default:
            g_string_insert(out, at, piece);
        }
    }
    return g_string_free(out, FALSE);
}
