// SPDX-License-Identifier: MIT
#include "scenarios/table.h"
#include "tests/testing.h"

static char *print_to_string(NjFormat format)
{
    static const NjColumn columns[] = {
        {"name", NJ_COLUMN_TEXT, 0, "", "a name"},
        {"count", NJ_COLUMN_INTEGER, 0, "1", "a count"},
        {"time_s", NJ_COLUMN_REAL, 2, "s", "a time"},
    };
    g_autoptr(NjTable) table = nj_table_new(columns, G_N_ELEMENTS(columns));
    nj_table_add_row(table);
    nj_table_set_text(table, 0, "a \"b\", c");
    nj_table_set_integer(table, 1, 12);
    nj_table_set_real(table, 2, 1.0 / 3.0);
    nj_table_add_row(table);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    nj_table_print(table, format, out);
    fclose(out);
    return text;
}

START_TEST(prints)
{
    static const struct {
        NjFormat format;
        const char *expected;
    } rows[] = {
        {NJ_FORMAT_TEXT, "name      count  time_s\na \"b\", c     12    0.33\n-             -       -\n"},
        {NJ_FORMAT_CSV, "name,count,time_s\n\"a \"\"b\"\", c\",12,0.333333333\n,,\n"},
        {NJ_FORMAT_JSON, "[\n  {\"name\": \"a \\\"b\\\", c\", \"count\": 12, \"time_s\": 0.333333333},\n"
                         "  {\"name\": null, \"count\": null, \"time_s\": null}\n]\n"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        char *text = print_to_string(rows[i].format);
        ck_assert_str_eq(text, rows[i].expected);
        free(text);
    }
}
END_TEST

START_TEST(copies_and_clears)
{
    static const NjColumn columns[] = {
        {"name", NJ_COLUMN_TEXT, 0, "", "a name"},
        {"count", NJ_COLUMN_INTEGER, 0, "1", "a count"},
        {"time_s", NJ_COLUMN_REAL, 2, "s", "a time"},
    };
    g_autoptr(NjTable) from = nj_table_new(columns, 3);
    g_autoptr(NjTable) to = nj_table_new(columns, 3);
    for (guint round = 0; round < 2; round++) {
        nj_table_clear_rows(from);
        ck_assert_uint_eq(nj_table_n_rows(from), 0);
        nj_table_add_row(from);
        ck_assert(nj_table_is_missing(from, 0, 0));
        nj_table_set_text(from, 0, round == 0 ? "first" : "second");
        nj_table_set_integer(from, 1, round);
        nj_table_add_row(to);
        for (guint c = 0; c < 3; c++)
            nj_table_copy_cell(to, c, from, 0, c);
    }
    ck_assert_str_eq(nj_table_get_text(to, 0, 0), "first");
    ck_assert_str_eq(nj_table_get_text(to, 1, 0), "second");
    ck_assert_int_eq(nj_table_get_integer(to, 1, 1), 1);
    ck_assert(nj_table_is_missing(to, 1, 2));
    ck_assert_int_eq(nj_table_find_column(to, "time_s"), 2);
    ck_assert_int_eq(nj_table_find_column(to, "energy_j"), -1);
}
END_TEST

START_TEST(table_is_another_word_for_text)
{
    NjFormat format = NJ_FORMAT_CSV;
    ck_assert(nj_format_parse("table", &format, NULL));
    ck_assert_int_eq(format, NJ_FORMAT_TEXT);
}
END_TEST

START_TEST(unknown_format)
{
    NjFormat format;
    GError *error = NULL;
    ck_assert(!nj_format_parse("xml", &format, &error));
    nj_assert_error(error, "--format xml: text, csv or json is needed");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("table");
    TCase *tests = tcase_create("table");
    tcase_add_test(tests, prints);
    tcase_add_test(tests, copies_and_clears);
    tcase_add_test(tests, table_is_another_word_for_text);
    tcase_add_test(tests, unknown_format);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
