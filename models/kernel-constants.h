// SPDX-License-Identifier: MIT
#pragma once
// Constants of the single-kernel time forms (models/kernel-time.h) and the GPU they were measured on, read
// from a key file under models/kernels/. Every constant is a share of a data-sheet rate, a fixed time or a
// count, so that a set measured on one GPU can be carried to another by its peaks;
// nj_kernel_constants_fields() lists all keys with unit, bounds and meaning. Which rows they were fitted to
// is written beside each in the file.

#include "models/keyfile.h"

G_BEGIN_DECLS

// What the forms need to know of a GPU, from its data sheet.
typedef struct {
    int sm_count;
    double peak_tflop_s; // bf16 dense, all SMs, at the highest clock
    double hbm_gb_s;     // 1e9 bytes/s
    double nvlink_gb_s;  // per direction, 1e9 bytes/s
} NjKernelHardware;

typedef enum {
    NJ_COLLECTIVE_ALL_REDUCE,
    NJ_COLLECTIVE_ALL_GATHER,
    NJ_COLLECTIVE_REDUCE_SCATTER,
    NJ_COLLECTIVE_ALLTOALL,
    NJ_N_COLLECTIVES,
} NjCollectiveKind;

typedef struct {
    char *measured_on; // the GPU's full name; owned
    NjKernelHardware measured_hardware;

    struct {
        double launch_us;             // before the first tile starts
        double arithmetic_efficiency; // of an SM's peak inside the k loop
        double sm_feed_gb_s;          // what the L2 delivers to one SM
        double tile_ends_us;          // filling and draining a tile of 256 x 128; others by their area
        double hbm_efficiency;        // of the HBM rate
        double split_k_us;            // the extra pass that sums a split k loop
    } gemm;
    struct {
        double launch_us;
        double arithmetic_efficiency; // of the peak inside the loop over keys
        double tail_share;            // of the longest tile's time that adds to an even share of the work
        double q_passes;              // times the bytes of Q cross the HBM at its full rate, besides the loop
        double kv_passes;             // same for K
    } attention;
    struct {
        double launch_us;
        double alltoall_us; // more than launch_us, for a grouped send and receive
        double hop_us;      // from one GPU to the next
        double ll_share;    // LL protocol's bus bandwidth over NVLink's
        double ll128_us;    // more than launch_us, LL128 protocol
        double ll128_share;
        double simple_us; // same, Simple protocol
        double simple_share;
        double chunk_us;                    // per hop, Simple protocol: least time of a chunk in the pipeline
        double switch_share;                // of simple_us, which the library does not see when it chooses
        double end_share[NJ_N_COLLECTIVES]; // share e of the bandwidth 1 - e / gpus lost at the ring's ends
    } collective;
} NjKernelConstants;

// The table of all keys.
const NjField *nj_kernel_constants_fields(guint *n_fields);

// Loads a shipped file by name ("a100") or any by path (contains '/' or ends in ".ini"). On failure the error
// names file, group, key, value and what would be right, and the constants need no clearing.
gboolean nj_kernel_constants_load(NjKernelConstants *constants, const char *name_or_path, GError **error);
void nj_kernel_constants_clear(NjKernelConstants *constants);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjKernelConstants, nj_kernel_constants_clear)

// "all_reduce", "all_gather", "reduce_scatter", "alltoall", as measurement files write them.
const char *nj_collective_name(NjCollectiveKind kind);
// FALSE without an error for another name: the caller knows file and line.
gboolean nj_collective_parse(const char *name, NjCollectiveKind *kind);

G_END_DECLS
