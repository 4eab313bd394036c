// SPDX-License-Identifier: MIT
#pragma once
// Replays published plans: every plan of a table is executed and held against the planner's own figures.
// Planners count neither transfers between stages nor what happens outside instructions, so neither does a
// replay; Kareus' planner multiplies its dynamic energy by a safety factor, so a replay of its plans does
// too.

#include "scenarios/scenario.h"
#include "schedules/plan-table.h"

G_BEGIN_DECLS

#define NJ_KAREUS_SAFETY_FACTOR 1.15 // on planned dynamic energy, Kareus artifact

typedef struct {
    double time_s, dynamic_energy_j, total_energy_j; // energies per rank of a stage, summed over stages
} NjReplayFigures;

typedef struct NjReplay NjReplay;

// Replays on one GPU type; what plans of equal workloads share is kept. gpu is copied (shallow: must
// outlive). Transfer full.
// quick: profile instructions from few layers (nj_executor_set_extrapolate()).
NjReplay *nj_replay_new(const NjGpu *gpu, gboolean quick);
// Replays plans of one scenario: its model, GPU, layers, parallelism, schedule and stack, whatever rows say
// of them. The scenario must outlive the replay. Transfer full.
NjReplay *nj_replay_new_of_scenario(const NjScenario *scenario);
void nj_replay_free(NjReplay *replay);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjReplay, nj_replay_free)

// "llama-3.2-3b cp2tp4 8 x 4096": model, parallelism, microbatch size x sequence length. Transfer full.
char *nj_plan_row_configuration(const NjPlanRow *row);

// What the planner of this row would have to expect.
gboolean nj_replay_row(NjReplay *replay, const NjPlanRow *row, NjReplayFigures *figures, GError **error);

G_END_DECLS
