// SPDX-License-Identifier: MIT
#pragma once
// A GPU and the node it sits in: data-sheet facts and the constants of the kernel, sharing and power models.
// Both come from a key file under models/gpus/; nj_gpu_fields() is the table of all of them with unit, bounds
// and meaning. A GPU that was never measured names another one with constants_of: it takes over the constants
// it has none of, shares and times as they are, powers in proportion to power limit minus static power. The
// equations are in models/README.md, the sharing and power equations in sim/device.h.

#include "models/kernel-constants.h"
#include "models/keyfile.h"
#include "sim/device.h"

G_BEGIN_DECLS

typedef struct {
    char *name;
    gboolean calibrated; // FALSE: constants are carried over from another GPU
    char *constants_of;  // the GPU whose [model] constants stand in for those the file leaves out, or NULL

    // Data sheet
    int sm_count;
    double peak_tflop_s; // bf16 dense, at freq_max
    double hbm_gb_s;     // 1e9 bytes/s
    double hbm_gib;      // memory size, 2^30 bytes
    double nvlink_gb_s;  // per GPU and direction, 1e9 bytes/s
    int gpus_per_node;
    double network_gb_s;       // per GPU and direction, between nodes
    double network_efficiency; // bus bandwidth that collectives reach over network_gb_s
    int freq_min_mhz, freq_max_mhz, freq_step_mhz;
    double static_w;
    double power_limit_w;
    char *kernels_name;        // single-kernel constants: a file of models/kernels/
    NjKernelConstants kernels; // loaded from it

    // Kernels: rate inside training over the rate of the same kernel alone
    double gemm_share;
    double attention_forward_share;
    double attention_backward_share; // backward has 2.5 times the forward's work
    double hbm_efficiency;           // of HBM-bound kernels, over the data-sheet rate
    double kernel_gap_us;
    double embedding_token_us; // backward, per token outside the rank's slice of the vocabulary

    // Collectives
    double allreduce_share; // rate inside training over the rate alone
    double allgather_share; // same, all-gather and reduce-scatter
    double allreduce_latency_ms;
    double allgather_latency_ms;
    double overlapped_allreduce_ms; // fixed cost of a collective launched beside compute
    double overlapped_allgather_ms;
    double collective_sms; // SMs the communication library takes by default
    double saturation_sms;
    double network_latency_us;

    // Clock and sharing
    double hbm_freq_exponent;
    double link_freq_exponent;
    double overlap_gemm;
    double overlap_attention;
    double overlap_memory;
    double overlap_comm_gemm;
    double overlap_comm_memory;

    // Power
    double gemm_w;      // dynamic power of arithmetic at the peak rate, V(f_max)
    double attention_w; // same, flop of attention
    double hbm_w;       // of HBM traffic at the data-sheet rate
    double link_w;      // of link traffic at the data-sheet rate
    double clock_w;
    double collective_sm_w;
    double volt_linear;
    double volt_quadratic;
    double unscaled_share;

    // Host: the nanobatching engine's and the sequential engine's dispatch
    double dispatch_us;
    double dispatch_partition_us;
    double dispatch_sequential_us;
} NjGpu;

// The table of all keys; fields of group "model" are the constants that calibration may free.
const NjField *nj_gpu_fields(guint *n_fields);

// A sentence that every report made with an uncalibrated GPU carries, or NULL for a calibrated one. Transfer
// full.
char *nj_gpu_note(const NjGpu *gpu);

// Loads a GPU by the name of a shipped file ("a100-sxm4-40gb") or by path (contains '/' or ends in ".ini").
gboolean nj_gpu_load(NjGpu *gpu, const char *name_or_path, GError **error);
void nj_gpu_clear(NjGpu *gpu);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjGpu, nj_gpu_clear)

// Whether the GPU has this clock; the error (of the scenario's key, say) is the caller's.
gboolean nj_gpu_has_freq(const NjGpu *gpu, int freq_mhz);

// The device that the engine runs.
void nj_gpu_device_spec(const NjGpu *gpu, NjDeviceSpec *spec);

G_END_DECLS
