// SPDX-License-Identifier: MIT
#pragma once
// What must hold for every plan and every frontier, whatever the graph.

#include "schedules/solver.h"
#include "tests/testing.h"

#include <math.h>

// The plan is one of real options, takes the time and energy it says, is not late and not below the bound.
static inline void check_plan(const NjSolverPlan *plan, const NjDag *dag, const NjOptionSet *sets,
                              double time_s, const char *label)
{
    ck_assert_msg(plan->n_tasks == dag->n_tasks, "%s: %u tasks", label, plan->n_tasks);
    g_autofree double *duration_s = g_new(double, dag->n_tasks);
    double effective_j = 0, largest_j = 0;
    for (guint i = 0; i < dag->n_tasks; i++) {
        const NjOptionSet *set = &sets[dag->option_set[i]];
        ck_assert_msg(plan->option[i] < set->n_options, "%s: option %u", label, plan->option[i]);
        duration_s[i] = set->options[plan->option[i]].time_s;
        effective_j += set->options[plan->option[i]].effective_j;
        largest_j += fabs(set->options[plan->option[i]].effective_j);
    }
    const double taken_s = nj_dag_longest_path_s(dag, duration_s, NULL);
    ck_assert_msg(fabs(taken_s - plan->time_s) <= 1e-12 * taken_s, "%s: takes %.15g s, says %.15g s", label,
                  taken_s, plan->time_s);
    const double tolerance_s = MIN(NJ_SOLVER_TOLERANCE_S, 1e-9 * time_s);
    ck_assert_msg(plan->time_s <= time_s + tolerance_s + 1e-15 * time_s,
                  "%s: takes %.15g s, asked for %.15g s", label, plan->time_s, time_s);
    ck_assert_msg(fabs(effective_j - plan->effective_j) <= 1e-12 * largest_j,
                  "%s: uses %.15g J, says %.15g J", label, effective_j, plan->effective_j);
    ck_assert_msg(plan->effective_j >= plan->bound_effective_j - 1e-8 * largest_j,
                  "%s at %.9g s: %.15g J is below the bound %.15g J", label, time_s, plan->effective_j,
                  plan->bound_effective_j);
}

// Plans at n_times times from the fastest to beyond the slowest: each is right, and within max_gap_pct of the
// bound in total energy.
static inline void check_gaps(NjSolver *solver, const NjDag *dag, const NjOptionSet *sets, double static_w,
                              guint n_times, double max_gap_pct, const char *label)
{
    guint n_points;
    const NjFrontierPoint *points = nj_solver_points(solver, &n_points);
    const double first_s = points[0].time_s, last_s = points[n_points - 1].time_s;
    for (guint j = 0; j <= n_times; j++) {
        const double time_s = first_s + (last_s - first_s) * j / n_times;
        GError *error = NULL;
        g_autoptr(NjSolverPlan) plan = nj_solver_plan(solver, time_s, &error);
        nj_assert_ok(plan != NULL, error);
        check_plan(plan, dag, sets, time_s, label);
        const double bound_j = plan->bound_effective_j + static_w * time_s;
        const double gap_j = plan->effective_j - plan->bound_effective_j;
        ck_assert_msg(gap_j <= max_gap_pct / 100 * bound_j, "%s at %.9g s: %.4f %% above the bound", label,
                      time_s, 100 * gap_j / bound_j);
    }
}

// A frontier is falling and convex, and its ends are the fastest and the cheapest plan.
static inline void check_shape(NjSolver *solver, const NjDag *dag, const NjOptionSet *sets, const char *label)
{
    g_autofree double *fastest_s = g_new(double, dag->n_tasks);
    double cheapest_j = 0, largest_j = 0;
    for (guint i = 0; i < dag->n_tasks; i++) {
        const NjOptionSet *set = &sets[dag->option_set[i]];
        double least_j = G_MAXDOUBLE;
        fastest_s[i] = G_MAXDOUBLE;
        for (guint k = 0; k < set->n_options; k++) {
            fastest_s[i] = MIN(fastest_s[i], set->options[k].time_s);
            least_j = MIN(least_j, set->options[k].effective_j);
        }
        cheapest_j += least_j;
        largest_j += fabs(least_j);
    }
    const double least_s = nj_dag_longest_path_s(dag, fastest_s, NULL);

    guint n_points;
    const NjFrontierPoint *points = nj_solver_points(solver, &n_points);
    ck_assert_msg(n_points >= 1, "%s: no point", label);
    ck_assert_msg(fabs(points[0].time_s - least_s) <= 1e-12 * least_s,
                  "%s: fastest %.15g s, should be %.15g s", label, points[0].time_s, least_s);
    ck_assert_msg(fabs(points[n_points - 1].effective_j - cheapest_j) <= 1e-12 * largest_j,
                  "%s: cheapest %.15g J, should be %.15g J", label, points[n_points - 1].effective_j,
                  cheapest_j);
    double steeper = G_MAXDOUBLE;
    for (guint j = 1; j < n_points; j++) {
        ck_assert_msg(points[j].time_s > points[j - 1].time_s, "%s: times do not rise at point %u", label, j);
        const double saved_j = points[j - 1].effective_j - points[j].effective_j;
        const double slope = saved_j / (points[j].time_s - points[j - 1].time_s);
        ck_assert_msg(saved_j > -1e-12 * largest_j, "%s: energy rises at point %u", label, j);
        const double noise = 1e-12 * largest_j / (points[j].time_s - points[j - 1].time_s);
        ck_assert_msg(slope <= steeper * (1 + 1e-6) + noise, "%s: not convex at point %u of %u", label, j,
                      n_points);
        steeper = slope;
    }
    g_autoptr(NjSolverPlan) fastest = nj_solver_plan_fastest(solver);
    check_plan(fastest, dag, sets, points[0].time_s, label);
    ck_assert_msg(fabs(fastest->time_s - least_s) <= 1e-12 * least_s, "%s: fastest plan takes %.15g s", label,
                  fastest->time_s);
}

static inline void check_frontier(const NjDag *dag, guint n_sets, const NjOptionSet *sets, double max_gap_pct,
                                  const char *label)
{
    GError *error = NULL;
    g_autoptr(NjSolver) solver = nj_solver_new(dag, n_sets, sets, &error);
    nj_assert_ok(solver != NULL, error);
    check_shape(solver, dag, sets, label);
    guint n_points;
    const NjFrontierPoint *points = nj_solver_points(solver, &n_points);
    // A static power that makes total energy positive and of the size of what there is to save.
    const double range_j = fabs(points[0].effective_j) + fabs(points[n_points - 1].effective_j);
    check_gaps(solver, dag, sets, range_j / points[0].time_s, 25, max_gap_pct, label);
}
