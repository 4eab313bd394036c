// SPDX-License-Identifier: MIT
#include "schedules/planner.h"

#include "schedules/pareto.h"

#include <string.h>

struct NjPlanner {
    const NjWorkload *workload;
    NjExecutor *executor;
    NjProfile *profile;
    NjProfileProblem problem;
    NjSolver *solver;
};

NjExecution nj_method_execution(NjMethod method)
{
    switch (method) {
    case NJ_METHOD_MEGATRON:
    case NJ_METHOD_MEGATRON_PERSEUS:
        return NJ_EXECUTION_SEQUENTIAL;
    case NJ_METHOD_NANOBATCHING_PERSEUS:
    case NJ_METHOD_KAREUS:
        return NJ_EXECUTION_NANOBATCHED;
    }
    g_assert_not_reached();
}

static gboolean add_row(NjPlanner *planner, GArray *rows, guint stage, const NjPlanInstruction *instruction,
                        GError **error)
{
    const NjTaskRecord *record = nj_executor_profile(planner->executor, stage, instruction, error);
    if (record == NULL)
        return FALSE;
    const double time_s = (double)record->duration / NJ_PS_PER_S;
    const NjProfileRow row = {
        .stage = stage,
        .instruction = *instruction,
        .time_s = time_s,
        .energy_j = nj_task_record_dynamic_j(record) + planner->workload->gpu.static_w * time_s,
    };
    g_array_append_val(rows, row);
    return TRUE;
}

static guint n_frequencies(const NjGpu *gpu)
{
    return (guint)((gpu->freq_max_mhz - gpu->freq_min_mhz) / gpu->freq_step_mhz) + 1;
}

static guint frequency_at(const NjGpu *gpu, guint i)
{
    return (guint)(gpu->freq_min_mhz + (int)i * gpu->freq_step_mhz);
}

// Every frequency with the launches that are all default, or all sequential.
static gboolean profile_frequencies(NjPlanner *planner, GArray *rows, guint stage, NjInstructionKind kind,
                                    guint n_launches, GError **error)
{
    const NjGpu *gpu = &planner->workload->gpu;
    NjPlanInstruction instruction = {.kind = kind, .n_launches = n_launches};
    for (guint i = 0; i < n_launches; i++)
        instruction.launches[i].mode = NJ_LAUNCH_SEQUENTIAL;
    for (guint i = 0; i < n_frequencies(gpu); i++) {
        instruction.freq_mhz = frequency_at(gpu, i);
        if (!add_row(planner, rows, stage, &instruction, error))
            return FALSE;
    }
    return TRUE;
}

// What the search over a partition type found, per frequency.
typedef struct {
    GArray *launches; // NjLaunch, the search space
    GArray **points;  // [n_frequencies] Pareto sets of NjParetoPoint; choice is an index into launches
} PartitionSearch;

static void search_clear(PartitionSearch *search, guint n)
{
    g_array_unref(search->launches);
    for (guint i = 0; i < n; i++)
        g_array_unref(search->points[i]);
    g_free(search->points);
}

// Simulates every launch choice at every frequency. A program does not depend on the frequency.
static gboolean search_partition(NjPlanner *planner, NjInstructionKind kind, guint partition,
                                 PartitionSearch *search, GError **error)
{
    const NjGpu *gpu = &planner->workload->gpu;
    const NjLowering *lowering = nj_executor_lowering(planner->executor);
    const NjDeviceSpec *spec = nj_executor_spec(planner->executor);
    const guint n = n_frequencies(gpu);
    search->launches = g_array_new(FALSE, FALSE, sizeof(NjLaunch));
    search->points = g_new(GArray *, n);
    for (guint i = 0; i < n; i++)
        search->points[i] = g_array_new(FALSE, FALSE, sizeof(NjParetoPoint));
    nj_partition_search_space(lowering, kind, partition, search->launches);

    gboolean ok = TRUE;
    for (guint l = 0; ok && l < search->launches->len; l++) {
        NjProgram program;
        nj_program_init(&program);
        ok = nj_lowering_build_partition(lowering, kind, partition,
                                         &g_array_index(search->launches, NjLaunch, l), &program, error);
        for (guint i = 0; ok && i < n; i++) {
            NjTaskRecord record;
            nj_run_alone(spec, &program, frequency_at(gpu, i), &record);
            const NjParetoPoint point = {
                .time_s = (double)record.duration / NJ_PS_PER_S,
                .effective_j = nj_task_record_dynamic_j(&record),
                .choice = l,
            };
            g_array_append_val(search->points[i], point);
        }
        nj_program_clear(&program);
    }
    for (guint i = 0; i < n; i++)
        nj_pareto_prune(search->points[i]);
    if (!ok)
        search_clear(search, n);
    return ok;
}

// A composition worth profiling: its frequency and launch list.
static void read_composition(const PartitionSearch *searches, const NjParetoSum *sum, guint point,
                             NjPlanInstruction *instruction)
{
    guint choices[NJ_MAX_PARTITIONS];
    nj_pareto_sum_choices(sum, point, choices);
    for (guint p = 0; p < instruction->n_launches; p++)
        instruction->launches[p] = g_array_index(searches[p].launches, NjLaunch, choices[p]);
}

// The convex hull, over all frequencies, of an instruction's compositions. One layer stands for all: their
// number scales time and energy alike.
static GArray *compose(const NjPlanner *planner, NjInstructionKind kind, const PartitionSearch *searches,
                       guint n_partitions)
{
    const NjWorkload *workload = planner->workload;
    const NjGpu *gpu = &workload->gpu;
    GArray *instructions = g_array_new(FALSE, FALSE, sizeof(NjPlanInstruction));
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(NjParetoPoint));

    for (guint i = 0; i < n_frequencies(gpu); i++) {
        GArray *sets[NJ_MAX_PARTITIONS];
        double weights[NJ_MAX_PARTITIONS];
        for (guint p = 0; p < n_partitions; p++) {
            sets[p] = searches[p].points[i];
            weights[p] = nj_partition_weight(&workload->parallelism, kind, p);
        }
        NjParetoSum sum;
        nj_pareto_sum_init(&sum, sets, weights, n_partitions);
        g_autoptr(GArray) points = g_array_copy((GArray *)nj_pareto_sum_points(&sum));
        for (guint k = 0; k < points->len; k++)
            g_array_index(points, NjParetoPoint, k).choice = k;
        nj_pareto_hull(points);
        for (guint k = 0; k < points->len; k++) {
            NjParetoPoint point = g_array_index(points, NjParetoPoint, k);
            NjPlanInstruction instruction = {kind, frequency_at(gpu, i), n_partitions, {{0}}};
            read_composition(searches, &sum, point.choice, &instruction);
            point.choice = instructions->len;
            point.prefix = 0;
            g_array_append_val(instructions, instruction);
            g_array_append_val(all, point);
        }
        nj_pareto_sum_clear(&sum);
    }
    nj_pareto_prune(all);
    nj_pareto_hull(all);
    GArray *kept = g_array_new(FALSE, FALSE, sizeof(NjPlanInstruction));
    for (guint k = 0; k < all->len; k++)
        g_array_append_val(kept, g_array_index(instructions, NjPlanInstruction,
                                               g_array_index(all, NjParetoPoint, k).choice));
    g_array_unref(instructions);
    return kept;
}

static gboolean profile_kareus(NjPlanner *planner, GArray *rows, NjInstructionKind kind, GError **error)
{
    const NjWorkload *workload = planner->workload;
    const guint n = nj_partition_count(&workload->parallelism, kind);
    PartitionSearch searches[NJ_MAX_PARTITIONS];
    guint n_done = 0;
    while (n_done < n && search_partition(planner, kind, n_done, &searches[n_done], error))
        n_done++;
    gboolean ok = n_done == n;
    if (ok) {
        g_autoptr(GArray) kept = compose(planner, kind, searches, n);
        for (guint stage = 0; ok && stage < (guint)workload->parallelism.pp; stage++) {
            for (guint k = 0; ok && k < kept->len; k++)
                ok = add_row(planner, rows, stage, &g_array_index(kept, NjPlanInstruction, k), error);
            ok = ok && profile_frequencies(planner, rows, stage, kind, n, error);
        }
    }
    for (guint p = 0; p < n_done; p++)
        search_clear(&searches[p], n_frequencies(&workload->gpu));
    return ok;
}

static gboolean profile(NjPlanner *planner, NjMethod method, GArray *rows, GError **error)
{
    static const NjInstructionKind kinds[] = {NJ_FORWARD, NJ_BACKWARD};
    for (guint k = 0; k < G_N_ELEMENTS(kinds); k++) {
        if (method == NJ_METHOD_KAREUS) {
            if (!profile_kareus(planner, rows, kinds[k], error))
                return FALSE;
            continue;
        }
        for (guint stage = 0; stage < (guint)planner->workload->parallelism.pp; stage++)
            if (!profile_frequencies(planner, rows, stage, kinds[k], 0, error))
                return FALSE;
    }
    return TRUE;
}

NjPlanner *nj_planner_new(const NjWorkload *workload, NjMethod method, const NjPipelineSchedule *schedule,
                          GError **error)
{
    g_assert(method != NJ_METHOD_MEGATRON);
    g_autoptr(NjPlanner) planner = g_new0(NjPlanner, 1);
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(NjProfileRow));
    planner->workload = workload;
    planner->executor = nj_executor_new(workload, nj_method_execution(method));
    if (!profile(planner, method, rows, error))
        return NULL;
    planner->profile = g_new0(NjProfile, 1);
    planner->profile->n_stages = (guint)workload->parallelism.pp;
    planner->profile->n_rows = rows->len;
    planner->profile->rows = g_memdup2(rows->data, rows->len * sizeof(NjProfileRow));
    nj_profile_problem_init(&planner->problem, planner->profile, schedule, (guint)workload->microbatches,
                            workload->gpu.static_w);
    planner->solver =
        nj_solver_new(planner->problem.dag, planner->problem.n_sets, planner->problem.sets, error);
    return planner->solver != NULL ? g_steal_pointer(&planner) : NULL;
}

void nj_planner_free(NjPlanner *planner)
{
    if (planner == NULL)
        return;
    nj_solver_free(planner->solver);
    if (planner->profile != NULL)
        nj_profile_problem_clear(&planner->problem);
    nj_profile_free(planner->profile);
    nj_executor_free(planner->executor);
    g_free(planner);
}

const NjProfile *nj_planner_profile(const NjPlanner *planner)
{
    return planner->profile;
}

NjSolver *nj_planner_solver(NjPlanner *planner)
{
    return planner->solver;
}

const NjPipeline *nj_planner_pipeline(const NjPlanner *planner)
{
    return &planner->problem.pipeline;
}

NjExecutor *nj_planner_executor(NjPlanner *planner)
{
    return planner->executor;
}

void nj_planner_plan(const NjPlanner *planner, const NjSolverPlan *choice, NjPlan *plan)
{
    nj_profile_problem_plan(&planner->problem, choice->option, plan);
}
