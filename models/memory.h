// SPDX-License-Identifier: MIT
#pragma once
// Memory of one GPU of a pipeline stage, part by part.
//
// Weights, gradients and optimizer are those of Megatron-LM's mixed-precision Adam: 18 bytes a parameter,
// namely 2 for bf16 weights, 4 for fp32 gradients, and 12 for the fp32 copy of the weights and both moments;
// the distributed optimizer splits those 12 over data-parallel ranks. Every stage with the embedding or the
// LM head holds its own copy of that matrix, split by tp.
//
// Activations follow Korthikanti et al. 2022 (arXiv 2205.05198, sections 4 and 5), taken apart so that
// grouped-query attention, gated MLPs and context parallelism fit in. With n tokens of a microbatch on this
// GPU, d hidden, q and k query and key/value widths, f MLP width, t = tp, a layer keeps, in bytes,
//   not split by tp:  4 n d (inputs of both norms) + 4 n d (inputs of QKV and FC1) + 2 n d (dropout masks)
//   split by tp:      n (2 (q + 2 k) (Q, K, V) + 2 q (input of the projection)
//                        + 2 f + 2 f (input of the activation and of FC2; 4 f + 2 f where gated)) / t
//   attention scores: 5 heads seq n / t (softmax, its dropout mask, its dropout), none with flash attention,
//   which
//                     keeps 4 heads n / t (fp32 logarithms of sums), and none with selective recomputation
// With GPT shapes (q = k = d, f = 4 d) that is the paper's n d (10 + 24 / t + 5 heads seq / (d t)). Sequence
// parallelism splits all of it by t. Full recomputation keeps the layer's input, 2 n d, and needs the rest
// for one layer at a time. A 1F1B stage holds the activations of min(pp - stage, microbatches) microbatches.
//
// Not counted: the CUDA context, communication library and allocator, about 1 to 2 GiB.

#include "models/workload.h"

G_BEGIN_DECLS

#define NJ_GIB 1073741824.0 // bytes

// What memory depends on.
typedef struct {
    int hidden, heads, q_width, kv_width, ffn, vocab;
    gboolean gated_mlp;       // SwiGLU: FC1 is twice as wide
    gboolean qk_norm;         // norms of Q and K keep their inputs
    gboolean flash_attention; // never materialises the scores
    gboolean dropout;         // hidden dropout keeps masks
    int tp, cp, pp, dp;
    gboolean sequence_parallel;
    gboolean distributed_optimizer;
    NjRecompute recompute;
    int seq_len, microbatch_size, microbatches;
    const int *layers; // [pp], not owned
    gboolean tied_embeddings;
    gboolean nanobatched; // two nanobatches: a second collective is in flight out of place
} NjMemoryShape;

typedef enum {
    NJ_MEMORY_WEIGHTS,
    NJ_MEMORY_GRADIENTS,
    NJ_MEMORY_OPTIMIZER,
    NJ_MEMORY_ACTIVATIONS, // kept for the backward of microbatches in flight
    NJ_MEMORY_WORKING,     // the layer at work where activations are recomputed, and gathered K and V
    NJ_MEMORY_LOGITS,      // of the LM head: bf16, and fp32 in which the loss leaves their gradient
    NJ_MEMORY_NANOBATCH,   // buffers of collectives in flight
    NJ_N_MEMORY_PARTS,
} NjMemoryPart;

typedef struct {
    double bytes[NJ_N_MEMORY_PARTS];
} NjMemory;

// "weights", "gradients", ...: as in reports.
const char *nj_memory_part_name(NjMemoryPart part);

// The shape of a workload as it is executed here: full recomputation, flash attention, hidden dropout, no
// sequence parallelism (design of the modelled testbed). The workload must outlive the shape.
void nj_memory_shape_from_workload(const NjWorkload *workload, gboolean nanobatched, NjMemoryShape *shape);

// Parameters of a stage that one GPU holds.
double nj_memory_parameters(const NjMemoryShape *shape, int stage);
// Bytes that one layer keeps of one microbatch for its backward, and what it needs while it is at work beyond
// that.
double nj_memory_layer_kept(const NjMemoryShape *shape);
double nj_memory_layer_working(const NjMemoryShape *shape);

// Memory of a GPU of a stage. in_flight: microbatches whose activations a stage holds; 0: those of 1F1B.
// (Interleaving over v chunks makes it pp + (pp - 1) / v on the first stage.)
void nj_memory_of_stage(const NjMemoryShape *shape, int stage, double in_flight, NjMemory *memory);
double nj_memory_total(const NjMemory *memory);
// The stage that needs most, and its memory.
int nj_memory_of_fullest_stage(const NjMemoryShape *shape, NjMemory *memory);

G_END_DECLS
