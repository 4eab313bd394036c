// SPDX-License-Identifier: MIT
// One forward, one backward (Narayanan et al. 2021, PipeDream-Flush): stage s of p first runs min(m, p - 1 -
// s) forwards, then alternates, then drains its backwards. With equal stages the iteration takes (m + p -
// 1)(f + b).
#include "schedules/pipeline.h"

static void add(NjPipeline *pipeline, guint *at, NjInstructionKind kind, guint stage, guint microbatch)
{
    const NjInstruction instruction = {kind, stage, microbatch};
    at[(stage * pipeline->n_microbatches + microbatch) * 2 + (kind == NJ_BACKWARD)] =
        pipeline->instructions->len;
    g_array_append_val(pipeline->instructions, instruction);
}

static void depend(NjPipeline *pipeline, guint from, guint to)
{
    const NjDependency dependency = {from, to};
    g_array_append_val(pipeline->dependencies, dependency);
}

static void build(NjPipeline *pipeline, guint n_stages, guint m)
{
    // Where each stage's forward and backward of a microbatch stands: [stage][microbatch][kind].
    g_autofree guint *at = g_new(guint, (gsize)n_stages * m * 2);
    for (guint stage = 0; stage < n_stages; stage++) {
        g_array_append_val(pipeline->first, pipeline->instructions->len);
        const guint ahead = MIN(m, n_stages - 1 - stage);
        for (guint i = 0; i < ahead; i++)
            add(pipeline, at, NJ_FORWARD, stage, i);
        for (guint i = 0; i < m; i++) {
            if (i + ahead < m)
                add(pipeline, at, NJ_FORWARD, stage, i + ahead);
            add(pipeline, at, NJ_BACKWARD, stage, i);
        }
    }
    g_array_append_val(pipeline->first, pipeline->instructions->len);

    for (guint stage = 0; stage + 1 < n_stages; stage++) {
        for (guint i = 0; i < m; i++) {
            const guint *here = &at[(stage * m + i) * 2], *next = &at[((stage + 1) * m + i) * 2];
            depend(pipeline, here[0], next[0]);
            depend(pipeline, next[1], here[1]);
        }
    }
}

const NjPipelineSchedule nj_schedule_1f1b = {
    .name = "1f1b",
    .summary = "one forward, one backward",
    .build = build,
};
