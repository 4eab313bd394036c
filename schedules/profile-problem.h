// SPDX-License-Identifier: MIT
#pragma once
// A measured profile and a pipeline schedule, put as the problem of the frontier solver, and its answers put
// back as plans. Every instruction of the schedule is one task; a task follows the one before it on its stage
// and those whose results it needs. Its options are the profile's rows for its stage and kind, each with its
// time and its effective energy = energy - static power x time. Transfers between stages take no time of
// their own, as in the real planner: whatever of them is not hidden is part of the measured times.

#include "schedules/dag.h"
#include "schedules/pipeline.h"
#include "schedules/profile.h"
#include "schedules/solver.h"

G_BEGIN_DECLS

typedef struct {
    const NjProfile *profile; // borrowed
    NjPipeline pipeline;
    NjDag *dag;        // task i is instruction i of the pipeline
    guint n_sets;      // of options: one a stage and kind, stage * NJ_N_INSTRUCTION_KINDS + kind
    NjOptionSet *sets; // [n_sets]
    NjOption *options; // [profile->n_rows] of all sets, set by set
    guint *rows;       // [profile->n_rows] the profile's row behind each of options
} NjProfileProblem;

// Builds the problem for n_microbatches (at least 1) through the profile's stages; static_power_w of one
// rank. The profile must be valid and outlive the problem. Free with nj_profile_problem_clear().
void nj_profile_problem_init(NjProfileProblem *problem, const NjProfile *profile,
                             const NjPipelineSchedule *schedule, guint n_microbatches, double static_power_w);
void nj_profile_problem_clear(NjProfileProblem *problem);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjProfileProblem, nj_profile_problem_clear)

// The plan in which task i takes option choice[i] of its set. Initialises plan.
void nj_profile_problem_plan(const NjProfileProblem *problem, const guint *choice, NjPlan *plan);

G_END_DECLS
