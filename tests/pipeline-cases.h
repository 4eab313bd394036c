// SPDX-License-Identifier: MIT
#pragma once
// Pipelines for the solver's tests and its benchmark: the graph of 1F1B, and option sets made up or read from
// a profile. Option set 2 s is the forward of stage s, 2 s + 1 its backward; tasks are numbered as the
// pipeline's instructions are, stage by stage in execution order.

#include "schedules/pipeline.h"
#include "schedules/profile.h"
#include "schedules/solver.h"

#include <math.h>

#define STATIC_W_PER_STAGE 85.0

typedef struct {
    guint n_stages;
    guint n_sets; // 2 n_stages
    NjOptionSet *sets;
    GArray **options; // [n_sets] NjOption, what the sets point to
} PipelineProfile;

static inline void pipeline_profile_free(PipelineProfile *profile)
{
    for (guint s = 0; s < profile->n_sets; s++)
        g_array_unref(profile->options[s]);
    g_free(profile->options);
    g_free(profile->sets);
    g_free(profile);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PipelineProfile, pipeline_profile_free)

static inline PipelineProfile *pipeline_profile_new(guint n_stages)
{
    PipelineProfile *profile = g_new0(PipelineProfile, 1);
    profile->n_stages = n_stages;
    profile->n_sets = 2 * n_stages;
    profile->sets = g_new0(NjOptionSet, profile->n_sets);
    profile->options = g_new0(GArray *, profile->n_sets);
    for (guint s = 0; s < profile->n_sets; s++)
        profile->options[s] = g_array_new(FALSE, FALSE, sizeof(NjOption));
    return profile;
}

static inline void pipeline_profile_add_effective(PipelineProfile *profile, guint set, double time_s,
                                                  double effective_j)
{
    const NjOption option = {time_s, effective_j};
    g_array_append_val(profile->options[set], option);
    profile->sets[set].n_options = profile->options[set]->len;
    profile->sets[set].options = (const NjOption *)(void *)profile->options[set]->data;
}

static inline void pipeline_profile_add(PipelineProfile *profile, guint set, double time_s, double energy_j)
{
    pipeline_profile_add_effective(profile, set, time_s, energy_j - STATIC_W_PER_STAGE * time_s);
}

// 18 frequencies, 900..1410 MHz: part of the time scales with the clock, power with its square and a bit.
// Stages differ, the last one most.
static inline PipelineProfile *pipeline_profile_made_up(guint n_stages)
{
    PipelineProfile *profile = pipeline_profile_new(n_stages);
    for (guint set = 0; set < profile->n_sets; set++) {
        const double size_s = 0.06 * (1 + 0.07 * sin(3.0 * set)) * (set % 2 == 1 ? 2.1 : 1) *
                              (set / 2 + 1 == n_stages ? 1.15 : 1);
        for (guint mhz = 1410; mhz >= 900; mhz -= 30) {
            const double x = 1 - mhz / 1410.0;
            const double time_s = size_s * (0.15 + 0.85 / (1 - x));
            const double dynamic_j = size_s * 190 * (1 - 1.357 * x + 1.629 * x * x) + 30 * (1 - x) * time_s;
            pipeline_profile_add(profile, set, time_s, dynamic_j + STATIC_W_PER_STAGE * time_s);
        }
    }
    return profile;
}

static inline PipelineProfile *pipeline_profile_read(const char *path, GError **error)
{
    g_autoptr(NjProfile) file = nj_profile_read(path, error);
    if (file == NULL)
        return NULL;
    PipelineProfile *profile = pipeline_profile_new(file->n_stages);
    for (guint j = 0; j < file->n_rows; j++) {
        const NjProfileRow *row = &file->rows[j];
        const guint set = 2 * row->stage + (row->instruction.kind == NJ_BACKWARD ? 1 : 0);
        pipeline_profile_add(profile, set, row->time_s, row->energy_j);
    }
    return profile;
}

// The graph of 1F1B: its dependencies, and the order within each stage.
static inline NjDag *pipeline_1f1b(guint n_stages, guint n_microbatches)
{
    g_auto(NjPipeline) pipeline = {0};
    nj_pipeline_init(&pipeline, &nj_schedule_1f1b, n_stages, n_microbatches);
    const guint n_tasks = pipeline.instructions->len;
    g_autofree guint *set = g_new(guint, n_tasks);
    g_autofree guint *from = g_new(guint, n_tasks + pipeline.dependencies->len);
    g_autofree guint *to = g_new(guint, n_tasks + pipeline.dependencies->len);
    guint n_edges = 0;
    for (guint i = 0; i < n_tasks; i++) {
        const NjInstruction *instruction = nj_pipeline_instruction(&pipeline, i);
        set[i] = 2 * instruction->stage + (instruction->kind == NJ_BACKWARD ? 1 : 0);
        if (i > nj_pipeline_first(&pipeline, instruction->stage)) {
            from[n_edges] = i - 1;
            to[n_edges++] = i;
        }
    }
    for (guint j = 0; j < pipeline.dependencies->len; j++) {
        const NjDependency edge = g_array_index(pipeline.dependencies, NjDependency, j);
        from[n_edges] = edge.from;
        to[n_edges++] = edge.to;
    }
    GError *error = NULL;
    NjDag *dag = nj_dag_new(n_tasks, set, n_edges, from, to, &error);
    g_assert_no_error(error);
    return dag;
}
