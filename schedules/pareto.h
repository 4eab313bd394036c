// SPDX-License-Identifier: MIT
#pragma once
// Pareto sets of (time, effective energy) and their sums. A point is kept when no other is at least as good
// in both. A sum of sets takes one point of each; its Pareto set is built set by set, pruning as it goes,
// which is exact: a dominated partial sum can only lead to dominated sums. Points remember what they were
// made of, so that the choice behind each can be read back.

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    double time_s;
    double effective_j;
    guint choice; // the caller's: which option this is
    guint prefix; // of a sum: index of the point of the sum before
} NjParetoPoint;

// Keeps the Pareto set of the points, sorted by rising time and falling energy. Of equal points the one of
// the lowest choice stays.
void nj_pareto_prune(GArray *points);

// Keeps of a Pareto set the vertices of its lower convex hull.
void nj_pareto_hull(GArray *points);

typedef struct {
    guint n_sets;
    GArray **sums; // [n_sets] NjParetoPoint; sums[k] is the Pareto set of the first k + 1 sets' sum
} NjParetoSum;

// Sums Pareto sets; weights[i] times the point of sets[i]. n_sets >= 1, no set empty.
void nj_pareto_sum_init(NjParetoSum *sum, GArray *const *sets, const double *weights, guint n_sets);
void nj_pareto_sum_clear(NjParetoSum *sum);

// The whole sum's Pareto set. Transfer none.
const GArray *nj_pareto_sum_points(const NjParetoSum *sum);

// The choices behind a point of it: choices[n_sets].
void nj_pareto_sum_choices(const NjParetoSum *sum, guint point, guint *choices);

G_END_DECLS
