// SPDX-License-Identifier: MIT
#include "scenarios/planning.h"

#include "sim/error.h"

#include <math.h>

// Attempts to meet a time in execution, each earlier by what the one before was late.
#define MAX_ATTEMPTS 12
// Halvings of the range of times in which a plan of a given energy is looked for.
#define N_HALVINGS 24

struct NjPlanning {
    const NjWorkload *workload;
    NjMethod method;
    NjFrontierOptions options;
    NjPlanner *planner; // NULL for Megatron-LM, which has an executor and a pipeline of its own
    NjExecutor *own_executor;
    NjPipeline own_pipeline;
    double fastest_s, slowest_s; // the planner's
};

void nj_executed_plan_clear(NjExecutedPlan *plan)
{
    nj_plan_clear(&plan->plan);
}

// Ranks of a stage: energies of the planner and the executor are per rank, summed over stages.
static double ranks(const NjPlanning *planning)
{
    const NjParallelism *p = &planning->workload->parallelism;
    return (double)p->tp * p->cp * p->dp;
}

// Of a rank of every stage.
static double static_w(const NjPlanning *planning)
{
    return planning->workload->gpu.static_w * planning->workload->parallelism.pp;
}

NjPlanning *nj_planning_new(const NjWorkload *workload, NjMethod method, const NjPipelineSchedule *schedule,
                            const NjFrontierOptions *options, GError **error)
{
    g_autoptr(NjPlanning) planning = g_new0(NjPlanning, 1);
    planning->workload = workload;
    planning->method = method;
    planning->options = *options;
    if (method == NJ_METHOD_MEGATRON) {
        planning->own_executor = nj_executor_new(workload, nj_method_execution(method));
        nj_pipeline_init(&planning->own_pipeline, schedule, (guint)workload->parallelism.pp,
                         (guint)workload->microbatches);
        return g_steal_pointer(&planning);
    }
    planning->planner = nj_planner_new(workload, method, schedule, error);
    if (planning->planner == NULL)
        return NULL;
    guint n;
    const NjFrontierPoint *points = nj_solver_points(nj_planner_solver(planning->planner), &n);
    planning->fastest_s = points[0].time_s;
    planning->slowest_s = points[n - 1].time_s;
    return g_steal_pointer(&planning);
}

void nj_planning_free(NjPlanning *planning)
{
    if (planning == NULL)
        return;
    nj_planner_free(planning->planner);
    if (planning->own_executor != NULL)
        nj_pipeline_clear(&planning->own_pipeline);
    nj_executor_free(planning->own_executor);
    g_free(planning);
}

guint nj_planning_count(const NjPlanning *planning)
{
    if (planning->planner == NULL)
        return 1;
    return (guint)floor((planning->slowest_s - planning->fastest_s) / planning->options.step_s) + 1;
}

// Runs plan->plan and fills in what came out; clears the plan where it fails.
static gboolean execute(NjPlanning *planning, NjExecutedPlan *plan, GError **error)
{
    const gboolean planned = planning->planner != NULL;
    NjExecutor *executor = planned ? nj_planner_executor(planning->planner) : planning->own_executor;
    const NjPipeline *pipeline = planned ? nj_planner_pipeline(planning->planner) : &planning->own_pipeline;
    const NjExecuteOptions options = {
        .point_to_point = planning->options.point_to_point,
        .optimizer = planning->options.optimizer,
        .unlocked = !planned,
    };
    NjIteration iteration;
    if (!nj_executor_run(executor, pipeline, &plan->plan, &options, &iteration, error)) {
        nj_executed_plan_clear(plan);
        return FALSE;
    }
    plan->time_s = (double)iteration.duration / NJ_PS_PER_S;
    plan->energy_j = (iteration.dynamic_j + iteration.static_j) * ranks(planning);
    return TRUE;
}

// Everything at the highest clock. The planner has no figures of it.
static gboolean run_unplanned(NjPlanning *planning, NjExecutedPlan *plan, GError **error)
{
    *plan = (NjExecutedPlan){.planned_time_s = NAN, .planned_energy_j = NAN, .bound_energy_j = NAN};
    nj_plan_uniform(&planning->own_pipeline, (guint)planning->workload->gpu.freq_max_mhz, &plan->plan);
    return execute(planning, plan, error);
}

static gboolean run_choice(NjPlanning *planning, const NjSolverPlan *choice, NjExecutedPlan *plan,
                           GError **error)
{
    const double step_s = planning->options.step_s, n_ranks = ranks(planning);
    const double waiting_j = static_w(planning) * choice->time_s;
    const guint last = nj_planning_count(planning) - 1;
    // What rounding takes from a whole number of steps is not one step less.
    const double steps = floor((choice->asked_s - planning->fastest_s) / step_s + 1e-6);
    double bound_j;
    if (!nj_solver_bound(nj_planner_solver(planning->planner), choice->time_s, &bound_j, error))
        return FALSE;
    *plan = (NjExecutedPlan){
        .number = last - (guint)CLAMP(steps, 0, last),
        .planned_time_s = choice->time_s,
        .planned_energy_j = (choice->effective_j + waiting_j) * n_ranks,
        .bound_energy_j = (bound_j + waiting_j) * n_ranks,
    };
    nj_planner_plan(planning->planner, choice, &plan->plan);
    return execute(planning, plan, error);
}

// A plan of at most time_s on the planner's clock, which the fastest plan keeps to at the least.
static gboolean run_at(NjPlanning *planning, double time_s, gboolean least_total, NjExecutedPlan *plan,
                       GError **error)
{
    NjSolver *solver = nj_planner_solver(planning->planner);
    const double latest_s = CLAMP(time_s, planning->fastest_s, planning->slowest_s);
    g_autoptr(NjSolverPlan) choice = NULL;
    if (latest_s <= planning->fastest_s)
        choice = nj_solver_plan_fastest(solver);
    else if (least_total)
        choice = nj_solver_plan_deadline(solver, latest_s, static_w(planning), error);
    else
        choice = nj_solver_plan(solver, latest_s, error);
    return choice != NULL && run_choice(planning, choice, plan, error);
}

gboolean nj_planning_plan(NjPlanning *planning, guint number, NjExecutedPlan *plan, GError **error)
{
    const guint last = nj_planning_count(planning) - 1;
    g_assert(number <= last);
    if (planning->planner == NULL)
        return run_unplanned(planning, plan, error);
    return run_at(planning, planning->fastest_s + (last - number) * planning->options.step_s, FALSE, plan,
                  error);
}

gboolean nj_planning_fastest(NjPlanning *planning, NjExecutedPlan *plan, GError **error)
{
    return nj_planning_plan(planning, nj_planning_count(planning) - 1, plan, error);
}

gboolean nj_planning_by(NjPlanning *planning, double latest_s, gboolean waits, NjExecutedPlan *plan,
                        GError **error)
{
    g_auto(NjExecutedPlan) fastest = {0};
    if (!nj_planning_fastest(planning, &fastest, error))
        return FALSE;
    if (fastest.time_s > latest_s) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE,
                    "no plan of %s takes %.6g s or less: the fastest takes %.6f s",
                    nj_method_name(planning->method), latest_s, fastest.time_s);
        return FALSE;
    }
    double time_s = planning->planner != NULL ? fmin(latest_s, planning->slowest_s) : 0;
    for (guint attempt = 0; attempt < MAX_ATTEMPTS && time_s > planning->fastest_s; attempt++) {
        if (!run_at(planning, time_s, !waits, plan, error))
            return FALSE;
        if (plan->time_s <= latest_s)
            return TRUE;
        // Transfers are much the same in all plans: by so much earlier is nearly right.
        time_s = fmin(time_s, plan->planned_time_s) - fmax(plan->time_s - latest_s, 1e-6 * latest_s);
        nj_executed_plan_clear(plan);
    }
    *plan = fastest;
    fastest.plan = (NjPlan){0}; // its insides have moved
    return TRUE;
}

gboolean nj_planning_within(NjPlanning *planning, double most_j, NjExecutedPlan *plan, GError **error)
{
    if (!nj_planning_fastest(planning, plan, error))
        return FALSE;
    if (plan->energy_j <= most_j)
        return TRUE;
    g_auto(NjExecutedPlan) best = {0};
    if (planning->planner == NULL) {
        best = *plan;
    } else {
        nj_executed_plan_clear(plan);
        if (!run_at(planning, HUGE_VAL, TRUE, &best, error))
            return FALSE;
    }
    if (best.energy_j > most_j) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE,
                    "no plan of %s uses %.6g J or less: the least is %.1f J, in %.6f s",
                    nj_method_name(planning->method), most_j, best.energy_j, best.time_s);
        return FALSE;
    }
    // Energy falls from the fastest plan to the best: the time from which it is low enough.
    double too_fast_s = planning->fastest_s, enough_s = best.planned_time_s;
    for (guint i = 0; i < N_HALVINGS; i++) {
        const double middle_s = 0.5 * (too_fast_s + enough_s);
        g_auto(NjExecutedPlan) tried = {0};
        if (!run_at(planning, middle_s, FALSE, &tried, error))
            return FALSE;
        if (tried.energy_j > most_j) {
            too_fast_s = middle_s;
            continue;
        }
        enough_s = middle_s;
        if (tried.time_s < best.time_s) {
            nj_executed_plan_clear(&best);
            best = tried;
            tried.plan = (NjPlan){0}; // its insides have moved
        }
    }
    *plan = best;
    best.plan = (NjPlan){0};
    return TRUE;
}

double nj_planning_waiting_j(const NjPlanning *planning, const NjExecutedPlan *plan, double until_s)
{
    const NjExecutor *executor =
        planning->planner != NULL ? nj_planner_executor(planning->planner) : planning->own_executor;
    const double clock_w = planning->planner == NULL ? nj_executor_spec(executor)->clock_w : 0;
    const double power_w = static_w(planning) + clock_w * planning->workload->parallelism.pp;
    return fmax(until_s - plan->time_s, 0) * power_w * ranks(planning);
}
