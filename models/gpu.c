// SPDX-License-Identifier: MIT
#include "models/gpu.h"

#include "models/data.h"
#include "sim/error.h"

#include <stddef.h>
#include <string.h>

#define TEXT(group, member, what)                                                                            \
    {                                                                                                        \
        group, #member, NJ_FIELD_TEXT, offsetof(NjGpu, member), TRUE, 0, 0, "", what                         \
    }
#define FLAG(group, member, what)                                                                            \
    {                                                                                                        \
        group, #member, NJ_FIELD_BOOL, offsetof(NjGpu, member), TRUE, 0, 1, "", what                         \
    }
#define COUNT(group, member, low, high, unit, what)                                                          \
    {                                                                                                        \
        group, #member, NJ_FIELD_INT, offsetof(NjGpu, member), TRUE, low, high, unit, what                   \
    }
#define REAL(group, member, low, high, unit, what)                                                           \
    {                                                                                                        \
        group, #member, NJ_FIELD_REAL, offsetof(NjGpu, member), TRUE, low, high, unit, what                  \
    }

static const NjField fields[] = {
    TEXT("gpu", name, "the GPU's full name"),
    FLAG("gpu", calibrated, "whether the model constants were fitted on this GPU"),
    {"gpu", "constants_of", NJ_FIELD_TEXT, offsetof(NjGpu, constants_of), FALSE, 0, 0, "",
     "the GPU whose constants are carried over"},
    COUNT("gpu", sm_count, 1, 1024, "SMs", "streaming multiprocessors"),
    REAL("gpu", peak_tflop_s, 1, 1e5, "TFLOP/s", "dense bf16 peak at freq_max_mhz"),
    REAL("gpu", hbm_gb_s, 1, 1e5, "GB/s", "HBM bandwidth"),
    REAL("gpu", hbm_gib, 1, 1e4, "GiB", "HBM size"),
    REAL("gpu", nvlink_gb_s, 1, 1e4, "GB/s", "NVLink bandwidth per direction"),
    COUNT("gpu", gpus_per_node, 1, 1024, "GPUs", "GPUs joined by NVLink"),
    REAL("gpu", network_gb_s, 0.1, 1e4, "GB/s", "network bandwidth per GPU and direction between nodes"),
    REAL("gpu", network_efficiency, 0.1, 1, "",
         "bus bandwidth of collectives between nodes over network_gb_s"),
    COUNT("gpu", freq_min_mhz, 1, 10000, "MHz", "lowest SM clock that may be locked"),
    COUNT("gpu", freq_max_mhz, 1, 10000, "MHz", "highest SM clock"),
    COUNT("gpu", freq_step_mhz, 1, 1000, "MHz", "step of SM clocks"),
    REAL("gpu", static_w, 0, 1000, "W", "power while waiting on point-to-point communication"),
    REAL("gpu", power_limit_w, 1, 5000, "W", "board power limit"),
    {"gpu", "kernels", NJ_FIELD_TEXT, offsetof(NjGpu, kernels_name), TRUE, 0, 0, "",
     "single-kernel constants: a shipped file of models/kernels, or a path"},

    REAL("model", gemm_share, 0.2, 1, "", "GEMM rate inside training over the rate alone"),
    REAL("model", attention_forward_share, 0.2, 1.5, "", "same for flash attention forward"),
    REAL("model", attention_backward_share, 0.2, 2.0, "",
         "same for backward, at 2.5 times the forward's work"),
    REAL("model", hbm_efficiency, 0.05, 0.92, "", "HBM-bound kernels' rate over HBM bandwidth"),
    REAL("model", kernel_gap_us, 0, 1000, "us", "gap between two kernels of a stream"),
    REAL("model", embedding_token_us, 0, 100, "us",
         "embedding backward, per token outside the rank's slice of the vocabulary"),
    REAL("model", allreduce_share, 0.2, 1, "", "all-reduce rate inside training over the rate alone"),
    REAL("model", allgather_share, 0.02, 1, "",
         "all-gather and reduce-scatter rate inside training over the rate alone"),
    REAL("model", allreduce_latency_ms, 0, 10, "ms",
         "fixed cost of an exposed all-reduce: launch and rank skew"),
    REAL("model", allgather_latency_ms, 0, 10, "ms", "fixed cost of an exposed all-gather or reduce-scatter"),
    REAL("model", overlapped_allreduce_ms, 0, 10, "ms",
         "fixed cost of an all-reduce launched beside compute"),
    REAL("model", overlapped_allgather_ms, 0, 10, "ms",
         "fixed cost of an all-gather or reduce-scatter beside compute"),
    REAL("model", collective_sms, 1, 1024, "SMs", "SMs a collective takes by default"),
    REAL("model", saturation_sms, 0.1, 1024, "SMs",
         "SMs that fill the link: a collective on fewer is slower in proportion"),
    REAL("model", network_latency_us, 0, 1e4, "us", "latency of a message between nodes"),
    REAL("model", hbm_freq_exponent, 0, 1, "", "HBM-bound rate ~ f^a"),
    REAL("model", link_freq_exponent, 0, 1, "", "link rate ~ f^b"),
    REAL("model", overlap_gemm, 1, 10, "", "slow-down of a GEMM beside a collective"),
    REAL("model", overlap_attention, 1, 10, "", "slow-down of attention beside a collective"),
    REAL("model", overlap_memory, 1, 10, "", "slow-down of HBM-bound kernels beside a collective"),
    REAL("model", overlap_comm_gemm, 1, 10, "", "slow-down of a collective beside arithmetic"),
    REAL("model", overlap_comm_memory, 1, 10, "", "slow-down of a collective beside HBM-bound kernels"),
    REAL("model", gemm_w, 0, 5000, "W", "dynamic power of GEMM arithmetic at the peak rate"),
    REAL("model", attention_w, 0, 5000, "W", "dynamic power of attention arithmetic at the peak rate"),
    REAL("model", hbm_w, 0, 5000, "W", "dynamic power of HBM traffic at the full bandwidth"),
    REAL("model", link_w, 0, 5000, "W", "dynamic power of link traffic at the full bandwidth"),
    REAL("model", clock_w, 0, 1000, "W", "clock tree and leakage of an active chip at the highest clock"),
    REAL("model", collective_sm_w, 0, 1000, "W", "power of an SM that a collective occupies"),
    REAL("model", volt_linear, 0, 2.5, "", "p in V(x) = 1 - p (1 - x) + q (1 - x)^2"),
    REAL("model", volt_quadratic, 0, 5, "", "q in V(x)"),
    REAL("model", unscaled_share, 0, 1, "", "share of HBM and link energy that does not scale with V^2"),
    REAL("model", dispatch_us, 0, 1000, "us", "host time per kernel, nanobatching engine"),
    REAL("model", dispatch_partition_us, 0, 10000, "us", "host time per partition, nanobatching engine"),
    REAL("model", dispatch_sequential_us, 0, 1000, "us", "host time per kernel, sequential engine"),
};

const NjField *nj_gpu_fields(guint *n_fields)
{
    *n_fields = G_N_ELEMENTS(fields);
    return fields;
}

// Power that work can draw: the board's limit above static power.
static double work_w(GKeyFile *file)
{
    return g_key_file_get_double(file, "gpu", "power_limit_w", NULL) -
           g_key_file_get_double(file, "gpu", "static_w", NULL);
}

// Fills in the [model] keys that the file leaves to another GPU.
static gboolean carry_over(GKeyFile *file, const char *path, GError **error)
{
    g_autofree char *name = g_key_file_get_string(file, "gpu", "constants_of", NULL);
    if (name == NULL)
        return TRUE;
    g_autofree char *base_path = nj_data_locate("models/gpus", name, ".ini", error);
    g_autoptr(GKeyFile) other = base_path != NULL ? nj_keyfile_load(base_path, error) : NULL;
    g_auto(NjGpu) base = {0};
    if (other != NULL && g_key_file_has_key(other, "gpu", "constants_of", NULL)) {
        nj_keyfile_error(error, path, "gpu", "constants_of", name,
                         "a GPU with constants of its own is needed");
        return FALSE;
    }
    if (other == NULL || !nj_gpu_load(&base, base_path, error)) { // loaded to be checked
        g_prefix_error(error, "%s: [gpu] constants_of = %s: ", path, name);
        return FALSE;
    }
    const double scale = work_w(file) / work_w(other);
    for (guint i = 0; i < G_N_ELEMENTS(fields); i++) {
        const char *key = fields[i].key;
        if (!g_str_equal(fields[i].group, "model") || g_key_file_has_key(file, "model", key, NULL))
            continue;
        g_autofree char *text = g_key_file_get_value(other, "model", key, NULL);
        if (text == NULL)
            continue; // an optional key
        if (g_str_equal(fields[i].unit, "W"))
            g_key_file_set_double(file, "model", key, g_ascii_strtod(text, NULL) * scale);
        else
            g_key_file_set_value(file, "model", key, text);
    }
    return TRUE;
}

static gboolean check_clocks(const NjGpu *gpu, const char *path, GError **error)
{
    if (gpu->freq_max_mhz < gpu->freq_min_mhz ||
        (gpu->freq_max_mhz - gpu->freq_min_mhz) % gpu->freq_step_mhz != 0) {
        g_set_error(
            error, NJ_ERROR, NJ_ERROR_INPUT,
            "%s: [gpu] freq_max_mhz = %d: freq_min_mhz (%d) plus a multiple of freq_step_mhz (%d) is needed",
            path, gpu->freq_max_mhz, gpu->freq_min_mhz, gpu->freq_step_mhz);
        return FALSE;
    }
    return TRUE;
}

static gboolean load_kernels(NjGpu *gpu, const char *path, GError **error)
{
    if (nj_kernel_constants_load(&gpu->kernels, gpu->kernels_name, error))
        return TRUE;
    g_prefix_error(error, "%s: [gpu] kernels = %s: ", path, gpu->kernels_name);
    return FALSE;
}

gboolean nj_gpu_load(NjGpu *gpu, const char *name_or_path, GError **error)
{
    *gpu = (NjGpu){0};
    g_autofree char *path = nj_data_locate("models/gpus", name_or_path, ".ini", error);
    if (path == NULL)
        return FALSE;
    g_autoptr(GKeyFile) file = nj_keyfile_load(path, error);
    if (file != NULL && carry_over(file, path, error) &&
        nj_keyfile_read(file, path, fields, G_N_ELEMENTS(fields), gpu, error) &&
        check_clocks(gpu, path, error) && load_kernels(gpu, path, error))
        return TRUE;
    nj_gpu_clear(gpu);
    return FALSE;
}

void nj_gpu_clear(NjGpu *gpu)
{
    g_clear_pointer(&gpu->name, g_free);
    g_clear_pointer(&gpu->constants_of, g_free);
    g_clear_pointer(&gpu->kernels_name, g_free);
    nj_kernel_constants_clear(&gpu->kernels);
}

char *nj_gpu_note(const NjGpu *gpu)
{
    if (gpu->calibrated)
        return NULL;
    return gpu->constants_of != NULL
               ? g_strdup_printf("the constants of %s are not calibrated: carried over from %s", gpu->name,
                                 gpu->constants_of)
               : g_strdup_printf("the constants of %s are not calibrated", gpu->name);
}

gboolean nj_gpu_has_freq(const NjGpu *gpu, int freq_mhz)
{
    return freq_mhz >= gpu->freq_min_mhz && freq_mhz <= gpu->freq_max_mhz &&
           (freq_mhz - gpu->freq_min_mhz) % gpu->freq_step_mhz == 0;
}

void nj_gpu_device_spec(const NjGpu *gpu, NjDeviceSpec *spec)
{
    *spec = (NjDeviceSpec){
        .sm_count = gpu->sm_count,
        .freq_max_mhz = gpu->freq_max_mhz,
        .hbm_freq_exponent = gpu->hbm_freq_exponent,
        .link_freq_exponent = gpu->link_freq_exponent,
        .volt_linear = gpu->volt_linear,
        .volt_quadratic = gpu->volt_quadratic,
        .unscaled_share = gpu->unscaled_share,
        .static_w = gpu->static_w,
        .clock_w = gpu->clock_w,
        .collective_sm_w = gpu->collective_sm_w,
        .saturation_sms = gpu->saturation_sms,
        .overlap_gemm = gpu->overlap_gemm,
        .overlap_attention = gpu->overlap_attention,
        .overlap_memory = gpu->overlap_memory,
        .overlap_comm_gemm = gpu->overlap_comm_gemm,
        .overlap_comm_memory = gpu->overlap_comm_memory,
    };
}
