// SPDX-License-Identifier: MIT
#include "models/memory.h"

#define BF16 2.0 // bytes
#define FP32 4.0

const char *nj_memory_part_name(NjMemoryPart part)
{
    static const char *const names[NJ_N_MEMORY_PARTS] = {
        [NJ_MEMORY_WEIGHTS] = "weights",
        [NJ_MEMORY_GRADIENTS] = "gradients",
        [NJ_MEMORY_OPTIMIZER] = "optimizer",
        [NJ_MEMORY_ACTIVATIONS] = "activations",
        [NJ_MEMORY_WORKING] = "working_set",
        [NJ_MEMORY_LOGITS] = "logits",
        [NJ_MEMORY_NANOBATCH] = "nanobatch_buffers",
    };
    return names[part];
}

void nj_memory_shape_from_workload(const NjWorkload *workload, gboolean nanobatched, NjMemoryShape *shape)
{
    const NjArch *arch = &workload->arch;
    const NjParallelism *p = &workload->parallelism;
    *shape = (NjMemoryShape){
        .hidden = arch->hidden,
        .heads = arch->heads,
        .q_width = arch->heads * arch->head_dim,
        .kv_width = arch->kv_heads * arch->head_dim,
        .ffn = arch->ffn,
        .vocab = arch->vocab,
        .gated_mlp = arch->mlp == NJ_MLP_SWIGLU,
        .qk_norm = arch->qk_norm,
        .flash_attention = arch->attention == NJ_ATTENTION_FLASH,
        .dropout = TRUE,
        .tp = p->tp,
        .cp = p->cp,
        .pp = p->pp,
        .dp = p->dp,
        .recompute = workload->recompute,
        .seq_len = workload->seq_len,
        .microbatch_size = workload->microbatch_size,
        .microbatches = workload->microbatches,
        .layers = workload->layers,
        .tied_embeddings = arch->tied_embeddings,
        .nanobatched = nanobatched,
    };
}

// Tokens of a microbatch on one GPU.
static double tokens(const NjMemoryShape *s)
{
    return (double)s->microbatch_size * s->seq_len / s->cp;
}

// By how much what tensor parallelism alone does not split is split.
static double sequence_split(const NjMemoryShape *s)
{
    return s->sequence_parallel ? s->tp : 1;
}

// K and V that ranks share when there are fewer heads than ranks are held by each of them; q_width / tp is
// exact.
static double kv_width_per_rank(const NjMemoryShape *s)
{
    const double head = (double)s->q_width / s->heads;
    return MAX((double)s->kv_width / s->tp, head);
}

double nj_memory_parameters(const NjMemoryShape *s, int stage)
{
    const double d = s->hidden, t = s->tp;
    const double attention = d * s->q_width / t + 2 * d * kv_width_per_rank(s) + s->q_width * d / t;
    const double mlp = (s->gated_mlp ? 3 : 2) * d * s->ffn / t;
    const double norms = 2 * d + (s->qk_norm ? 2.0 * s->q_width / s->heads : 0);
    const double matrix = (double)s->vocab * d / t; // embedding or LM head
    const gboolean first = stage == 0, last = stage == s->pp - 1;
    // Tied: one matrix where both ends are on one stage, a copy on either stage otherwise.
    const double ends = first && last && s->tied_embeddings ? 1 : first + last;
    return s->layers[stage] * (attention + mlp + norms) + ends * matrix + (last ? d : 0);
}

// What a layer keeps where nothing is recomputed but, with selective recomputation, the scores.
static double layer_full(const NjMemoryShape *s)
{
    const double n = tokens(s), d = s->hidden;
    const double whole = BF16 * (2 + 2) * n * d + (s->dropout ? 2 * n * d : 0);
    const double q = (double)s->q_width / s->tp, kv = kv_width_per_rank(s), f = (double)s->ffn / s->tp;
    double split = BF16 * n * (q + 2 * kv + q + (s->gated_mlp ? 3 : 2) * f);
    if (s->qk_norm)
        split += BF16 * n * (q + kv);
    const double heads = (double)s->heads / s->tp;
    if (s->flash_attention)
        split += FP32 * heads * n;
    else if (s->recompute != NJ_RECOMPUTE_SELECTIVE)
        split += (s->dropout ? 5 : 2) * heads * s->seq_len * n;
    return whole / sequence_split(s) + split;
}

double nj_memory_layer_kept(const NjMemoryShape *s)
{
    return s->recompute == NJ_RECOMPUTE_FULL ? BF16 * tokens(s) * s->hidden / sequence_split(s)
                                             : layer_full(s);
}

double nj_memory_layer_working(const NjMemoryShape *s)
{
    // Context parallelism gathers K and V of the whole sequence for one layer, repeated to the query heads.
    const double gathered = s->cp > 1 ? BF16 * tokens(s) * s->cp * 2 * s->q_width / s->tp : 0;
    return gathered + (s->recompute == NJ_RECOMPUTE_FULL ? layer_full(s) : 0);
}

void nj_memory_of_stage(const NjMemoryShape *s, int stage, double in_flight, NjMemory *memory)
{
    g_assert(stage >= 0 && stage < s->pp);
    const double parameters = nj_memory_parameters(s, stage);
    const double n = tokens(s), d = s->hidden;
    if (in_flight <= 0)
        in_flight = MIN(s->pp - stage, s->microbatches);
    *memory = (NjMemory){0};
    memory->bytes[NJ_MEMORY_WEIGHTS] = BF16 * parameters;
    memory->bytes[NJ_MEMORY_GRADIENTS] = FP32 * parameters;
    memory->bytes[NJ_MEMORY_OPTIMIZER] = 3 * FP32 * parameters / (s->distributed_optimizer ? s->dp : 1);
    double kept = s->layers[stage] * nj_memory_layer_kept(s);
    if (stage == 0 && s->dropout)
        kept += n * d / sequence_split(s); // mask of the embedding's dropout
    memory->bytes[NJ_MEMORY_ACTIVATIONS] = in_flight * kept;
    memory->bytes[NJ_MEMORY_WORKING] = nj_memory_layer_working(s);
    if (stage == s->pp - 1) {
        // Inputs of the last norm and of the head, of one microbatch: its backward follows at once.
        memory->bytes[NJ_MEMORY_ACTIVATIONS] += 2 * BF16 * n * d / sequence_split(s);
        memory->bytes[NJ_MEMORY_LOGITS] = (BF16 + FP32) * n * s->vocab / s->tp;
    }
    if (s->nanobatched && s->tp > 1)
        memory->bytes[NJ_MEMORY_NANOBATCH] = BF16 * n * d;
}

double nj_memory_total(const NjMemory *memory)
{
    double total = 0;
    for (guint part = 0; part < NJ_N_MEMORY_PARTS; part++)
        total += memory->bytes[part];
    return total;
}

int nj_memory_of_fullest_stage(const NjMemoryShape *shape, NjMemory *memory)
{
    int fullest = 0;
    nj_memory_of_stage(shape, 0, 0, memory);
    for (int stage = 1; stage < shape->pp; stage++) {
        NjMemory other;
        nj_memory_of_stage(shape, stage, 0, &other);
        if (nj_memory_total(&other) > nj_memory_total(memory)) {
            *memory = other;
            fullest = stage;
        }
    }
    return fullest;
}
