// SPDX-License-Identifier: MIT
// Closed forms, robustness and the published oracle. test-solver-exact.c compares with brute force and a
// linear programme.
#include "tests/pipeline-cases.h"
#include "tests/solver-checks.h"

#include "schedules/csv.h"
#include "sim/error.h"

#define MAX_TEST_TASKS 8

typedef struct {
    const char *label;
    guint n_tasks;
    guint option_set[MAX_TEST_TASKS];
    guint n_edges;
    guint from[MAX_TEST_TASKS], to[MAX_TEST_TASKS];
    guint n_sets;
    NjOptionSet sets[4];
    guint n_points; // breakpoints of the bound, by rising time
    NjFrontierPoint points[6];
} Case;

#define OPTIONS(...)                                                                                         \
    {                                                                                                        \
        sizeof((const NjOption[]){__VA_ARGS__}) / sizeof(NjOption), (const NjOption[])                       \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

static NjSolver *solve_case(const Case *row)
{
    GError *error = NULL;
    g_autoptr(NjDag) dag =
        nj_dag_new(row->n_tasks, row->option_set, row->n_edges, row->from, row->to, &error);
    nj_assert_ok(dag != NULL, error);
    NjSolver *solver = nj_solver_new(dag, row->n_sets, row->sets, &error);
    nj_assert_ok(solver != NULL, error);
    return solver;
}

static const Case CLOSED_FORMS[] = {
    {"one task, one option", 1, {0}, 0, {0}, {0}, 1, {OPTIONS({2, 5})}, 1, {{2, 5}}},
    {"one task that takes no time", 1, {0}, 0, {0}, {0}, 1, {OPTIONS({0, 5})}, 1, {{0, 5}}},
    {"one task, two options, the slower given first",
     1,
     {0},
     0,
     {0},
     {0},
     1,
     {OPTIONS({3, 1}, {2, 5})},
     2,
     {{2, 5}, {3, 1}}},
    {"one task, three convex options",
     1,
     {0},
     0,
     {0},
     {0},
     1,
     {OPTIONS({1, 9}, {2, 4}, {4, 2})},
     3,
     {{1, 9}, {2, 4}, {4, 2}}},
    {"the middle option above the hull",
     1,
     {0},
     0,
     {0},
     {0},
     1,
     {OPTIONS({1, 9}, {2, 8}, {4, 2})},
     2,
     {{1, 9}, {4, 2}}},
    {"options slower than the cheapest are of no use",
     1,
     {0},
     0,
     {0},
     {0},
     1,
     {OPTIONS({1, 9}, {2, 4}, {3, 4}, {5, 6})},
     2,
     {{1, 9}, {2, 4}}},
    {"negative effective energies",
     1,
     {0},
     0,
     {0},
     {0},
     1,
     {OPTIONS({1, -1}, {2, -3}, {4, -4})},
     3,
     {{1, -1}, {2, -3}, {4, -4}}},
    {"equal times: the cheapest counts",
     1,
     {0},
     0,
     {0},
     {0},
     1,
     {OPTIONS({1, 9}, {1, 7}, {1, 8}, {2, 3}, {2, 3})},
     2,
     {{1, 7}, {2, 3}}},
    {"all options the same", 1, {0}, 0, {0}, {0}, 1, {OPTIONS({1, 7}, {1, 7}, {1, 7})}, 1, {{1, 7}}},
    // Steepest pieces last: 2 saves 1 J/s and is shortened first, 1 saves 4 J/s.
    {"a chain",
     2,
     {0, 1},
     1,
     {0},
     {1},
     2,
     {OPTIONS({1, 9}, {2, 5}), OPTIONS({1, 3}, {3, 1})},
     3,
     {{2, 12}, {3, 8}, {5, 6}}},
    // Both must be shortened at once; the one without choice decides where it ends.
    {"two in parallel",
     2,
     {0, 1},
     0,
     {0},
     {0},
     2,
     {OPTIONS({1, 9}, {4, 3}), OPTIONS({2, 3}, {4, 1})},
     2,
     {{2, 10}, {4, 4}}},
    {"two in parallel, one of them with slack for good",
     2,
     {0, 1},
     0,
     {0},
     {0},
     2,
     {OPTIONS({1, 9}, {2, 3}), OPTIONS({3, 3}, {5, 1})},
     2,
     {{3, 6}, {5, 4}}},
    {"no slack at all: one path, one option each",
     3,
     {0, 1, 0},
     2,
     {0, 1},
     {1, 2},
     2,
     {OPTIONS({1, 2}), OPTIONS({2, 7})},
     1,
     {{4, 11}}},
    // 0 -> {1, 2} -> 3, all the same options: shortening 0 or 3 saves time at half the price of 1 and 2.
    {"a diamond",
     4,
     {0, 0, 0, 0},
     4,
     {0, 0, 1, 2},
     {1, 2, 3, 3},
     1,
     {OPTIONS({1, 5}, {2, 3})},
     3,
     {{3, 20}, {4, 16}, {6, 12}}},
    // 0 saves 2.05 J/s, 1 and 2 together 2 J/s; that 3 saves 1e19 J/s must not blur the difference.
    {"times that differ by noise",
     4,
     {0, 1, 1, 2},
     4,
     {0, 0, 1, 2},
     {1, 2, 3, 3},
     3,
     {OPTIONS({1, 4.05}, {2, 2}), OPTIONS({1, 3}, {2, 2}), OPTIONS({1, 1e6}, {1.0000000000001, 1})},
     4,
     {{3, 1000010.05}, {3.0000000000001, 11.05}, {4.0000000000001, 9}, {5.0000000000001, 7}}},
    {"a set that no task uses may be empty",
     1,
     {1},
     0,
     {0},
     {0},
     2,
     {{0, NULL}, OPTIONS({1, 2})},
     1,
     {{1, 2}}},
};

START_TEST(knows_closed_forms)
{
    for (guint r = 0; r < G_N_ELEMENTS(CLOSED_FORMS); r++) {
        const Case *row = &CLOSED_FORMS[r];
        g_autoptr(NjSolver) solver = solve_case(row);
        guint n_points;
        const NjFrontierPoint *points = nj_solver_points(solver, &n_points);
        ck_assert_msg(n_points == row->n_points, "%s: %u points", row->label, n_points);
        for (guint j = 0; j < n_points; j++)
            ck_assert_msg(points[j].time_s == row->points[j].time_s &&
                              fabs(points[j].effective_j - row->points[j].effective_j) <
                                  1e-12 * MAX(1, fabs(points[j].effective_j)),
                          "%s: point %u is %.15g s, %.15g J", row->label, j, points[j].time_s,
                          points[j].effective_j);
    }
}
END_TEST

// 2 stages, 2 microbatches, every instruction 1 s at 10 J or 2 s at 4 J:
//
//   stage 0  F0 F1 .. B0 .. B1      6 of 8 instructions are on the longest path; F1 and B0 of stage 0 are not
//   stage 1  .. F0 B0 F1 B1 ..      and can be slow at no cost. From 6 s to 12 s each second saves 6 J.
START_TEST(knows_a_pipeline)
{
    g_autoptr(NjDag) dag = pipeline_1f1b(2, 2);
    const NjOption options[] = {{1, 10}, {2, 4}};
    const NjOptionSet sets[] = {{2, options}, {2, options}, {2, options}, {2, options}};
    GError *error = NULL;
    g_autoptr(NjSolver) solver = nj_solver_new(dag, 4, sets, &error);
    nj_assert_ok(solver != NULL, error);
    guint n_points;
    const NjFrontierPoint *points = nj_solver_points(solver, &n_points);
    ck_assert_uint_eq(n_points, 2);
    ck_assert_double_eq(points[0].time_s, 6);
    ck_assert_double_eq_tol(points[0].effective_j, 68, 1e-12);
    ck_assert_double_eq(points[1].time_s, 12);
    ck_assert_double_eq_tol(points[1].effective_j, 32, 1e-12);

    double bound_j = 0;
    nj_assert_ok(nj_solver_bound(solver, 7.5, &bound_j, &error), error);
    ck_assert_double_eq_tol(bound_j, 59, 1e-12);
    for (guint seconds = 6; seconds <= 13; seconds++) { // whole seconds: plans on the bound
        g_autoptr(NjSolverPlan) plan = nj_solver_plan(solver, seconds, &error);
        nj_assert_ok(plan != NULL, error);
        check_plan(plan, dag, sets, seconds, "2 x 2");
        ck_assert_double_eq_tol(plan->effective_j, MAX(68 - 6.0 * (seconds - 6), 32), 1e-12);
    }
    g_autoptr(NjSolverPlan) between = nj_solver_plan(solver, 7.5, &error); // no use for half a second
    ck_assert_double_eq_tol(between->effective_j, 62, 1e-12);
    ck_assert_double_eq_tol(between->bound_effective_j, 59, 1e-12);
    ck_assert_double_eq(between->time_s, 7);
}
END_TEST

START_TEST(uses_options_above_the_hull)
{
    const Case row = {"", 1, {0}, 0, {0}, {0}, 1, {OPTIONS({1, 9}, {2, 8}, {4, 2})}, 0, {{0}}};
    g_autoptr(NjSolver) solver = solve_case(&row);
    GError *error = NULL;
    g_autoptr(NjSolverPlan) plan = nj_solver_plan(solver, 3, &error);
    nj_assert_ok(plan != NULL, error);
    ck_assert_uint_eq(plan->option[0], 1);
    ck_assert_double_eq_tol(plan->bound_effective_j, 9 - 7 * 2 / 3.0, 1e-12);
}
END_TEST

// Total energy of one task: 10 W of static power make 2 s the best, 1 W the slowest, 100 W the fastest.
START_TEST(plans_for_a_deadline)
{
    const Case row = {"", 1, {0}, 0, {0}, {0}, 1, {OPTIONS({1, 50}, {2, 20}, {4, 12})}, 0, {{0}}};
    static const struct {
        double latest_s, static_w, time_s;
        guint option;
    } ROWS[] = {
        {9, 10, 2, 1}, {9, 1, 4, 2}, {9, 100, 1, 0},       {1.5, 1, 1.5, 0}, {3, 1, 3, 1},
        {2, 10, 2, 1}, {1, 0, 1, 0}, {3.999, 0, 3.999, 1}, {4, 0, 4, 2},
    };
    g_autoptr(NjSolver) solver = solve_case(&row);
    for (guint r = 0; r < G_N_ELEMENTS(ROWS); r++) {
        GError *error = NULL;
        double time_s = 0;
        nj_assert_ok(nj_solver_best_time(solver, ROWS[r].latest_s, ROWS[r].static_w, &time_s, &error), error);
        ck_assert_msg(time_s == ROWS[r].time_s, "row %u: %g s", r, time_s);
        g_autoptr(NjSolverPlan) plan =
            nj_solver_plan_deadline(solver, ROWS[r].latest_s, ROWS[r].static_w, &error);
        nj_assert_ok(plan != NULL, error);
        ck_assert_msg(plan->option[0] == ROWS[r].option, "row %u: option %u", r, plan->option[0]);
    }
}
END_TEST

START_TEST(deadline_beats_waiting)
{
    g_autoptr(NjDag) dag = pipeline_1f1b(4, 6);
    g_autoptr(PipelineProfile) profile = pipeline_profile_made_up(4);
    GError *error = NULL;
    g_autoptr(NjSolver) solver = nj_solver_new(dag, profile->n_sets, profile->sets, &error);
    nj_assert_ok(solver != NULL, error);
    const double static_w = 4 * STATIC_W_PER_STAGE;
    guint n_points;
    const NjFrontierPoint *points = nj_solver_points(solver, &n_points);
    for (guint j = 0; j <= 10; j++) {
        const double latest_s =
            points[0].time_s + (points[n_points - 1].time_s - points[0].time_s) * j / 10.0;
        g_autoptr(NjSolverPlan) plan = nj_solver_plan_deadline(solver, latest_s, static_w, &error);
        nj_assert_ok(plan != NULL, error);
        check_plan(plan, dag, profile->sets, latest_s, "deadline");
        g_autoptr(NjSolverPlan) last_moment = nj_solver_plan(solver, latest_s, &error);
        ck_assert_double_le(plan->effective_j + static_w * plan->time_s,
                            last_moment->effective_j + static_w * last_moment->time_s + 1e-9);
        for (guint k = 0; k < n_points && points[k].time_s <= latest_s; k++) // near the least of all bounds
            ck_assert_double_le(plan->effective_j + static_w * plan->time_s,
                                1.003 * (points[k].effective_j + static_w * points[k].time_s));
    }
}
END_TEST

START_TEST(says_what_is_wrong)
{
    const struct {
        NjOptionSet sets[2];
        guint option_set;
        const char *message;
    } ROWS[] = {
        {{{0, NULL}, OPTIONS({1, 1})}, 0, "frontier solver: task 0 has no option: option set 0 is empty"},
        {{OPTIONS({1, 1}), OPTIONS({1, 1})},
         2,
         "frontier solver: task 0 refers to option set 2, there are 2"},
        {{OPTIONS({1, 1}, {-1, 1}), OPTIONS({1, 1})},
         0,
         "frontier solver: option 1 of option set 0 takes -1 s, it must be a finite number of at least 0"},
        {{OPTIONS({1, 1}), OPTIONS({NAN, 1})},
         0,
         "frontier solver: option 0 of option set 1 takes nan s, it must be a finite number of at least 0"},
        {{OPTIONS({INFINITY, 1}), OPTIONS({1, 1})},
         0,
         "frontier solver: option 0 of option set 0 takes inf s, it must be a finite number of at least 0"},
        {{OPTIONS({1, 1}, {2, INFINITY}), OPTIONS({1, 1})},
         0,
         "frontier solver: option 1 of option set 0 costs inf J, it must be a finite number"},
    };
    for (guint r = 0; r < G_N_ELEMENTS(ROWS); r++) {
        GError *error = NULL;
        g_autoptr(NjDag) dag = nj_dag_new(1, &ROWS[r].option_set, 0, NULL, NULL, &error);
        NjSolver *solver = nj_solver_new(dag, 2, ROWS[r].sets, &error);
        ck_assert_ptr_null(solver);
        nj_assert_error(error, ROWS[r].message);
    }
}
END_TEST

START_TEST(refuses_times_that_are_too_short)
{
    const Case row = {"", 1, {0}, 0, {0}, {0}, 1, {OPTIONS({1.5, 9}, {2, 5})}, 0, {{0}}};
    static const struct {
        double time_s;
        const char *message;
    } ROWS[] = {
        {1.499999999,
         "frontier solver: no plan takes 1.499999999 s or less: the fastest takes 1.500000000 s"},
        {-1, "frontier solver: no plan takes -1.000000000 s or less: the fastest takes 1.500000000 s"},
        {NAN, "frontier solver: no plan takes nan s or less: the fastest takes 1.500000000 s"},
    };
    g_autoptr(NjSolver) solver = solve_case(&row);
    for (guint r = 0; r < G_N_ELEMENTS(ROWS); r++) {
        GError *error = NULL;
        double ignored;
        ck_assert_ptr_null(nj_solver_plan(solver, ROWS[r].time_s, &error));
        nj_assert_error(error, ROWS[r].message);
        ck_assert_ptr_null(nj_solver_plan_deadline(solver, ROWS[r].time_s, 1, &error));
        nj_assert_error(error, ROWS[r].message);
        ck_assert(!nj_solver_bound(solver, ROWS[r].time_s, &ignored, &error));
        nj_assert_error(error, ROWS[r].message);
        ck_assert(!nj_solver_best_time(solver, ROWS[r].time_s, 1, &ignored, &error));
        nj_assert_error(error, ROWS[r].message);
    }
    GError *error = NULL; // what nine decimals cannot tell apart is the same time
    g_autoptr(NjSolverPlan) plan = nj_solver_plan(solver, 1.4999999996, &error);
    nj_assert_ok(plan != NULL, error);
    g_autoptr(NjSolverPlan) forever = nj_solver_plan(solver, INFINITY, &error);
    nj_assert_ok(forever != NULL, error);
    ck_assert_uint_eq(forever->option[0], 1);
}
END_TEST

// Made up profiles with other units, noise, few options: the frontier scales, plans stay good.
START_TEST(takes_any_scale_and_noise)
{
    static const struct {
        const char *label;
        double time_scale, energy_scale, noise;
        guint every; // keeps each n-th option
        double max_gap_pct;
    } ROWS[] = {
        {"as made", 1, 1, 0, 1, 0.3},
        {"microjoules", 1, 1e-6, 0, 1, 0.3},
        {"megajoules", 1, 1e6, 0, 1, 0.3},
        {"microseconds", 1e-6, 1, 0, 1, 0.3},
        {"megaseconds", 1e6, 1, 0, 1, 0.3},
        {"1 % noise", 1, 1, 0.01, 1, 0.5},
        {"10 % noise", 1, 1, 0.1, 1, 3},
        {"one option", 1, 1, 0, 18, 1e-9},
        {"two options", 1, 1, 0, 17, 3},
        {"three options", 1, 1, 0, 8, 2},
        {"nanoseconds and noise", 1e-9, 1e-6, 0.02, 1, 1},
    };
    static const struct {
        guint n_stages, n_microbatches;
    } SIZES[] = {{1, 1}, {1, 8}, {2, 8}, {4, 6}};
    for (guint r = 0; r < G_N_ELEMENTS(ROWS); r++)
        for (guint size = 0; size < G_N_ELEMENTS(SIZES); size++) {
            const guint n_stages = SIZES[size].n_stages;
            g_autoptr(GRand) rand = g_rand_new_with_seed(7);
            g_autoptr(NjDag) dag = pipeline_1f1b(n_stages, SIZES[size].n_microbatches);
            g_autoptr(PipelineProfile) made_up = pipeline_profile_made_up(n_stages);
            g_autoptr(PipelineProfile) profile = pipeline_profile_new(n_stages);
            for (guint s = 0; s < made_up->n_sets; s++)
                for (guint k = 0; k < made_up->sets[s].n_options; k += ROWS[r].every) {
                    const NjOption option = made_up->sets[s].options[k];
                    const double noise = 1 + ROWS[r].noise * g_rand_double_range(rand, -1, 1);
                    pipeline_profile_add_effective(profile, s, option.time_s * ROWS[r].time_scale,
                                                   option.effective_j * noise * ROWS[r].energy_scale);
                }
            check_frontier(dag, profile->n_sets, profile->sets, ROWS[r].max_gap_pct, ROWS[r].label);
        }
}
END_TEST

START_TEST(repeats_itself)
{
    g_autoptr(NjDag) dag = pipeline_1f1b(4, 16);
    g_autoptr(PipelineProfile) profile = pipeline_profile_made_up(4);
    GError *error = NULL;
    g_autoptr(NjSolver) one = nj_solver_new(dag, profile->n_sets, profile->sets, &error);
    g_autoptr(NjSolver) other = nj_solver_new(dag, profile->n_sets, profile->sets, &error);
    guint n_points;
    const NjFrontierPoint *points = nj_solver_points(one, &n_points);
    ck_assert_uint_gt(n_points, 200); // so that states were thinned out and gone back to
    // Up on one, down on the other: what was asked before does not matter.
    enum { N = 12 };
    NjSolverPlan *plans[N];
    for (guint j = 0; j < N; j++)
        plans[j] = nj_solver_plan(one, points[j * (n_points - 1) / (N - 1)].time_s, &error);
    for (guint j = N; j-- > 0;) {
        g_autoptr(NjSolverPlan) again =
            nj_solver_plan(other, points[j * (n_points - 1) / (N - 1)].time_s, &error);
        ck_assert_double_eq(again->effective_j, plans[j]->effective_j);
        ck_assert_mem_eq(again->option, plans[j]->option, sizeof(guint) * again->n_tasks);
        nj_solver_plan_free(plans[j]);
    }
}
END_TEST

static double field(const NjCsv *csv, guint row, const char *column)
{
    GError *error = NULL;
    const int index = nj_csv_require(csv, column, &error);
    double value = 0;
    nj_assert_ok(index >= 0 && nj_csv_number(csv, row, index, -G_MAXDOUBLE, &value, &error), error);
    return value;
}

static NjCsv *read_oracle(const char *kind, const char *name)
{
    g_autofree char *file = g_strdup_printf("oracle/%s_%s.csv", kind, name);
    g_autofree char *path = nj_test_reference(file);
    GError *error = NULL;
    NjCsv *csv = nj_csv_read(path, &error);
    nj_assert_ok(csv != NULL, error);
    return csv;
}

// The bound is the linear programme's, plans are within 0.3 % of it in total energy, and none uses more than
// lowtime's at the time that takes.
START_TEST(agrees_with_the_oracle)
{
    static const struct {
        const char *name;
        guint n_stages, n_microbatches, n_times;
    } ROWS[] = {{"s2m8", 2, 8, 200},
                {"s2m16", 2, 16, 100},
                {"s4m8", 4, 8, 100},
                {"s8m32", 8, 32, 40},
                {"s8m128", 8, 128, 20}};
    g_autofree char *instances = nj_test_reference("oracle/instances.csv");
    if (instances == NULL)
        return;
    for (guint r = 0; r < G_N_ELEMENTS(ROWS); r++) {
        const char *name = ROWS[r].name;
        g_autofree char *file = g_strdup_printf("oracle/profile_%s.csv", name);
        g_autofree char *path = nj_test_reference(file);
        GError *error = NULL;
        g_autoptr(PipelineProfile) profile = pipeline_profile_read(path, &error);
        nj_assert_ok(profile != NULL, error);
        g_autoptr(NjDag) dag = pipeline_1f1b(ROWS[r].n_stages, ROWS[r].n_microbatches);
        g_autoptr(NjSolver) solver = nj_solver_new(dag, profile->n_sets, profile->sets, &error);
        nj_assert_ok(solver != NULL, error);
        const double static_w = STATIC_W_PER_STAGE * ROWS[r].n_stages;

        g_autoptr(NjCsv) realised = read_oracle("realised", name);
        g_autoptr(NjCsv) lp = read_oracle("lp", name);
        ck_assert_uint_eq(realised->n_rows, lp->n_rows);
        for (guint row = 0; row < lp->n_rows; row++) {
            const double time_s = field(realised, row, "realised_time_s");
            const double lp_j = field(lp, row, "lpA_at_realised_dynamic");
            double bound_j = 0;
            nj_assert_ok(nj_solver_bound(solver, time_s, &bound_j, &error), error);
            ck_assert_msg(fabs(bound_j - lp_j) <= 1e-6 * lp_j, "%s at %.9f s: bound %.9f, LP %.9f J", name,
                          time_s, bound_j, lp_j);
            g_autoptr(NjSolverPlan) plan = nj_solver_plan(solver, time_s, &error);
            nj_assert_ok(plan != NULL, error);
            check_plan(plan, dag, profile->sets, time_s, name);
            const double lowtime_j = field(realised, row, "realised_total_energy");
            const double total_j = plan->effective_j + static_w * time_s;
            ck_assert_msg(total_j <= lowtime_j + 1e-6, "%s at %.9f s: %.9f J, lowtime %.9f J", name, time_s,
                          total_j, lowtime_j);
        }
        check_gaps(solver, dag, profile->sets, static_w, ROWS[r].n_times, 0.3, name);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("solver");
    TCase *tcase = tcase_create("solver");
    tcase_add_test(tcase, knows_closed_forms);
    tcase_add_test(tcase, knows_a_pipeline);
    tcase_add_test(tcase, uses_options_above_the_hull);
    tcase_add_test(tcase, plans_for_a_deadline);
    tcase_add_test(tcase, deadline_beats_waiting);
    tcase_add_test(tcase, says_what_is_wrong);
    tcase_add_test(tcase, refuses_times_that_are_too_short);
    tcase_add_test(tcase, takes_any_scale_and_noise);
    tcase_add_test(tcase, repeats_itself);
    tcase_add_test(tcase, agrees_with_the_oracle);
    suite_add_tcase(suite, tcase);
    return nj_test_run(suite);
}
