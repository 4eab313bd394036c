// SPDX-License-Identifier: MIT
#include "schedules/execute.h"

#include "sim/error.h"

#include <math.h>
#include <string.h>

// What a record depends on, besides the executor.
typedef struct {
    guint stage;
    NjPlanInstruction instruction;
} Key;

typedef struct {
    Key key;
    NjProgram program;
    NjTaskRecord record;
} Entry;

struct NjExecutor {
    const NjWorkload *workload;
    NjExecution execution;
    NjLowering lowering;
    NjDeviceSpec spec;
    gboolean extrapolate;
    GHashTable *entries; // Key * inside the value -> Entry *
};

static guint hash_bytes(gconstpointer data, gsize size, guint hash)
{
    const guchar *bytes = data;
    for (gsize i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

static guint key_hash(gconstpointer data)
{
    const Key *key = data;
    guint hash = hash_bytes(&key->stage, sizeof key->stage, 2166136261u);
    hash = hash_bytes(&key->instruction.kind, sizeof key->instruction.kind, hash);
    hash = hash_bytes(&key->instruction.freq_mhz, sizeof key->instruction.freq_mhz, hash);
    return hash_bytes(key->instruction.launches, key->instruction.n_launches * sizeof(NjLaunch), hash);
}

static gboolean key_equal(gconstpointer a, gconstpointer b)
{
    const Key *x = a, *y = b;
    if (x->stage != y->stage || x->instruction.kind != y->instruction.kind ||
        x->instruction.freq_mhz != y->instruction.freq_mhz ||
        x->instruction.n_launches != y->instruction.n_launches)
        return FALSE;
    for (guint i = 0; i < x->instruction.n_launches; i++)
        if (!nj_launch_equal(&x->instruction.launches[i], &y->instruction.launches[i]))
            return FALSE;
    return TRUE;
}

static void entry_free(gpointer data)
{
    Entry *entry = data;
    nj_program_clear(&entry->program);
    g_free(entry);
}

NjExecutor *nj_executor_new(const NjWorkload *workload, NjExecution execution)
{
    NjExecutor *executor = g_new0(NjExecutor, 1);
    executor->workload = workload;
    executor->execution = execution;
    nj_lowering_init(&executor->lowering, workload);
    nj_gpu_device_spec(&workload->gpu, &executor->spec);
    executor->entries = g_hash_table_new_full(key_hash, key_equal, NULL, entry_free);
    return executor;
}

void nj_executor_free(NjExecutor *executor)
{
    if (executor == NULL)
        return;
    g_hash_table_unref(executor->entries);
    g_free(executor);
}

void nj_executor_set_extrapolate(NjExecutor *executor, gboolean extrapolate)
{
    g_assert(g_hash_table_size(executor->entries) == 0);
    executor->extrapolate = extrapolate;
}

const NjLowering *nj_executor_lowering(const NjExecutor *executor)
{
    return &executor->lowering;
}

const NjDeviceSpec *nj_executor_spec(const NjExecutor *executor)
{
    return &executor->spec;
}

// few + more * (many - few): every member of a record grows by the same amount from layer to layer.
static void extend_record(NjTaskRecord *few, const NjTaskRecord *many, int more)
{
    few->duration += more * (many->duration - few->duration);
    for (guint i = 0; i < NJ_N_ACTIVITIES; i++)
        few->activity[i] += more * (many->activity[i] - few->activity[i]);
    few->overlapped += more * (many->overlapped - few->overlapped);
    for (guint i = 0; i < NJ_N_KERNEL_KINDS; i++)
        few->energy_j[i] += more * (many->energy_j[i] - few->energy_j[i]);
    few->peak_w = fmax(few->peak_w, many->peak_w);
    few->flop += more * (many->flop - few->flop);
    few->hbm_bytes += more * (many->hbm_bytes - few->hbm_bytes);
    few->link_bytes += more * (many->link_bytes - few->link_bytes);
}

// Builds and runs an entry with so many layers.
static gboolean run_entry(const NjExecutor *executor, Entry *entry, int layers, NjTaskRecord *record,
                          GError **error)
{
    const NjPlanInstruction *instruction = &entry->key.instruction;
    nj_program_init(&entry->program);
    if (!nj_lowering_build(&executor->lowering, executor->execution, instruction->kind, entry->key.stage,
                           layers, instruction->launches, instruction->n_launches, &entry->program, error))
        return FALSE;
    nj_run_alone(&executor->spec, &entry->program, instruction->freq_mhz, record);
    return TRUE;
}

static gboolean run_entry_extrapolated(const NjExecutor *executor, Entry *entry, int layers, GError **error)
{
    NjTaskRecord more;
    if (layers <= 3)
        return run_entry(executor, entry, layers, &entry->record, error);
    if (!run_entry(executor, entry, 3, &more, error))
        return FALSE;
    nj_program_clear(&entry->program);
    if (!run_entry(executor, entry, 2, &entry->record, error))
        return FALSE;
    extend_record(&entry->record, &more, layers - 2);
    return TRUE;
}

static Entry *entry_for(NjExecutor *executor, guint stage, const NjPlanInstruction *instruction,
                        GError **error)
{
    const Key key = {stage, *instruction};
    Entry *entry = g_hash_table_lookup(executor->entries, &key);
    if (entry != NULL)
        return entry;
    const NjGpu *gpu = &executor->workload->gpu;
    if (!nj_gpu_has_freq(gpu, (int)instruction->freq_mhz)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "frequency %u MHz: %s has %d to %d MHz in steps of %d",
                    instruction->freq_mhz, gpu->name, gpu->freq_min_mhz, gpu->freq_max_mhz,
                    gpu->freq_step_mhz);
        return NULL;
    }
    entry = g_new0(Entry, 1);
    entry->key = key;
    const int layers = executor->workload->layers[stage];
    if (!(executor->extrapolate ? run_entry_extrapolated(executor, entry, layers, error)
                                : run_entry(executor, entry, layers, &entry->record, error))) {
        entry_free(entry);
        return NULL;
    }
    g_hash_table_insert(executor->entries, &entry->key, entry);
    return entry;
}

const NjTaskRecord *nj_executor_profile(NjExecutor *executor, guint stage,
                                        const NjPlanInstruction *instruction, GError **error)
{
    const Entry *entry = entry_for(executor, stage, instruction, error);
    return entry != NULL ? &entry->record : NULL;
}

static gboolean check_shape(const NjPipeline *pipeline, const NjPlan *plan, GError **error)
{
    if (plan->n_stages != pipeline->n_stages) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "the plan has %u stages, the pipeline %u",
                    plan->n_stages, pipeline->n_stages);
        return FALSE;
    }
    for (guint stage = 0; stage < plan->n_stages; stage++) {
        const guint first = nj_pipeline_first(pipeline, stage);
        const guint n = nj_pipeline_first(pipeline, stage + 1) - first;
        if (plan->stages[stage].n_instructions != n) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "stage %u: the plan has %u instructions, the pipeline %u", stage,
                        plan->stages[stage].n_instructions, n);
            return FALSE;
        }
        for (guint i = 0; i < n; i++) {
            const NjInstructionKind wanted = nj_pipeline_instruction(pipeline, first + i)->kind;
            const NjInstructionKind kind = plan->stages[stage].instructions[i].kind;
            if (kind == wanted)
                continue;
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "stage %u, instruction %u: the plan has a %s, the pipeline a %s", stage, i,
                        nj_instruction_kind_name(kind), nj_instruction_kind_name(wanted));
            return FALSE;
        }
    }
    return TRUE;
}

static void add_record(NjTaskRecord *sum, const NjTaskRecord *record)
{
    sum->duration += record->duration;
    for (guint i = 0; i < NJ_N_ACTIVITIES; i++)
        sum->activity[i] += record->activity[i];
    sum->overlapped += record->overlapped;
    for (guint i = 0; i < NJ_N_KERNEL_KINDS; i++)
        sum->energy_j[i] += record->energy_j[i];
    sum->peak_w = fmax(sum->peak_w, record->peak_w);
    sum->flop += record->flop;
    sum->hbm_bytes += record->hbm_bytes;
    sum->link_bytes += record->link_bytes;
}

// What follows the pipeline: per stage a task that reduces gradients, then one that updates weights. They
// stand behind the pipeline's tasks.
typedef struct {
    guint n_parts;       // 0, 1 (reduction alone) or 2
    NjProgram *programs; // [n_parts * n_stages]
    guint n;
} Tail;

static void tail_init(Tail *tail, const NjExecutor *executor, const NjExecuteOptions *options, guint n_stages)
{
    *tail = (Tail){.n_parts = options->optimizer ? 2 : executor->workload->parallelism.dp > 1 ? 1 : 0};
    tail->n = tail->n_parts * n_stages;
    tail->programs = g_new(NjProgram, tail->n);
    for (guint i = 0; i < tail->n; i++) {
        nj_program_init(&tail->programs[i]);
        if (i < n_stages)
            nj_lowering_build_reduction(&executor->lowering, i, &tail->programs[i]);
        else
            nj_lowering_build_step(&executor->lowering, i - n_stages, &tail->programs[i]);
    }
}

static void tail_clear(Tail *tail)
{
    for (guint i = 0; i < tail->n; i++)
        nj_program_clear(&tail->programs[i]);
    g_clear_pointer(&tail->programs, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Tail, tail_clear)

static guint last_freq_mhz(const NjPlan *plan, guint stage)
{
    const NjPlanStage *instructions = &plan->stages[stage];
    return instructions->instructions[instructions->n_instructions - 1].freq_mhz;
}

static void sum_up_tail(const Tail *tail, const NjTaskResult *results, NjIteration *iteration)
{
    for (guint i = 0; i < tail->n; i++) {
        const NjTaskRecord *record = &results[i].record;
        NjStageResult *stage = &iteration->stages[i % iteration->n_stages];
        add_record(&stage->sum, record);
        if (i < iteration->n_stages)
            stage->reduction = record->duration;
        else
            stage->step = record->duration;
    }
}

static void sum_up(const NjDeviceSpec *spec, const NjPipeline *pipeline, const Tail *tail,
                   const NjTaskResult *results, NjIteration *iteration)
{
    iteration->n_stages = pipeline->n_stages;
    sum_up_tail(tail, results + pipeline->instructions->len, iteration);
    for (guint i = 0; i < pipeline->instructions->len; i++)
        add_record(&iteration->stages[nj_pipeline_instruction(pipeline, i)->stage].sum, &results[i].record);
    for (guint stage = 0; stage < pipeline->n_stages; stage++) {
        NjStageResult *result = &iteration->stages[stage];
        result->bubble = iteration->duration - result->sum.duration;
        result->waiting_j = spec->waiting_w * ((double)result->bubble / NJ_PS_PER_S);
        iteration->dynamic_j += nj_task_record_dynamic_j(&result->sum) + result->waiting_j;
        iteration->static_j += spec->static_w * ((double)iteration->duration / NJ_PS_PER_S);
    }
}

gboolean nj_executor_run(NjExecutor *executor, const NjPipeline *pipeline, const NjPlan *plan,
                         const NjExecuteOptions *options, NjIteration *iteration, GError **error)
{
    const guint n = pipeline->instructions->len, n_stages = pipeline->n_stages;
    *iteration = (NjIteration){0};
    if (!check_shape(pipeline, plan, error))
        return FALSE;
    g_auto(Tail) tail = {0};
    tail_init(&tail, executor, options, n_stages);

    // One program a task is plain; tasks that share an entry share its arrays.
    g_autofree NjProgram *programs = g_new(NjProgram, n + tail.n);
    g_autofree NjTask *tasks = g_new0(NjTask, n + tail.n);
    for (guint i = 0; i < n; i++) {
        const guint stage = nj_pipeline_instruction(pipeline, i)->stage;
        const NjPlanInstruction *instruction =
            &plan->stages[stage].instructions[i - nj_pipeline_first(pipeline, stage)];
        const Entry *entry = entry_for(executor, stage, instruction, error);
        if (entry == NULL) {
            g_prefix_error(error, "stage %u, instruction %u: ", stage,
                           i - nj_pipeline_first(pipeline, stage));
            return FALSE;
        }
        programs[i] = entry->program;
        tasks[i] =
            (NjTask){stage, i, instruction->freq_mhz, options->observer == NULL ? &entry->record : NULL};
    }

    for (guint i = 0; i < tail.n; i++) {
        programs[n + i] = tail.programs[i];
        tasks[n + i] = (NjTask){i % n_stages, n + i, last_freq_mhz(plan, i % n_stages), NULL};
    }

    const guint n_pipeline_edges = pipeline->dependencies->len;
    const guint n_edges = n_pipeline_edges + (tail.n_parts == 2 ? n_stages * n_stages : 0);
    g_autofree NjEdge *edges = g_new(NjEdge, n_edges);
    for (guint i = 0; i < n_pipeline_edges; i++) {
        const NjDependency *dependency = &g_array_index(pipeline->dependencies, NjDependency, i);
        const guint from = nj_pipeline_instruction(pipeline, dependency->from)->stage;
        const guint to = nj_pipeline_instruction(pipeline, dependency->to)->stage;
        const double transfer_s =
            options->point_to_point ? nj_point_to_point_s(executor->workload, (int)MIN(from, to)) : 0;
        edges[i] = (NjEdge){dependency->from, dependency->to, (NjTime)llround(transfer_s * NJ_PS_PER_S)};
    }
    const NjTime norm = (NjTime)llround(nj_update_norm_s(executor->workload) * NJ_PS_PER_S);
    for (guint i = n_pipeline_edges; i < n_edges; i++) {
        const guint pair = i - n_pipeline_edges;
        edges[i] = (NjEdge){n + pair / n_stages, n + n_stages + pair % n_stages, norm};
    }
    g_autofree NjDeviceSpec *specs = g_new(NjDeviceSpec, pipeline->n_stages);
    for (guint i = 0; i < pipeline->n_stages; i++) {
        specs[i] = executor->spec;
        specs[i].waiting_w = options->unlocked ? executor->spec.clock_w : 0.0;
    }

    g_autofree NjTaskResult *results = g_new(NjTaskResult, n + tail.n);
    const NjRunInput input = {specs, n_stages, programs, n + tail.n, tasks, n + tail.n, edges, n_edges};
    iteration->duration = nj_run(&input, options->observer, results);
    sum_up(&specs[0], pipeline, &tail, results, iteration);
    return TRUE;
}

void nj_plan_uniform(const NjPipeline *pipeline, guint freq_mhz, NjPlan *plan)
{
    nj_plan_init(plan, pipeline->n_stages);
    for (guint i = 0; i < pipeline->instructions->len; i++) {
        const NjInstruction *instruction = nj_pipeline_instruction(pipeline, i);
        const NjPlanInstruction planned = {.kind = instruction->kind, .freq_mhz = freq_mhz};
        nj_plan_append(plan, instruction->stage, &planned);
    }
}
