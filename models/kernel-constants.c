// SPDX-License-Identifier: MIT
#include "models/kernel-constants.h"

#include "models/data.h"

#include <stddef.h>

#define AT(member) offsetof(NjKernelConstants, member)
#define REAL(group, key, member, low, high, unit, what)                                                      \
    {                                                                                                        \
        group, key, NJ_FIELD_REAL, AT(member), TRUE, low, high, unit, what                                   \
    }
// A share of something physical: above 0 and below 1.
#define SHARE(group, key, member, what) REAL(group, key, member, 0.001, 0.999, "1", what)
#define TIME(group, key, member, what) REAL(group, key, member, 0, 1000, "us", what)

static const NjField fields[] = {
    {"measured", "gpu", NJ_FIELD_TEXT, AT(measured_on), TRUE, 0, 0, "",
     "full name of the GPU that was measured"},
    {"measured", "sm_count", NJ_FIELD_INT, AT(measured_hardware.sm_count), TRUE, 1, 1024, "SMs",
     "its streaming multiprocessors"},
    REAL("measured", "peak_tflop_s", measured_hardware.peak_tflop_s, 1, 1e5, "TFLOP/s",
         "its dense bf16 peak"),
    REAL("measured", "hbm_gb_s", measured_hardware.hbm_gb_s, 1, 1e5, "GB/s", "its HBM bandwidth"),
    REAL("measured", "nvlink_gb_s", measured_hardware.nvlink_gb_s, 1, 1e4, "GB/s",
         "its NVLink bandwidth per direction"),

    TIME("gemm", "launch_us", gemm.launch_us, "from the start of a GEMM to its first tile"),
    SHARE("gemm", "arithmetic_efficiency", gemm.arithmetic_efficiency,
          "rate over an SM's peak in the k loop"),
    REAL("gemm", "sm_feed_gb_s", gemm.sm_feed_gb_s, 1, 1e4, "GB/s", "what the L2 delivers to one SM"),
    TIME("gemm", "tile_ends_us", gemm.tile_ends_us, "filling and draining a tile of 256 x 128"),
    SHARE("gemm", "hbm_efficiency", gemm.hbm_efficiency, "HBM rate of a GEMM over the HBM bandwidth"),
    TIME("gemm", "split_k_us", gemm.split_k_us, "the extra pass that sums a split k loop"),

    TIME("attention", "launch_us", attention.launch_us, "fixed time of attention forward"),
    SHARE("attention", "arithmetic_efficiency", attention.arithmetic_efficiency,
          "rate over the peak in the loop over keys"),
    REAL("attention", "tail_share", attention.tail_share, 0, 1, "1",
         "share of the longest tile that stays exposed"),
    REAL("attention", "q_passes", attention.q_passes, 0, 100, "1", "HBM passes over Q besides the loop"),
    REAL("attention", "kv_passes", attention.kv_passes, 0, 100, "1", "HBM passes over K besides the loop"),

    TIME("collective", "launch_us", collective.launch_us, "fixed time of a collective, LL protocol"),
    TIME("collective", "alltoall_us", collective.alltoall_us, "what an alltoall's fixed time is longer by"),
    TIME("collective", "hop_us", collective.hop_us, "from one GPU to the next"),
    SHARE("collective", "ll_share", collective.ll_share, "LL protocol's bus bandwidth over NVLink's"),
    TIME("collective", "ll128_us", collective.ll128_us, "what LL128's fixed time is longer by"),
    SHARE("collective", "ll128_share", collective.ll128_share,
          "LL128 protocol's bus bandwidth over NVLink's"),
    TIME("collective", "simple_us", collective.simple_us,
         "what the Simple protocol's fixed time is longer by"),
    SHARE("collective", "simple_share", collective.simple_share,
          "Simple protocol's bus bandwidth over NVLink's"),
    TIME("collective", "chunk_us", collective.chunk_us, "least time of a chunk, Simple protocol"),
    SHARE("collective", "switch_share", collective.switch_share,
          "share of simple_us that the library does not see when it chooses"),
    SHARE("collective", "all_reduce_end_share", collective.end_share[NJ_COLLECTIVE_ALL_REDUCE],
          "e in the bandwidth's 1 - e / gpus"),
    SHARE("collective", "all_gather_end_share", collective.end_share[NJ_COLLECTIVE_ALL_GATHER],
          "e in the bandwidth's 1 - e / gpus"),
    SHARE("collective", "reduce_scatter_end_share", collective.end_share[NJ_COLLECTIVE_REDUCE_SCATTER],
          "e in the bandwidth's 1 - e / gpus"),
    SHARE("collective", "alltoall_end_share", collective.end_share[NJ_COLLECTIVE_ALLTOALL],
          "e in the bandwidth's 1 - e / gpus"),
};

const NjField *nj_kernel_constants_fields(guint *n_fields)
{
    *n_fields = G_N_ELEMENTS(fields);
    return fields;
}

gboolean nj_kernel_constants_load(NjKernelConstants *constants, const char *name_or_path, GError **error)
{
    *constants = (NjKernelConstants){0};
    g_autofree char *path = nj_data_locate("models/kernels", name_or_path, ".ini", error);
    if (path == NULL)
        return FALSE;
    g_autoptr(GKeyFile) file = nj_keyfile_load(path, error);
    if (file != NULL && nj_keyfile_read(file, path, fields, G_N_ELEMENTS(fields), constants, error))
        return TRUE;
    nj_kernel_constants_clear(constants);
    return FALSE;
}

void nj_kernel_constants_clear(NjKernelConstants *constants)
{
    g_clear_pointer(&constants->measured_on, g_free);
}

static const char *const collective_names[NJ_N_COLLECTIVES] = {
    [NJ_COLLECTIVE_ALL_REDUCE] = "all_reduce",
    [NJ_COLLECTIVE_ALL_GATHER] = "all_gather",
    [NJ_COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
    [NJ_COLLECTIVE_ALLTOALL] = "alltoall",
};

const char *nj_collective_name(NjCollectiveKind kind)
{
    g_assert(kind < NJ_N_COLLECTIVES);
    return collective_names[kind];
}

gboolean nj_collective_parse(const char *name, NjCollectiveKind *kind)
{
    for (int i = 0; i < NJ_N_COLLECTIVES; i++)
        if (g_str_equal(name, collective_names[i])) {
            *kind = (NjCollectiveKind)i;
            return TRUE;
        }
    return FALSE;
}
