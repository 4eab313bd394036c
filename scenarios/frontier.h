// SPDX-License-Identifier: MIT
#pragma once
// The time-energy frontier of a method on a workload: planned by the solver, executed on the engine. Energies
// are of the whole cluster.

#include "schedules/planner.h"

G_BEGIN_DECLS

typedef struct {
    guint number;          // steps of the solver from the slowest plan, as plan files are numbered
    double planned_time_s; // the planner's
    double planned_energy_j;
    double bound_energy_j; // no plan of the time asked for uses less
    double time_s;         // executed
    double energy_j;
    NjPlan plan;
} NjExecutedPlan;

typedef struct {
    NjMethod method;
    GArray *plans; // NjExecutedPlan, slowest first; owned
} NjFrontier;

void nj_frontier_clear(NjFrontier *frontier);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjFrontier, nj_frontier_clear)

typedef struct {
    double step_s;  // between two of the solver's plans; the published one is 1 ms
    guint n_points; // plans to execute, evenly spaced, the fastest included; 0: the published protocol
    gboolean one;   // only the plan of this number
    guint number;
    gboolean point_to_point; // transfers take time in execution
} NjFrontierOptions;

// Positions, counted from the slowest of count plans, that the published protocol executes: 15 by a stride of
// ceil(count / 15) back from the fastest; of these, slowest first, numbers 0, 2, 4, 6 and 8 are dropped.
// Fills positions[15] in ascending order, gives their number.
guint nj_protocol_positions(guint count, guint positions[15]);

// Plans and executes. Megatron-LM has one plan: everything at the highest clock, unlocked. Fails where the
// method cannot execute the workload.
gboolean nj_frontier_run(const NjWorkload *workload, NjMethod method, const NjPipelineSchedule *schedule,
                         const NjFrontierOptions *options, NjFrontier *frontier, GError **error);

// The plan at one time: no later than time_s (HUGE_VAL: any time), of least total energy where least_energy,
// else as late as allowed. Initialises plan.
gboolean nj_frontier_at(const NjWorkload *workload, NjMethod method, const NjPipelineSchedule *schedule,
                        const NjFrontierOptions *options, double time_s, gboolean least_energy,
                        NjExecutedPlan *plan, GError **error);

void nj_executed_plan_clear(NjExecutedPlan *plan);

G_END_DECLS
