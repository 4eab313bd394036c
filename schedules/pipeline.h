// SPDX-License-Identifier: MIT
#pragma once
// A pipeline schedule says which stage runs which instruction when: per stage a list in execution order, and
// between stages the dependencies that carry activations forward and gradients back. It knows no hardware, no
// model and no frequency. Each schedule is one file that exports one NjPipelineSchedule;
// nj_pipeline_schedules() lists them.

#include "schedules/plan.h"

G_BEGIN_DECLS

typedef struct {
    NjInstructionKind kind;
    guint stage;
    guint microbatch;
} NjInstruction;

// to may start when from has ended and its result has been transferred. Order within a stage is not an edge.
typedef struct {
    guint from, to;
} NjDependency;

typedef struct {
    guint n_stages, n_microbatches;
    GArray *instructions; // NjInstruction, stage by stage, each in execution order
    GArray *first;        // guint [n_stages + 1], where a stage's instructions begin
    GArray *dependencies; // NjDependency
} NjPipeline;

typedef struct {
    const char *name;
    const char *summary;
    // Fills an initialised, empty pipeline.
    void (*build)(NjPipeline *pipeline, guint n_stages, guint n_microbatches);
} NjPipelineSchedule;

extern const NjPipelineSchedule nj_schedule_1f1b;

// All schedules, NULL-terminated.
const NjPipelineSchedule *const *nj_pipeline_schedules(void);
// By name, or NULL.
const NjPipelineSchedule *nj_pipeline_schedule_find(const char *name);

void nj_pipeline_init(NjPipeline *pipeline, const NjPipelineSchedule *schedule, guint n_stages,
                      guint n_microbatches);
void nj_pipeline_clear(NjPipeline *pipeline);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjPipeline, nj_pipeline_clear)

static inline const NjInstruction *nj_pipeline_instruction(const NjPipeline *pipeline, guint i)
{
    return &g_array_index(pipeline->instructions, NjInstruction, i);
}

// Index of a stage's first instruction; of stage n_stages: the number of all.
static inline guint nj_pipeline_first(const NjPipeline *pipeline, guint stage)
{
    return g_array_index(pipeline->first, guint, stage);
}

G_END_DECLS
