// SPDX-License-Identifier: MIT
#pragma once
// What the files that build kernels share.

#include "models/layer.h"

G_BEGIN_DECLS

// Sizes that every kernel is made of; all per GPU.
typedef struct {
    const NjGpu *gpu;
    double n;     // tokens
    double d;     // hidden
    double q, kv; // query and key (or value) width on this rank
    double f;     // MLP width on this rank
    double vocab; // on this rank
    double head_dim;
    double seq; // positions a token may attend to
    int tp, cp;
    gboolean qk_norm;
} NjLayerSizes;

NjLayerSizes nj_layer_sizes(const NjWorkload *workload, int sequences);

void nj_block_add(NjBlock *block, NjRole role, NjKernel kernel);
// An HBM-bound kernel of so many bytes.
NjKernel nj_memory_kernel(const NjGpu *gpu, const char *name, double bytes);
// batch products C[m, n] = A[m, k] B[k, n] in 16 bits in one kernel; extra_bytes for an accumulated output.
NjKernel nj_gemm_kernel(const NjLayerSizes *s, const char *name, double batch, double m, double n, double k,
                        double extra_bytes);
// Causal flash attention, forward or backward.
NjKernel nj_flash_attention_kernel(const NjLayerSizes *s, gboolean backward);
// An all-reduce of a group of ranks.
NjKernel nj_all_reduce_kernel(const NjGpu *gpu, const char *name, const NjGroup *group, double message_bytes);

void nj_gpt_layer_build(NjLayer *layer, const NjWorkload *workload, int sequences);
void nj_gpt_stage_ends_build(NjStageEnds *ends, const NjWorkload *workload, int sequences);

G_END_DECLS
