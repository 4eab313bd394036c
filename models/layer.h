// SPDX-License-Identifier: MIT
#pragma once
// Kernels of a transformer layer and of a stage's ends, per GPU, for a (nano)batch of so many sequences under
// tensor and context parallelism. A layer is four blocks, in forward order QKV, attention, projection, MLP;
// backward runs them in reverse. Collectives stand apart: the schedule decides what they overlap with. Flop
// and bytes of every kernel are in models/README.md.

#include "models/workload.h"
#include "sim/kernel.h"

G_BEGIN_DECLS

// What launch choices name a kernel by.
typedef enum {
    NJ_ROLE_OTHER,
    NJ_ROLE_NORM,
    NJ_ROLE_LINEAR,
    NJ_ROLE_ROPE,
    NJ_ROLE_ATTENTION,
    NJ_ROLE_ACTIVATION,
} NjRole;

#define NJ_MAX_BLOCK_KERNELS 32

typedef struct {
    guint n;
    NjKernel kernels[NJ_MAX_BLOCK_KERNELS];
    NjRole roles[NJ_MAX_BLOCK_KERNELS];
} NjBlock;

typedef enum { NJ_BLOCK_QKV, NJ_BLOCK_ATTENTION, NJ_BLOCK_PROJECTION, NJ_BLOCK_MLP, NJ_N_BLOCKS } NjBlockKind;

typedef struct {
    NjBlock forward[NJ_N_BLOCKS];
    NjBlock backward[NJ_N_BLOCKS];
    NjKernel all_reduce;     // of the hidden states over tp; nothing to do where tp is 1
    NjKernel all_gather;     // of K and V over cp; nothing to do where cp is 1
    NjKernel reduce_scatter; // of their gradients over cp
} NjLayer;

// What the first and the last stage do besides layers.
typedef struct {
    NjBlock embedding_forward,
        embedding_backward;              // first stage; forward ends in an all-reduce of the hidden states
    NjBlock head_forward, head_backward; // last stage; backward ends in an all-reduce of the hidden states
    NjKernel loss_all_reduce;            // of one float per token
    int n_loss_all_reduces;              // per forward
} NjStageEnds;

// Single kernels as layers are made of, for whoever measures them one by one. m, n, k of C[m, n] = A[m, k]
// B[k, n]; bytes that cross HBM; a collective's message over so many GPUs of a node (at least 2), counted as
// nj_collective_time() does: all-reduce, all-gather or reduce-scatter.
NjKernel nj_single_gemm(const NjGpu *gpu, double m, double n, double k);
NjKernel nj_single_memory(const NjGpu *gpu, double bytes);
NjKernel nj_single_collective(const NjGpu *gpu, NjCollectiveKind kind, int gpus, double message_bytes);

void nj_layer_build(NjLayer *layer, const NjWorkload *workload, int sequences);
void nj_stage_ends_build(NjStageEnds *ends, const NjWorkload *workload, int sequences);

// Seconds that the activations of a microbatch need from a stage to the next one.
double nj_point_to_point_s(const NjWorkload *workload, int stage);

G_END_DECLS
