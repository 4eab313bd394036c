// SPDX-License-Identifier: MIT
#include "scenarios/frontier.h"

#include "sim/error.h"

#include <math.h>

void nj_executed_plan_clear(NjExecutedPlan *plan)
{
    nj_plan_clear(&plan->plan);
}

void nj_frontier_clear(NjFrontier *frontier)
{
    for (guint i = 0; frontier->plans != NULL && i < frontier->plans->len; i++)
        nj_executed_plan_clear(&g_array_index(frontier->plans, NjExecutedPlan, i));
    g_clear_pointer(&frontier->plans, g_array_unref);
}

// Ranks of a stage: energies of the planner and the executor are per rank, summed over stages.
static double ranks(const NjWorkload *workload)
{
    const NjParallelism *p = &workload->parallelism;
    return (double)p->tp * p->cp * p->dp;
}

static gboolean execute(const NjWorkload *workload, NjExecutor *executor, const NjPipeline *pipeline,
                        const NjExecuteOptions *options, NjExecutedPlan *plan, GError **error)
{
    NjIteration iteration;
    if (!nj_executor_run(executor, pipeline, &plan->plan, options, &iteration, error))
        return FALSE;
    plan->time_s = (double)iteration.duration / NJ_PS_PER_S;
    plan->energy_j = (iteration.dynamic_j + iteration.static_j) * ranks(workload);
    return TRUE;
}

static double static_w(const NjWorkload *workload)
{
    return workload->gpu.static_w * workload->parallelism.pp;
}

static gboolean run_choice(const NjWorkload *workload, NjPlanner *planner, const NjFrontierOptions *options,
                           const NjSolverPlan *choice, NjExecutedPlan *plan, GError **error)
{
    const double waiting_j = static_w(workload);
    *plan = (NjExecutedPlan){
        .planned_time_s = choice->time_s,
        .planned_energy_j = (choice->effective_j + waiting_j * choice->time_s) * ranks(workload),
        .bound_energy_j = (choice->bound_effective_j + waiting_j * choice->asked_s) * ranks(workload),
    };
    nj_planner_plan(planner, choice, &plan->plan);
    const NjExecuteOptions execution = {.point_to_point = options->point_to_point};
    if (execute(workload, nj_planner_executor(planner), nj_planner_pipeline(planner), &execution, plan,
                error))
        return TRUE;
    nj_executed_plan_clear(plan);
    return FALSE;
}

guint nj_protocol_positions(guint count, guint positions[15])
{
    guint all[15], n = 0, kept = 0;
    const guint stride = (count + 14) / 15;
    for (guint k = 15; k-- > 0;)
        if (k * stride < count)
            all[n++] = count - 1 - k * stride;
    for (guint i = 0; i < n; i++)
        if (i > 8 || i % 2 != 0)
            positions[kept++] = all[i];
    return kept;
}

static guint choose_positions(guint count, guint n_points, GArray *positions)
{
    if (n_points == 0) {
        guint protocol[15];
        g_array_append_vals(positions, protocol, nj_protocol_positions(count, protocol));
        return positions->len;
    }
    const guint n = MIN(n_points, count);
    for (guint i = 0; i < n; i++) {
        const guint position = n == 1 ? count - 1 : (guint)((guint64)i * (count - 1) / (n - 1));
        g_array_append_val(positions, position);
    }
    return n;
}

static gboolean run_planned(const NjWorkload *workload, NjPlanner *planner, const NjFrontierOptions *options,
                            NjFrontier *frontier, GError **error)
{
    NjSolver *solver = nj_planner_solver(planner);
    guint n_points;
    const NjFrontierPoint *points = nj_solver_points(solver, &n_points);
    const double fastest_s = points[0].time_s, slowest_s = points[n_points - 1].time_s;
    const guint count = (guint)floor((slowest_s - fastest_s) / options->step_s) + 1;
    g_autoptr(GArray) positions = g_array_new(FALSE, FALSE, sizeof(guint));
    if (options->one && options->number >= count) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE, "plan %u: there are plans 0 to %u", options->number,
                    count - 1);
        return FALSE;
    }
    if (options->one)
        g_array_append_val(positions, options->number);
    else
        choose_positions(count, options->n_points, positions);

    for (guint i = 0; i < positions->len; i++) {
        const guint position = g_array_index(positions, guint, i);
        const double time_s = fastest_s + (count - 1 - position) * options->step_s;
        g_autoptr(NjSolverPlan) choice =
            position + 1 == count ? nj_solver_plan_fastest(solver) : nj_solver_plan(solver, time_s, error);
        NjExecutedPlan plan;
        if (choice == NULL || !run_choice(workload, planner, options, choice, &plan, error))
            return FALSE;
        plan.number = position;
        g_array_append_val(frontier->plans, plan);
    }
    return TRUE;
}

// Everything at the highest clock. The planner has no figures of it.
static gboolean run_unplanned(const NjWorkload *workload, const NjPipelineSchedule *schedule,
                              const NjFrontierOptions *options, NjExecutedPlan *plan, GError **error)
{
    g_auto(NjPipeline) pipeline = {0};
    g_autoptr(NjExecutor) executor = nj_executor_new(workload, NJ_EXECUTION_SEQUENTIAL);
    const NjExecuteOptions execution = {.point_to_point = options->point_to_point, .unlocked = TRUE};
    nj_pipeline_init(&pipeline, schedule, (guint)workload->parallelism.pp, (guint)workload->microbatches);
    *plan = (NjExecutedPlan){.planned_time_s = NAN, .planned_energy_j = NAN, .bound_energy_j = NAN};
    nj_plan_uniform(&pipeline, (guint)workload->gpu.freq_max_mhz, &plan->plan);
    if (execute(workload, executor, &pipeline, &execution, plan, error))
        return TRUE;
    nj_executed_plan_clear(plan);
    return FALSE;
}

gboolean nj_frontier_run(const NjWorkload *workload, NjMethod method, const NjPipelineSchedule *schedule,
                         const NjFrontierOptions *options, NjFrontier *frontier, GError **error)
{
    *frontier = (NjFrontier){method, g_array_new(FALSE, TRUE, sizeof(NjExecutedPlan))};
    gboolean ok;
    if (method == NJ_METHOD_MEGATRON) {
        NjExecutedPlan plan;
        ok = run_unplanned(workload, schedule, options, &plan, error);
        if (ok)
            g_array_append_val(frontier->plans, plan);
    } else {
        g_autoptr(NjPlanner) planner = nj_planner_new(workload, method, schedule, error);
        ok = planner != NULL && run_planned(workload, planner, options, frontier, error);
    }
    if (!ok)
        nj_frontier_clear(frontier);
    return ok;
}

#define MAX_REPLANS 8

// A plan that the planner expects in time, executed.
static gboolean plan_within(const NjWorkload *workload, NjPlanner *planner, const NjFrontierOptions *options,
                            double planned_s, gboolean least_energy, NjExecutedPlan *plan, GError **error)
{
    NjSolver *solver = nj_planner_solver(planner);
    guint n;
    const NjFrontierPoint *points = nj_solver_points(solver, &n);
    const double latest_s = fmin(planned_s, points[n - 1].time_s);
    g_autoptr(NjSolverPlan) choice =
        least_energy ? nj_solver_plan_deadline(solver, latest_s, static_w(workload), error)
                     : nj_solver_plan(solver, latest_s, error);
    if (choice == NULL || !run_choice(workload, planner, options, choice, plan, error))
        return FALSE;
    const double steps = (points[n - 1].time_s - plan->planned_time_s) / options->step_s;
    plan->number = (guint)fmax(0, floor(steps + 0.5));
    return TRUE;
}

gboolean nj_frontier_at(const NjWorkload *workload, NjMethod method, const NjPipelineSchedule *schedule,
                        const NjFrontierOptions *options, double time_s, gboolean least_energy,
                        NjExecutedPlan *plan, GError **error)
{
    if (method == NJ_METHOD_MEGATRON)
        return run_unplanned(workload, schedule, options, plan, error);
    g_autoptr(NjPlanner) planner = nj_planner_new(workload, method, schedule, error);
    if (planner == NULL)
        return FALSE;
    // Transfers between stages, which the planner leaves out, make execution later than planned: plan for
    // that much less until execution is in time.
    guint n;
    const double fastest_s = nj_solver_points(nj_planner_solver(planner), &n)[0].time_s;
    double planned_s = time_s;
    for (guint i = 0; i < MAX_REPLANS; i++) {
        if (!plan_within(workload, planner, options, planned_s, least_energy, plan, error))
            return FALSE;
        const double late_s = plan->time_s - time_s;
        if (late_s <= NJ_SOLVER_TOLERANCE_S)
            return TRUE;
        nj_executed_plan_clear(plan);
        if (planned_s <= fastest_s) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE,
                        "no plan executes in %.9g s: the fastest takes %.9g s", time_s, time_s + late_s);
            return FALSE;
        }
        planned_s = fmax(planned_s - late_s, fastest_s);
    }
    g_set_error(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE, "no plan found that executes in %.9g s", time_s);
    return FALSE;
}
