// SPDX-License-Identifier: MIT
#pragma once
// A directed acyclic graph of tasks: what a solver sees of a schedule. A task is a number 0..n-1; an edge
// (a, b) says that b starts no earlier than a ends. Every task refers to an option set by its index: how long
// it may take and at what cost is the business of the solver, and many tasks share one set. The order of
// tasks and edges has no meaning, except that ties are broken by it, so that the same graph always gives the
// same answers. Edges may repeat. A cycle is an error: no schedule could run it.

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    guint n_tasks;
    guint n_edges;
    guint *option_set; // [n_tasks] index of the task's option set
    guint *succ_start; // [n_tasks + 1] successors of task i: succ[succ_start[i] .. succ_start[i + 1])
    guint *succ;       // [n_edges]
    guint *pred_start; // [n_tasks + 1] predecessors, laid out likewise
    guint *pred;       // [n_edges]
    guint *order;      // [n_tasks] tasks such that every edge goes forward
} NjDag;

// Builds a graph of n_tasks tasks and the edges from[j] -> to[j]. The arrays are copied; from and to may be
// NULL where n_edges is 0. Fails (NJ_ERROR_INPUT) without a task, with an edge from or to a task that is not
// there, or where the edges form a cycle; the message names one task of the cycle. Transfer full; free with
// nj_dag_free().
NjDag *nj_dag_new(guint n_tasks, const guint *option_set, guint n_edges, const guint *from, const guint *to,
                  GError **error);

void nj_dag_free(NjDag *dag);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjDag, nj_dag_free)

// Length of the longest path: when the last task ends if every task starts as soon as its predecessors have
// ended. duration[n_tasks] is in any integer unit, not negative, and its sum fits in a gint64.
// start[n_tasks], unless NULL, receives the earliest start of every task, in the same unit.
gint64 nj_dag_longest_path(const NjDag *dag, const gint64 *duration, gint64 *start);

// The same in seconds.
double nj_dag_longest_path_s(const NjDag *dag, const double *duration_s, double *start_s);

G_END_DECLS
