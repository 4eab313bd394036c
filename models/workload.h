// SPDX-License-Identifier: MIT
#pragma once
// What is trained, how it is cut, and on what: the input from which kernels are made. A workload owns its
// architecture and GPU. Ranks of a pipeline stage are alike.

#include "models/arch.h"
#include "models/gpu.h"
#include "models/stack.h"

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

// What a backward repeats of the forward, because its results were not kept: everything, attention alone, or
// nothing.
typedef enum { NJ_RECOMPUTE_FULL, NJ_RECOMPUTE_SELECTIVE, NJ_RECOMPUTE_NONE } NjRecompute;

// Names of NjRecompute, NULL-terminated.
extern const char *const nj_recompute_names[];

typedef struct {
    NjArch arch;
    NjGpu gpu;
    NjParallelism parallelism;
    int microbatch_size; // sequences of a microbatch
    int microbatches;    // of an iteration, per data-parallel rank
    int seq_len;
    int layers[NJ_MAX_STAGES]; // layers of every stage, [pp]
    NjStack stack;             // without a name: the testbed's, nj_workload_stack()
    NjRecompute recompute;
} NjWorkload;

void nj_workload_clear(NjWorkload *workload);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjWorkload, nj_workload_clear)

// The software stack: the workload's own, or the published testbed's; dispatch times it lacks are the GPU's.
NjStack nj_workload_stack(const NjWorkload *workload);

// Splits layers evenly over pp stages. Where they do not divide, earlier stages take the remainder.
void nj_workload_split_layers(NjWorkload *workload);

// Checks that everything divides: heads, kv heads, ffn and vocabulary by tp, sequence by 2 cp (each rank
// takes a head and a tail chunk of the causal sequence), layers by stages. The message says which value does
// not fit and what would; it has no file name. Its code is NJ_ERROR_IMPOSSIBLE.
gboolean nj_workload_check(const NjWorkload *workload, GError **error);

// Ranks that work together, and how they are spread over nodes. Ranks are numbered as Megatron-LM does: tp
// fastest, then cp, dp, pp; a node holds gpus_per_node successive ranks.
typedef struct {
    int size;
    int local; // of these in one node
    int nodes;
} NjGroup;

NjGroup nj_workload_tensor_group(const NjWorkload *workload);
// Ranks that hold the same weights and different gradients: data and context parallel.
NjGroup nj_workload_gradient_group(const NjWorkload *workload);
// The first and the last stage, which share tied embeddings.
NjGroup nj_workload_embedding_group(const NjWorkload *workload);
// Whether stage and stage + 1 of a pipeline share a node.
gboolean nj_workload_same_node(const NjWorkload *workload, int stage);

// Tokens one GPU of a stage works on per microbatch of so many sequences.
double nj_workload_tokens(const NjWorkload *workload, int sequences);

G_END_DECLS
