// SPDX-License-Identifier: MIT
#include "models/layer.h"

// Sizes that every kernel is made of; all per GPU.
typedef struct {
    const NjGpu *gpu;
    double n;     // tokens
    double d;     // hidden
    double q, kv; // query and key (or value) width on this rank
    double f;     // MLP width on this rank
    double vocab; // on this rank
    double seq;   // positions a token may attend to
    int tp, cp;
    gboolean qk_norm;
} Sizes;

static Sizes sizes_of(const NjWorkload *w, int sequences)
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

static NjKernel compute_kernel(const Sizes *s, const char *name, NjKernelKind kind, double flop, double bytes,
                               double efficiency, double peak_w)
{
    const NjGpu *gpu = s->gpu;
    const double peak_s = flop / peak_flop_per_s(gpu);
    const double traffic_s = bytes / hbm_bytes_per_s(gpu);
    return (NjKernel){
        .name = name,
        .kind = kind,
        .latency_s = gpu->kernel_gap_us * 1e-6,
        .sm_s = peak_s / efficiency,
        .hbm_s = traffic_s / gpu->hbm_efficiency,
        .sm_j = peak_w * peak_s,
        .hbm_j = gpu->hbm_w * traffic_s,
        .flop = flop,
        .hbm_bytes = bytes,
    };
}

static void add(NjBlock *block, NjRole role, NjKernel kernel)
{
    g_assert(block->n < NJ_MAX_BLOCK_KERNELS);
    block->roles[block->n] = role;
    block->kernels[block->n++] = kernel;
}

static void add_memory(NjBlock *block, NjRole role, const Sizes *s, const char *name, double bytes)
{
    add(block, role, compute_kernel(s, name, NJ_KERNEL_MEMORY, 0, bytes, 1, 0));
}

// C[m, n] = A[m, k] B[k, n] in bf16; extra_bytes for an accumulated output.
static NjKernel gemm(const Sizes *s, const char *name, double efficiency, double m, double n, double k,
                     double extra_bytes)
{
    return compute_kernel(s, name, NJ_KERNEL_GEMM, 2 * m * n * k, 2 * (m * k + k * n + m * n) + extra_bytes,
                          efficiency, s->gpu->gemm_w);
}

static void add_linear(NjBlock *block, const Sizes *s, const char *name, double efficiency, double in,
                       double out)
{
    add(block, NJ_ROLE_LINEAR, gemm(s, name, efficiency, s->n, out, in, 0));
}

// Data gradient, then weight gradient. The latter is accumulated into the fp32 main gradient: 4 bytes read
// and 4 written per weight, where gemm() counts a bf16 output.
static void add_linear_backward(NjBlock *block, const Sizes *s, const char *dgrad, const char *wgrad,
                                double efficiency, double in, double out)
{
    add(block, NJ_ROLE_LINEAR, gemm(s, dgrad, efficiency, s->n, in, out, 0));
    add(block, NJ_ROLE_OTHER, gemm(s, wgrad, efficiency, out, in, s->n, 6 * in * out));
}

static void build_forward(NjBlock *blocks, const Sizes *s)
{
    const double n = s->n, d = s->d;
    const double qkv = s->q + 2 * s->kv;
    const double eff = s->gpu->gemm_efficiency;

    NjBlock *block = &blocks[NJ_BLOCK_QKV];
    add_memory(block, NJ_ROLE_OTHER, s, "bias-dropout-add", 7 * n * d);
    add_memory(block, NJ_ROLE_NORM, s, "norm", 4 * n * d);
    add_linear(block, s, "qkv", eff, d, qkv);
    add_memory(block, NJ_ROLE_OTHER, s, "qkv-split", 4 * n * qkv);
    if (s->qk_norm)
        add_memory(block, NJ_ROLE_OTHER, s, "qk-norm", 4 * n * (s->q + s->kv));
    add_memory(block, NJ_ROLE_ROPE, s, "rope", 4 * n * (s->q + s->kv));

    // Causal: half of 4 n seq q. Every query block reads the keys and values of all ranks.
    const double attention_bytes = 2 * n * (2 * s->q + 2 * s->kv * s->cp);
    add(&blocks[NJ_BLOCK_ATTENTION], NJ_ROLE_ATTENTION,
        compute_kernel(s, "attention", NJ_KERNEL_ATTENTION, 2 * n * s->seq * s->q, attention_bytes,
                       s->gpu->attention_fwd_efficiency, s->gpu->attention_w));

    add_linear(&blocks[NJ_BLOCK_PROJECTION], s, "projection", eff, s->q, d);

    block = &blocks[NJ_BLOCK_MLP];
    add_memory(block, NJ_ROLE_OTHER, s, "bias-dropout-add", 7 * n * d);
    add_memory(block, NJ_ROLE_NORM, s, "norm", 4 * n * d);
    add_linear(block, s, "fc1", eff, d, 2 * s->f);
    add_memory(block, NJ_ROLE_ACTIVATION, s, "swiglu", 6 * n * s->f);
    add_linear(block, s, "fc2", eff, s->f, d);
}

static void build_backward(NjBlock *blocks, const Sizes *s)
{
    const double n = s->n, d = s->d;
    const double qkv = s->q + 2 * s->kv;
    const double eff = s->gpu->gemm_efficiency;

    NjBlock *block = &blocks[NJ_BLOCK_MLP];
    add_linear_backward(block, s, "fc2-dgrad", "fc2-wgrad", eff, s->f, d);
    add_memory(block, NJ_ROLE_ACTIVATION, s, "swiglu-backward", 10 * n * s->f);
    add_linear_backward(block, s, "fc1-dgrad", "fc1-wgrad", eff, d, 2 * s->f);
    add_memory(block, NJ_ROLE_NORM, s, "norm-backward", 8 * n * d);
    add_memory(block, NJ_ROLE_OTHER, s, "bias-dropout-add-backward", 7 * n * d);

    add_linear_backward(&blocks[NJ_BLOCK_PROJECTION], s, "projection-dgrad", "projection-wgrad", eff, s->q,
                        d);

    // Five matrix products where the forward has two.
    const double attention_bytes = 2 * n * (4 * s->q + 4 * s->kv * s->cp);
    add(&blocks[NJ_BLOCK_ATTENTION], NJ_ROLE_ATTENTION,
        compute_kernel(s, "attention-backward", NJ_KERNEL_ATTENTION, 2.5 * 2 * n * s->seq * s->q,
                       attention_bytes, s->gpu->attention_bwd_efficiency, s->gpu->attention_w));

    block = &blocks[NJ_BLOCK_QKV];
    add_memory(block, NJ_ROLE_ROPE, s, "rope-backward", 4 * n * (s->q + s->kv));
    if (s->qk_norm)
        add_memory(block, NJ_ROLE_OTHER, s, "qk-norm-backward", 8 * n * (s->q + s->kv));
    add_memory(block, NJ_ROLE_OTHER, s, "qkv-split-backward", 4 * n * qkv);
    add_linear_backward(block, s, "qkv-dgrad", "qkv-wgrad", eff, d, qkv);
    add_memory(block, NJ_ROLE_NORM, s, "norm-backward", 8 * n * d);
    add_memory(block, NJ_ROLE_OTHER, s, "bias-dropout-add-backward", 7 * n * d);
}

static NjKernel collective(const NjGpu *gpu, const char *name, double wire_bytes, double hbm_bytes,
                           double rate_gb_s, double latency_ms)
{
    return (NjKernel){
        .name = name,
        .kind = NJ_KERNEL_COLLECTIVE,
        .latency_s = latency_ms * 1e-3,
        .link_s = wire_bytes / (rate_gb_s * 1e9),
        .hbm_s = hbm_bytes / (hbm_bytes_per_s(gpu) * gpu->hbm_efficiency),
        .hbm_j = gpu->hbm_w * hbm_bytes / hbm_bytes_per_s(gpu),
        .link_j = gpu->link_w * wire_bytes / (gpu->nvlink_gb_s * 1e9),
        .hbm_bytes = hbm_bytes,
        .link_bytes = wire_bytes,
    };
}

// Ring or tree: every GPU sends 2 (t - 1) / t of the message; in HBM it is read, reduced and written about
// three times.
static NjKernel all_reduce(const Sizes *s, double message_bytes)
{
    const NjGpu *gpu = s->gpu;
    const double wire = 2.0 * (s->tp - 1) / s->tp * message_bytes;
    return collective(gpu, "all-reduce", wire, 3 * message_bytes,
                      s->tp <= 4 ? gpu->allreduce4_gb_s : gpu->allreduce8_gb_s, gpu->allreduce_latency_ms);
}

void nj_layer_build(NjLayer *layer, const NjWorkload *workload, int sequences)
{
    const Sizes s = sizes_of(workload, sequences);
    *layer = (NjLayer){0};
    build_forward(layer->forward, &s);
    build_backward(layer->backward, &s);
    layer->all_reduce = all_reduce(&s, 2 * s.n * s.d);
    const double wire = (s.cp - 1) * 4 * s.n * s.kv;
    layer->all_gather =
        collective(s.gpu, "all-gather", wire, 2 * wire, s.gpu->allgather_gb_s, s.gpu->allgather_latency_ms);
    layer->reduce_scatter = collective(s.gpu, "reduce-scatter", wire, 3 * wire, s.gpu->allgather_gb_s,
                                       s.gpu->allgather_latency_ms);
}

void nj_stage_ends_build(NjStageEnds *ends, const NjWorkload *workload, int sequences)
{
    const Sizes s = sizes_of(workload, sequences);
    const double eff = s.gpu->head_efficiency;
    *ends = (NjStageEnds){.n_loss_all_reduces = 3};
    add_memory(&ends->embedding_forward, NJ_ROLE_OTHER, &s, "embedding", 8 * s.n * s.d);
    add_memory(&ends->embedding_backward, NJ_ROLE_OTHER, &s, "embedding-backward", 8 * s.n * s.d);
    add_memory(&ends->head_forward, NJ_ROLE_NORM, &s, "norm", 4 * s.n * s.d);
    add_linear(&ends->head_forward, &s, "lm-head", eff, s.d, s.vocab);
    add_memory(&ends->head_forward, NJ_ROLE_OTHER, &s, "loss", 12 * s.n * s.vocab);
    add_memory(&ends->head_backward, NJ_ROLE_OTHER, &s, "loss-backward", 8 * s.n * s.vocab);
    add_linear_backward(&ends->head_backward, &s, "lm-head-dgrad", "lm-head-wgrad", eff, s.d, s.vocab);
    add_memory(&ends->head_backward, NJ_ROLE_NORM, &s, "norm-backward", 8 * s.n * s.d);
    // Maximum, predicted logit and sum of exponentials of a vocabulary-parallel cross entropy.
    ends->loss_all_reduce = all_reduce(&s, 4 * s.n);
}

double nj_point_to_point_s(const NjWorkload *workload)
{
    const NjGpu *gpu = &workload->gpu;
    const double bytes = 2 * nj_workload_tokens(workload, workload->microbatch_size) * workload->arch.hidden;
    // Stages follow each other node by node unless several fit into one node.
    const int per_stage = workload->parallelism.tp * workload->parallelism.cp;
    const gboolean same_node =
        per_stage * workload->parallelism.pp * workload->parallelism.dp <= gpu->gpus_per_node;
    const double rate = (same_node ? gpu->nvlink_gb_s : gpu->network_gb_s) * 1e9;
    return gpu->network_latency_us * 1e-6 + bytes / rate;
}
