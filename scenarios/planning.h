// SPDX-License-Identifier: MIT
#pragma once
// Plans of a method for a workload, and what they do when executed. The planner's solver gives a plan for any
// iteration time; every plan handed out here has been run through the engine, and where a time or an energy
// is asked for it is the executed one that keeps to it: execution adds transfers between stages (and the
// optimizer's step), which the planner leaves out. Energies are of the whole cluster.
//
// Plans are numbered as plan files are: steps of the solver from the slowest useful plan (0) to the fastest.
// Megatron-LM has one plan, number 0: everything at the highest clock, unlocked.

#include "schedules/planner.h"

G_BEGIN_DECLS

typedef struct {
    guint number;          // steps of the solver from the slowest plan; of a plan between two, the slower's
    double planned_time_s; // the planner's; NaN where nothing was planned, as the next two
    double planned_energy_j;
    double bound_energy_j; // no plan of that time uses less, by the planner's figures
    double time_s;         // executed
    double energy_j;
    NjPlan plan;
} NjExecutedPlan;

void nj_executed_plan_clear(NjExecutedPlan *plan);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjExecutedPlan, nj_executed_plan_clear)

// The published step between two of the solver's plans.
#define NJ_FRONTIER_STEP_S 1e-3

typedef struct {
    double step_s;  // between two of the solver's plans: NJ_FRONTIER_STEP_S
    guint n_points; // of a frontier: plans to execute, evenly spaced, the fastest included; 0: the published
                    // protocol
    gboolean point_to_point;  // transfers take time in execution
    gboolean optimizer;       // and so does the optimizer's step
    const volatile int *stop; // looked at between plans of a frontier: not 0 ends it; or NULL
} NjFrontierOptions;

typedef struct NjPlanning NjPlanning;

// Profiles the workload and solves its frontier. The workload must outlive the planning. Fails where the
// method cannot execute the workload. Transfer full.
NjPlanning *nj_planning_new(const NjWorkload *workload, NjMethod method, const NjPipelineSchedule *schedule,
                            const NjFrontierOptions *options, GError **error);
void nj_planning_free(NjPlanning *planning);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjPlanning, nj_planning_free)

// How many plans the solver has in steps of options.step_s; at least 1.
guint nj_planning_count(const NjPlanning *planning);

// The functions below initialise plan on success.

// A plan by its number, below nj_planning_count(); the last is the fastest there is.
gboolean nj_planning_plan(NjPlanning *planning, guint number, NjExecutedPlan *plan, GError **error);
gboolean nj_planning_fastest(NjPlanning *planning, NjExecutedPlan *plan, GError **error);

// The plan of least energy that takes no longer than latest_s. Where others of the cluster wait until
// latest_s anyway, waits says that energy is counted until then: the plan is slower, though never later.
// Fails (NJ_ERROR_IMPOSSIBLE) where the fastest is too slow, and says how long it takes.
gboolean nj_planning_by(NjPlanning *planning, double latest_s, gboolean waits, NjExecutedPlan *plan,
                        GError **error);

// The fastest plan that uses no more than most_j. Fails (NJ_ERROR_IMPOSSIBLE) where all use more, and says
// how much the least does.
gboolean nj_planning_within(NjPlanning *planning, double most_j, NjExecutedPlan *plan, GError **error);

// Energy of the cluster from the end of a plan's iteration until a time: static power, and with unlocked
// clocks that of waiting at full clock. 0 where the iteration ends later.
double nj_planning_waiting_j(const NjPlanning *planning, const NjExecutedPlan *plan, double until_s);

G_END_DECLS
