// SPDX-License-Identifier: MIT
#pragma once
// What the files of the solver share.
//
// Time is counted in ticks, a decimal fraction of a second chosen so that the sum of the slowest times of all
// tasks is about 1e15 ticks: every path length is an exact integer (and an exact double), and decimal times
// that add up to the same moment still do. Times are rounded up to ticks, so that what fits in ticks fits in
// seconds.
//
// Slopes (energy per tick) are scaled to integers, so that flows are exact and the search ends.

#include "schedules/solver.h"

G_BEGIN_DECLS

#define NJ_TICKS_NEVER (G_MAXINT64 / 4) // longer than any path
#define NJ_SLOPE_NEVER (G_MAXINT64 / 4) // more than any sum of slopes

// One option set made ready: its Pareto options and the lower convex hull of these.
typedef struct {
    guint n_pareto;
    gint64 *ticks;    // [n_pareto] strictly increasing
    double *energy_j; // [n_pareto] strictly decreasing
    guint *option;    // [n_pareto] index in the caller's set
    guint n_hull;
    guint *hull; // [n_hull] Pareto options on the hull, first and last included
    gint64 *
        slope; // [n_hull] slope[k], k > 0: scaled energy a tick between hull k - 1 and k, strictly decreasing
} NjCurve;

typedef struct {
    guint n_curves;
    NjCurve *curves; // [n_curves], one an option set; sets that no task uses stay empty
    double ticks_per_s;
    double slope_scale; // scaled slope / (J per tick)
} NjCurves;

NjCurves *nj_curves_new(const NjDag *dag, guint n_sets, const NjOptionSet *sets, GError **error);
void nj_curves_free(NjCurves *curves);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjCurves, nj_curves_free)

// Energy of the hull at a time between its first and its last; later it stays at the last.
double nj_curve_energy_j(const NjCurve *curve, gint64 ticks);

// The parametric flow. Nodes: source, sink, and a start and an end for every task. Arcs: one a task, one a
// precedence. An arc's flow decides which piece of its curve is at the margin.
typedef struct {
    guint n_nodes;
    guint n_arcs; // the first n_tasks arcs are the tasks
    guint n_tasks;
    const NjCurve **curve; // [n_tasks]
    guint (*arc_end)[2];   // [n_arcs] from, to
    guint *adjacent_start; // [n_nodes + 1]
    guint *adjacent_node;  // [2 n_arcs] neighbour
    guint *adjacent_arc;   // [2 n_arcs] 2 arc + (1 where the arc is followed backwards)

    // The state, a minimum of energy at the time `potential[sink]`.
    gint64 *flow;      // [n_arcs]
    guint *level;      // [n_tasks] hull point at the margin: more flow goes to the piece that begins there
    gint64 *potential; // [n_nodes] time of the event in ticks; the source is at 0
    gint64 *cost;      // [2 n_arcs] reduced length of a step = cost + potential[to] - potential[from], >= 0

    // Work space.
    gint64 *distance; // [n_nodes]
    guint *parent;    // [n_nodes] step (as in adjacent_arc) by which the node was reached
    guint *queue;     // [n_nodes]
    guint *heap;      // [n_nodes] nodes, the nearest first
    guint *heap_at;   // [n_nodes] place in the heap
    guint n_heap;
} NjFlow;

enum { NJ_FLOW_SOURCE, NJ_FLOW_SINK, NJ_FLOW_FIRST_TASK };

// The slowest useful schedule, no flow.
NjFlow *nj_flow_new(const NjDag *dag, const NjCurves *curves);
void nj_flow_free(NjFlow *flow);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjFlow, nj_flow_free)

// Pushes all flow that fits at the present time; returns FALSE when flow without limit fits: no plan is
// faster.
gboolean nj_flow_push(NjFlow *flow);
// Moves to the next shorter time at which more flow fits, or to `until` (>= 0) where that comes first.
void nj_flow_shorten(NjFlow *flow, gint64 until);
// Time of the state, in ticks.
gint64 nj_flow_time(const NjFlow *flow);
// Duration of a task in the state: at most the slowest useful time, not always that of an option.
gint64 nj_flow_duration(const NjFlow *flow, guint task);

// A state to come back to.
typedef struct {
    gint64 *flow;
    guint *level;
    gint64 *potential;
} NjFlowMark;

NjFlowMark nj_flow_mark(const NjFlow *flow);
void nj_flow_return(NjFlow *flow, const NjFlowMark *mark);
void nj_flow_mark_clear(NjFlowMark *mark);

// Plans. A target is what the bound says near the time asked for: durations (not of options) to round.
typedef struct {
    gint64 *duration; // [n_tasks] ticks
} NjTarget;

typedef struct NjRounder NjRounder;

NjRounder *nj_rounder_new(const NjDag *dag, const NjCurves *curves);
void nj_rounder_free(NjRounder *planner);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjRounder, nj_rounder_free)

// Time in ticks by which the options of a task differ, on average: the scale on which rounding matters.
gint64 nj_rounder_step(const NjRounder *planner);

// The best plan found that takes at most `ticks`. targets[n_targets] are tried in order; the first is the
// bound at that very time, `price[n_tasks]` its flows (J a tick) and bound_j its energy. chosen[n_tasks]
// receives the Pareto option of every task. Returns its energy in J.
double nj_rounder_plan(NjRounder *planner, gint64 ticks, guint n_targets, const NjTarget *targets,
                       const double *price, double bound_j, guint *chosen);

// How many ticks such a choice takes.
gint64 nj_rounder_time(NjRounder *planner, const guint *chosen);

G_END_DECLS
