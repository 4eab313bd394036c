// SPDX-License-Identifier: MIT
#pragma once
// The evaluator of scenario files: a point of the grid is the scenario with one value of every list,
// simulated as `nanojoule simulate` would. Points whose sizes do not divide, whose clock the GPU does not
// have or whose memory does not fit exist as rows with a reason.

#include "scenarios/evaluator.h"

G_BEGIN_DECLS

// A scenario file with lists, ready to be swept.
typedef struct {
    char *path;
    char *text; // the file, byte for byte
    NjGrid *grid;
    NjEvaluator *evaluator;
} NjScenarioSweep;

// Loads and expands a scenario file. Transfer full; free with nj_scenario_sweep_clear().
gboolean nj_scenario_sweep_load(NjScenarioSweep *sweep, const char *path, GError **error);
// Same from text; path stands in messages and is where relative paths start.
gboolean nj_scenario_sweep_from_text(NjScenarioSweep *sweep, const char *text, const char *path,
                                     GError **error);
void nj_scenario_sweep_clear(NjScenarioSweep *sweep);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjScenarioSweep, nj_scenario_sweep_clear)

// The data files that the scenario's values name, as NjStoreInfo.inputs has them. An error where one is not
// there. Transfer full.
char *nj_scenario_sweep_inputs(const NjScenarioSweep *sweep, GError **error);

G_END_DECLS
