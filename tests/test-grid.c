// SPDX-License-Identifier: MIT
#include "scenarios/grid.h"
#include "scenarios/where.h"
#include "tests/testing.h"

static NjGrid *grid_of(const char *text, GError **error)
{
    static const char *const literal[] = {"split", "other.list", NULL};
    g_autoptr(GKeyFile) file = g_key_file_new();
    ck_assert(g_key_file_load_from_data(file, text, (gsize)-1, G_KEY_FILE_NONE, NULL));
    return nj_grid_new(file, "g.ini", literal, error);
}

START_TEST(expands_lists_ranges_powers)
{
    static const struct {
        const char *value, *expected;
        NjColumnType type;
    } rows[] = {
        {"1;2;4", "1,2,4", NJ_COLUMN_INTEGER},
        {"tp8; cp2tp4 ;cp4tp2;", "tp8,cp2tp4,cp4tp2", NJ_COLUMN_TEXT},
        {"2048:8192:2048", "2048,4096,6144,8192", NJ_COLUMN_INTEGER},
        {"0:10:4", "0,4,8", NJ_COLUMN_INTEGER},
        {"0.1:0.5:0.1", "0.1,0.2,0.3,0.4,0.5", NJ_COLUMN_REAL},
        {"10:4:-3", "10,7,4", NJ_COLUMN_INTEGER},
        {"1..64 *2", "1,2,4,8,16,32,64", NJ_COLUMN_INTEGER},
        {"1..100*10", "1,10,100", NJ_COLUMN_INTEGER},
        {"1;2;8:24:8;64..128 *2", "1,2,8,16,24,64,128", NJ_COLUMN_INTEGER},
        {"7;", "7", NJ_COLUMN_INTEGER},
        {"5:5:1", "5", NJ_COLUMN_INTEGER},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strdup_printf("[a]\nk = %s\n", rows[i].value);
        g_autoptr(NjGrid) grid = grid_of(text, &error);
        nj_assert_ok(grid != NULL, error);
        ck_assert_uint_eq(grid->n_axes, 1);
        g_autofree char *values = g_strjoinv(",", grid->axes[0].values);
        ck_assert_str_eq(values, rows[i].expected);
        ck_assert_int_eq(grid->axes[0].type, rows[i].type);
        ck_assert_uint_eq(grid->n_points, grid->axes[0].n_values);
    }
}
END_TEST

START_TEST(plain_values_are_no_axes)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(NjGrid) grid = grid_of("[a]\nk = 12\npath = ../x:y\nk[de] = a;b\nsplit = 15;13\n"
                                     "[other]\nlist = 1;2\n",
                                     &error);
    nj_assert_ok(grid != NULL, error);
    ck_assert_uint_eq(grid->n_axes, 0);
    ck_assert_uint_eq(grid->n_points, 1);
}
END_TEST

START_TEST(numbers_points_last_axis_fastest)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(NjGrid) grid = grid_of("[a]\nm = x;y\nplain = 1\n[b]\nn = 1;2;3\n[c]\nm = 0.5;1\n", &error);
    nj_assert_ok(grid != NULL, error);
    ck_assert_uint_eq(grid->n_points, 12);
    ck_assert_str_eq(grid->axes[0].name, "a_m");
    ck_assert_str_eq(grid->axes[1].name, "n");
    ck_assert_str_eq(grid->axes[2].name, "c_m");
    g_autofree char *first = nj_grid_describe(grid, 0);
    ck_assert_str_eq(first, "a_m = x, n = 1, c_m = 0.5");
    g_autofree char *ninth = nj_grid_describe(grid, 9);
    ck_assert_str_eq(ninth, "a_m = y, n = 2, c_m = 1");

    g_autoptr(GKeyFile) scenario = g_key_file_new();
    g_key_file_set_value(scenario, "a", "m", "x;y");
    nj_grid_apply(grid, 9, scenario);
    g_autofree char *value = g_key_file_get_value(scenario, "a", "m", NULL);
    ck_assert_str_eq(value, "y");

    NjColumn columns[3];
    nj_grid_columns(grid, columns);
    g_autoptr(NjTable) table = nj_table_new(columns, 3);
    nj_table_add_row(table);
    nj_grid_fill_row(grid, 9, table, 0);
    ck_assert_str_eq(nj_table_get_text(table, 0, 0), "y");
    ck_assert_int_eq(nj_table_get_integer(table, 0, 1), 2);
    ck_assert_double_eq(nj_table_get_real(table, 0, 2), 1.0);
}
END_TEST

START_TEST(grid_errors)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"[a]\nk = 1;;2\n", "g.ini: [a] k = 1;;2: value 2 of the list is empty"},
        {"[a]\nk = ;\n", "g.ini: [a] k = ;: value 1 of the list is empty"},
        {"[a]\nk = 1;2;1\n", "g.ini: [a] k = 1;2;1: '1' is listed twice"},
        {"[a]\nk = 1:2\n", "g.ini: [a] k = 1:2: a range is start:stop:step, three numbers; '1:2' is not"},
        {"[a]\nk = 1:b:2\n",
         "g.ini: [a] k = 1:b:2: a range is start:stop:step, three numbers; '1:b:2' is not"},
        {"[a]\nk = 1:9:0\n", "g.ini: [a] k = 1:9:0: the step of range '1:9:0' is 0"},
        {"[a]\nk = 1:9:-1\n", "g.ini: [a] k = 1:9:-1: range '1:9:-1' never reaches its stop"},
        {"[a]\nk = 1:1e9:1\n", "g.ini: [a] k = 1:1e9:1: more than 100000 values"},
        {"[a]\nk = 1..9\n",
         "g.ini: [a] k = 1..9: powers are start..stop *factor, three numbers; '1..9' is not"},
        {"[a]\nk = 1..x *2\n",
         "g.ini: [a] k = 1..x *2: powers are start..stop *factor, three numbers; '1..x *2' is not"},
        {"[a]\nk = 0..9 *2\n", "g.ini: [a] k = 0..9 *2: powers '0..9 *2' must start above 0"},
        {"[a]\nk = 1..9 *1\n", "g.ini: [a] k = 1..9 *1: the factor of powers '1..9 *1' must be above 1"},
        {"[a]\nk = 9..1 *2\n", "g.ini: [a] k = 9..1 *2: powers '9..1 *2' never reach their stop"},
        {"[a]\ni = 1:9999:1\nj = 1:9999:1\n",
         "g.ini: [a] j = 1:9999:1: the grid has more than 10000000 points"},
        {"[a]\nk = 1;2\nb_k = 1;2\n[b]\nk = 1;2\n[c]\nb_k = 1;2\n[a_b]\nk = 1;2\n",
         "g.ini: two axes would be called a_b_k"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        ck_assert_ptr_null(grid_of(rows[i].text, &error));
        nj_assert_error(error, rows[i].message);
    }
}
END_TEST

static const NjColumn where_columns[] = {
    {"name", NJ_COLUMN_TEXT, 0, "", "a name"},
    {"seq_len", NJ_COLUMN_INTEGER, 0, "1", "an integer"},
    {"time_s", NJ_COLUMN_REAL, 2, "s", "a real"},
};

START_TEST(where_matches)
{
    static const struct {
        const char *text;
        gboolean first, second;
    } rows[] = {
        {"seq_len=4096", TRUE, FALSE},
        {"seq_len == 4096.0", TRUE, FALSE},
        {"seq_len != 4096", FALSE, TRUE},
        {"seq_len>4096", FALSE, TRUE},
        {"seq_len >= 4096 and seq_len <= 4096", TRUE, FALSE},
        {"name=tp8", TRUE, FALSE},
        {"name = 'cp2 and tp4'", FALSE, TRUE},
        {"name != \"tp8\"", FALSE, TRUE},
        {"time_s < 2.5 AND name=tp8", TRUE, FALSE},
        {"time_s != 99", TRUE, FALSE}, // missing in the second row
        {" seq_len < 1e9 ", TRUE, TRUE},
    };
    g_autoptr(NjTable) table = nj_table_new(where_columns, 3);
    nj_table_add_row(table);
    nj_table_set_text(table, 0, "tp8");
    nj_table_set_integer(table, 1, 4096);
    nj_table_set_real(table, 2, 2.25);
    nj_table_add_row(table);
    nj_table_set_text(table, 0, "cp2 and tp4");
    nj_table_set_integer(table, 1, 8192);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(NjWhere) where = nj_where_new(rows[i].text, where_columns, 3, &error);
        nj_assert_ok(where != NULL, error);
        ck_assert_msg(nj_where_match(where, table, 0) == rows[i].first, "%s, first row", rows[i].text);
        ck_assert_msg(nj_where_match(where, table, 1) == rows[i].second, "%s, second row", rows[i].text);
    }
}
END_TEST

START_TEST(where_errors)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "--where \"\": a column name is needed at the end"},
        {"= 4", "--where \"= 4\": a column name is needed before = 4"},
        {"x=1", "--where \"x=1\": no column 'x'; there are: name, seq_len, time_s"},
        {"seq_len 4", "--where \"seq_len 4\": one of = != < <= > >= is needed after 'seq_len'"},
        {"name < b", "--where \"name < b\": name is text, which compares with = and != only"},
        {"seq_len=", "--where \"seq_len=\": a value is needed after 'seq_len'"},
        {"seq_len=4k", "--where \"seq_len=4k\": seq_len is a number, '4k' is not"},
        {"time_s=nan", "--where \"time_s=nan\": time_s is a number, 'nan' is not"},
        {"name='tp8", "--where \"name='tp8\": the quote ' is not closed"},
        {"seq_len=1 or seq_len=2",
         "--where \"seq_len=1 or seq_len=2\": 'and' is needed before 'or seq_len=2'"},
        {"name='a'and", "--where \"name='a'and\": a column name is needed at the end"},
        {"seq_len=1 and", "--where \"seq_len=1 and\": a column name is needed at the end"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        ck_assert_ptr_null(nj_where_new(rows[i].text, where_columns, 3, &error));
        nj_assert_error(error, rows[i].message);
    }
}
END_TEST

static void assert_selected(const NjGrid *grid, NjSelection selection, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) points = nj_grid_select(grid, &selection, &error);
    nj_assert_ok(points != NULL, error);
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < points->len; i++)
        g_string_append_printf(text, "%s%u", i == 0 ? "" : " ", g_array_index(points, guint, i));
    ck_assert_str_eq(text->str, expected);
}

START_TEST(selects_points)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(NjGrid) grid = grid_of("[a]\nm = x;y\nn = 1;2;3\n", &error);
    nj_assert_ok(grid != NULL, error);
    assert_selected(grid, (NjSelection){0}, "0 1 2 3 4 5");
    assert_selected(grid, (NjSelection){.limit = 4}, "0 1 2 3");
    assert_selected(grid, (NjSelection){.where = "n != 2"}, "0 2 3 5");
    assert_selected(grid, (NjSelection){.where = "n != 2", .limit = 3}, "0 2 3");
    assert_selected(grid, (NjSelection){.where = "n != 2", .shard = 0, .n_shards = 3}, "0 5");
    assert_selected(grid, (NjSelection){.where = "n != 2", .shard = 1, .n_shards = 3}, "2");
    assert_selected(grid, (NjSelection){.where = "n != 2", .limit = 3, .shard = 2, .n_shards = 3}, "3");
    assert_selected(grid, (NjSelection){.where = "m = z"}, "");
    GError *wrong = NULL;
    ck_assert_ptr_null(nj_grid_select(grid, &(NjSelection){.where = "k = 1"}, &wrong));
    nj_assert_error(wrong, "--where \"k = 1\": no column 'k'; there are: m, n");
}
END_TEST

START_TEST(parses_shards)
{
    guint shard, n_shards;
    ck_assert(nj_shard_parse("2/3", &shard, &n_shards, NULL));
    ck_assert_uint_eq(shard, 2);
    ck_assert_uint_eq(n_shards, 3);
    static const char *const wrong[] = {"3/3", "1", "-1/2", "1/2/3", "a/b", "0/0", ""};
    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++) {
        GError *error = NULL;
        g_autofree char *message = g_strdup_printf(
            "--shard %s: i/n is needed, the i-th of n shards counted from 0, such as 0/4", wrong[i]);
        ck_assert(!nj_shard_parse(wrong[i], &shard, &n_shards, &error));
        nj_assert_error(error, message);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("grid");
    TCase *tests = tcase_create("grid");
    tcase_add_test(tests, expands_lists_ranges_powers);
    tcase_add_test(tests, plain_values_are_no_axes);
    tcase_add_test(tests, numbers_points_last_axis_fastest);
    tcase_add_test(tests, grid_errors);
    tcase_add_test(tests, where_matches);
    tcase_add_test(tests, where_errors);
    tcase_add_test(tests, selects_points);
    tcase_add_test(tests, parses_shards);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
