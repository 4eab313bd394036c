// SPDX-License-Identifier: MIT
// validate on measured training iterations: the forms, their errors, and the bars on reference data.
#include "scenarios/report.h"
#include "scenarios/validate.h"
#include "tests/testing.h"

#include <glib/gstdio.h>
#include <string.h>

#define HEADER "gpus,global_batch,microbatch_size,hidden,heads,layers,seq_len,tp,dp,pp,iteration_ms\n"

static NjValidation *validate_text(const char *text, const NjValidateOptions *options, GError **error)
{
    ck_assert(g_file_set_contents("./runs.csv", text, -1, NULL));
    NjValidation *validation = nj_validation_new("./runs.csv", options, error);
    g_remove("./runs.csv");
    return validation;
}

static double predicted_s(const char *text, const NjValidateOptions *options)
{
    GError *error = NULL;
    g_autoptr(NjValidation) validation = validate_text(text, options, &error);
    nj_assert_ok(validation != NULL, error);
    g_autoptr(NjTable) table = nj_validation_row_table(validation);
    return nj_table_get_real(table, 0, 1);
}

#define ROW(tp, dp, pp, gpus) HEADER #gpus ",16,2,1024,16,12,1024," #tp "," #dp "," #pp ",200\n"

START_TEST(rows_and_groups)
{
    GError *error = NULL;
    const NjValidateOptions options = {0};
    static const char text[] = HEADER "2,16,2,1024,16,12,1024,1,2,1,200\n"
                                      "2,16,2,1024,16,12,1024,2,1,1,400\n"
                                      "4,16,2,1024,16,12,1024,2,2,1,200\n";
    g_autoptr(NjValidation) validation = validate_text(text, &options, &error);
    nj_assert_ok(validation != NULL, error);
    ck_assert_str_eq(nj_validation_form(validation)->name, "iterations");
    ck_assert_uint_eq(nj_validation_summary(validation, NULL, NULL).n_rows, 3);
    ck_assert_uint_eq(nj_validation_summary(validation, "rows", "odd").n_rows, 2);
    ck_assert_uint_eq(nj_validation_summary(validation, "rows", "even").n_rows, 1);
    ck_assert_uint_eq(nj_validation_summary(validation, "tp", "2").n_rows, 2);
    ck_assert_uint_eq(nj_validation_summary(validation, "dp", "1").n_rows, 1);
    ck_assert_uint_eq(nj_validation_summary(validation, "hidden", "1024").n_rows, 3);
    ck_assert_str_eq(nj_validation_note(validation),
                     "Predicted for NVIDIA A100-SXM4-80GB, stack Megatron-LM 2022, recomputation selective. "
                     "Note: the constants of NVIDIA A100-SXM4-80GB are not calibrated: carried over from "
                     "a100-sxm4-40gb.");
    g_autoptr(NjTable) table = nj_validation_row_table(validation);
    ck_assert_double_eq(nj_table_get_real(table, 1, 2), 0.4); // seconds
}
END_TEST

START_TEST(csv_columns)
{
    GError *error = NULL;
    ck_assert(g_file_set_contents("./runs.csv", ROW(1, 2, 1, 2), -1, NULL));
    const char *argv[] = {g_getenv("NANOJOULE"), "validate", "--format", "csv", "./runs.csv", NULL};
    g_autofree char *out = NULL, *err = NULL;
    int status;
    nj_assert_ok(
        g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &out, &err, &status, &error),
        error);
    g_remove("./runs.csv");
    ck_assert_int_eq(status, 0);
    ck_assert_msg(g_str_has_prefix(out, "row,iteration_s,ref_iteration_s\n1,"), "%s", out);
    ck_assert_msg(g_str_has_suffix(out, ",0.2\n"), "%s", out);
    ck_assert_ptr_nonnull(strstr(err, "not calibrated"));
}
END_TEST

// Directions that need no measurement.
START_TEST(what_takes_longer)
{
    const NjValidateOptions selective = {0}, full = {.recompute = "full"}, none = {.recompute = "none"};
    const double as_is = predicted_s(ROW(1, 2, 1, 2), &selective);
    ck_assert_double_gt(predicted_s(ROW(1, 2, 1, 2), &full), as_is);
    ck_assert_double_lt(predicted_s(ROW(1, 2, 1, 2), &none), as_is);
    // A faster host.
    const NjValidateOptions kareus = {.stack = "kareus"};
    ck_assert_double_lt(predicted_s(ROW(1, 2, 1, 2), &kareus), as_is);
    // The same microbatches on more ranks: only the reduction is added.
    static const char twice[] = HEADER "4,32,2,1024,16,12,1024,1,4,1,200\n";
    ck_assert_double_gt(predicted_s(twice, &selective), as_is);
    ck_assert_double_lt(predicted_s(twice, &selective), 1.05 * as_is);
}
END_TEST

START_TEST(errors)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {HEADER "4,16,2,1024,16,12,1024,1,2,1,200\n", "./runs.csv:2: gpus = 4: tp x dp x pp is 2"},
        {HEADER "2,15,2,1024,16,12,1024,1,2,1,200\n",
         "./runs.csv:2: global_batch = 15: a multiple of dp x microbatch_size = 4 is needed"},
        {HEADER "2,16,2,1000,16,12,1024,1,2,1,200\n",
         "./runs.csv:2: hidden = 1000: a multiple of heads = 16 is needed"},
        {HEADER "2,16,2,1024,16,12,1024,1,2,1,0\n",
         "./runs.csv:2: iteration_ms = '0': a number above 0 is needed"},
        {HEADER "32,32,2,1024,16,12,1024,32,1,1,9\n",
         "./runs.csv:2: the number of heads 16 is not a multiple of tp = 32"},
        {HEADER "9,18,2,1152,18,12,1024,9,1,1,9\n",
         "./runs.csv:2: tp x cp = 9: tensor and context parallelism stay inside a node of 8 GPUs"},
        {HEADER "80,18,2,1024,16,96,1024,1,1,80,9\n",
         "./runs.csv:2: pp = 80: at most 64 stages are possible"},
    };
    const NjValidateOptions options = {0};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        ck_assert_ptr_null(validate_text(rows[i].text, &options, &error));
        nj_assert_error(error, rows[i].message);
    }
    GError *error = NULL;
    const NjValidateOptions some = {.recompute = "some"}, stack = {.stack = "abacus"};
    ck_assert_ptr_null(validate_text(ROW(1, 2, 1, 2), &some, &error));
    nj_assert_error(error, "validate: --recompute some: full, selective or none is needed");
    ck_assert_ptr_null(validate_text(ROW(1, 2, 1, 2), &stack, &error));
    nj_assert_error(error,
                    "abacus: not in models/stacks; shipped: kareus, megatron-2022; or give the path of a "
                    ".ini file");
}
END_TEST

#define SCENARIO(execution)                                                                                  \
    "[workload]\nmodel = gpt-3-175b\nseq_len = 2048\nmicrobatch_size = 1\nmicrobatches = 2\n"                \
    "[cluster]\ngpu = a100-sxm4-80gb\nparallelism = tp8pp4dp2\n[execution]\nmethod = megatron\n" execution

static gboolean load_scenario(NjScenario *scenario, const char *text, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    ck_assert(g_key_file_load_from_data(file, text, (gsize)-1, G_KEY_FILE_NONE, NULL));
    return nj_scenario_from_keyfile(scenario, file, "s.ini", error);
}

START_TEST(scenario_errors)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {SCENARIO("recompute = half\n"),
         "s.ini: [execution] recompute = half: full, selective or none is needed"},
        {SCENARIO("optimizer = adam\n"), "s.ini: [execution] optimizer = adam: true or false is needed"},
        {SCENARIO("stack = abacus\n"), "s.ini: [execution] stack = abacus: abacus: not in models/stacks; "
                                       "shipped: kareus, megatron-2022; or "
                                       "give the path of a .ini file"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        NjScenario scenario;
        GError *error = NULL;
        ck_assert(!load_scenario(&scenario, rows[i].text, &error));
        nj_assert_error(error, rows[i].message);
    }
}
END_TEST

// Value of a row of the report, or -1.
static double report_value(const NjTable *table, const char *section, const char *metric)
{
    for (guint row = 0; row < nj_table_n_rows(table); row++)
        if (g_str_equal(nj_table_get_text(table, row, 0), section) &&
            g_str_equal(nj_table_get_text(table, row, 1), metric))
            return nj_table_get_real(table, row, 3);
    return -1;
}

// Tokens, GPUs and the tail of a data-parallel iteration.
START_TEST(scenario_with_data_parallelism)
{
    g_auto(NjScenario) scenario = {0};
    GError *error = NULL;
    nj_assert_ok(load_scenario(&scenario,
                               SCENARIO("stack = megatron-2022\nrecompute = none\noptimizer = true\n"),
                               &error),
                 error);
    ck_assert_str_eq(scenario.workload.stack.name, "Megatron-LM 2022");
    ck_assert_int_eq(scenario.workload.recompute, NJ_RECOMPUTE_NONE);
    g_auto(NjPipeline) pipeline = {0};
    g_auto(NjPlan) plan = {0};
    NjIteration iteration;
    nj_pipeline_init(&pipeline, scenario.schedule, 4, 2);
    nj_assert_ok(nj_scenario_plan(&scenario, &pipeline, &plan, &error), error);
    g_autoptr(NjExecutor) executor = nj_executor_new(&scenario.workload, nj_scenario_execution(&scenario));
    const NjExecuteOptions options = {.point_to_point = scenario.point_to_point,
                                      .optimizer = scenario.optimizer};
    nj_assert_ok(nj_executor_run(executor, &pipeline, &plan, &options, &iteration, &error), error);
    g_autoptr(NjTable) table = nj_report_table(&scenario, &iteration);
    const double time_s = report_value(table, "iteration", "time");
    ck_assert_double_eq_tol(report_value(table, "iteration", "throughput") * time_s, 2 * 2 * 2048, 1e-6);
    ck_assert_double_gt(report_value(table, "iteration", "gradient_reduction"), 0);
    ck_assert_double_gt(report_value(table, "iteration", "optimizer_step"), 0);
    ck_assert_double_eq_tol(report_value(table, "energy", "cluster"),
                            64 * report_value(table, "energy", "per_gpu"), 1e-6);
    // Activities, reduction and step included, and bubbles fill the iteration.
    static const char *const parts[] = {"gemm",     "attention",      "hbm_bound", "exposed_collective",
                                        "host_gap", "pipeline_bubble"};
    double sum_s = 0;
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        sum_s += report_value(table, "time_breakdown", parts[i]);
    ck_assert_double_eq_tol(sum_s / time_s, 1, 1e-9);
}
END_TEST

static double mean_abs_pct(const char *name, const char *rows, guint *n)
{
    g_autofree char *path = nj_test_reference(name);
    if (path == NULL)
        return -1;
    GError *error = NULL;
    const NjValidateOptions options = {0};
    g_autoptr(NjValidation) validation = nj_validation_new(path, &options, &error);
    nj_assert_ok(validation != NULL, error);
    const NjErrorSummary summary = nj_validation_summary(validation, rows != NULL ? "rows" : NULL, rows);
    *n = summary.n_rows;
    return summary.mean_abs_pct;
}

// What the simulator of these data's authors reaches after profiling every kernel (vTrain): 8.4 and 14.7 %.
START_TEST(bars)
{
    guint n;
    const double node = mean_abs_pct("measured/megatron_a100_single_node.csv", "even", &n);
    if (node < 0)
        return;
    ck_assert_uint_eq(n, 240);
    ck_assert_double_le(node, 8.4);
    const double nodes = mean_abs_pct("measured/megatron_a100_multi_node.csv", NULL, &n);
    ck_assert_uint_eq(n, 40);
    ck_assert_double_le(nodes, 14.7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("iterations");
    TCase *tcase = tcase_create("iterations");
    tcase_add_test(tcase, rows_and_groups);
    tcase_add_test(tcase, csv_columns);
    tcase_add_test(tcase, what_takes_longer);
    tcase_add_test(tcase, errors);
    tcase_add_test(tcase, scenario_errors);
    tcase_add_test(tcase, scenario_with_data_parallelism);
    tcase_add_test(tcase, bars);
    suite_add_tcase(suite, tcase);
    return nj_test_run(suite);
}
