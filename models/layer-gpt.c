// SPDX-License-Identifier: MIT
// Kernels of architectures that are not as Llama in every key, as eager PyTorch runs them: what has no fused
// kernel of its own is a kernel per operation. Bytes per kernel, with n tokens, d hidden, q = k = v width on
// this rank, f MLP width, S = sequences x heads x seq^2 scores on this rank:
//
//   forward                            backward
//   bias-dropout-add (jit)    7 n d    dropout 5 n d, bias sum 2 n d
//   norm                      4 n d    6 n d; weight and bias 4 n d, 0; sum with the residual 6 n d
//   QKV                       GEMM     2 GEMMs; joining dQ, dK and dV 12 n q
//   QKV bias                  12 n q   bias sum 6 n q
//   scores                    GEMM     2 GEMMs
//   scale-mask-softmax        3 S      6 S
//   dropout of the scores     5 S      5 S
//   context                   GEMM     2 GEMMs
//   its transposition         4 n q    4 n q
//   projection, FC1, FC2      GEMM     2 GEMMs each
//   bias-gelu (jit)           4 n f    6 n f, bias sum 2 n f
//   LM head                   GEMM     2 GEMMs
//   loss over v logits        38 n v   14 n v
//
// The loss in fp32: conversion 6, maximum 4, difference 8, exp 8, sum 4, division 8; backward product 8,
// conversion 6. The fused softmax reads the causal half of the scores and writes all; the GEMMs compute all.
// It exists for at most 2048 keys and a number of (sequence, head) pairs that is a multiple of 4
// (Megatron-LM, fused_softmax.py, is_kernel_available); otherwise five kernels in fp32 do its work, 36 S
// forward and 40 S backward.
//
// Where the stack does not accumulate gradients in GEMMs, every parameter has a kernel that does: 2 + 2 g
// bytes a weight, with gradients of g bytes.
#include "models/layer-private.h"

typedef struct {
    NjLayerSizes s;
    const NjArch *arch;
    NjStack stack;
    double batch; // (sequence, head) pairs
    double scores;
} Gpt;

static Gpt gpt_of(const NjWorkload *workload, int sequences)
{
    Gpt g = {
        .s = nj_layer_sizes(workload, sequences),
        .arch = &workload->arch,
        .stack = nj_workload_stack(workload),
    };
    g.batch = MAX(g.s.n * g.s.cp / g.s.seq, 1) * MAX(g.s.q / g.s.head_dim, 1);
    g.scores = g.batch * (g.s.seq / g.s.cp) * g.s.seq;
    return g;
}

static void add_memory(NjBlock *block, const Gpt *g, NjRole role, const char *name, double bytes)
{
    nj_block_add(block, role, nj_memory_kernel(g->s.gpu, name, bytes));
}

static void add_gemm(NjBlock *block, const Gpt *g, NjRole role, const char *name, double m, double n,
                     double k)
{
    nj_block_add(block, role, nj_gemm_kernel(&g->s, name, 1, m, n, k, 0));
}

// Products of every (sequence, head) pair; part of attention in reports.
static void add_batched(NjBlock *block, const Gpt *g, const char *name, double m, double n, double k)
{
    NjKernel kernel = nj_gemm_kernel(&g->s, name, g->batch, m, n, k, 0);
    kernel.kind = NJ_KERNEL_ATTENTION;
    nj_block_add(block, NJ_ROLE_ATTENTION, kernel);
}

// A parameter's gradient is added to what earlier microbatches left.
static void add_accumulation(NjBlock *block, const Gpt *g, double weights)
{
    if (!g->stack.fused_gradients)
        add_memory(block, g, NJ_ROLE_OTHER, "gradient-add", (2 + 2.0 * g->stack.gradient_bytes) * weights);
}

// Data and weight gradient of a linear layer.
static void add_linear_backward(NjBlock *block, const Gpt *g, const char *dgrad, const char *wgrad, double in,
                                double out)
{
    add_gemm(block, g, NJ_ROLE_LINEAR, dgrad, g->s.n, in, out);
    const double extra = g->stack.fused_gradients ? (2.0 * g->stack.gradient_bytes - 2) * in * out : 0;
    nj_block_add(block, NJ_ROLE_OTHER, nj_gemm_kernel(&g->s, wgrad, 1, out, in, g->s.n, extra));
    add_accumulation(block, g, in * out);
}

static void add_bias_backward(NjBlock *block, const Gpt *g, double width)
{
    if (!g->arch->biases)
        return;
    add_memory(block, g, NJ_ROLE_OTHER, "bias-sum", 2 * g->s.n * width);
    add_accumulation(block, g, width);
}

static void add_norm_backward(NjBlock *block, const Gpt *g)
{
    const double nd = g->s.n * g->s.d;
    add_memory(block, g, NJ_ROLE_NORM, "norm-backward", 6 * nd);
    add_memory(block, g, NJ_ROLE_OTHER, "norm-weight-backward", 4 * nd);
    add_memory(block, g, NJ_ROLE_OTHER, "norm-weight-sum", 0);
    add_accumulation(block, g, g->s.d);
    if (g->arch->norm == NJ_NORM_LAYERNORM)
        add_accumulation(block, g, g->s.d);
    add_memory(block, g, NJ_ROLE_OTHER, "residual-add", 6 * nd);
}

static void add_residual_backward(NjBlock *block, const Gpt *g)
{
    add_memory(block, g, NJ_ROLE_OTHER, "bias-dropout-add-backward", 5 * g->s.n * g->s.d);
    add_bias_backward(block, g, g->s.d);
}

static gboolean has_fused_softmax(const Gpt *g)
{
    return g->s.seq <= 2048 && (gint64)g->batch % 4 == 0;
}

typedef struct {
    const char *name;
    double bytes; // per score
} ScoreKernel;

static void add_score_kernels(NjBlock *block, const Gpt *g, const ScoreKernel *kernels, guint n)
{
    for (guint i = 0; i < n; i++)
        add_memory(block, g, NJ_ROLE_OTHER, kernels[i].name, kernels[i].bytes * g->scores);
}

static void add_softmax(NjBlock *block, const Gpt *g, gboolean backward)
{
    static const ScoreKernel fused[] = {{"softmax", 3}};
    static const ScoreKernel fused_backward[] = {{"softmax-backward", 6}};
    static const ScoreKernel eager[] = {
        {"scores-to-fp32", 6}, {"scale", 8}, {"mask", 8}, {"softmax", 8}, {"softmax-to-fp16", 6}};
    static const ScoreKernel eager_backward[] = {{"softmax-to-fp32-backward", 6},
                                                 {"softmax-backward", 12},
                                                 {"mask-backward", 8},
                                                 {"scale-backward", 8},
                                                 {"scores-to-fp16-backward", 6}};
    if (has_fused_softmax(g))
        add_score_kernels(block, g, backward ? fused_backward : fused, 1);
    else
        add_score_kernels(block, g, backward ? eager_backward : eager, 5);
}

static void build_attention(NjBlock *block, const Gpt *g)
{
    const NjLayerSizes *s = &g->s;
    if (g->arch->attention == NJ_ATTENTION_FLASH) {
        nj_block_add(block, NJ_ROLE_ATTENTION, nj_flash_attention_kernel(s, FALSE));
        return;
    }
    const double rows = s->seq / s->cp; // queries of this rank
    add_batched(block, g, "scores", rows, s->seq, s->head_dim);
    add_softmax(block, g, FALSE);
    add_memory(block, g, NJ_ROLE_OTHER, "scores-dropout", 5 * g->scores);
    add_batched(block, g, "context", rows, s->head_dim, s->seq);
    add_memory(block, g, NJ_ROLE_OTHER, "context-transpose", 4 * s->n * s->q);
}

static void build_attention_backward(NjBlock *block, const Gpt *g)
{
    const NjLayerSizes *s = &g->s;
    if (g->arch->attention == NJ_ATTENTION_FLASH) {
        nj_block_add(block, NJ_ROLE_ATTENTION, nj_flash_attention_kernel(s, TRUE));
        return;
    }
    const double rows = s->seq / s->cp;
    add_memory(block, g, NJ_ROLE_OTHER, "context-transpose-backward", 4 * s->n * s->q);
    add_batched(block, g, "context-backward-scores", rows, s->seq, s->head_dim);
    add_batched(block, g, "context-backward-v", s->seq, s->head_dim, rows);
    add_memory(block, g, NJ_ROLE_OTHER, "scores-dropout-backward", 5 * g->scores);
    add_softmax(block, g, TRUE);
    add_batched(block, g, "scores-backward-q", rows, s->head_dim, s->seq);
    add_batched(block, g, "scores-backward-k", s->seq, s->head_dim, rows);
}

static double fc1_width(const Gpt *g)
{
    return g->arch->mlp == NJ_MLP_SWIGLU ? 2 * g->s.f : g->s.f;
}

static void build_forward(NjBlock *blocks, const Gpt *g)
{
    const NjLayerSizes *s = &g->s;
    const double n = s->n, d = s->d, qkv = s->q + 2 * s->kv;

    NjBlock *block = &blocks[NJ_BLOCK_QKV];
    add_memory(block, g, NJ_ROLE_OTHER, "bias-dropout-add", 7 * n * d); // of the layer before
    add_memory(block, g, NJ_ROLE_NORM, "norm", 4 * n * d);
    add_gemm(block, g, NJ_ROLE_LINEAR, "qkv", n, qkv, d);
    if (g->arch->biases)
        add_memory(block, g, NJ_ROLE_OTHER, "qkv-bias", 4 * n * qkv);
    if (g->arch->attention == NJ_ATTENTION_FLASH)
        add_memory(block, g, NJ_ROLE_OTHER, "qkv-split", 4 * n * qkv);
    if (s->qk_norm)
        add_memory(block, g, NJ_ROLE_OTHER, "qk-norm", 4 * n * (s->q + s->kv));
    if (g->arch->positions == NJ_POSITIONS_ROPE)
        add_memory(block, g, NJ_ROLE_ROPE, "rope", 4 * n * (s->q + s->kv));

    build_attention(&blocks[NJ_BLOCK_ATTENTION], g);
    add_gemm(&blocks[NJ_BLOCK_PROJECTION], g, NJ_ROLE_LINEAR, "projection", n, d, s->q);

    block = &blocks[NJ_BLOCK_MLP];
    add_memory(block, g, NJ_ROLE_OTHER, "bias-dropout-add", 7 * n * d);
    add_memory(block, g, NJ_ROLE_NORM, "norm", 4 * n * d);
    add_gemm(block, g, NJ_ROLE_LINEAR, "fc1", n, fc1_width(g), d);
    if (g->arch->mlp == NJ_MLP_GELU)
        add_memory(block, g, NJ_ROLE_ACTIVATION, "bias-gelu", 4 * n * s->f);
    else
        add_memory(block, g, NJ_ROLE_ACTIVATION, "swiglu", 6 * n * s->f);
    add_gemm(block, g, NJ_ROLE_LINEAR, "fc2", n, d, s->f);
}

static void build_backward(NjBlock *blocks, const Gpt *g)
{
    const NjLayerSizes *s = &g->s;
    const double n = s->n, d = s->d, qkv = s->q + 2 * s->kv;

    NjBlock *block = &blocks[NJ_BLOCK_MLP];
    add_residual_backward(block, g);
    add_linear_backward(block, g, "fc2-dgrad", "fc2-wgrad", s->f, d);
    if (g->arch->mlp == NJ_MLP_GELU)
        add_memory(block, g, NJ_ROLE_ACTIVATION, "bias-gelu-backward", 6 * n * s->f);
    else
        add_memory(block, g, NJ_ROLE_ACTIVATION, "swiglu-backward", 10 * n * s->f);
    add_bias_backward(block, g, fc1_width(g));
    add_linear_backward(block, g, "fc1-dgrad", "fc1-wgrad", d, fc1_width(g));
    add_norm_backward(block, g);

    block = &blocks[NJ_BLOCK_PROJECTION];
    add_residual_backward(block, g);
    add_linear_backward(block, g, "projection-dgrad", "projection-wgrad", s->q, d);

    build_attention_backward(&blocks[NJ_BLOCK_ATTENTION], g);

    block = &blocks[NJ_BLOCK_QKV];
    if (g->arch->positions == NJ_POSITIONS_ROPE)
        add_memory(block, g, NJ_ROLE_ROPE, "rope-backward", 4 * n * (s->q + s->kv));
    if (s->qk_norm)
        add_memory(block, g, NJ_ROLE_OTHER, "qk-norm-backward", 8 * n * (s->q + s->kv));
    add_memory(block, g, NJ_ROLE_OTHER, "qkv-join", 4 * n * qkv);
    add_bias_backward(block, g, qkv);
    add_linear_backward(block, g, "qkv-dgrad", "qkv-wgrad", d, qkv);
    add_norm_backward(block, g);
}

void nj_gpt_layer_build(NjLayer *layer, const NjWorkload *workload, int sequences)
{
    const Gpt g = gpt_of(workload, sequences);
    build_forward(layer->forward, &g);
    build_backward(layer->backward, &g);
}

// Small kernels whose time is the host's: labels, masks and position ids of a microbatch, sums over its
// tokens.
static void add_small(NjBlock *block, const Gpt *g, const char *name, guint count, double bytes)
{
    for (guint i = 0; i < count; i++)
        add_memory(block, g, NJ_ROLE_OTHER, name, bytes);
}

void nj_gpt_stage_ends_build(NjStageEnds *ends, const NjWorkload *workload, int sequences)
{
    const Gpt g = gpt_of(workload, sequences);
    const double n = g.s.n, d = g.s.d, v = g.s.vocab;

    // Megatron-LM makes the mask, its comparison, loss mask, position ids, tokens and labels anew.
    NjBlock *block = &ends->embedding_forward;
    add_small(block, &g, "batch", 12, 8 * n);
    add_memory(block, &g, NJ_ROLE_OTHER, "embedding", 4 * n * d);
    if (g.arch->positions == NJ_POSITIONS_LEARNED) {
        add_memory(block, &g, NJ_ROLE_OTHER, "positions", 4 * n * d);
        add_memory(block, &g, NJ_ROLE_OTHER, "positions-add", 6 * n * d);
    }
    add_memory(block, &g, NJ_ROLE_OTHER, "embedding-dropout", 5 * n * d);

    // The gradient of a table is dense: cleared, filled, and added.
    block = &ends->embedding_backward;
    add_memory(block, &g, NJ_ROLE_OTHER, "embedding-dropout-backward", 5 * n * d);
    add_memory(block, &g, NJ_ROLE_OTHER, "embedding-backward", 2 * v * d + 4 * n * d);
    add_accumulation(block, &g, v * d);
    if (g.arch->positions == NJ_POSITIONS_LEARNED) {
        add_memory(block, &g, NJ_ROLE_OTHER, "positions-backward", 2 * g.arch->max_positions * d + 4 * n * d);
        add_accumulation(block, &g, g.arch->max_positions * d);
    }

    block = &ends->head_forward;
    add_memory(block, &g, NJ_ROLE_NORM, "norm", 4 * n * d);
    add_gemm(block, &g, NJ_ROLE_LINEAR, "lm-head", n, v, d);
    static const ScoreKernel loss[] = {{"logits-to-fp32", 6}, {"logits-maximum", 4}, {"logits-difference", 8},
                                       {"logits-exp", 8},     {"logits-sum", 4},     {"logits-division", 8}};
    for (guint i = 0; i < G_N_ELEMENTS(loss); i++)
        add_memory(block, &g, NJ_ROLE_OTHER, loss[i].name, loss[i].bytes * n * v);
    add_small(block, &g, "loss", 9, 8 * n);

    block = &ends->head_backward;
    add_small(block, &g, "loss-backward", 5, 8 * n);
    add_memory(block, &g, NJ_ROLE_OTHER, "logits-product", 8 * n * v);
    add_memory(block, &g, NJ_ROLE_OTHER, "logits-to-fp16", 6 * n * v);
    add_linear_backward(block, &g, "lm-head-dgrad", "lm-head-wgrad", d, v);
    add_norm_backward(block, &g);
}
