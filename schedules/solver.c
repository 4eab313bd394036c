// SPDX-License-Identifier: MIT
#include "schedules/solver-private.h"

#include "sim/error.h"
#include <math.h>

// States of the flow are kept so that any time can be gone back to. When there are more than this, every
// other one is dropped: the memory stays bounded (23 MB at 2,048 tasks), and the way from a state to a time
// short.
#define MAX_MARKS 256
// Times around the one asked for from which plans are made, in steps of the planner: the first is exact.
static const gint TARGET_STEPS[] = {0, -1, 1, -2, 2};

typedef struct {
    guint point; // breakpoint, counted from the slowest
    NjFlowMark state;
} Mark;

struct NjSolver {
    NjCurves *curves;
    NjFlow *flow; // work space: any state
    NjRounder *planner;
    GArray *points; // NjFrontierPoint, by rising time
    gint64 fastest; // ticks
    gint64 slowest;
    GArray *marks; // Mark, by falling time; the first is the slowest schedule
    guint mark_every;
};

static double to_seconds(const NjSolver *solver, gint64 ticks)
{
    return (double)ticks / solver->curves->ticks_per_s;
}

// Ticks that a plan asked for at time_s may take, never beyond the slowest useful time.
static gint64 ticks_allowed(const NjSolver *solver, double time_s)
{
    const double tolerance_s = MIN(NJ_SOLVER_TOLERANCE_S, 1e-9 * time_s);
    const double ticks = floor((time_s + tolerance_s) * solver->curves->ticks_per_s);
    return ticks >= (double)solver->slowest ? solver->slowest : (gint64)ticks;
}

static gboolean check_time(const NjSolver *solver, double time_s, GError **error)
{
    if (time_s >= 0 && ticks_allowed(solver, time_s) >= solver->fastest)
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                "frontier solver: no plan takes %.9f s or less: the fastest takes %.9f s", time_s,
                to_seconds(solver, solver->fastest));
    return FALSE;
}

static void clear_mark(gpointer mark)
{
    nj_flow_mark_clear(&((Mark *)mark)->state);
}

static void thin_out_marks(NjSolver *solver)
{
    g_autoptr(GArray) thinner = g_array_new(FALSE, FALSE, sizeof(Mark));
    for (guint j = 0; j < solver->marks->len; j++) {
        Mark *mark = &g_array_index(solver->marks, Mark, j);
        if (j % 2 == 0) {
            g_array_append_val(thinner, *mark);
            mark->state = (NjFlowMark){0};
        }
    }
    g_array_set_size(solver->marks, 0);
    g_array_append_vals(solver->marks, thinner->data, thinner->len);
    solver->mark_every *= 2;
}

// Records the state as a breakpoint, and every now and then as a mark.
static void record_point(NjSolver *solver, guint point)
{
    const NjFlow *flow = solver->flow;
    NjFrontierPoint here = {.time_s = to_seconds(solver, nj_flow_time(flow))};
    for (guint i = 0; i < flow->n_tasks; i++)
        here.effective_j += nj_curve_energy_j(flow->curve[i], nj_flow_duration(flow, i));
    g_array_append_val(solver->points, here);

    if (point % solver->mark_every != 0)
        return;
    const Mark mark = {point, nj_flow_mark(flow)};
    g_array_append_val(solver->marks, mark);
    if (solver->marks->len > MAX_MARKS)
        thin_out_marks(solver);
}

static void reverse_points(GArray *points)
{
    for (guint a = 0, b = points->len - 1; a < b; a++, b--) {
        const NjFrontierPoint point = g_array_index(points, NjFrontierPoint, a);
        g_array_index(points, NjFrontierPoint, a) = g_array_index(points, NjFrontierPoint, b);
        g_array_index(points, NjFrontierPoint, b) = point;
    }
}

NjSolver *nj_solver_new(const NjDag *dag, guint n_sets, const NjOptionSet *sets, GError **error)
{
    g_autoptr(NjCurves) curves = nj_curves_new(dag, n_sets, sets, error);
    if (curves == NULL)
        return NULL;
    NjSolver *solver = g_new0(NjSolver, 1);
    solver->curves = g_steal_pointer(&curves);
    solver->flow = nj_flow_new(dag, solver->curves);
    solver->planner = nj_rounder_new(dag, solver->curves);
    solver->points = g_array_new(FALSE, FALSE, sizeof(NjFrontierPoint));
    solver->marks = g_array_new(FALSE, FALSE, sizeof(Mark));
    g_array_set_clear_func(solver->marks, clear_mark);
    solver->mark_every = 1;

    solver->slowest = nj_flow_time(solver->flow);
    record_point(solver, 0);
    for (guint point = 1; nj_flow_push(solver->flow); point++) {
        nj_flow_shorten(solver->flow, 0);
        record_point(solver, point);
    }
    solver->fastest = nj_flow_time(solver->flow);
    reverse_points(solver->points);
    return solver;
}

void nj_solver_free(NjSolver *solver)
{
    if (solver == NULL)
        return;
    nj_curves_free(solver->curves);
    nj_flow_free(solver->flow);
    nj_rounder_free(solver->planner);
    g_array_unref(solver->points);
    g_array_unref(solver->marks);
    g_free(solver);
}

const NjFrontierPoint *nj_solver_points(const NjSolver *solver, guint *n_points)
{
    *n_points = solver->points->len;
    return (const NjFrontierPoint *)(void *)solver->points->data;
}

// First breakpoint that is later than time_s; their number where none is.
static guint first_point_after(const NjSolver *solver, double time_s)
{
    guint low = 0, high = solver->points->len;
    while (low < high) {
        const guint middle = low + (high - low) / 2;
        if (g_array_index(solver->points, NjFrontierPoint, middle).time_s <= time_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static double bound_at(const NjSolver *solver, double time_s)
{
    const guint after = first_point_after(solver, time_s);
    const NjFrontierPoint *points = (const NjFrontierPoint *)(void *)solver->points->data;
    if (after == 0)
        return points[0].effective_j;
    const NjFrontierPoint *a = &points[after - 1];
    if (after == solver->points->len)
        return a->effective_j;
    const NjFrontierPoint *b = &points[after];
    return a->effective_j +
           (b->effective_j - a->effective_j) * (time_s - a->time_s) / (b->time_s - a->time_s);
}

gboolean nj_solver_bound(const NjSolver *solver, double time_s, double *effective_j, GError **error)
{
    if (!check_time(solver, time_s, error))
        return FALSE;
    *effective_j = bound_at(solver, time_s);
    return TRUE;
}

gboolean nj_solver_best_time(const NjSolver *solver, double latest_s, double static_w, double *time_s,
                             GError **error)
{
    if (!check_time(solver, latest_s, error))
        return FALSE;
    const NjFrontierPoint *points = (const NjFrontierPoint *)(void *)solver->points->data;
    // Total energy is convex and linear between breakpoints: at its least it is at one, or at the latest
    // time.
    *time_s = points[0].time_s;
    double best_j = points[0].effective_j + static_w * points[0].time_s;
    for (guint j = 1; j < solver->points->len; j++) {
        const double time = MIN(points[j].time_s, MAX(latest_s, points[0].time_s));
        const double total_j = bound_at(solver, time) + static_w * time;
        if (total_j < best_j) {
            best_j = total_j;
            *time_s = time;
        }
        if (points[j].time_s >= latest_s)
            break;
    }
    return TRUE;
}

// Brings the flow to the last mark at `ticks` or later.
static void return_before(NjSolver *solver, gint64 ticks)
{
    guint j = solver->marks->len - 1;
    const guint sink = NJ_FLOW_SINK;
    while (g_array_index(solver->marks, Mark, j).state.potential[sink] < ticks)
        j--;
    nj_flow_return(solver->flow, &g_array_index(solver->marks, Mark, j).state);
}

static void advance_to(NjFlow *flow, gint64 ticks)
{
    while (nj_flow_time(flow) > ticks) {
        const gboolean can_shorten = nj_flow_push(flow);
        g_assert(can_shorten); // never below the fastest time
        nj_flow_shorten(flow, ticks);
    }
}

// A plan of at most that many ticks: by task the Pareto option.
static void plan_at(NjSolver *solver, gint64 ticks, guint *chosen)
{
    NjFlow *flow = solver->flow;
    const guint n = flow->n_tasks;
    const guint n_targets = G_N_ELEMENTS(TARGET_STEPS);
    const gint64 step = nj_rounder_step(solver->planner);
    gint64 times[G_N_ELEMENTS(TARGET_STEPS)];
    NjTarget targets[G_N_ELEMENTS(TARGET_STEPS)];
    g_autofree gint64 *durations = g_new(gint64, n * n_targets);
    g_autofree double *price = g_new(double, n);
    double bound_j = 0;
    for (guint j = 0; j < n_targets; j++) {
        times[j] = CLAMP(ticks + TARGET_STEPS[j] * step, solver->fastest, solver->slowest);
        targets[j] = (NjTarget){durations + j * n};
    }
    // The flow goes one way only, from slow to fast: the latest target first.
    static const guint LATEST_FIRST[G_N_ELEMENTS(TARGET_STEPS)] = {4, 2, 0, 1, 3};
    return_before(solver, times[LATEST_FIRST[0]]);
    for (guint l = 0; l < n_targets; l++) {
        const guint j = LATEST_FIRST[l];
        advance_to(flow, times[j]);
        for (guint i = 0; i < n; i++)
            targets[j].duration[i] = nj_flow_duration(flow, i);
        for (guint i = 0; j == 0 && i < n; i++) {
            price[i] = (double)flow->flow[i] / solver->curves->slope_scale;
            bound_j += nj_curve_energy_j(flow->curve[i], targets[0].duration[i]);
        }
    }
    nj_rounder_plan(solver->planner, ticks, n_targets, targets, price, bound_j, chosen);
}

static NjSolverPlan *make_plan(NjSolver *solver, gint64 ticks, double asked_s)
{
    const guint n = solver->flow->n_tasks;
    g_autofree guint *chosen = g_new(guint, n);
    NjSolverPlan *plan = g_new0(NjSolverPlan, 1);
    plan_at(solver, ticks, chosen);
    plan->asked_s = asked_s;
    const gint64 taken = nj_rounder_time(solver->planner, chosen);
    g_assert(taken <= ticks);
    plan->time_s = to_seconds(solver, taken);
    plan->bound_effective_j = bound_at(solver, asked_s);
    plan->n_tasks = n;
    plan->option = g_new(guint, n);
    for (guint i = 0; i < n; i++) {
        plan->effective_j += solver->flow->curve[i]->energy_j[chosen[i]];
        plan->option[i] = solver->flow->curve[i]->option[chosen[i]];
    }
    return plan;
}

NjSolverPlan *nj_solver_plan(NjSolver *solver, double time_s, GError **error)
{
    if (!check_time(solver, time_s, error))
        return NULL;
    return make_plan(solver, ticks_allowed(solver, time_s), time_s);
}

NjSolverPlan *nj_solver_plan_fastest(NjSolver *solver)
{
    return make_plan(solver, solver->fastest, to_seconds(solver, solver->fastest));
}

NjSolverPlan *nj_solver_plan_deadline(NjSolver *solver, double latest_s, double static_w, GError **error)
{
    double best_s;
    if (!nj_solver_best_time(solver, latest_s, static_w, &best_s, error))
        return NULL;
    // Near its least the bound is flat, and how well options fit decides: try a few times around it.
    g_autoptr(NjSolverPlan) best = NULL;
    const double step_s = to_seconds(solver, nj_rounder_step(solver->planner));
    for (guint j = 0; j < G_N_ELEMENTS(TARGET_STEPS); j++) {
        const double time_s = MIN(best_s + TARGET_STEPS[j] * step_s, latest_s);
        if (!check_time(solver, time_s, NULL) || (best != NULL && time_s == best->asked_s))
            continue;
        g_autoptr(NjSolverPlan) plan = make_plan(solver, ticks_allowed(solver, time_s), time_s);
        if (best == NULL ||
            plan->effective_j + static_w * plan->time_s < best->effective_j + static_w * best->time_s) {
            nj_solver_plan_free(best);
            best = g_steal_pointer(&plan);
        }
    }
    return g_steal_pointer(&best);
}

void nj_solver_plan_free(NjSolverPlan *plan)
{
    if (plan == NULL)
        return;
    g_free(plan->option);
    g_free(plan);
}
