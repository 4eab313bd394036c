// SPDX-License-Identifier: MIT
#include "models/layer.h"

#include "models/kernel-time.h"
#include "models/layer-private.h"
#include "models/network.h"

typedef NjLayerSizes Sizes;

NjLayerSizes nj_layer_sizes(const NjWorkload *w, int sequences)
{
    const int tp = w->parallelism.tp;
    return (Sizes){
        .gpu = &w->gpu,
        .n = nj_workload_tokens(w, sequences),
        .d = w->arch.hidden,
        .q = (double)w->arch.heads * w->arch.head_dim / tp,
        .kv = (double)MAX(w->arch.kv_heads / tp, 1) * w->arch.head_dim,
        .f = (double)w->arch.ffn / tp,
        .vocab = (double)w->arch.vocab / tp,
        .head_dim = w->arch.head_dim,
        .seq = w->seq_len,
        .tp = tp,
        .cp = w->parallelism.cp,
        .qk_norm = w->arch.qk_norm,
    };
}

static double peak_flop_per_s(const NjGpu *gpu)
{
    return gpu->peak_tflop_s * 1e12;
}

static double hbm_bytes_per_s(const NjGpu *gpu)
{
    return gpu->hbm_gb_s * 1e9;
}

static NjKernelHardware hardware_of(const NjGpu *gpu)
{
    return (NjKernelHardware){gpu->sm_count, gpu->peak_tflop_s, gpu->hbm_gb_s, gpu->nvlink_gb_s};
}

// sm_s: arithmetic on all SMs at the highest clock, inside training.
static NjKernel compute_kernel(const NjGpu *gpu, const char *name, NjKernelKind kind, double flop,
                               double sm_s, double bytes, double peak_w)
{
    const double traffic_s = bytes / hbm_bytes_per_s(gpu);
    return (NjKernel){
        .name = name,
        .kind = kind,
        .latency_s = gpu->kernel_gap_us * 1e-6,
        .sm_s = sm_s,
        .hbm_s = traffic_s / gpu->hbm_efficiency,
        .sm_j = peak_w * flop / peak_flop_per_s(gpu),
        .hbm_j = gpu->hbm_w * traffic_s,
        .flop = flop,
        .hbm_bytes = bytes,
    };
}

NjKernel nj_memory_kernel(const NjGpu *gpu, const char *name, double bytes)
{
    return compute_kernel(gpu, name, NJ_KERNEL_MEMORY, 0, 0, bytes, 0);
}

void nj_block_add(NjBlock *block, NjRole role, NjKernel kernel)
{
    g_assert(block->n < NJ_MAX_BLOCK_KERNELS);
    block->roles[block->n] = role;
    block->kernels[block->n++] = kernel;
}

static void add_memory(NjBlock *block, NjRole role, const Sizes *s, const char *name, double bytes)
{
    nj_block_add(block, role, nj_memory_kernel(s->gpu, name, bytes));
}

// The tiles of a batch stand below one another: as many as the batch has where m is a multiple of a tile.
NjKernel nj_gemm_kernel(const Sizes *s, const char *name, double batch, double m, double n, double k,
                        double extra_bytes)
{
    const NjKernelHardware hardware = hardware_of(s->gpu);
    const NjKernelTime alone = nj_gemm_time(&s->gpu->kernels, &hardware, hardware.sm_count,
                                            (gint64)(batch * m), (gint64)n, (gint64)k);
    return compute_kernel(s->gpu, name, NJ_KERNEL_GEMM, 2 * batch * m * n * k,
                          alone.core_s / s->gpu->gemm_share,
                          2 * batch * (m * k + k * n + m * n) + extra_bytes, s->gpu->gemm_w);
}

static NjKernel gemm(const Sizes *s, const char *name, double m, double n, double k, double extra_bytes)
{
    return nj_gemm_kernel(s, name, 1, m, n, k, extra_bytes);
}

static void add_linear(NjBlock *block, const Sizes *s, const char *name, double in, double out)
{
    nj_block_add(block, NJ_ROLE_LINEAR, gemm(s, name, s->n, out, in, 0));
}

// Data gradient, then weight gradient. The latter is accumulated into the fp32 main gradient: 4 bytes read
// and 4 written per weight, where gemm() counts a bf16 output.
static void add_linear_backward(NjBlock *block, const Sizes *s, const char *dgrad, const char *wgrad,
                                double in, double out)
{
    nj_block_add(block, NJ_ROLE_LINEAR, gemm(s, dgrad, s->n, in, out, 0));
    nj_block_add(block, NJ_ROLE_OTHER, gemm(s, wgrad, out, in, s->n, 6 * in * out));
}

// Causal flash attention. Flop count: half of 4 n seq q. Under context parallelism a rank has 1 / cp of the
// queries against all keys: 1 / cp of the whole's time.
static NjKernel attention(const Sizes *s, const char *name, double work, double share, double bytes)
{
    const NjKernelHardware hardware = hardware_of(s->gpu);
    const double head_dim = s->head_dim;
    const NjKernelTime alone = nj_attention_time(
        &s->gpu->kernels, &hardware, hardware.sm_count, (gint64)MAX(s->n * s->cp / s->seq, 1), (gint64)s->seq,
        (gint64)MAX(s->q / head_dim, 1), (gint64)MAX(s->kv / head_dim, 1), (gint64)head_dim);
    return compute_kernel(s->gpu, name, NJ_KERNEL_ATTENTION, work * 2 * s->n * s->seq * s->q,
                          work * alone.core_s / s->cp / share, bytes, s->gpu->attention_w);
}

NjKernel nj_flash_attention_kernel(const Sizes *s, gboolean backward)
{
    // Every query block reads the keys and values of all ranks.
    const double kv = s->kv * s->cp;
    if (!backward)
        return attention(s, "attention", 1, s->gpu->attention_forward_share, 2 * s->n * (2 * s->q + 2 * kv));
    // Five matrix products where the forward has two.
    return attention(s, "attention-backward", 2.5, s->gpu->attention_backward_share,
                     2 * s->n * (4 * s->q + 4 * kv));
}

static void build_forward(NjBlock *blocks, const Sizes *s)
{
    const double n = s->n, d = s->d;
    const double qkv = s->q + 2 * s->kv;

    NjBlock *block = &blocks[NJ_BLOCK_QKV];
    add_memory(block, NJ_ROLE_OTHER, s, "bias-dropout-add", 7 * n * d);
    add_memory(block, NJ_ROLE_NORM, s, "norm", 4 * n * d);
    add_linear(block, s, "qkv", d, qkv);
    add_memory(block, NJ_ROLE_OTHER, s, "qkv-split", 4 * n * qkv);
    if (s->qk_norm)
        add_memory(block, NJ_ROLE_OTHER, s, "qk-norm", 4 * n * (s->q + s->kv));
    add_memory(block, NJ_ROLE_ROPE, s, "rope", 4 * n * (s->q + s->kv));

    nj_block_add(&blocks[NJ_BLOCK_ATTENTION], NJ_ROLE_ATTENTION, nj_flash_attention_kernel(s, FALSE));

    add_linear(&blocks[NJ_BLOCK_PROJECTION], s, "projection", s->q, d);

    block = &blocks[NJ_BLOCK_MLP];
    add_memory(block, NJ_ROLE_OTHER, s, "bias-dropout-add", 7 * n * d);
    add_memory(block, NJ_ROLE_NORM, s, "norm", 4 * n * d);
    add_linear(block, s, "fc1", d, 2 * s->f);
    add_memory(block, NJ_ROLE_ACTIVATION, s, "swiglu", 6 * n * s->f);
    add_linear(block, s, "fc2", s->f, d);
}

static void build_backward(NjBlock *blocks, const Sizes *s)
{
    const double n = s->n, d = s->d;
    const double qkv = s->q + 2 * s->kv;

    NjBlock *block = &blocks[NJ_BLOCK_MLP];
    add_linear_backward(block, s, "fc2-dgrad", "fc2-wgrad", s->f, d);
    add_memory(block, NJ_ROLE_ACTIVATION, s, "swiglu-backward", 10 * n * s->f);
    add_linear_backward(block, s, "fc1-dgrad", "fc1-wgrad", d, 2 * s->f);
    add_memory(block, NJ_ROLE_NORM, s, "norm-backward", 8 * n * d);
    add_memory(block, NJ_ROLE_OTHER, s, "bias-dropout-add-backward", 5 * n * d);

    add_linear_backward(&blocks[NJ_BLOCK_PROJECTION], s, "projection-dgrad", "projection-wgrad", s->q, d);

    nj_block_add(&blocks[NJ_BLOCK_ATTENTION], NJ_ROLE_ATTENTION, nj_flash_attention_kernel(s, TRUE));

    block = &blocks[NJ_BLOCK_QKV];
    add_memory(block, NJ_ROLE_ROPE, s, "rope-backward", 4 * n * (s->q + s->kv));
    if (s->qk_norm)
        add_memory(block, NJ_ROLE_OTHER, s, "qk-norm-backward", 8 * n * (s->q + s->kv));
    add_memory(block, NJ_ROLE_OTHER, s, "qkv-split-backward", 4 * n * qkv);
    add_linear_backward(block, s, "qkv-dgrad", "qkv-wgrad", d, qkv);
    add_memory(block, NJ_ROLE_NORM, s, "norm-backward", 8 * n * d);
    add_memory(block, NJ_ROLE_OTHER, s, "bias-dropout-add-backward", 5 * n * d);
}

// What a collective inside training takes over the same alone, and what it costs in HBM.
typedef struct {
    const char *name;
    double hbm_passes; // how often the wire bytes cross HBM
    double share;
    double latency_ms;
} CollectiveCosts;

static CollectiveCosts collective_costs(const NjGpu *gpu, NjCollectiveKind kind)
{
    switch (kind) {
    case NJ_COLLECTIVE_ALL_REDUCE:
        // In a ring every byte received is read, added and written, and read again to be sent.
        return (CollectiveCosts){"all-reduce", 1.7, gpu->allreduce_share, gpu->allreduce_latency_ms};
    case NJ_COLLECTIVE_ALL_GATHER:
        return (CollectiveCosts){"all-gather", 2, gpu->allgather_share, gpu->allgather_latency_ms};
    case NJ_COLLECTIVE_REDUCE_SCATTER:
        return (CollectiveCosts){"reduce-scatter", 3, gpu->allgather_share, gpu->allgather_latency_ms};
    case NJ_COLLECTIVE_ALLTOALL:
    case NJ_N_COLLECTIVES:
        break;
    }
    g_assert_not_reached();
}

static NjKernel collective(const NjGpu *gpu, NjCollectiveKind kind, const NjGroup *group,
                           double message_bytes)
{
    const CollectiveCosts costs = collective_costs(gpu, kind);
    const double wire = nj_collective_wire_bytes(kind, group->size, message_bytes);
    const double hbm_bytes = costs.hbm_passes * wire;
    return (NjKernel){
        .name = costs.name,
        .kind = NJ_KERNEL_COLLECTIVE,
        .latency_s = costs.latency_ms * 1e-3,
        .link_s = nj_group_collective_s(gpu, kind, group, message_bytes) / costs.share,
        .hbm_s = hbm_bytes / (hbm_bytes_per_s(gpu) * gpu->hbm_efficiency),
        .hbm_j = gpu->hbm_w * hbm_bytes / hbm_bytes_per_s(gpu),
        .link_j = gpu->link_w * wire / (gpu->nvlink_gb_s * 1e9),
        .hbm_bytes = hbm_bytes,
        .link_bytes = wire,
    };
}

NjKernel nj_all_reduce_kernel(const NjGpu *gpu, const char *name, const NjGroup *group, double message_bytes)
{
    NjKernel kernel = collective(gpu, NJ_COLLECTIVE_ALL_REDUCE, group, message_bytes);
    kernel.name = name;
    return kernel;
}

NjKernel nj_single_gemm(const NjGpu *gpu, double m, double n, double k)
{
    const Sizes sizes = {.gpu = gpu};
    return nj_gemm_kernel(&sizes, "gemm", 1, m, n, k, 0);
}

NjKernel nj_single_memory(const NjGpu *gpu, double bytes)
{
    return nj_memory_kernel(gpu, "memory", bytes);
}

NjKernel nj_single_collective(const NjGpu *gpu, NjCollectiveKind kind, int gpus, double message_bytes)
{
    const NjGroup group = {gpus, gpus, 1};
    return collective(gpu, kind, &group, message_bytes);
}

void nj_layer_build(NjLayer *layer, const NjWorkload *workload, int sequences)
{
    const Sizes s = nj_layer_sizes(workload, sequences);
    const NjGroup tensor = nj_workload_tensor_group(workload);
    const NjGroup context = {s.cp, s.cp, 1}; // tensor and context parallelism share a node
    *layer = (NjLayer){0};
    if (nj_arch_is_gpt_like(&workload->arch)) {
        nj_gpt_layer_build(layer, workload, sequences);
    } else {
        build_forward(layer->forward, &s);
        build_backward(layer->backward, &s);
    }
    layer->all_reduce = nj_all_reduce_kernel(s.gpu, "all-reduce", &tensor, 2 * s.n * s.d);
    // K and V of all ranks, repeated to the query heads before they travel: the plans tell
    // (models/README.md).
    const double kv_bytes = s.cp * 4 * s.n * s.q;
    layer->all_gather = collective(s.gpu, NJ_COLLECTIVE_ALL_GATHER, &context, kv_bytes);
    layer->reduce_scatter = collective(s.gpu, NJ_COLLECTIVE_REDUCE_SCATTER, &context, kv_bytes);
}

void nj_stage_ends_build(NjStageEnds *ends, const NjWorkload *workload, int sequences)
{
    const Sizes s = nj_layer_sizes(workload, sequences);
    const NjGroup tensor = nj_workload_tensor_group(workload);
    *ends = (NjStageEnds){.n_loss_all_reduces = 3};
    // Maximum, predicted logit and sum of exponentials of a vocabulary-parallel cross entropy.
    ends->loss_all_reduce = nj_all_reduce_kernel(s.gpu, "all-reduce", &tensor, 4 * s.n);
    if (nj_arch_is_gpt_like(&workload->arch)) {
        nj_gpt_stage_ends_build(ends, workload, sequences);
        return;
    }
    add_memory(&ends->embedding_forward, NJ_ROLE_OTHER, &s, "embedding", 8 * s.n * s.d);
    // The dense gradient of the rank's slice is cleared, written and added to the fp32 main gradient. Tokens
    // outside the slice are all masked to its first row, whose sum is a chain of dependent additions.
    add_memory(&ends->embedding_backward, NJ_ROLE_OTHER, &s, "embedding-backward",
               8 * s.n * s.d + 12 * s.vocab * s.d);
    ends->embedding_backward.kernels[0].latency_s +=
        1e-6 * s.gpu->embedding_token_us * s.n * (1 - 1.0 / s.tp);
    add_memory(&ends->head_forward, NJ_ROLE_NORM, &s, "norm", 4 * s.n * s.d);
    add_linear(&ends->head_forward, &s, "lm-head", s.d, s.vocab);
    add_memory(&ends->head_forward, NJ_ROLE_OTHER, &s, "loss", 12 * s.n * s.vocab);
    add_memory(&ends->head_backward, NJ_ROLE_OTHER, &s, "loss-backward", 8 * s.n * s.vocab);
    add_linear_backward(&ends->head_backward, &s, "lm-head-dgrad", "lm-head-wgrad", s.d, s.vocab);
    add_memory(&ends->head_backward, NJ_ROLE_NORM, &s, "norm-backward", 8 * s.n * s.d);
}

double nj_point_to_point_s(const NjWorkload *workload, int stage)
{
    const NjGpu *gpu = &workload->gpu;
    const double bytes = 2 * nj_workload_tokens(workload, workload->microbatch_size) * workload->arch.hidden;
    const double nvlink = gpu->nvlink_gb_s * 1e9, latency_s = gpu->network_latency_us * 1e-6;
    if (nj_workload_same_node(workload, stage))
        return latency_s + bytes / nvlink;
    const double network = gpu->network_gb_s * 1e9;
    const NjGroup tensor = nj_workload_tensor_group(workload);
    if (!nj_workload_stack(workload).scatter_gather || tensor.size == 1)
        return latency_s + bytes / network;
    return latency_s + bytes / tensor.size / network +
           nj_group_collective_s(gpu, NJ_COLLECTIVE_ALL_GATHER, &tensor, bytes) / gpu->allgather_share;
}
