// SPDX-License-Identifier: MIT
#pragma once
// What is trained, how it is cut, and on what: the input from which kernels are made. A workload owns its
// architecture and GPU. Ranks of a pipeline stage are alike.

#include "models/arch.h"
#include "models/gpu.h"

G_BEGIN_DECLS

#define NJ_MAX_STAGES 64

typedef struct {
    int tp, cp, pp, dp;
} NjParallelism;

// Reads "tp8", "cp2tp4", "tp4cp2pp2dp8": degrees in any order, each at most once, 1 where left out;
// pp_default where pp is left out. FALSE without an error for other text: the caller names file and key.
gboolean nj_parallelism_parse(const char *text, int pp_default, NjParallelism *parallelism);
// "tp8" or "cp2tp4", with pp and dp only where told and above 1. Transfer full.
char *nj_parallelism_format(const NjParallelism *parallelism, gboolean with_pp);
int nj_parallelism_gpus(const NjParallelism *parallelism);

typedef struct {
    NjArch arch;
    NjGpu gpu;
    NjParallelism parallelism;
    int microbatch_size; // sequences of a microbatch
    int microbatches;    // of an iteration, per data-parallel rank
    int seq_len;
    int layers[NJ_MAX_STAGES]; // layers of every stage, [pp]
} NjWorkload;

void nj_workload_clear(NjWorkload *workload);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjWorkload, nj_workload_clear)

// Splits layers evenly over pp stages. Where they do not divide, earlier stages take the remainder.
void nj_workload_split_layers(NjWorkload *workload);

// Checks that everything divides: heads, kv heads, ffn and vocabulary by tp, sequence by 2 cp (each rank
// takes a head and a tail chunk of the causal sequence), layers by stages. The message says which value does
// not fit and what would; it has no file name. Its code is NJ_ERROR_IMPOSSIBLE.
gboolean nj_workload_check(const NjWorkload *workload, GError **error);

// Tokens one GPU of a stage works on per microbatch of so many sequences.
double nj_workload_tokens(const NjWorkload *workload, int sequences);

G_END_DECLS
