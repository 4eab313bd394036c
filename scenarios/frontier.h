// SPDX-License-Identifier: MIT
#pragma once
// The time-energy frontier of a method on a workload: some of the solver's plans, executed (planning.h).

#include "scenarios/planning.h"

G_BEGIN_DECLS

typedef struct {
    NjMethod method;
    GArray *plans; // NjExecutedPlan, slowest first by the planner's time; owned
} NjFrontier;

void nj_frontier_clear(NjFrontier *frontier);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjFrontier, nj_frontier_clear)

// Positions, counted from the slowest of count plans, that the published protocol executes: 15 by a stride of
// ceil(count / 15) back from the fastest; of these, slowest first, numbers 0, 2, 4, 6 and 8 are dropped.
// Fills positions[15] in ascending order, gives their number: 0 where count is 1.
guint nj_protocol_positions(guint count, guint positions[15]);

// Executes n_points plans, as NjFrontierOptions has it. stop is looked at before every plan: once it is not 0
// the frontier fails (NJ_ERROR_STOPPED); it may be NULL. A frontier has at least the fastest plan, also where
// the protocol would drop all of very few. Initialises frontier on success.
gboolean nj_frontier_execute(NjPlanning *planning, NjMethod method, guint n_points, const volatile int *stop,
                             NjFrontier *frontier, GError **error);

// Plans and executes. Fails where the method cannot execute the workload.
gboolean nj_frontier_run(const NjWorkload *workload, NjMethod method, const NjPipelineSchedule *schedule,
                         const NjFrontierOptions *options, NjFrontier *frontier, GError **error);

// The plan of least time, and of least energy (of several the first). The frontier must have one. Transfer
// none.
const NjExecutedPlan *nj_frontier_fastest(const NjFrontier *frontier);
const NjExecutedPlan *nj_frontier_least_energy(const NjFrontier *frontier);

G_END_DECLS
