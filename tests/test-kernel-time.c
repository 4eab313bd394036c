// SPDX-License-Identifier: MIT
// Closed forms first: constants are set so that all but one term vanish. Then the shipped constants against
// measurements by others.
#include "models/kernel-time.h"
#include "schedules/csv.h"
#include "tests/testing.h"

#include <math.h>

#define assert_near(value, expected) ck_assert_double_eq_tol((value) / (expected), 1, 1e-9)

// 4 SMs of 1 TFLOP/s, everything but arithmetic is free, a split k loop is not worth it.
static const NjKernelHardware small_gpu = {
    .sm_count = 4, .peak_tflop_s = 4, .hbm_gb_s = 1e5, .nvlink_gb_s = 300};

static NjKernelConstants free_constants(void)
{
    return (NjKernelConstants){
        .gemm = {.arithmetic_efficiency = 0.5,
                 .sm_feed_gb_s = 1e4,
                 .hbm_efficiency = 0.999,
                 .split_k_us = 1000},
        .attention = {.arithmetic_efficiency = 0.5},
        .collective = {.ll_share = 0.001, .ll128_share = 0.001, .simple_share = 0.5},
    };
}

static NjKernelConstants shipped_constants(void)
{
    NjKernelConstants constants;
    GError *error = NULL;
    nj_assert_ok(nj_kernel_constants_load(&constants, "a100", &error), error);
    return constants;
}

START_TEST(gemm_waves)
{
    // A tile of 64 x 64 with k = 32000 takes 2 x 4096 x 32000 flop at half of 1 TFLOP/s.
    const double tile_s = 2.0 * 64 * 64 * 32000 / 0.5e12;
    static const struct {
        const char *label;
        int sms;
        gint64 m, n;
        double tiles; // one after the other
    } rows[] = {
        {"one tile", 4, 64, 64, 1},
        {"a corner of a tile costs all of it", 4, 1, 1, 1},
        {"exactly one wave", 4, 4 * 64, 64, 1},
        {"one tile more than a wave", 4, 4 * 64 + 1, 64, 2},
        {"two waves", 4, 8 * 64, 64, 2},
        {"one tile more than two waves", 4, 64, 8 * 64 + 1, 3},
        {"a collective holds two SMs", 2, 4 * 64, 64, 2},
        {"one SM", 1, 5 * 64, 64, 5},
        {"many waves", 4, 64 * 64, 64 * 64, 1024},
    };
    const NjKernelConstants constants = free_constants();
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const NjKernelTime time =
            nj_gemm_time(&constants, &small_gpu, rows[i].sms, rows[i].m, rows[i].n, 32000);
        ck_assert_msg(fabs(time.core_s / (rows[i].tiles * tile_s) - 1) < 1e-9, "%s: %g tiles", rows[i].label,
                      time.core_s / tile_s);
        ck_assert_int_eq(time.splits, 1);
        ck_assert_msg(fabs(time.total_s / time.core_s - 1) < 1e-3, "%s: total", rows[i].label);
    }
}
END_TEST

START_TEST(gemm_terms)
{
    // Fixed time and tile ends: a tile of 64 x 64 has an eighth of the ends of 256 x 128.
    NjKernelConstants constants = free_constants();
    constants.gemm.launch_us = 3;
    constants.gemm.tile_ends_us = 8;
    const double tile_s = 2.0 * 64 * 64 * 32000 / 0.5e12;
    NjKernelTime time = nj_gemm_time(&constants, &small_gpu, 4, 64, 64, 32000);
    ck_assert_int_eq(time.tile_m, 64);
    ck_assert_int_eq(time.tile_n, 64);
    ck_assert_int_eq((int)time.waves, 1);
    assert_near(time.fixed_s, 3e-6);
    assert_near(time.core_s, tile_s + 1e-6);

    // One tile for four SMs: each takes a quarter of the k loop, then one pass sums 4 partial results of 64 x
    // 64 that were written and are read at the feed of 4 SMs.
    constants.gemm.tile_ends_us = 0;
    constants.gemm.split_k_us = 5;
    time = nj_gemm_time(&constants, &small_gpu, 4, 64, 64, 32000);
    ck_assert_int_eq(time.splits, 4);
    assert_near(time.core_s, tile_s / 4);
    assert_near(time.fixed_s, 8e-6 + 4 * 8.0 * 64 * 64 / (4 * 1e13));

    // Fed slowly, a tile of 64 x 64 moves 128 operands a step, at 1 GB/s; far slower than its arithmetic.
    constants = free_constants();
    constants.gemm.sm_feed_gb_s = 1;
    time = nj_gemm_time(&constants, &small_gpu, 4, 64, 64, 320);
    assert_near(time.core_s, 2.0 * 128 * 320 / 1e9);
}
END_TEST

START_TEST(gemm_bounds)
{
    NjKernelConstants constants = shipped_constants();
    const NjKernelHardware *gpu = &constants.measured_hardware;
    // A matrix times a vector streams the matrix from HBM.
    NjKernelTime time = nj_gemm_time(&constants, gpu, gpu->sm_count, 1, 65536, 16384);
    const double stream_s = 2.0 * 65536 * 16384 / (2039e9 * constants.gemm.hbm_efficiency);
    ck_assert_double_ge(time.total_s, stream_s);
    ck_assert_double_le(time.total_s, 1.1 * stream_s);
    // A huge one comes near the arithmetic peak, never above it.
    time = nj_gemm_time(&constants, gpu, gpu->sm_count, 65536, 65536, 65536);
    const double peak_share = nj_gemm_flop(65536, 65536, 65536) / (312e12 * time.total_s);
    ck_assert_double_gt(peak_share, 0.9);
    ck_assert_double_lt(peak_share, constants.gemm.arithmetic_efficiency);
    // The smallest is a launch and little else.
    time = nj_gemm_time(&constants, gpu, gpu->sm_count, 1, 1, 1);
    ck_assert_double_lt(time.total_s, 2 * constants.gemm.launch_us * 1e-6);
    nj_kernel_constants_clear(&constants);
}
END_TEST

// No dimension makes a GEMM faster by growing, no SM by leaving.
START_TEST(gemm_is_monotonic)
{
    NjKernelConstants constants = shipped_constants();
    const NjKernelHardware *gpu = &constants.measured_hardware;
    static const gint64 bases[] = {16, 640, 4096};
    for (guint i = 0; i < G_N_ELEMENTS(bases); i++)
        for (int dimension = 0; dimension < 3; dimension++) {
            double before_s = 0;
            for (gint64 x = 1; x < 9000; x += 1 + x / 16) {
                gint64 shape[] = {bases[i], 768, bases[2 - i]};
                shape[dimension] = x;
                const double total_s =
                    nj_gemm_time(&constants, gpu, gpu->sm_count, shape[0], shape[1], shape[2]).total_s;
                ck_assert_msg(total_s >= before_s, "dimension %d of %" G_GINT64_FORMAT, dimension, x);
                before_s = total_s;
            }
        }
    double before_s = INFINITY;
    for (int sms = 1; sms <= gpu->sm_count; sms++) {
        const double total_s = nj_gemm_time(&constants, gpu, sms, 4096, 3072, 1024).total_s;
        ck_assert_double_le(total_s, before_s);
        before_s = total_s;
    }
    nj_kernel_constants_clear(&constants);
}
END_TEST

START_TEST(attention_tiles)
{
    NjKernelConstants constants = free_constants();
    // A step of 128 queries and 64 keys with head dimension 100 at half of 1 TFLOP/s.
    const double step_s = 4.0 * 128 * 64 * 100 / 0.5e12;
    static const struct {
        const char *label;
        gint64 batch, seq_len, heads;
        double even_steps, longest_steps; // of one SM of four
    } rows[] = {
        {"a token", 1, 1, 1, 0.25, 1},
        {"a full step", 1, 64, 1, 0.25, 1},
        {"two steps", 1, 65, 1, 0.5, 2},
        {"a tile of each SM", 2, 128, 2, 2, 2},
        {"two tiles a head: 2 + 4 steps", 1, 256, 4, 6, 4},
        {"four tiles a head: 2 + 4 + 6 + 8 steps", 2, 512, 4, 40, 8},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        constants.attention.tail_share = 0.5;
        const NjKernelTime time = nj_attention_time(&constants, &small_gpu, 4, rows[i].batch, rows[i].seq_len,
                                                    rows[i].heads, 1, 100);
        const double steps = fmax(rows[i].longest_steps, rows[i].even_steps + 0.5 * rows[i].longest_steps);
        ck_assert_msg(fabs(time.core_s / (steps * step_s) - 1) < 1e-9, "%s: %g steps", rows[i].label,
                      time.core_s / step_s);
        ck_assert_double_eq(time.memory_s, 0);
    }
    constants.attention.q_passes = 3;
    constants.attention.kv_passes = 2;
    constants.attention.launch_us = 7;
    const NjKernelTime time = nj_attention_time(&constants, &small_gpu, 4, 2, 64, 4, 2, 100);
    assert_near(time.memory_s, 2.0 * 2 * 64 * 100 * (3 * 4 + 2 * 2) / 1e14);
    assert_near(time.total_s, 7e-6 + time.core_s + time.memory_s);
}
END_TEST

START_TEST(collective_terms)
{
    NjKernelConstants constants = free_constants();
    // Two GPUs exchange halves, twice in an all-reduce, over half of 300 GB/s.
    static const double messages[NJ_N_COLLECTIVES] = {2, 1, 1, 1};
    for (int kind = 0; kind < NJ_N_COLLECTIVES; kind++)
        assert_near(nj_collective_time(&constants, &small_gpu, (NjCollectiveKind)kind, 2, 300e6),
                    messages[kind] * 150e6 / 150e9);
    // With ends of one half, three quarters of the bandwidth are left for 2 GPUs, seven eighths for 4.
    constants.collective.end_share[NJ_COLLECTIVE_ALL_GATHER] = 0.5;
    assert_near(nj_collective_time(&constants, &small_gpu, NJ_COLLECTIVE_ALL_GATHER, 2, 300e6),
                150e6 / (150e9 * 0.75));
    assert_near(nj_collective_time(&constants, &small_gpu, NJ_COLLECTIVE_ALL_GATHER, 4, 300e6),
                225e6 / (150e9 * 0.875));
    // A pipeline over 2 (4 - 1) hops of 6 us each beside 1000 us of wire time.
    constants.collective.chunk_us = 6;
    assert_near(nj_collective_time(&constants, &small_gpu, NJ_COLLECTIVE_ALL_REDUCE, 4, 100e6),
                1e-6 * pow(6 + sqrt(1000), 2));
    // Small messages are all latency: launch and hops.
    constants.collective.launch_us = 8;
    constants.collective.hop_us = 1;
    constants.collective.alltoall_us = 2;
    constants.collective.simple_us = 50;
    assert_near(nj_collective_time(&constants, &small_gpu, NJ_COLLECTIVE_ALL_REDUCE, 8, 0), 22e-6);
    assert_near(nj_collective_time(&constants, &small_gpu, NJ_COLLECTIVE_REDUCE_SCATTER, 8, 0), 15e-6);
    assert_near(nj_collective_time(&constants, &small_gpu, NJ_COLLECTIVE_ALLTOALL, 8, 0), 11e-6);
    // 2.1 MB on the wire, chunks of 1 us: 15 us + 7 ms by LL, 18 + 70 us by LL128, 15 us + simple_us + 40.8
    // us by Simple. Of 50 us the library sees half in the last case, and takes Simple too early.
    static const struct {
        double simple_us, switch_share, ll128_us;
        gboolean is_simple;
    } choices[] = {{20, 0, 3, TRUE}, {50, 0, 3, FALSE}, {50, 0.5, 3, TRUE}, {20, 0, 100, TRUE}};
    constants.collective.chunk_us = 1;
    constants.collective.ll128_share = 0.1;
    for (guint i = 0; i < G_N_ELEMENTS(choices); i++) {
        constants.collective.simple_us = choices[i].simple_us;
        constants.collective.switch_share = choices[i].switch_share;
        constants.collective.ll128_us = choices[i].ll128_us;
        assert_near(
            nj_collective_time(&constants, &small_gpu, NJ_COLLECTIVE_REDUCE_SCATTER, 8, 2.1e6 * 8 / 7),
            1e-6 * (choices[i].is_simple ? 15 + choices[i].simple_us + pow(sqrt(7) + sqrt(14), 2)
                                         : 15 + choices[i].ll128_us + 70));
    }
    // One GPU has nobody to talk to.
    ck_assert_double_eq(nj_collective_time(&constants, &small_gpu, NJ_COLLECTIVE_ALL_REDUCE, 1, 1e9), 0);
}
END_TEST

START_TEST(bus_bandwidth_stays_below_the_links)
{
    NjKernelConstants constants = shipped_constants();
    const NjKernelHardware *gpu = &constants.measured_hardware;
    for (int kind = 0; kind < NJ_N_COLLECTIVES; kind++)
        for (int gpus = 2; gpus <= 512; gpus *= 2) {
            double before_s = 0;
            for (double bytes = 1; bytes < 1e12; bytes *= 4) {
                const NjCollectiveKind collective = (NjCollectiveKind)kind;
                const double total_s = nj_collective_time(&constants, gpu, collective, gpus, bytes);
                ck_assert_double_lt(nj_collective_wire_bytes(collective, gpus, bytes) / total_s, 300e9);
                ck_assert_double_ge(total_s, before_s);
                before_s = total_s;
            }
        }
    nj_kernel_constants_clear(&constants);
}
END_TEST

// ---- Shipped constants against the measurements; what was held out took no part in their fit. ----

typedef struct {
    double sum;
    int n;
} Mean;

static void add_error(Mean *mean, double predicted, double measured)
{
    ck_assert_msg(isfinite(predicted) && predicted > 0, "predicted %g", predicted);
    mean->sum += fabs(predicted / measured - 1);
    mean->n++;
}

// The mean absolute error is at most so many percent, over at least so many rows.
static void assert_bar(const char *label, const Mean *mean, double bar_pct, int least_rows)
{
    ck_assert_int_ge(mean->n, least_rows);
    ck_assert_msg(100 * mean->sum / mean->n <= bar_pct, "%s: %.2f %% of error, at most %g %% is wanted",
                  label, 100 * mean->sum / mean->n, bar_pct);
}

static NjCsv *read_reference(const char *name)
{
    g_autofree char *path = nj_test_reference(name);
    GError *error = NULL;
    NjCsv *csv = path != NULL ? nj_csv_read(path, &error) : NULL;
    ck_assert_msg(error == NULL, "%s", error != NULL ? error->message : "");
    return csv;
}

static double number(const NjCsv *csv, guint row, const char *column)
{
    return g_ascii_strtod(csv->rows[row][nj_csv_column(csv, column)], NULL);
}

START_TEST(gemm_reference)
{
    g_autoptr(NjCsv) csv = read_reference("kernels/a100_80gb_gemm_bf16.csv");
    if (csv == NULL)
        return;
    NjKernelConstants constants = shipped_constants();
    Mean held_out = {0}, small = {0}, all = {0};
    for (guint row = 0; row < csv->n_rows; row++) {
        const gint64 m = (gint64)number(csv, row, "m"), n = (gint64)number(csv, row, "n"),
                     k = (gint64)number(csv, row, "k");
        const double predicted_s =
            nj_gemm_time(&constants, &constants.measured_hardware, 108, m, n, k).total_s;
        const double measured_s = number(csv, row, "latency_ms") * 1e-3;
        const gboolean is_large = nj_gemm_flop(m, n, k) >= 1e9;
        if (is_large)
            add_error(&all, predicted_s, measured_s);
        if (row % 2 == 1)
            add_error(is_large ? &held_out : &small, predicted_s, measured_s);
        ck_assert_double_lt(predicted_s / measured_s, 2);
        ck_assert_double_gt(predicted_s / measured_s, 0.3);
    }
    assert_bar("GEMMs of at least 1 GFLOP", &all, 8, 3000);
    assert_bar("held out, at least 1 GFLOP", &held_out, 8, 1500);
    assert_bar("held out, below 1 GFLOP", &small, 12, 1400);
    nj_kernel_constants_clear(&constants);
}
END_TEST

START_TEST(attention_reference)
{
    g_autoptr(NjCsv) csv = read_reference("kernels/a100_80gb_attention_fwd_bf16.csv");
    if (csv == NULL)
        return;
    NjKernelConstants constants = shipped_constants();
    Mean held_out = {0}, small = {0};
    for (guint row = 1; row < csv->n_rows; row += 2) {
        const double seq_len = number(csv, row, "seq_len");
        const double predicted_s =
            nj_attention_time(&constants, &constants.measured_hardware, 108,
                              (gint64)number(csv, row, "batch"), (gint64)seq_len,
                              (gint64)number(csv, row, "heads"), (gint64)number(csv, row, "kv_heads"),
                              (gint64)number(csv, row, "head_dim"))
                .total_s;
        add_error(seq_len >= 1024 ? &held_out : &small, predicted_s, number(csv, row, "latency_ms") * 1e-3);
    }
    assert_bar("held out, from 1024 tokens", &held_out, 4, 1100);
    assert_bar("held out, below 1024 tokens", &small, 12, 1100);
    nj_kernel_constants_clear(&constants);
}
END_TEST

START_TEST(collective_reference)
{
    g_autoptr(NjCsv) csv = read_reference("kernels/a100_80gb_nccl.csv");
    if (csv == NULL)
        return;
    NjKernelConstants constants = shipped_constants();
    Mean held_out = {0}, small = {0};
    for (guint row = 0; row < csv->n_rows; row++) {
        NjCollectiveKind kind;
        ck_assert(nj_collective_parse(csv->rows[row][nj_csv_column(csv, "collective")], &kind));
        const gboolean is_half = g_str_equal(csv->rows[row][nj_csv_column(csv, "dtype")], "half");
        const double bytes = number(csv, row, "message_elements") * (is_half ? 2 : 1);
        const double gpus = number(csv, row, "gpus");
        if (((int)lround(log2(bytes) + log2(gpus)) + (int)kind) % 2 == 0) // fitted
            continue;
        const double predicted_s =
            nj_collective_time(&constants, &constants.measured_hardware, kind, (int)gpus, bytes);
        add_error(bytes >= 1e6 ? &held_out : &small, predicted_s, number(csv, row, "latency_ms") * 1e-3);
    }
    assert_bar("held out, from 1 MB", &held_out, 10, 100);
    assert_bar("held out, below 1 MB", &small, 10, 100);
    nj_kernel_constants_clear(&constants);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel-time");
    TCase *forms = tcase_create("closed forms");
    tcase_add_test(forms, gemm_waves);
    tcase_add_test(forms, gemm_terms);
    tcase_add_test(forms, gemm_bounds);
    tcase_add_test(forms, gemm_is_monotonic);
    tcase_add_test(forms, attention_tiles);
    tcase_add_test(forms, collective_terms);
    tcase_add_test(forms, bus_bandwidth_stays_below_the_links);
    suite_add_tcase(suite, forms);
    TCase *reference = tcase_create("reference");
    tcase_add_test(reference, gemm_reference);
    tcase_add_test(reference, attention_reference);
    tcase_add_test(reference, collective_reference);
    suite_add_tcase(suite, reference);
    return nj_test_run(suite);
}
