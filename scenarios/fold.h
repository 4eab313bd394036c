// SPDX-License-Identifier: MIT
#pragma once
// Between journal and store: folding a journal's records into a store in the order of their points, and
// taking a store's points back into a journal. Both go through the rows once a table and hold a few thousand
// at a time, so memory does not grow with the sweep.

#include "scenarios/evaluator.h"
#include "scenarios/journal.h"
#include "scenarios/store.h"

G_BEGIN_DECLS

// Writes all records of a journal (sorts it) as the store at path. Every record's key is a point of the grid.
gboolean nj_fold(NjJournal *journal, const NjGrid *grid, const NjEvaluator *evaluator,
                 const NjStoreInfo *info, const char *path, GError **error);

// Appends those points of a store to a journal that are not in skip (a set of GUINT_TO_POINTER(point), may be
// NULL). path is for messages.
gboolean nj_unfold(NjStore *store, const char *path, const NjGrid *grid, const NjEvaluator *evaluator,
                   GHashTable *skip, NjJournal *journal, GError **error);

// The numbers in a store's points table, ascending (guint). An error where the table is not that of this grid
// and evaluator. Transfer full.
GArray *nj_fold_stored_points(NjStore *store, const char *path, const NjGrid *grid,
                              const NjEvaluator *evaluator, GError **error);

G_END_DECLS
