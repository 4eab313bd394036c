// SPDX-License-Identifier: MIT
#pragma once
// Executes a plan: lowers every instruction, runs the pipeline on the engine, and sums what the stages did.
// An instruction's record depends on stage, kind, frequency and launch list alone, so each is run once and
// remembered; with an observer everything is run kernel by kernel. Both give the same bytes.

#include "schedules/lowering.h"
#include "schedules/pipeline.h"
#include "sim/run.h"

G_BEGIN_DECLS

typedef struct NjExecutor NjExecutor;

// The workload must outlive the executor. Transfer full.
NjExecutor *nj_executor_new(const NjWorkload *workload, NjExecution execution);
void nj_executor_free(NjExecutor *executor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjExecutor, nj_executor_free)

// Profiles instructions from 2 and 3 layers, extended to the stage's number: layers behind the first repeat
// each other unless the host falls behind. Within 0.1 % of the whole and several times faster; for fits.
void nj_executor_set_extrapolate(NjExecutor *executor, gboolean extrapolate);

const NjLowering *nj_executor_lowering(const NjExecutor *executor);
const NjDeviceSpec *nj_executor_spec(const NjExecutor *executor);

// One instruction alone at its frequency. Transfer none: the record lives as long as the executor.
const NjTaskRecord *nj_executor_profile(NjExecutor *executor, guint stage,
                                        const NjPlanInstruction *instruction, GError **error);

typedef struct {
    NjTaskRecord sum; // over the stage's instructions; duration is the time inside instructions
    NjTime reduction; // reduction of gradients and of the shared embedding, part of sum
    NjTime step;      // optimizer's step, part of sum
    NjTime bubble;    // iteration time outside them
    double waiting_j; // dynamic energy drawn there
} NjStageResult;

typedef struct {
    NjTime duration;
    guint n_stages;
    NjStageResult stages[NJ_MAX_STAGES];
    double static_j;  // per rank of a stage, summed over stages
    double dynamic_j; // same, with what is drawn while waiting
} NjIteration;

typedef struct {
    gboolean point_to_point;    // transfers between stages take time; planners leave them out
    gboolean optimizer;         // the iteration ends with the optimizer's step; planners leave it out
    gboolean unlocked;          // clocks are left to the GPU: it waits with its clock tree at full rate
    const NjObserver *observer; // or NULL
} NjExecuteOptions;

// Runs a plan on a pipeline. Behind its last backward, at that instruction's clock, a stage averages its
// gradients where there is data parallelism, or where the optimizer follows. The optimizer's step waits for
// all stages, which clip by one norm. The plan must have the pipeline's instructions in the pipeline's order.
gboolean nj_executor_run(NjExecutor *executor, const NjPipeline *pipeline, const NjPlan *plan,
                         const NjExecuteOptions *options, NjIteration *iteration, GError **error);

// A plan with the same frequency and default launches everywhere.
void nj_plan_uniform(const NjPipeline *pipeline, guint freq_mhz, NjPlan *plan);

G_END_DECLS
