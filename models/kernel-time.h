// SPDX-License-Identifier: MIT
#pragma once
// Time of one kernel that runs alone on a GPU at its highest clock. Pure functions of shape, data-sheet peaks
// and a few constants (models/kernel-constants.h), cheap enough to be called for every kernel of a set-up
// (below 1 us). Equations, errors and what was dropped: models/KERNELS.md.
//
// GEMM (bf16 in and out, fp32 sums): the output is cut into tiles of 256x128, 128x256, 128x128, 128x64,
// 64x128 or 64x64 and the k loop into 1..32 splits; the fastest combination is taken. Each SM computes one
// tile at a time, so that the SMs work in waves and the last, partly filled wave costs a whole one. A step of
// a tile takes the longer of its arithmetic and its operands' way from L2 to the SM; the whole takes the
// longer of the waves and the HBM traffic (both maxima are rounded off).
//
// Attention (causal, forward, flash): tiles of 128 queries step through keys 64 at a time up to the diagonal.
// SMs share the work evenly but for a share of the longest tile; passes over Q, K and V beside the loop add
// their HBM time.
//
// Collectives in a node: the faster of three protocols, each a fixed time plus hops plus wire bytes over a
// bus bandwidth; the Simple protocol's time is that of a pipeline over the hops with the best chunk size.
//
// Where the clock is below the highest, core_s grows as 1/f and the rest stays: an assumption, the constants
// were fitted to measurements at one clock.

#include "models/kernel-constants.h"

G_BEGIN_DECLS

typedef struct {
    double total_s;  // the kernel's time
    double fixed_s;  // launch and fixed passes
    double core_s;   // waves of tiles: scales with 1/f
    double memory_s; // HBM traffic at the rate the kernel reaches
    // GEMM only, else 0: what was chosen
    int tile_m, tile_n, splits;
    gint64 waves;
} NjKernelTime;

// C[m, n] = A[m, k] B[k, n] on so many of the GPU's SMs, 1..sm_count (fewer where a collective holds some).
// m, n, k are at least 1.
NjKernelTime nj_gemm_time(const NjKernelConstants *constants, const NjKernelHardware *hardware, int sms,
                          gint64 m, gint64 n, gint64 k);

// Q[batch, seq_len, heads, head_dim] against K, V[batch, seq_len, kv_heads, head_dim], causal. All at
// least 1.
NjKernelTime nj_attention_time(const NjKernelConstants *constants, const NjKernelHardware *hardware, int sms,
                               gint64 batch, gint64 seq_len, gint64 heads, gint64 kv_heads, gint64 head_dim);

// Flop as models/README.md counts it: 2 m n k.
double nj_gemm_flop(gint64 m, gint64 n, gint64 k);

// Seconds of a collective over so many GPUs of a node; 0 for one GPU. message_bytes is the whole message of
// one rank: what an all-reduce sums, what an all-gather ends with, what a reduce-scatter or an alltoall
// starts from.
double nj_collective_time(const NjKernelConstants *constants, const NjKernelHardware *hardware,
                          NjCollectiveKind kind, int gpus, double message_bytes);

// Bytes that every GPU sends in a ring: (gpus - 1) / gpus of the message, twice for an all-reduce. Over the
// collective's time this is the bus bandwidth.
double nj_collective_wire_bytes(NjCollectiveKind kind, int gpus, double message_bytes);

G_END_DECLS
