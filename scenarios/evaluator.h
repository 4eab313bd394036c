// SPDX-License-Identifier: MIT
#pragma once
// What a sweep asks of a point of its grid, behind one interface: an evaluator turns a point into rows of
// three tables, or says why the point cannot exist. A sweep knows nothing else about models or schedules.
//
//   points     one row a point: point, every axis, status, reason, then the evaluator's columns
//   frontiers  any number of rows a point: point, then the evaluator's columns
//   breakdown  same
//
// A point's rows must depend on the point alone, never on the thread or on points before it: that is what
// makes a sweep give the same bytes on any number of threads and machines.

#include "scenarios/grid.h"
#include "scenarios/table.h"

#include <glib.h>

G_BEGIN_DECLS

typedef enum { NJ_RESULT_POINTS, NJ_RESULT_FRONTIERS, NJ_RESULT_BREAKDOWN, NJ_N_RESULTS } NjResultKind;

// The evaluator's own columns of a table; static storage.
typedef struct {
    const NjColumn *columns;
    guint n_columns;
} NjResultColumns;

// What a point gave.
typedef struct {
    char *reason;                  // why the point cannot exist; NULL where it can
    NjTable *tables[NJ_N_RESULTS]; // evaluator's columns; the points table has exactly one row
} NjPointResult;

typedef struct NjEvaluator NjEvaluator;

// Implementations begin with this struct and put their own members behind it.
struct NjEvaluator {
    NjResultColumns results[NJ_N_RESULTS];
    // Fills an empty result (one row of missing cells in points, no other rows, no reason). A point that
    // cannot exist sets the reason and may fill what is known all the same. FALSE and an error end the whole
    // sweep.
    gboolean (*evaluate)(NjEvaluator *self, const NjGrid *grid, guint point, NjPointResult *result,
                         GError **error);
    // An evaluator of its own for another thread. Transfer full.
    NjEvaluator *(*clone)(const NjEvaluator *self);
    void (*free)(NjEvaluator *self);
};

static inline void nj_evaluator_free(NjEvaluator *self)
{
    if (self != NULL)
        self->free(self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjEvaluator, nj_evaluator_free)

// Names and titles of the tables in a store.
const char *nj_result_name(NjResultKind kind);
const char *nj_result_title(NjResultKind kind);

// ---- Results as bytes, for journals and messages

void nj_point_result_init(NjPointResult *result, const NjEvaluator *evaluator);
void nj_point_result_clear(NjPointResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjPointResult, nj_point_result_clear)
// Back to what evaluate() expects.
void nj_point_result_reset(NjPointResult *result);

// Appends to bytes.
void nj_point_result_encode(const NjPointResult *result, GByteArray *bytes);
// Into an initialised result, whose content is replaced. FALSE where the bytes are not such a result.
gboolean nj_point_result_decode(NjPointResult *result, const guint8 *bytes, gsize size);

// ---- Results as rows of a store's tables

// All columns of a table of the store. Transfer full (the strings belong to grid and evaluator).
NjColumn *nj_result_columns(const NjGrid *grid, const NjEvaluator *evaluator, NjResultKind kind,
                            guint *n_columns);

// Appends a point's rows to a table with those columns.
void nj_result_append_rows(const NjGrid *grid, guint point, const NjPointResult *result, NjResultKind kind,
                           NjTable *table);

// Takes a row of such a table back into a result.
void nj_result_take_row(const NjGrid *grid, NjPointResult *result, NjResultKind kind, const NjTable *table,
                        guint row);

// An axis may not have the name of another column of /points; the error names it and path.
gboolean nj_result_check_axes(const NjGrid *grid, const NjEvaluator *evaluator, const char *path,
                              GError **error);

G_END_DECLS
