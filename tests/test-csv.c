// SPDX-License-Identifier: MIT
#include "schedules/csv.h"
#include "tests/testing.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

START_TEST(reads_quotes_and_line_ends)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(NjCsv) csv =
        nj_csv_parse("t.csv", "a,b\r\n1,\"x,\"\"y\"\"\"\n\n2,\"two\nlines\"\n3,\n", &error);
    nj_assert_ok(csv != NULL, error);
    ck_assert_uint_eq(csv->n_rows, 3);
    ck_assert_str_eq(csv->rows[0][1], "x,\"y\"");
    ck_assert_str_eq(csv->rows[1][1], "two\nlines");
    ck_assert_str_eq(csv->rows[2][1], "");
    ck_assert_uint_eq(csv->line_numbers[1], 4);
    ck_assert_uint_eq(csv->line_numbers[2], 6);
    ck_assert_int_eq(nj_csv_column(csv, "b"), 1);
}
END_TEST

START_TEST(errors_name_file_and_line)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "t.csv: empty: a header line with column names is needed"},
        {"a,b\n1\n", "t.csv:2: 1 fields where the header has 2"},
        {"a,b\n1,\"2\n", "t.csv:2: a quoted field is not closed"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        ck_assert_ptr_null(nj_csv_parse("t.csv", rows[i].text, &error));
        nj_assert_error(error, rows[i].message);
    }

    GError *error = NULL;
    g_autoptr(NjCsv) csv = nj_csv_parse("t.csv", "a,b\nnan,1.5\n", NULL);
    double number;
    gint64 integer;
    ck_assert(!nj_csv_number(csv, 0, 0, 0, &number, &error));
    nj_assert_error(error, "t.csv:2: a = 'nan': a number of at least 0 is needed");
    ck_assert(!nj_csv_integer(csv, 0, 1, 1, 9, &integer, &error));
    nj_assert_error(error, "t.csv:2: b = '1.5': an integer from 1 to 9 is needed");
    ck_assert_int_eq(nj_csv_require(csv, "c", &error), -1);
    nj_assert_error(error, "t.csv:1: no column 'c'; the header has a,b");
}
END_TEST

// From a file or standard input, with a byte-order mark, or with a byte that would cut the text short.
START_TEST(files)
{
    static const struct {
        const char *text;
        gsize length;
        gboolean from_stdin;
        const char *message; // "PATH" stands for the file; NULL: one row, 1 and 2
    } rows[] = {
        {"a,b\n1,2\n", 8, FALSE, NULL},
        {"\xef\xbb\xbf"
         "a,b\r\n1,2",
         11, FALSE, NULL},
        {"a,b\n1,2\n", 8, TRUE, NULL},
        {"a,b\n1,2\n\0,3\n", 12, FALSE, "PATH: not a text: byte 8 is 0"},
        {"a,b\n\0", 5, TRUE, "standard input: not a text: byte 4 is 0"},
        {"", 0, TRUE, "standard input: empty: a header line with column names is needed"},
        {"a,b\n1\n", 6, TRUE, "standard input:2: 1 fields where the header has 2"},
    };
    g_autofree char *folder = g_dir_make_tmp("nanojoule-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "t.csv", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        ck_assert(g_file_set_contents(path, rows[i].text, (gssize)rows[i].length, NULL));
        if (rows[i].from_stdin)
            ck_assert_ptr_nonnull(freopen(path, "r", stdin));
        g_autoptr(NjCsv) csv = nj_csv_read(rows[i].from_stdin ? "-" : path, &error);
        if (rows[i].message != NULL) {
            g_autoptr(GString) message = g_string_new(rows[i].message);
            g_string_replace(message, "PATH", path, 0);
            ck_assert_msg(csv == NULL, "read: %s", message->str);
            nj_assert_error(error, message->str);
            continue;
        }
        nj_assert_ok(csv != NULL, error);
        ck_assert_str_eq(csv->columns[0], "a");
        ck_assert_uint_eq(csv->n_rows, 1);
        ck_assert_str_eq(csv->rows[0][1], "2");
    }
    g_remove(path);
    GError *error = NULL;
    ck_assert_ptr_null(nj_csv_read(path, &error));
    ck_assert_msg(strstr(error->message, path) != NULL, "%s", error->message);
    g_clear_error(&error);
    g_rmdir(folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("csv");
    TCase *tests = tcase_create("csv");
    tcase_add_test(tests, reads_quotes_and_line_ends);
    tcase_add_test(tests, errors_name_file_and_line);
    tcase_add_test(tests, files);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
