// SPDX-License-Identifier: MIT
#include "scenarios/replay.h"

#include "sim/error.h"

#include <string.h>

// Plans of one workload and one kind of execution share an executor and a pipeline.
typedef struct {
    NjWorkload workload; // its insides are the caller's,
    gboolean owns_arch;  // but for the architecture of a row
    NjPipeline pipeline;
    NjExecutor *executor;
} Shared;

struct NjReplay {
    const NjGpu *gpu;           // of rows, or
    const NjScenario *scenario; // of all
    gboolean quick;
    GHashTable *shared; // "model/cp/tp/..." -> Shared
};

static void shared_free(gpointer data)
{
    Shared *shared = data;
    nj_executor_free(shared->executor);
    nj_pipeline_clear(&shared->pipeline);
    if (shared->owns_arch)
        nj_arch_clear(&shared->workload.arch);
    g_free(shared);
}

NjReplay *nj_replay_new(const NjGpu *gpu, gboolean quick)
{
    NjReplay *replay = g_new0(NjReplay, 1);
    replay->gpu = gpu;
    replay->quick = quick;
    replay->shared = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, shared_free);
    return replay;
}

NjReplay *nj_replay_new_of_scenario(const NjScenario *scenario)
{
    NjReplay *replay = nj_replay_new(&scenario->workload.gpu, FALSE);
    replay->scenario = scenario;
    return replay;
}

void nj_replay_free(NjReplay *replay)
{
    if (replay == NULL)
        return;
    g_hash_table_unref(replay->shared);
    g_free(replay);
}

// What a row of a plan table says was run.
static gboolean read_workload(const NjReplay *replay, const NjPlanRow *row, NjWorkload *workload,
                              GError **error)
{
    workload->gpu = *replay->gpu;
    workload->parallelism = (NjParallelism){(int)row->tp, (int)row->cp, (int)row->plan.n_stages, 1};
    workload->microbatch_size = (int)row->microbatch_size;
    workload->microbatches = (int)row->microbatches;
    workload->seq_len = (int)row->seq_len;
    if (!nj_arch_load(&workload->arch, row->model, error))
        return FALSE;
    nj_split_layers_as_published(workload);
    return nj_workload_check(workload, error);
}

static Shared *shared_for(NjReplay *replay, const NjPlanRow *row, GError **error)
{
    const NjExecution execution = nj_method_execution(row->method);
    g_autofree char *key =
        replay->scenario != NULL
            ? g_strdup_printf("%d", (int)execution)
            : g_strdup_printf("%s/%u/%u/%u/%u/%u/%u/%d", row->model, row->cp, row->tp, row->microbatch_size,
                              row->seq_len, row->plan.n_stages, row->microbatches, (int)execution);
    Shared *shared = g_hash_table_lookup(replay->shared, key);
    if (shared != NULL)
        return shared;

    shared = g_new0(Shared, 1);
    NjWorkload *workload = &shared->workload;
    shared->owns_arch = replay->scenario == NULL;
    if (replay->scenario != NULL) {
        *workload = replay->scenario->workload;
    } else if (!read_workload(replay, row, workload, error)) {
        shared_free(shared);
        return NULL;
    }
    nj_pipeline_init(&shared->pipeline,
                     replay->scenario != NULL ? replay->scenario->schedule : &nj_schedule_1f1b,
                     (guint)workload->parallelism.pp, (guint)workload->microbatches);
    shared->executor = nj_executor_new(workload, execution);
    nj_executor_set_extrapolate(shared->executor, replay->quick);
    g_hash_table_insert(replay->shared, g_steal_pointer(&key), shared);
    return shared;
}

char *nj_plan_row_configuration(const NjPlanRow *row)
{
    const NjParallelism parallelism = {(int)row->tp, (int)row->cp, 1, 1};
    g_autofree char *degrees = nj_parallelism_format(&parallelism, FALSE);
    return g_strdup_printf("%s %s %u x %u", row->model, degrees, row->microbatch_size, row->seq_len);
}

gboolean nj_replay_row(NjReplay *replay, const NjPlanRow *row, NjReplayFigures *figures, GError **error)
{
    Shared *shared = shared_for(replay, row, error);
    const NjExecuteOptions options = {.point_to_point = FALSE};
    NjIteration iteration;
    if (shared == NULL ||
        !nj_executor_run(shared->executor, &shared->pipeline, &row->plan, &options, &iteration, error)) {
        g_prefix_error(error, "plan %s: ", row->plan_id);
        return FALSE;
    }
    const double factor = row->method == NJ_METHOD_KAREUS ? NJ_KAREUS_SAFETY_FACTOR : 1.0;
    figures->time_s = (double)iteration.duration / NJ_PS_PER_S;
    figures->dynamic_energy_j = factor * iteration.dynamic_j;
    figures->total_energy_j = figures->dynamic_energy_j + iteration.static_j;
    return TRUE;
}
