// SPDX-License-Identifier: MIT
// Comparison files: what they read as, their errors, the tables they become, and the shipped ones.
#include "scenarios/comparison.h"
#include "schedules/csv.h"
#include "tests/scratch.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#define HEADER                                                                                               \
    "[comparison]\ntable = t\ntitle = A table\nsource = Somewhere\ngpu = a100-sxm4-40gb\n"                   \
    "pipeline_stages = 2\nmicrobatches = 2\nmetrics = time_reduction;iso_time_energy_reduction\n"            \
    "methods = nanobatching+perseus;kareus\n"
#define ROW "[llama-3.2-1b tp8 4 x 2048]\n"
#define KAREUS "kareus = 5;none\nkareus.rerun = -;6.5\n"

static const char *const valid = HEADER ROW KAREUS;

START_TEST(reads)
{
    GError *error = NULL;
    g_auto(NjComparison) comparison = {0};
    g_autofree char *path = write_scratch("c.ini", valid);
    nj_assert_ok(nj_comparison_load(&comparison, path, &error), error);
    ck_assert_uint_eq(comparison.tables->len, 1);
    ck_assert_str_eq(g_array_index(comparison.tables, NjComparisonTable, 0).title, "A table");
    ck_assert_uint_eq(comparison.configurations->len, 1);
    const NjComparisonConfiguration *configuration = comparison.configurations->pdata[0];
    ck_assert_int_eq(configuration->workload.microbatch_size, 4);
    ck_assert_int_eq(configuration->workload.microbatches, 2);
    ck_assert_int_eq(configuration->workload.layers[0], 8);
    for (guint m = 0; m < NJ_N_METHODS; m++)
        ck_assert(configuration->needed[m]); // Megatron-LM and + Perseus to compare with
    static const struct {
        NjMethod method;
        NjMetric metric;
        NjCellValue published, rerun;
    } cells[] = {
        {NJ_METHOD_NANOBATCHING_PERSEUS, NJ_METRIC_TIME_REDUCTION, {NJ_CELL_EMPTY, 0}, {NJ_CELL_EMPTY, 0}},
        {NJ_METHOD_NANOBATCHING_PERSEUS, NJ_METRIC_ISO_TIME, {NJ_CELL_EMPTY, 0}, {NJ_CELL_EMPTY, 0}},
        {NJ_METHOD_KAREUS, NJ_METRIC_TIME_REDUCTION, {NJ_CELL_VALUE, 5}, {NJ_CELL_EMPTY, 0}},
        {NJ_METHOD_KAREUS, NJ_METRIC_ISO_TIME, {NJ_CELL_NONE, 0}, {NJ_CELL_VALUE, 6.5}},
    };
    ck_assert_uint_eq(comparison.cells->len, G_N_ELEMENTS(cells));
    for (guint i = 0; i < G_N_ELEMENTS(cells); i++) {
        const NjComparisonCell *cell = &g_array_index(comparison.cells, NjComparisonCell, i);
        ck_assert(cell->method == cells[i].method && cell->metric == cells[i].metric);
        ck_assert(cell->published.state == cells[i].published.state);
        ck_assert(cell->published.value == cells[i].published.value);
        ck_assert(cell->rerun.state == cells[i].rerun.state && cell->rerun.value == cells[i].rerun.value);
    }
}
END_TEST

START_TEST(tables_share_configurations)
{
    GError *error = NULL;
    g_auto(NjComparison) comparison = {0};
    g_autofree char *a = write_scratch("a.ini", valid);
    g_autofree char *b = write_scratch("b.ini", HEADER "[llama-3.2-1b tp8 4 x 4096]\n" ROW KAREUS);
    g_autofree char *all = write_scratch("all.ini", "[comparison]\ninclude = a.ini; b.ini;\n");
    nj_assert_ok(nj_comparison_load(&comparison, all, &error), error);
    ck_assert_uint_eq(comparison.tables->len, 2);
    ck_assert_uint_eq(comparison.configurations->len, 2);
    ck_assert_uint_eq(comparison.cells->len, 4 + 8);
    static const guint configuration[] = {0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0};
    for (guint i = 0; i < comparison.cells->len; i++)
        ck_assert_uint_eq(g_array_index(comparison.cells, NjComparisonCell, i).configuration,
                          configuration[i]);
}
END_TEST

START_TEST(errors)
{
    static const struct {
        const char *old, *new, *message; // behind the path
    } rows[] = {
        {"[comparison]", "[compare]", ": [comparison]: missing; is this a comparison file?"},
        {"table = t\n", "", ": [comparison] table: missing"},
        {"title = A table\n", "", ": [comparison] title: missing"},
        {"gpu = a100-sxm4-40gb\n", "", ": [comparison] gpu: missing"},
        {"microbatches = 2\n", "", ": [comparison] microbatches: missing"},
        {"microbatches = 2\n", "microbatches = 0\n",
         ": [comparison] microbatches = 0: an integer from 1 to 65536 is needed"},
        {"pipeline_stages = 2\n", "", ": [comparison] pipeline_stages: missing"},
        {"methods = nanobatching+perseus;kareus", "methods = nanobatching;kareus",
         ": [comparison] methods = nanobatching: megatron+perseus, nanobatching+perseus and kareus, "
         "separated by "
         "';', are possible"},
        {"metrics = time_reduction;", "metrics = speed;",
         ": [comparison] metrics = speed: up to four of time_reduction, energy_reduction, "
         "iso_time_energy_reduction and iso_energy_time_reduction, separated by ';', are needed"},
        {ROW, "[llama-3.2-1b tp8 4x2048]\n",
         ": [llama-3.2-1b tp8 4x2048]: a group is named MODEL PARALLELISM MICROBATCH_SIZE x SEQ_LEN, such as "
         "[llama-3.2-3b tp8 8 x 4096]"},
        {"kareus = 5;none\n", "kareus = 5\n",
         ": [llama-3.2-1b tp8 4 x 2048] kareus = 5: 2 values (a number, none or -), one a metric, separated "
         "by "
         "';', are needed"},
        {"kareus = 5;none\n", "kareus = 5;5%\n",
         ": [llama-3.2-1b tp8 4 x 2048] kareus = 5;5%: 2 values (a number, none or -), one a metric, "
         "separated "
         "by ';', are needed"},
        {"kareus.rerun = -;6.5\n", "kareus.rerun = 6.5\n",
         ": [llama-3.2-1b tp8 4 x 2048] kareus.rerun = 6.5: 2 values (a number, none or -), one a metric, "
         "separated by ';', are needed"},
        {"kareus.rerun", "kareus.again",
         ": [llama-3.2-1b tp8 4 x 2048] kareus.again: unknown key; known keys: layers_per_stage, a method, a "
         "method with .rerun"},
        {"kareus = 5;none\n", "megatron+perseus = 5;none\n",
         ": [llama-3.2-1b tp8 4 x 2048] megatron+perseus: unknown key; known keys: layers_per_stage, a "
         "method, "
         "a method with .rerun"},
        {ROW, HEADER, NULL}, // two groups of one name are one: what is left are keys that do not belong there
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        NjComparison comparison;
        g_auto(GStrv) parts = g_strsplit(valid, rows[i].old, 2);
        ck_assert_msg(parts[0] != NULL && parts[1] != NULL, "no '%s'", rows[i].old);
        g_autofree char *text = g_strconcat(parts[0], rows[i].new, parts[1], NULL);
        g_autofree char *path = write_scratch("c.ini", text);
        g_autofree char *message = g_strconcat(path, rows[i].message, NULL);
        ck_assert_msg(!nj_comparison_load(&comparison, path, &error), "%s", rows[i].new);
        if (rows[i].message != NULL)
            nj_assert_error(error, message);
        g_clear_error(&error);
    }
}
END_TEST

// What a scenario would refuse, a row does, with its name in front.
START_TEST(rows_are_scenarios)
{
    static const struct {
        const char *old, *new, *part;
    } rows[] = {
        {"tp8 4", "tp7 4", "[llama-3.2-1b tp7 4 x 2048]: "},
        {"tp8 4", "tp 4", "[cluster] parallelism = tp: degrees such as tp8"},
        {"llama-3.2-1b", "llama-9", "llama-9: not in models/archs; shipped: "},
        {ROW, ROW "layers_per_stage = 8;9\n", "the stages' layers sum to 17 where llama-3.2-1b has 16"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        NjComparison comparison;
        g_auto(GStrv) parts = g_strsplit(valid, rows[i].old, 2);
        g_autofree char *text = g_strconcat(parts[0], rows[i].new, parts[1], NULL);
        g_autofree char *path = write_scratch("c.ini", text);
        ck_assert(!nj_comparison_load(&comparison, path, &error));
        ck_assert_msg(strstr(error->message, rows[i].part) != NULL && strstr(error->message, path) != NULL,
                      "%s", error->message);
    }
}
END_TEST

START_TEST(includes)
{
    static const struct {
        const char *text, *message; // behind the path
    } rows[] = {
        {"[comparison]\ninclude = all.ini\n",
         ": [comparison] include = all.ini: a file that includes others has no rows of its own, and is not "
         "included in itself"},
        {"[comparison]\ninclude = c.ini\n" ROW,
         ": [comparison] include = c.ini: a file that includes others has no rows of its own, and is not "
         "included in itself"},
        {"[comparison]\ninclude = c.ini\nunknown = 1\n", NULL},
        {"[comparison]\ninclude = none.ini\n", NULL},
    };
    g_autofree char *included = write_scratch("c.ini", valid);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        NjComparison comparison;
        g_autofree char *path = write_scratch("all.ini", rows[i].text);
        g_autofree char *message = g_strconcat(path, rows[i].message, NULL);
        ck_assert(!nj_comparison_load(&comparison, path, &error));
        if (rows[i].message != NULL)
            nj_assert_error(error, message);
        g_clear_error(&error);
    }
}
END_TEST

static char *print_to_text(void (*print)(const NjComparison *, FILE *), const NjComparison *comparison)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    print(comparison, out);
    fclose(out);
    return text;
}

static void print_csv(const NjComparison *comparison, FILE *out)
{
    g_autoptr(NjTable) table = nj_comparison_table(comparison);
    nj_table_print(table, NJ_FORMAT_CSV, out);
}

static void load_valid(NjComparison *comparison)
{
    GError *error = NULL;
    g_autofree char *path = write_scratch("c.ini", valid);
    nj_assert_ok(nj_comparison_load(comparison, path, &error), error);
}

static NjComparisonCell *cell_at(const NjComparison *comparison, guint i)
{
    return &g_array_index(comparison->cells, NjComparisonCell, i);
}

START_TEST(prints_by_hand)
{
    g_auto(NjComparison) comparison = {0};
    load_valid(&comparison);
    // As if it had run.
    static const NjCellValue simulated[] = {
        {NJ_CELL_VALUE, 1.25}, {NJ_CELL_NONE, 0}, {NJ_CELL_VALUE, 7.5}, {NJ_CELL_NONE, 0}};
    for (guint i = 0; i < 4; i++)
        cell_at(&comparison, i)->simulated = simulated[i];
    char *csv = print_to_text(print_csv, &comparison);
    ck_assert_str_eq(
        csv, "table,model,parallelism,microbatch_size,seq_len,method,metric,simulated_pct,published_pct\n"
             "t,llama-3.2-1b,tp8,4,2048,nanobatching+perseus,time_reduction,1.2500,\n"
             "t,llama-3.2-1b,tp8,4,2048,nanobatching+perseus,iso_time_energy_reduction,none,\n"
             "t,llama-3.2-1b,tp8,4,2048,kareus,time_reduction,7.5000,5.0\n"
             "t,llama-3.2-1b,tp8,4,2048,kareus,iso_time_energy_reduction,none,none\n");
    free(csv);

    char *text = print_to_text(nj_comparison_print, &comparison);
    static const char *const parts[] = {
        "A table (%)\nPublished: Somewhere\n",
        "1.2 (prediction)",
        "none (prediction)",
        "7.5 (published 5.0, +2.5)",
        "none (published none; rerun 6.5)",
        "Simulated against published, 1 cells: mean absolute difference 2.50 points, largest 2.50.\n",
    };
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "no '%s' in:\n%s", parts[i], text);
    // "none" against "none" agrees; so does a prediction, whatever it is.
    ck_assert_ptr_null(strstr(text, "Not among these"));
    // No cell has both a published and a second value: nothing is said of the second run.
    ck_assert_ptr_null(strstr(text, "second run"));
    free(text);

    double mean, max;
    cell_at(&comparison, 3)->simulated = (NjCellValue){NJ_CELL_VALUE, 9}; // a number where none was published
    cell_at(&comparison, 0)->published = (NjCellValue){NJ_CELL_VALUE, 2.25};
    cell_at(&comparison, 0)->rerun = (NjCellValue){NJ_CELL_VALUE, -2};
    text = print_to_text(nj_comparison_print, &comparison);
    ck_assert_ptr_nonnull(
        strstr(text, "Not among these: 1 where only one of the two has a plan that qualifies.\n"));
    free(text);
    ck_assert_uint_eq(nj_comparison_differences(&comparison, FALSE, &mean, &max), 2);
    ck_assert_double_eq_tol(mean, 1.75, 1e-12);
    ck_assert_double_eq_tol(max, 2.5, 1e-12);
    ck_assert_uint_eq(nj_comparison_differences(&comparison, TRUE, &mean, &max), 1);
    ck_assert_double_eq_tol(mean, 4.25, 1e-12);
}
END_TEST

START_TEST(runs_the_same_on_any_threads)
{
    g_autofree char *first = NULL;
    for (guint jobs = 1; jobs <= 3; jobs += 2) {
        GError *error = NULL;
        g_auto(NjComparison) comparison = {0};
        load_valid(&comparison);
        nj_assert_ok(nj_comparison_run(&comparison, jobs, NULL, NULL, &error), error);
        char *csv = print_to_text(print_csv, &comparison);
        if (first == NULL)
            first = g_strdup(csv);
        ck_assert_str_eq(csv, first);
        free(csv);
        const NjComparisonConfiguration *c = comparison.configurations->pdata[0];
        for (guint i = 0; i < comparison.cells->len; i++) {
            const NjComparisonCell *cell = cell_at(&comparison, i);
            const NjCellValue wanted =
                nj_metric_value(cell->metric, &c->frontiers[cell->method], &c->frontiers[NJ_METHOD_MEGATRON],
                                &c->frontiers[NJ_METHOD_MEGATRON_PERSEUS]);
            ck_assert(cell->simulated.state != NJ_CELL_EMPTY && cell->simulated.state == wanted.state);
            ck_assert(cell->simulated.value == wanted.value);
        }
    }
}
END_TEST

// A method that cannot run here leaves its cells without a plan, and says why.
START_TEST(methods_that_cannot_run)
{
    GError *error = NULL;
    g_auto(NjComparison) comparison = {0};
    g_autofree char *path = write_scratch("c.ini", HEADER "[llama-3.2-1b tp8 1 x 2048]\nkareus = 1;2\n");
    nj_assert_ok(nj_comparison_load(&comparison, path, &error), error);
    nj_assert_ok(nj_comparison_run(&comparison, 2, NULL, NULL, &error), error);
    for (guint i = 0; i < 4; i++)
        ck_assert_int_eq(cell_at(&comparison, i)->simulated.state, i < 2 ? NJ_CELL_NONE : NJ_CELL_VALUE);
    char *text = print_to_text(nj_comparison_print, &comparison);
    ck_assert_ptr_nonnull(strstr(text, "llama-3.2-1b tp8 1 x 2048, nanobatching+perseus cannot run: "));
    ck_assert_ptr_null(strstr(text, "kareus cannot run"));
    free(text);
}
END_TEST

START_TEST(stops)
{
    GError *error = NULL;
    g_auto(NjComparison) comparison = {0};
    const volatile int stop = 1;
    load_valid(&comparison);
    ck_assert(!nj_comparison_run(&comparison, 2, NULL, &stop, &error));
    nj_assert_error(error, "stopped");
}
END_TEST

// The shipped files have every published cell as it was published, and no other.
START_TEST(shipped_cells_are_the_published_ones)
{
    GError *error = NULL;
    g_autofree char *path = nj_test_reference("paper_cells.csv");
    if (path == NULL)
        return;
    g_auto(NjComparison) comparison = {0};
    g_autofree char *shipped =
        g_build_filename(g_getenv("NJ_FIXTURES"), "..", "..", "scenarios", "paper.ini", NULL);
    nj_assert_ok(nj_comparison_load(&comparison, shipped, &error), error);
    g_autoptr(NjTable) table = nj_comparison_table(&comparison);
    g_autoptr(NjCsv) cells = nj_csv_read(path, &error);
    nj_assert_ok(cells != NULL, error);
    static const char *const keys[] = {"table",   "model",  "parallelism", "microbatch_size",
                                       "seq_len", "method", "metric"};
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (guint r = 0; r < cells->n_rows; r++) {
        guint found = 0;
        for (guint row = 0; row < nj_table_n_rows(table); row++) {
            gboolean same = TRUE;
            for (guint k = 0; same && k < G_N_ELEMENTS(keys); k++) {
                const char *wanted = cells->rows[r][nj_csv_column(cells, keys[k])];
                g_autofree char *here = nj_table_column(table, k)->type == NJ_COLUMN_TEXT
                                            ? g_strdup(nj_table_get_text(table, row, k))
                                            : g_strdup_printf("%d", (int)nj_table_get_integer(table, row, k));
                same = g_str_equal(here, wanted);
            }
            if (!same)
                continue;
            found++;
            g_hash_table_add(seen, GUINT_TO_POINTER(row + 1));
            const NjCellValue values[] = {cell_at(&comparison, row)->published,
                                          cell_at(&comparison, row)->rerun};
            static const char *const columns[] = {"published_pct", "authors_rerun_pct"};
            for (guint v = 0; v < 2; v++) {
                const char *text = cells->rows[r][nj_csv_column(cells, columns[v])];
                if (g_str_equal(text, "none"))
                    ck_assert_int_eq(values[v].state, NJ_CELL_NONE);
                else if (*text == '\0')
                    ck_assert_int_eq(values[v].state, NJ_CELL_EMPTY);
                else
                    ck_assert(values[v].state == NJ_CELL_VALUE &&
                              values[v].value == g_ascii_strtod(text, NULL));
            }
        }
        ck_assert_msg(found == 1, "line %u of %s: %u cells", r + 2, path, found);
    }
    guint n_published = 0;
    for (guint i = 0; i < comparison.cells->len; i++) {
        const gboolean published = cell_at(&comparison, i)->published.state != NJ_CELL_EMPTY;
        n_published += published;
        ck_assert(!published || g_hash_table_contains(seen, GUINT_TO_POINTER(i + 1)));
    }
    ck_assert_uint_eq(n_published, cells->n_rows);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comparison");
    TCase *tcase = tcase_create("comparison");
    tcase_add_checked_fixture(tcase, make_scratch, remove_scratch);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, reads);
    tcase_add_test(tcase, tables_share_configurations);
    tcase_add_test(tcase, errors);
    tcase_add_test(tcase, rows_are_scenarios);
    tcase_add_test(tcase, includes);
    tcase_add_test(tcase, prints_by_hand);
    tcase_add_test(tcase, runs_the_same_on_any_threads);
    tcase_add_test(tcase, methods_that_cannot_run);
    tcase_add_test(tcase, stops);
    tcase_add_test(tcase, shipped_cells_are_the_published_ones);
    suite_add_tcase(suite, tcase);
    return nj_test_run(suite);
}
