// SPDX-License-Identifier: MIT
#pragma once
// The planner mirrors the real systems' pipeline: profile every instruction at every frequency (and, for
// Kareus, at every composition of launch choices worth having), then solve the schedule's time-energy
// frontier.
//
// Kareus. Every partition type is simulated alone at every frequency, launch point and SM count, and in
// sequence: the whole search space, exhaustively. Per frequency the Pareto sets of the partition types are
// summed to instructions; over all frequencies the convex hull is kept, and sequential execution of the whole
// instruction is offered beside it. What is kept is then profiled as a whole instruction, so that its figures
// are those of execution.

#include "schedules/execute.h"
#include "schedules/plan-table.h"
#include "schedules/profile-problem.h"

G_BEGIN_DECLS

typedef struct NjPlanner NjPlanner;

// How a method executes instructions.
NjExecution nj_method_execution(NjMethod method);

// Profiles and solves. method is not NJ_METHOD_MEGATRON, which has nothing to plan. The workload must outlive
// the planner. Fails where the workload cannot be executed so (nanobatching of one sequence). Transfer full.
NjPlanner *nj_planner_new(const NjWorkload *workload, NjMethod method, const NjPipelineSchedule *schedule,
                          GError **error);
void nj_planner_free(NjPlanner *planner);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjPlanner, nj_planner_free)

// Transfer none, all of them.
const NjProfile *nj_planner_profile(const NjPlanner *planner);
NjSolver *nj_planner_solver(NjPlanner *planner);
const NjPipeline *nj_planner_pipeline(const NjPlanner *planner);
NjExecutor *nj_planner_executor(NjPlanner *planner);

// The plan behind the solver's choice. Initialises plan.
void nj_planner_plan(const NjPlanner *planner, const NjSolverPlan *choice, NjPlan *plan);

G_END_DECLS
