// SPDX-License-Identifier: MIT
#include "schedules/lowering.h"

#include "sim/error.h"

typedef enum {
    COLLECTIVE_NONE,
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_REDUCE_SCATTER
} Collective;

// A step of a nanobatch: blocks that run without a break, and the collective that follows them.
typedef struct {
    NjBlockKind blocks[3];
    guint n_blocks;
    Collective then;
    guint partitions[NJ_N_NANOBATCHES]; // place in the launch list for nanobatch A and B
} Step;

// Tensor parallelism alone.
static const Step tp_forward[] = {
    {{NJ_BLOCK_QKV, NJ_BLOCK_ATTENTION, NJ_BLOCK_PROJECTION}, 3, COLLECTIVE_ALL_REDUCE, {0, 0}},
    {{NJ_BLOCK_MLP}, 1, COLLECTIVE_ALL_REDUCE, {1, 1}},
};
static const Step tp_backward[] = {
    {{NJ_BLOCK_MLP}, 1, COLLECTIVE_ALL_REDUCE, {1, 1}},
    {{NJ_BLOCK_PROJECTION, NJ_BLOCK_ATTENTION, NJ_BLOCK_QKV}, 3, COLLECTIVE_ALL_REDUCE, {0, 0}},
};
// With context parallelism. In backward K and V are gathered again, while the projection runs.
static const Step cp_forward[] = {
    {{NJ_BLOCK_QKV}, 1, COLLECTIVE_ALL_GATHER, {0, 1}},
    {{NJ_BLOCK_ATTENTION, NJ_BLOCK_PROJECTION}, 2, COLLECTIVE_ALL_REDUCE, {2, 3}},
    {{NJ_BLOCK_MLP}, 1, COLLECTIVE_ALL_REDUCE, {4, 5}},
};
static const Step cp_backward[] = {
    {{NJ_BLOCK_MLP}, 1, COLLECTIVE_ALL_REDUCE, {6, 7}},
    {{NJ_BLOCK_PROJECTION}, 1, COLLECTIVE_ALL_GATHER, {0, 1}},
    {{NJ_BLOCK_ATTENTION}, 1, COLLECTIVE_REDUCE_SCATTER, {2, 3}},
    {{NJ_BLOCK_QKV}, 1, COLLECTIVE_ALL_REDUCE, {4, 5}},
};

typedef struct {
    const Step *steps;
    guint n_steps, n_partitions;
} Pass;

static Pass pass_of(const NjParallelism *parallelism, NjInstructionKind kind)
{
    if (parallelism->cp > 1)
        return kind == NJ_FORWARD ? (Pass){cp_forward, G_N_ELEMENTS(cp_forward), 6}
                                  : (Pass){cp_backward, G_N_ELEMENTS(cp_backward), 8};
    return kind == NJ_FORWARD ? (Pass){tp_forward, G_N_ELEMENTS(tp_forward), 2}
                              : (Pass){tp_backward, G_N_ELEMENTS(tp_backward), 2};
}

guint nj_partition_count(const NjParallelism *parallelism, NjInstructionKind kind)
{
    const guint forward = pass_of(parallelism, NJ_FORWARD).n_partitions;
    return kind == NJ_FORWARD ? forward : forward + pass_of(parallelism, NJ_BACKWARD).n_partitions;
}

static NjRole role_of(NjLaunchKernel kernel)
{
    static const NjRole roles[NJ_N_LAUNCH_KERNELS] = {
        [NJ_LAUNCH_KERNEL_NORM] = NJ_ROLE_NORM,
        [NJ_LAUNCH_KERNEL_LINEAR] = NJ_ROLE_LINEAR,
        [NJ_LAUNCH_KERNEL_ROPE] = NJ_ROLE_ROPE,
        [NJ_LAUNCH_KERNEL_ATTENTION] = NJ_ROLE_ATTENTION,
        [NJ_LAUNCH_KERNEL_ACTIVATION] = NJ_ROLE_ACTIVATION,
    };
    return roles[kernel];
}

void nj_lowering_init(NjLowering *lowering, const NjWorkload *workload)
{
    const int whole = workload->microbatch_size;
    lowering->workload = workload;
    lowering->stack = nj_workload_stack(workload);
    nj_layer_build(&lowering->whole, workload, whole);
    lowering->nano[0] = lowering->nano[1] = (NjLayer){0};
    if (whole >= NJ_N_NANOBATCHES) { // a single sequence is not cut, and nj_lowering_build() says so
        nj_layer_build(&lowering->nano[0], workload, whole - whole / 2);
        nj_layer_build(&lowering->nano[1], workload, whole / 2);
    }
    nj_stage_ends_build(&lowering->ends, workload, whole);
}

// A program under construction.
typedef struct {
    const NjLowering *lowering;
    NjExecution execution;
    NjProgram *program;
    gboolean host_ahead;     // the host has dispatched everything before the program begins
    const NjKernel *pending; // collective that the next step runs beside, or NULL
    Collective pending_kind;
    GError **error;
} Builder;

static void add_compute(Builder *builder, const NjKernel *kernel, guint after_collectives, double dispatch_s)
{
    const NjOp op = {
        .kernel = nj_program_add_kernel(builder->program, kernel),
        .after_other = after_collectives,
    };
    nj_program_add_op(builder->program, NJ_STREAM_COMPUTE, op, dispatch_s);
}

// A collective follows everything dispatched before it, but for with_compute: then it follows after_compute
// operations and begins when operation with_compute begins to work.
static void add_collective(Builder *builder, const NjKernel *kernel, guint after_compute, guint with_compute,
                           guint sms, double dispatch_s)
{
    const NjOp op = {
        .kernel = nj_program_add_kernel(builder->program, kernel),
        .after_other = after_compute,
        .with_other = with_compute,
        .sms = sms,
    };
    nj_program_add_op(builder->program, NJ_STREAM_COMMUNICATION, op, dispatch_s);
}

static guint n_compute(const Builder *builder)
{
    return nj_program_n_ops(builder->program, NJ_STREAM_COMPUTE);
}

static guint n_collectives(const Builder *builder)
{
    return nj_program_n_ops(builder->program, NJ_STREAM_COMMUNICATION);
}

static const NjGpu *gpu_of(const Builder *builder)
{
    return &builder->lowering->workload->gpu;
}

static guint default_sms(const Builder *builder)
{
    return (guint)MIN(gpu_of(builder)->collective_sms + 0.5, gpu_of(builder)->sm_count - 1);
}

static double dispatch_s(const Builder *builder)
{
    const NjStack *stack = &builder->lowering->stack;
    if (builder->host_ahead)
        return 0;
    return 1e-6 * (builder->execution == NJ_EXECUTION_SEQUENTIAL ? stack->dispatch_sequential_us
                                                                 : stack->dispatch_us);
}

static double partition_dispatch_s(const Builder *builder)
{
    return builder->host_ahead ? 0 : 1e-6 * builder->lowering->stack.dispatch_partition_us;
}

// Everything in order, nothing overlapped.
static void add_block(Builder *builder, const NjBlock *block)
{
    for (guint i = 0; i < block->n; i++)
        add_compute(builder, &block->kernels[i], n_collectives(builder), dispatch_s(builder));
}

static void add_exposed(Builder *builder, const NjKernel *collective)
{
    if (collective->link_s > 0)
        add_collective(builder, collective, n_compute(builder), 0, default_sms(builder), dispatch_s(builder));
}

static const NjKernel *collective_of(const NjLayer *layer, Collective which)
{
    const NjKernel *kernel = NULL;
    switch (which) {
    case COLLECTIVE_NONE:
        return NULL;
    case COLLECTIVE_ALL_REDUCE:
        kernel = &layer->all_reduce;
        break;
    case COLLECTIVE_ALL_GATHER:
        kernel = &layer->all_gather;
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        kernel = &layer->reduce_scatter;
        break;
    }
    return kernel->link_s > 0 ? kernel : NULL; // a group of one rank has nothing to do
}

static void set_pending(Builder *builder, const NjLayer *layer, Collective which)
{
    builder->pending = collective_of(layer, which);
    builder->pending_kind = which;
}

// What passes beside compute before the pending collective moves anything; it holds its SMs meanwhile. K and
// V (and their gradients) are copied before they travel. Launched with attention, the copies queue behind
// attention's thread blocks, and the peers wait: for as long as attention takes on the SMs left. That time is
// taken at f_max: with attention's 1 / f the plans are predicted worse (models/README.md).
static double overlapped_latency_s(const Builder *builder, const NjBlock *blocks, const Step *step,
                                   int launch_at, guint sms)
{
    const NjGpu *gpu = gpu_of(builder);
    if (builder->pending_kind == COLLECTIVE_ALL_REDUCE)
        return 1e-3 * gpu->overlapped_allreduce_ms;
    double latency_s = 1e-3 * gpu->overlapped_allgather_ms;
    if (step->blocks[0] == NJ_BLOCK_ATTENTION && launch_at <= 0) {
        const double left = (double)(gpu->sm_count - (int)sms) / gpu->sm_count;
        latency_s += blocks[NJ_BLOCK_ATTENTION].kernels[0].sm_s / left;
    }
    return latency_s;
}

// Which kernel of a step a launch names, counted over the step; -1 where there is none.
static int find_launch_kernel(const NjBlock *blocks, const Step *step, const NjLaunch *launch)
{
    const NjRole role = role_of(launch->kernel);
    guint seen = 0;
    int at = 0;
    for (guint b = 0; b < step->n_blocks; b++) {
        const NjBlock *block = &blocks[step->blocks[b]];
        for (guint i = 0; i < block->n; i++, at++)
            if (block->roles[i] == role && seen++ == launch->index)
                return at;
    }
    return -1;
}

static gboolean check_launch(const Builder *builder, const NjBlock *blocks, const Step *step,
                             const NjLaunch *launch, int *launch_at)
{
    *launch_at = -1;
    if (launch->mode != NJ_LAUNCH_AT)
        return TRUE;
    const int sm_count = gpu_of(builder)->sm_count;
    if (launch->sms < 1 || launch->sms >= (guint)sm_count) {
        g_set_error(builder->error, NJ_ERROR, NJ_ERROR_INPUT, "launch on %u SMs: 1 to %d are possible",
                    launch->sms, sm_count - 1);
        return FALSE;
    }
    *launch_at = find_launch_kernel(blocks, step, launch);
    if (*launch_at < 0) {
        g_autoptr(GString) token = g_string_new(NULL);
        nj_launch_append(launch, token);
        g_set_error(builder->error, NJ_ERROR, NJ_ERROR_INPUT, "launch %s: its partition has no such kernel",
                    token->str);
        return FALSE;
    }
    return TRUE;
}

// A step of one nanobatch with the pending collective of the other beside it.
static gboolean add_partition(Builder *builder, const NjBlock *blocks, const Step *step,
                              const NjLaunch *launch)
{
    const NjKernel *beside = builder->pending;
    const guint before_compute = n_compute(builder);
    const guint before_collectives = n_collectives(builder);
    double first_s = partition_dispatch_s(builder);
    int launch_at;
    if (!check_launch(builder, blocks, step, launch, &launch_at))
        return FALSE;

    const gboolean sequential = launch->mode == NJ_LAUNCH_SEQUENTIAL;
    const guint sms = launch->mode == NJ_LAUNCH_AT ? launch->sms : default_sms(builder);
    NjKernel overlapped;
    if (beside != NULL && !sequential) {
        overlapped = *beside;
        overlapped.latency_s = overlapped_latency_s(builder, blocks, step, launch_at, sms);
        beside = &overlapped;
    }
    if (beside != NULL && launch_at < 0) {
        add_collective(builder, beside, before_compute, 0, sms, first_s + dispatch_s(builder));
        first_s = 0;
    }
    const guint wait_for = sequential ? n_collectives(builder) : before_collectives;
    int at = 0;
    for (guint b = 0; b < step->n_blocks; b++) {
        const NjBlock *block = &blocks[step->blocks[b]];
        for (guint i = 0; i < block->n; i++, at++) {
            add_compute(builder, &block->kernels[i], wait_for, first_s + dispatch_s(builder));
            first_s = 0;
            if (beside != NULL && at == launch_at)
                add_collective(builder, beside, before_compute, n_compute(builder), sms, dispatch_s(builder));
        }
    }
    return TRUE;
}

static void add_pending(Builder *builder)
{
    if (builder->pending != NULL)
        add_exposed(builder, builder->pending);
    builder->pending = NULL;
}

// One pass (a forward or a backward proper) over one layer in two nanobatches.
static gboolean add_layer_nanobatched(Builder *builder, NjInstructionKind kind, const NjLaunch *launches)
{
    const Pass pass = pass_of(&builder->lowering->workload->parallelism, kind);
    for (guint i = 0; i < pass.n_steps; i++) {
        for (guint nano = 0; nano < NJ_N_NANOBATCHES; nano++) {
            const NjLayer *layer = &builder->lowering->nano[nano];
            const NjBlock *blocks = kind == NJ_FORWARD ? layer->forward : layer->backward;
            const Step *step = &pass.steps[i];
            if (!add_partition(builder, blocks, step, &launches[step->partitions[nano]]))
                return FALSE;
            set_pending(builder, layer, step->then);
        }
    }
    return TRUE;
}

static void add_layer_sequential(Builder *builder, NjInstructionKind kind)
{
    const Pass pass = pass_of(&builder->lowering->workload->parallelism, kind);
    const NjLayer *layer = &builder->lowering->whole;
    for (guint i = 0; i < pass.n_steps; i++) {
        const Step *step = &pass.steps[i];
        for (guint b = 0; b < step->n_blocks; b++)
            add_block(builder, kind == NJ_FORWARD ? &layer->forward[step->blocks[b]]
                                                  : &layer->backward[step->blocks[b]]);
        const NjKernel *then = collective_of(layer, step->then);
        if (then != NULL)
            add_exposed(builder, then);
    }
}

static gboolean add_layer(Builder *builder, NjInstructionKind kind, const NjLaunch *launches)
{
    if (builder->execution == NJ_EXECUTION_NANOBATCHED)
        return add_layer_nanobatched(builder, kind, launches);
    add_layer_sequential(builder, kind);
    return TRUE;
}

// What a backward repeats of the layer's forward.
static gboolean add_recomputation(Builder *builder, const NjLaunch *launches)
{
    switch (builder->lowering->workload->recompute) {
    case NJ_RECOMPUTE_FULL:
        return add_layer(builder, NJ_FORWARD, launches);
    case NJ_RECOMPUTE_SELECTIVE:
        add_block(builder, &builder->lowering->whole.forward[NJ_BLOCK_ATTENTION]);
        return TRUE;
    case NJ_RECOMPUTE_NONE:
        return TRUE;
    }
    g_assert_not_reached();
}

static gboolean all_sequential(const NjLaunch *launches, guint n)
{
    for (guint i = 0; i < n; i++)
        if (launches[i].mode != NJ_LAUNCH_SEQUENTIAL)
            return FALSE;
    return n > 0;
}

static gboolean check_launch_list(const Builder *builder, NjInstructionKind kind, const NjLaunch *launches,
                                  guint n_launches)
{
    const guint wanted = nj_partition_count(&builder->lowering->workload->parallelism, kind);
    if (n_launches != 0 && n_launches != wanted) {
        g_set_error(builder->error, NJ_ERROR, NJ_ERROR_INPUT,
                    "a %s has %u launch choices: %u are needed, one a partition",
                    nj_instruction_kind_name(kind), n_launches, wanted);
        return FALSE;
    }
    if (builder->execution == NJ_EXECUTION_SEQUENTIAL && n_launches > 0 &&
        !all_sequential(launches, n_launches)) {
        g_set_error(
            builder->error, NJ_ERROR, NJ_ERROR_INPUT,
            "a %s of sequential execution has launch choices: only nanobatched execution has partitions",
            nj_instruction_kind_name(kind));
        return FALSE;
    }
    return TRUE;
}

static void add_head_forward(Builder *builder)
{
    const NjStageEnds *ends = &builder->lowering->ends;
    add_block(builder, &ends->head_forward);
    for (int i = 0; i < ends->n_loss_all_reduces; i++)
        add_exposed(builder, &ends->loss_all_reduce);
}

gboolean nj_lowering_build(const NjLowering *lowering, NjExecution execution, NjInstructionKind kind,
                           guint stage, int layers, const NjLaunch *launches, guint n_launches,
                           NjProgram *program, GError **error)
{
    static const NjLaunch defaults[NJ_MAX_PARTITIONS] = {{NJ_LAUNCH_DEFAULT, 0, 0, 0}};
    const NjWorkload *workload = lowering->workload;
    const guint last = (guint)workload->parallelism.pp - 1;
    const guint n_forward = nj_partition_count(&workload->parallelism, NJ_FORWARD);
    Builder builder = {.lowering = lowering, .execution = execution, .program = program, .error = error};

    if (!check_launch_list(&builder, kind, launches, n_launches))
        return FALSE;
    if (all_sequential(launches, n_launches))
        builder.execution = NJ_EXECUTION_SEQUENTIAL;
    if (builder.execution == NJ_EXECUTION_NANOBATCHED && workload->microbatch_size < NJ_N_NANOBATCHES) {
        g_set_error(
            error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE,
            "microbatch_size = %d: nanobatching needs at least 2 sequences to cut the microbatch in two",
            workload->microbatch_size);
        return FALSE;
    }
    if (builder.execution == NJ_EXECUTION_NANOBATCHED && workload->recompute != NJ_RECOMPUTE_FULL) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE,
                    "recompute = %s: nanobatching needs full recomputation, its partitions hold it",
                    nj_recompute_names[workload->recompute]);
        return FALSE;
    }
    if (n_launches == 0)
        launches = defaults;

    if (kind == NJ_FORWARD && stage == 0) {
        add_block(&builder, &lowering->ends.embedding_forward);
        add_exposed(&builder, &lowering->whole.all_reduce);
    }
    if (kind == NJ_BACKWARD && stage == last) {
        add_block(&builder, &lowering->ends.head_backward);
        add_exposed(&builder, &lowering->whole.all_reduce);
    }
    for (int i = 0; i < layers; i++) {
        if (!(kind == NJ_FORWARD ? add_layer(&builder, NJ_FORWARD, launches)
                                 : add_recomputation(&builder, launches) &&
                                       add_layer(&builder, NJ_BACKWARD, launches + n_forward)))
            return FALSE;
    }
    add_pending(&builder);
    if (kind == NJ_FORWARD && stage == last)
        add_head_forward(&builder);
    if (kind == NJ_BACKWARD && stage == 0)
        add_block(&builder, &lowering->ends.embedding_backward);
    return TRUE;
}

void nj_lowering_build_reduction(const NjLowering *lowering, guint stage, NjProgram *program)
{
    Builder builder = {.lowering = lowering, .program = program};
    NjUpdate update;
    nj_update_build(&update, lowering->workload, (int)stage);
    if (update.gradient_all_reduce.link_s > 0)
        add_compute(&builder, &update.division, 0, dispatch_s(&builder));
    add_exposed(&builder, &update.gradient_all_reduce);
    add_exposed(&builder, &update.embedding_all_reduce);
}

void nj_lowering_build_step(const NjLowering *lowering, guint stage, NjProgram *program)
{
    Builder builder = {.lowering = lowering, .program = program};
    NjUpdate update;
    nj_update_build(&update, lowering->workload, (int)stage);
    for (guint i = 0; i < update.n_copies; i++)
        add_compute(&builder, &update.copy, 0, dispatch_s(&builder));
    add_block(&builder, &update.step);
}

// The step, nanobatch and preceding collective of a partition type.
static const Step *find_partition(const NjParallelism *parallelism, NjInstructionKind kind, guint partition,
                                  NjInstructionKind *pass_kind, guint *nano, Collective *beside)
{
    const guint n_forward = pass_of(parallelism, NJ_FORWARD).n_partitions;
    *pass_kind = kind == NJ_BACKWARD && partition >= n_forward ? NJ_BACKWARD : NJ_FORWARD;
    if (*pass_kind == NJ_BACKWARD)
        partition -= n_forward;
    const Pass pass = pass_of(parallelism, *pass_kind);
    for (guint i = 0; i < pass.n_steps; i++) {
        for (*nano = 0; *nano < NJ_N_NANOBATCHES; (*nano)++) {
            const Step *step = &pass.steps[i];
            if (step->partitions[*nano] != partition)
                continue;
            // Nanobatch A runs beside what nanobatch B's previous step left (of the previous pass or layer,
            // at the first step: an all-reduce always), B beside what A's same step left.
            *beside = *nano == 1 ? step->then : i == 0 ? COLLECTIVE_ALL_REDUCE : pass.steps[i - 1].then;
            return step;
        }
    }
    g_assert_not_reached();
}

gboolean nj_lowering_build_partition(const NjLowering *lowering, NjInstructionKind kind, guint partition,
                                     const NjLaunch *launch, NjProgram *program, GError **error)
{
    Builder builder = {
        .lowering = lowering,
        .execution = NJ_EXECUTION_NANOBATCHED,
        .program = program,
        .host_ahead = TRUE, // within an instruction it usually is
        .error = error,
    };
    NjInstructionKind pass_kind;
    guint nano;
    Collective beside;
    const Step *step =
        find_partition(&lowering->workload->parallelism, kind, partition, &pass_kind, &nano, &beside);
    const NjLayer *layer = &lowering->nano[nano];
    set_pending(&builder, &lowering->nano[1 - nano], beside);
    return add_partition(&builder, pass_kind == NJ_FORWARD ? layer->forward : layer->backward, step, launch);
}

guint nj_partition_weight(const NjParallelism *parallelism, NjInstructionKind kind, guint partition)
{
    const guint n_forward = pass_of(parallelism, NJ_FORWARD).n_partitions;
    const gboolean backward = kind == NJ_BACKWARD && partition >= n_forward;
    const Pass pass = pass_of(parallelism, backward ? NJ_BACKWARD : NJ_FORWARD);
    guint weight = 0;
    for (guint i = 0; i < pass.n_steps; i++)
        for (guint nano = 0; nano < NJ_N_NANOBATCHES; nano++)
            weight += pass.steps[i].partitions[nano] == (backward ? partition - n_forward : partition);
    return weight;
}

void nj_partition_search_space(const NjLowering *lowering, NjInstructionKind kind, guint partition,
                               GArray *launches)
{
    NjInstructionKind pass_kind;
    guint nano;
    Collective beside;
    const Step *step =
        find_partition(&lowering->workload->parallelism, kind, partition, &pass_kind, &nano, &beside);
    const NjLayer *layer = &lowering->nano[nano];
    const NjBlock *blocks = pass_kind == NJ_FORWARD ? layer->forward : layer->backward;
    const gboolean over_cp = beside == COLLECTIVE_ALL_GATHER || beside == COLLECTIVE_REDUCE_SCATTER;
    const guint first = over_cp ? 1 : 3, last = over_cp ? 20 : 30, step_sms = over_cp ? 1 : 3;
    // The first kernel of every role: what the published search space names with index 0.
    for (guint kernel = 0; kernel < NJ_N_LAUNCH_KERNELS; kernel++) {
        NjLaunch launch = {.mode = NJ_LAUNCH_AT, .kernel = (NjLaunchKernel)kernel};
        if (find_launch_kernel(blocks, step, &launch) < 0)
            continue;
        for (launch.sms = first; launch.sms <= last; launch.sms += step_sms)
            g_array_append_val(launches, launch);
    }
    const NjLaunch sequential = {.mode = NJ_LAUNCH_SEQUENTIAL};
    g_array_append_val(launches, sequential);
}
