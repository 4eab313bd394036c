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
