// SPDX-License-Identifier: MIT
#pragma once
// Runs a grid and leaves one result store. Finished points go to a journal beside it (OUTPUT.journal) and are
// folded into the store when the last one is done, so a sweep that was stopped, killed or ran out of disk
// goes on where it was when it is started again. What a file holds belongs to one scenario: another one is
// refused, naming the keys that differ. The store's bytes depend on the grid, the evaluator and the selection
// only.
//
// SIGINT and SIGTERM let points in progress finish; a second one ends the process at once, which loses those
// only.

#include "scenarios/evaluator.h"
#include "scenarios/store.h"

#include <stdio.h>

G_BEGIN_DECLS

// Processes on several machines that work on the same sweep, as in scenarios/ranks.h; this is what a sweep
// sees.
typedef struct NjRanks NjRanks;

typedef struct {
    const char *output;        // path of the store
    const char *scenario_path; // for messages
    const char *scenario_text; // stored
    const char *inputs;        // NjStoreInfo.inputs
    NjSelection selection;
    guint jobs;     // threads; at least 1
    FILE *progress; // where progress is shown, NULL for nowhere
    NjRanks *ranks; // NULL: this process alone
} NjSweepOptions;

typedef struct {
    guint n_points;     // selected
    guint n_before;     // of those, done by an earlier run
    guint n_computed;   // by this one
    guint n_impossible; // of the computed ones
    gsize n_cut_bytes;  // torn record that an earlier run left in the journal
    double elapsed_s;
} NjSweepSummary;

// Runs to the end, or gives an error: NJ_ERROR_STOPPED after a signal.
gboolean nj_sweep_run(const NjGrid *grid, const NjEvaluator *evaluator, const NjSweepOptions *options,
                      NjSweepSummary *summary, GError **error);

typedef struct {
    guint n_points, n_before; // as above
    guint n_sampled;
    double sampled_s;   // time the sample took on one thread
    double estimated_s; // time the remaining points will take on all jobs
} NjSweepEstimate;

// Evaluates up to 20 points spread evenly over what remains, or what 2 seconds allow, and writes nothing.
gboolean nj_sweep_estimate(const NjGrid *grid, const NjEvaluator *evaluator, const NjSweepOptions *options,
                           NjSweepEstimate *estimate, GError **error);

// Joins the stores that shards of one sweep left into one at output, the same bytes as an unsharded sweep.
// Every shard must be there once, whole and of the same scenario, or the error says what is wrong. grid and
// evaluator are those of the scenario in the shards.
gboolean nj_sweep_merge(const char *const *paths, guint n_paths, const NjGrid *grid,
                        const NjEvaluator *evaluator, const char *output, GError **error);

// Checks that b's scenario, inputs and program version are a's; the error says that a_name belongs to another
// scenario and what differs.
gboolean nj_sweep_check_same(const char *a_name, const NjStoreInfo *a, const NjStoreInfo *b, GError **error);

G_END_DECLS
