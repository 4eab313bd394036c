// SPDX-License-Identifier: MIT
#pragma once
// The time-energy frontier of a graph of tasks, each with a few options of a time and a cost. The solver
// knows only this: a DAG (schedules/dag.h), option sets, and that a schedule is as long as its longest path.
// The cost is called effective energy: energy less static power x time (design section 6), which may be
// negative; the energy of a whole iteration is the sum of effective energies + static power x iteration time.
//
// The bound. Each set is replaced by the lower convex hull of its options; then the least sum of effective
// energies E(T) over all schedules no longer than T is a convex, falling, piecewise linear function from the
// fastest possible time to the slowest useful one (every task at its cheapest option). It is found whole and
// exactly, breakpoint by breakpoint, as a parametric flow (solver-flow.c). No plan of real options is below
// it.
//
// Plans. For any time asked for, a plan gives every task one real option, is never later than asked, and is
// close to the bound (solver-plan.c); its gap is stated. Choosing real options is NP-hard, so this is a
// heuristic: deterministic, with bounded work, without a guarantee of its own, but each plan carries its
// proof.
//
// Robust by construction: sets may have one option, equal or dominated ones, costs of any scale or sign.
// Options that no other beats in both time and energy are used by plans even where the hull passes below
// them.

#include "schedules/dag.h"

G_BEGIN_DECLS

// Times are met to this: a plan asked for at T may end at T + this, which is how far a time written with nine
// decimals is from the time that was meant. Below half a second it shrinks to a billionth of T.
#define NJ_SOLVER_TOLERANCE_S 0.5e-9

typedef struct {
    double time_s;      // finite, >= 0
    double effective_j; // finite
} NjOption;

typedef struct {
    guint n_options; // >= 1 where a task refers to the set
    const NjOption *options;
} NjOptionSet;

// A breakpoint of the bound; between two neighbours it is linear.
typedef struct {
    double time_s;
    double effective_j;
} NjFrontierPoint;

// A choice of one option for every task.
typedef struct {
    double asked_s;           // the time asked for
    double time_s;            // the time it takes: at most asked_s (+ tolerance)
    double effective_j;       // sum over the tasks
    double bound_effective_j; // the bound at asked_s, or at the slowest useful time where that is earlier
    guint n_tasks;
    guint *option; // [n_tasks] index in the task's option set
} NjSolverPlan;

typedef struct NjSolver NjSolver;

// Solves the bound. Everything is copied: dag and sets may be freed afterwards. Fails (NJ_ERROR_INPUT) where
// a task's option set is not there or empty, or an option's time or energy is not a number it can be.
// Transfer full; free with nj_solver_free(). A solver is used by one thread at a time.
NjSolver *nj_solver_new(const NjDag *dag, guint n_sets, const NjOptionSet *sets, GError **error);

void nj_solver_free(NjSolver *solver);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjSolver, nj_solver_free)

// The breakpoints by rising time, at least one: the first is the fastest schedule there is, the last the
// slowest that is of use. Transfer none.
const NjFrontierPoint *nj_solver_points(const NjSolver *solver, guint *n_points);

// The bound at a time, in J; at its last value beyond the slowest useful time. Fails (NJ_ERROR_INPUT) below
// the fastest time.
gboolean nj_solver_bound(const NjSolver *solver, double time_s, double *effective_j, GError **error);

// The time, no later than latest_s, at which the bound of total energy (effective + static_w x time) is
// least; of several the shortest. static_w is the static power of everything that waits for the iteration, in
// W: power per stage x stages. Fails as nj_solver_bound().
gboolean nj_solver_best_time(const NjSolver *solver, double latest_s, double static_w, double *time_s,
                             GError **error);

// A plan no later than time_s. Fails as nj_solver_bound(). Transfer full.
NjSolverPlan *nj_solver_plan(NjSolver *solver, double time_s, GError **error);

// The fastest plan: least time, then least effective energy found at that time. Transfer full.
NjSolverPlan *nj_solver_plan_fastest(NjSolver *solver);

// A plan no later than latest_s of least *total* energy: it is earlier where waiting costs more than slowing
// down saves. Its asked_s is the time it was planned for. Fails as nj_solver_bound(). Transfer full.
NjSolverPlan *nj_solver_plan_deadline(NjSolver *solver, double latest_s, double static_w, GError **error);

void nj_solver_plan_free(NjSolverPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjSolverPlan, nj_solver_plan_free)

G_END_DECLS
