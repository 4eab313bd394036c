// SPDX-License-Identifier: MIT
#include "schedules/pipeline.h"

static const NjPipelineSchedule *const schedules[] = {&nj_schedule_1f1b, NULL};

const NjPipelineSchedule *const *nj_pipeline_schedules(void)
{
    return schedules;
}

const NjPipelineSchedule *nj_pipeline_schedule_find(const char *name)
{
    for (guint i = 0; schedules[i] != NULL; i++)
        if (g_str_equal(schedules[i]->name, name))
            return schedules[i];
    return NULL;
}

void nj_pipeline_init(NjPipeline *pipeline, const NjPipelineSchedule *schedule, guint n_stages,
                      guint n_microbatches)
{
    g_assert(n_stages > 0 && n_microbatches > 0);
    *pipeline = (NjPipeline){
        .n_stages = n_stages,
        .n_microbatches = n_microbatches,
        .instructions = g_array_new(FALSE, FALSE, sizeof(NjInstruction)),
        .first = g_array_new(FALSE, FALSE, sizeof(guint)),
        .dependencies = g_array_new(FALSE, FALSE, sizeof(NjDependency)),
    };
    schedule->build(pipeline, n_stages, n_microbatches);
    g_assert(pipeline->first->len == n_stages + 1);
}

void nj_pipeline_clear(NjPipeline *pipeline)
{
    g_clear_pointer(&pipeline->instructions, g_array_unref);
    g_clear_pointer(&pipeline->first, g_array_unref);
    g_clear_pointer(&pipeline->dependencies, g_array_unref);
}
