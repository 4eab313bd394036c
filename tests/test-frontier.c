// SPDX-License-Identifier: MIT
// The published protocol by hand, metrics on frontiers made by hand, and what frontiers keep to.
#include "scenarios/comparison.h"
#include "scenarios/scenario.h"
#include "tests/testing.h"

#include <math.h>
#include <string.h>

START_TEST(protocol_positions)
{
    static const struct {
        guint count, n, positions[15];
    } rows[] = {
        // Stride ceil(count / 15), back from the fastest; of what is there, slowest first, 0, 2, 4, 6, 8 go.
        {1, 0, {0}},
        {2, 1, {1}},
        {3, 1, {1}},
        {4, 2, {1, 3}},
        {9, 4, {1, 3, 5, 7}},
        {10, 5, {1, 3, 5, 7, 9}},
        {11, 6, {1, 3, 5, 7, 9, 10}},
        {15, 10, {1, 3, 5, 7, 9, 10, 11, 12, 13, 14}},
        // 16: stride 2, from 15 down to 1: eight are there, and 1, 5, 9, 13 of them go.
        {16, 4, {3, 7, 11, 15}},
        {30, 10, {3, 7, 11, 15, 19, 21, 23, 25, 27, 29}},
        // 31: stride 3: 30, 27, ... 0 are eleven.
        {31, 6, {3, 9, 15, 21, 27, 30}},
        // 1941: stride 130: 1940 - 14 x 130 = 120 is the slowest.
        {1941, 10, {250, 510, 770, 1030, 1290, 1420, 1550, 1680, 1810, 1940}},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        guint positions[15];
        ck_assert_uint_eq(nj_protocol_positions(rows[i].count, positions), rows[i].n);
        for (guint k = 0; k < rows[i].n; k++)
            ck_assert_msg(positions[k] == rows[i].positions[k], "count %u, position %u: %u", rows[i].count, k,
                          positions[k]);
    }
}
END_TEST

typedef struct {
    guint n;
    double time_s[4], energy_j[4];
} Curve;

static NjFrontier make_frontier(NjMethod method, const Curve *curve)
{
    NjFrontier frontier = {method, g_array_new(FALSE, TRUE, sizeof(NjExecutedPlan))};
    for (guint i = 0; i < curve->n; i++) {
        const NjExecutedPlan plan = {.time_s = curve->time_s[i], .energy_j = curve->energy_j[i]};
        g_array_append_val(frontier.plans, plan);
    }
    return frontier;
}

START_TEST(metrics_by_hand)
{
    static const Curve megatron_curve = {1, {10}, {1000}};
    static const Curve reference_curve = {3, {16, 13, 10}, {700, 600, 900}}; // least energy in the middle
    static const struct {
        const char *label;
        Curve curve;
        double values[NJ_N_METRICS]; // NaN: none
    } rows[] = {
        {"faster and thriftier", {3, {14, 10, 8}, {450, 540, 800}}, {20, 20, 40, 100 - 1000.0 / 13}},
        {"as fast, as thrifty", {2, {13, 10}, {600, 900}}, {0, 10, 0, 0}},
        {"never as fast", {2, {15, 10.5}, {500, 590}}, {-5, 41, (double)NAN, 100 - 1050.0 / 13}},
        {"never as thrifty", {2, {12, 9}, {601, 1100}}, {10, -10, (double)NAN, (double)NAN}},
        {"slower to save", {2, {20, 10}, {590, 990}}, {0, 1, -10, 100 - 2000.0 / 13}},
        {"one plan", {1, {10}, {450}}, {0, 55, 50, 100 - 1000.0 / 13}},
    };
    g_auto(NjFrontier) megatron = make_frontier(NJ_METHOD_MEGATRON, &megatron_curve);
    g_auto(NjFrontier) reference = make_frontier(NJ_METHOD_MEGATRON_PERSEUS, &reference_curve);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(NjFrontier) method = make_frontier(NJ_METHOD_KAREUS, &rows[i].curve);
        for (guint m = 0; m < NJ_N_METRICS; m++) {
            const NjCellValue cell = nj_metric_value((NjMetric)m, &method, &megatron, &reference);
            double wanted = rows[i].values[m];
            // 1100 J at 9 s is in time for the fastest reference: 900 J at 10 s.
            if (m == NJ_METRIC_ISO_TIME && strcmp(rows[i].label, "never as thrifty") == 0)
                wanted = 100 * (1 - 1100.0 / 900);
            ck_assert_msg((cell.state == NJ_CELL_NONE) == (isnan(wanted) != 0), "%s, %s", rows[i].label,
                          nj_metric_name((NjMetric)m));
            if (cell.state == NJ_CELL_VALUE)
                ck_assert_msg(fabs(cell.value - wanted) < 1e-9, "%s, %s: %g", rows[i].label,
                              nj_metric_name((NjMetric)m), cell.value);
        }
    }
}
END_TEST

static const char *const small = "[workload]\nmodel = llama-3.2-1b\nseq_len = 2048\nmicrobatch_size = 4\n"
                                 "microbatches = 4\n[cluster]\ngpu = a100-sxm4-40gb\nparallelism = tp4\n"
                                 "pipeline_stages = 2\n[execution]\nmethod = megatron\n";

static void load_small(NjScenario *scenario)
{
    GError *error = NULL;
    g_autoptr(GKeyFile) file = g_key_file_new();
    ck_assert(g_key_file_load_from_data(file, small, strlen(small), G_KEY_FILE_NONE, NULL));
    nj_assert_ok(nj_scenario_from_keyfile(scenario, file, "s.ini", &error), error);
}

static const NjExecutedPlan *plan_at(const NjFrontier *frontier, guint i)
{
    return &g_array_index(frontier->plans, NjExecutedPlan, i);
}

START_TEST(frontiers_have_the_points_asked_for)
{
    static const struct {
        double step_s;
        guint n_points, n;
    } rows[] = {{1e-4, 5, 5}, {1e-4, 1, 1}, {1e-4, 0, 10}, {1e6, 0, 1}, {1e6, 7, 1}};
    g_auto(NjScenario) scenario = {0};
    load_small(&scenario);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_auto(NjFrontier) frontier = {0};
        const NjFrontierOptions options = {
            .step_s = rows[i].step_s, .n_points = rows[i].n_points, .point_to_point = TRUE};
        nj_assert_ok(nj_frontier_run(&scenario.workload, NJ_METHOD_KAREUS, &nj_schedule_1f1b, &options,
                                     &frontier, &error),
                     error);
        ck_assert_uint_eq(frontier.plans->len, rows[i].n);
        // The fastest belongs to every frontier, and is the last of the numbers.
        g_autoptr(NjPlanning) planning =
            nj_planning_new(&scenario.workload, NJ_METHOD_KAREUS, &nj_schedule_1f1b, &options, &error);
        g_auto(NjExecutedPlan) fastest = {0};
        nj_assert_ok(planning != NULL && nj_planning_fastest(planning, &fastest, &error), error);
        ck_assert_uint_eq(fastest.number, nj_planning_count(planning) - 1);
        const NjExecutedPlan *last = plan_at(&frontier, frontier.plans->len - 1);
        ck_assert_uint_eq(last->number, fastest.number);
        ck_assert(nj_plan_equal(&last->plan, &fastest.plan) && last->energy_j == fastest.energy_j);
        for (guint k = 0; k + 1 < frontier.plans->len; k++) {
            ck_assert_uint_lt(plan_at(&frontier, k)->number, plan_at(&frontier, k + 1)->number);
            ck_assert_double_gt(plan_at(&frontier, k)->planned_time_s,
                                plan_at(&frontier, k + 1)->planned_time_s);
        }
    }
}
END_TEST

// What is told of a plan is what running it gives, and a plan is never above what it may take.
START_TEST(executed_plans)
{
    GError *error = NULL;
    g_auto(NjScenario) scenario = {0};
    g_auto(NjPipeline) pipeline = {0};
    load_small(&scenario);
    const NjWorkload *workload = &scenario.workload;
    const NjFrontierOptions options = {.step_s = 1e-3, .point_to_point = TRUE};
    nj_pipeline_init(&pipeline, &nj_schedule_1f1b, 2, 4);
    for (guint m = 0; m < NJ_N_METHODS; m++) {
        const NjMethod method = (NjMethod)m;
        g_autoptr(NjPlanning) planning =
            nj_planning_new(workload, method, &nj_schedule_1f1b, &options, &error);
        g_autoptr(NjExecutor) executor = nj_executor_new(workload, nj_method_execution(method));
        const NjExecuteOptions execute = {.point_to_point = TRUE, .unlocked = method == NJ_METHOD_MEGATRON};
        nj_assert_ok(planning != NULL, error);
        const guint count = nj_planning_count(planning);
        ck_assert_uint_eq(count == 1, method == NJ_METHOD_MEGATRON);
        for (guint k = 0; k < 4; k++) {
            g_auto(NjExecutedPlan) plan = {0};
            NjIteration iteration;
            nj_assert_ok(nj_planning_plan(planning, k * (count - 1) / 3, &plan, &error) &&
                             nj_executor_run(executor, &pipeline, &plan.plan, &execute, &iteration, &error),
                         error);
            ck_assert_double_eq_tol(plan.time_s, (double)iteration.duration / NJ_PS_PER_S, 1e-12);
            ck_assert_double_eq_tol(plan.energy_j, 4 * (iteration.dynamic_j + iteration.static_j), 1e-6);
            if (method == NJ_METHOD_MEGATRON) {
                ck_assert(isnan(plan.planned_time_s) && isnan(plan.bound_energy_j));
                continue;
            }
            ck_assert_uint_eq(plan.number, k * (count - 1) / 3);
            ck_assert_double_gt(plan.planned_energy_j, plan.bound_energy_j * (1 - 1e-9));
            ck_assert_double_gt(plan.time_s, plan.planned_time_s);
            ck_assert_double_lt(plan.time_s, 1.2 * plan.planned_time_s);
        }
    }
}
END_TEST

START_TEST(waiting)
{
    GError *error = NULL;
    g_auto(NjScenario) scenario = {0};
    load_small(&scenario);
    const NjFrontierOptions options = {.step_s = 1e-3};
    for (guint m = 0; m < 2; m++) {
        g_auto(NjExecutedPlan) plan = {0};
        g_autoptr(NjPlanning) planning =
            nj_planning_new(&scenario.workload, (NjMethod)m, &nj_schedule_1f1b, &options, &error);
        nj_assert_ok(planning != NULL && nj_planning_fastest(planning, &plan, &error), error);
        // 8 GPUs; an unlocked clock tree runs on.
        const double power_w =
            8 * (scenario.workload.gpu.static_w + (m == 0 ? scenario.workload.gpu.clock_w : 0));
        ck_assert_double_eq_tol(nj_planning_waiting_j(planning, &plan, plan.time_s + 2), 2 * power_w, 1e-6);
        ck_assert(nj_planning_waiting_j(planning, &plan, plan.time_s - 1) == 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("frontier");
    TCase *tcase = tcase_create("frontier");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, protocol_positions);
    tcase_add_test(tcase, metrics_by_hand);
    tcase_add_test(tcase, frontiers_have_the_points_asked_for);
    tcase_add_test(tcase, executed_plans);
    tcase_add_test(tcase, waiting);
    suite_add_tcase(suite, tcase);
    return nj_test_run(suite);
}
