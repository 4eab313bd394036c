// SPDX-License-Identifier: MIT
#include "models/kernel-time.h"

#include <math.h>

static const double second_per_us = 1e-6, byte_per_gb = 1e9, flop_per_tflop = 1e12;

// (x^4 + y^4)^(1/4): max(x, y), rounded off by up to 19 % where both are alike. Two resources that are both
// nearly busy all the time do not overlap perfectly. Products and roots only, so that every libm gives the
// same bits.
static double soft_max4(double x, double y)
{
    const double x2 = x * x, y2 = y * y;
    return sqrt(sqrt(x2 * x2 + y2 * y2));
}

// Same with the eighth power: up to 9 %.
static double soft_max8(double x, double y)
{
    const double x2 = x * x, y2 = y * y;
    const double x4 = x2 * x2, y4 = y2 * y2;
    return sqrt(sqrt(sqrt(x4 * x4 + y4 * y4)));
}

static gint64 divide_up(gint64 a, gint64 b)
{
    return (a + b - 1) / b;
}

// Tile shapes and splits of the k loop that a GEMM library chooses from. Smaller tiles and more splits did
// not lower the error of the fit.
static const struct {
    int m, n;
} gemm_tiles[] = {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};
static const int gemm_splits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
enum { gemm_k_step = 32, element_bytes = 2, sum_bytes = 4 };

NjKernelTime nj_gemm_time(const NjKernelConstants *constants, const NjKernelHardware *hardware, int sms,
                          gint64 m, gint64 n, gint64 k)
{
    g_assert(sms >= 1 && sms <= hardware->sm_count && m >= 1 && n >= 1 && k >= 1);
    const double sm_flop_s =
        hardware->peak_tflop_s * flop_per_tflop / hardware->sm_count * constants->gemm.arithmetic_efficiency;
    const double feed_bytes_s = constants->gemm.sm_feed_gb_s * byte_per_gb;
    const double bytes = element_bytes * ((double)m * (double)n + (double)k * (double)(m + n));
    const double memory_s = bytes / (constants->gemm.hbm_efficiency * hardware->hbm_gb_s * byte_per_gb);
    // A split leaves fp32 partial sums: one write and one read of each, through the L2.
    const double split_s = 2 * sum_bytes * (double)m * (double)n / (feed_bytes_s * sms);

    NjKernelTime best = {.total_s = INFINITY};
    for (guint i = 0; i < G_N_ELEMENTS(gemm_tiles); i++) {
        const int tile_m = gemm_tiles[i].m, tile_n = gemm_tiles[i].n;
        const gint64 tiles = divide_up(m, tile_m) * divide_up(n, tile_n);
        const double area = (double)tile_m * tile_n;
        const double k_s =
            soft_max8(2 * area / sm_flop_s, element_bytes * (double)(tile_m + tile_n) / feed_bytes_s);
        const double ends_s = constants->gemm.tile_ends_us * second_per_us * area / (256 * 128);
        for (guint j = 0; j < G_N_ELEMENTS(gemm_splits); j++) {
            const int splits = gemm_splits[j];
            const gint64 k_of_split = divide_up(k, splits * gemm_k_step) * gemm_k_step;
            const gint64 waves = divide_up(tiles * splits, sms);
            NjKernelTime time = {
                .fixed_s = constants->gemm.launch_us * second_per_us,
                .core_s = (double)waves * ((double)k_of_split * k_s + ends_s),
                .memory_s = memory_s,
                .tile_m = tile_m,
                .tile_n = tile_n,
                .splits = splits,
                .waves = waves,
            };
            if (splits > 1)
                time.fixed_s += constants->gemm.split_k_us * second_per_us + splits * split_s;
            time.total_s = time.fixed_s + soft_max4(time.core_s, time.memory_s);
            if (time.total_s < best.total_s)
                best = time;
        }
    }
    return best;
}

double nj_gemm_flop(gint64 m, gint64 n, gint64 k)
{
    return 2 * (double)m * (double)n * (double)k;
}

// The tile that flash attention uses for a head dimension of 128 on this generation of GPUs.
enum { attention_tile_queries = 128, attention_tile_keys = 64 };

NjKernelTime nj_attention_time(const NjKernelConstants *constants, const NjKernelHardware *hardware, int sms,
                               gint64 batch, gint64 seq_len, gint64 heads, gint64 kv_heads, gint64 head_dim)
{
    g_assert(sms >= 1 && sms <= hardware->sm_count && batch >= 1 && seq_len >= 1 && heads >= 1 &&
             kv_heads >= 1 && head_dim >= 1);
    const double sm_flop_s = hardware->peak_tflop_s * flop_per_tflop / hardware->sm_count *
                             constants->attention.arithmetic_efficiency;
    // Two products of queries x keys x head_dim a step.
    const double step_s = 4.0 * attention_tile_queries * attention_tile_keys * (double)head_dim / sm_flop_s;
    // Tile i of a head, from 0, takes (i + 1) queries / keys steps; the last one all of the sequence's.
    const double tiles = (double)divide_up(seq_len, attention_tile_queries);
    const double longest = (double)divide_up(seq_len, attention_tile_keys);
    const double steps = tiles * (tiles - 1) / 2 * (attention_tile_queries / attention_tile_keys) + longest;

    const double even_s = (double)(batch * heads) * steps * step_s / sms;
    const double longest_s = longest * step_s;
    const double passes =
        constants->attention.q_passes * (double)heads + constants->attention.kv_passes * (double)kv_heads;
    NjKernelTime time = {
        .fixed_s = constants->attention.launch_us * second_per_us,
        .core_s = fmax(longest_s, even_s + constants->attention.tail_share * longest_s),
        .memory_s = element_bytes * (double)(batch * seq_len * head_dim) * passes /
                    (hardware->hbm_gb_s * byte_per_gb),
    };
    time.total_s = time.fixed_s + time.core_s + time.memory_s;
    return time;
}

double nj_collective_wire_bytes(NjCollectiveKind kind, int gpus, double message_bytes)
{
    return message_bytes * (gpus - 1) / gpus * (kind == NJ_COLLECTIVE_ALL_REDUCE ? 2 : 1);
}

// Messages between neighbours that follow one another. An alltoall's go to all peers at once.
static int count_hops(NjCollectiveKind kind, int gpus)
{
    switch (kind) {
    case NJ_COLLECTIVE_ALL_REDUCE:
        return 2 * (gpus - 1);
    case NJ_COLLECTIVE_ALL_GATHER:
    case NJ_COLLECTIVE_REDUCE_SCATTER:
        return gpus - 1;
    case NJ_COLLECTIVE_ALLTOALL:
        return 1;
    case NJ_N_COLLECTIVES:
        break;
    }
    g_assert_not_reached();
}

double nj_collective_time(const NjKernelConstants *constants, const NjKernelHardware *hardware,
                          NjCollectiveKind kind, int gpus, double message_bytes)
{
    g_assert(kind < NJ_N_COLLECTIVES && gpus >= 1 && message_bytes >= 0);
    if (gpus == 1)
        return 0;
    const double link_bytes_s = hardware->nvlink_gb_s * byte_per_gb;
    const double wire_bytes = nj_collective_wire_bytes(kind, gpus, message_bytes);
    const double ends = 1 - constants->collective.end_share[kind] / gpus;
    const int hops = count_hops(kind, gpus);

    double launch_us = constants->collective.launch_us;
    if (kind == NJ_COLLECTIVE_ALLTOALL)
        launch_us += constants->collective.alltoall_us;
    const double low_us = launch_us + hops * constants->collective.hop_us;
    const double ll_s = low_us * second_per_us + wire_bytes / (constants->collective.ll_share * link_bytes_s);
    const double ll128_s = (low_us + constants->collective.ll128_us) * second_per_us +
                           wire_bytes / (constants->collective.ll128_share * link_bytes_s * ends);

    // A pipeline of h hops that moves w bytes in c chunks takes (h + c) (a + w / (c B)), a being the least
    // time of a chunk; the best c gives (sqrt(h a) + sqrt(w / B))^2.
    const double root = sqrt(hops * constants->collective.chunk_us * second_per_us) +
                        sqrt(wire_bytes / (constants->collective.simple_share * link_bytes_s * ends));
    const double simple_us = constants->collective.simple_us;
    const double simple_s = (low_us + simple_us) * second_per_us + root * root;

    // The library compares with too short a fixed time of Simple, and changes over before Simple is the
    // faster one.
    const double low_s = fmin(ll_s, ll128_s);
    const double blind_s = constants->collective.switch_share * simple_us * second_per_us;
    return low_s < simple_s - blind_s ? low_s : simple_s;
}
