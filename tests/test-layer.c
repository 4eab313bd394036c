// SPDX-License-Identifier: MIT
// Kernels of a layer and of a stage's ends against figures worked out by hand from the table of
// models/README.md.
#include "models/layer.h"
#include "tests/testing.h"

#include <math.h>

// A GPU of round numbers. What a GEMM takes alone is from the shipped constants; no figure here depends on
// it.
static void gpu_init(NjGpu *gpu)
{
    *gpu = (NjGpu){
        .sm_count = 100,
        .peak_tflop_s = 100,
        .hbm_gb_s = 1000,
        .nvlink_gb_s = 100,
        .gpus_per_node = 8,
        .network_gb_s = 10,
        .network_efficiency = 1,
        .freq_min_mhz = 1000,
        .freq_max_mhz = 1000,
        .freq_step_mhz = 1,
        .gemm_share = 0.5,
        .attention_forward_share = 0.5,
        .attention_backward_share = 0.5,
        .hbm_efficiency = 0.5,
        .kernel_gap_us = 3,
        .embedding_token_us = 0.5,
        .allreduce_share = 1,
        .allgather_share = 1,
        .allreduce_latency_ms = 2,
        .allgather_latency_ms = 4,
        .network_latency_us = 7,
        .gemm_w = 200,
        .attention_w = 150,
        .hbm_w = 80,
        .link_w = 20,
    };
    ck_assert(nj_kernel_constants_load(&gpu->kernels, "a100", NULL));
}

// 2 sequences of 128 tokens; q is 128 wide, k and v 64 each.
static void workload_init(NjWorkload *workload, int tp, int cp, gboolean qk_norm)
{
    *workload = (NjWorkload){
        .arch = {.hidden = 64,
                 .layers = 4,
                 .heads = 8,
                 .kv_heads = 4,
                 .head_dim = 16,
                 .ffn = 256,
                 .vocab = 512,
                 .qk_norm = qk_norm},
        .parallelism = {tp, cp, 2, 1},
        .seq_len = 128,
        .microbatch_size = 2,
        .microbatches = 1,
    };
    workload->arch.name = g_strdup("small");
    gpu_init(&workload->gpu);
    nj_workload_split_layers(workload);
    ck_assert(nj_workload_check(workload, NULL));
}

typedef struct {
    const char *name;
    double flop, hbm_bytes;
} Figures;

static void compare(const char *label, const NjBlock *block, const Figures *figures, guint n)
{
    ck_assert_msg(block->n == n, "%s: %u kernels instead of %u", label, block->n, n);
    for (guint i = 0; i < n; i++) {
        const NjKernel *kernel = &block->kernels[i];
        ck_assert_msg(g_str_equal(kernel->name, figures[i].name), "%s: %s where %s is wanted", label,
                      kernel->name, figures[i].name);
        ck_assert_msg(kernel->flop == figures[i].flop, "%s: %s: %.17g flop", label, kernel->name,
                      kernel->flop);
        ck_assert_msg(kernel->hbm_bytes == figures[i].hbm_bytes, "%s: %s: %.17g bytes", label, kernel->name,
                      kernel->hbm_bytes);
        ck_assert_msg(kernel->link_bytes == 0 && kernel->link_s == 0, "%s: %s: uses the link", label,
                      kernel->name);
    }
}

#define COMPARE(label, block, figures) compare(label, block, figures, G_N_ELEMENTS(figures))

// tp2cp2: n = 2 x 128 / 2 = 128 tokens, d = 64; per rank q = 64, kv = 32, f = 128, v = 256; n d = 8192.
START_TEST(by_hand)
{
    static const Figures qkv[] = {
        {"bias-dropout-add", 0, 57344}, // 7 n d
        {"norm", 0, 32768},             // 4 n d
        {"qkv", 2097152, 65536},        // 2 n d (q + 2 kv); 2 (n d + d 128 + n 128)
        {"qkv-split", 0, 65536},        // 4 n (q + 2 kv)
        {"qk-norm", 0, 49152},          // 4 n (q + kv)
        {"rope", 0, 49152},             // same
    };
    static const Figures attention[] = {{"attention", 2097152, 65536}};   // 2 n seq q; 2 n (2 q + 2 cp kv)
    static const Figures projection[] = {{"projection", 1048576, 40960}}; // 2 n q d; 2 (n q + q d + n d)
    static const Figures mlp[] = {
        {"bias-dropout-add", 0, 57344}, {"norm", 0, 32768},      {"fc1", 4194304, 114688}, // 2 n d 2f
        {"swiglu", 0, 98304},           {"fc2", 2097152, 65536},                           // 6 n f; 2 n f d
    };
    // Data and weight gradient; the latter has 6 in out more bytes.
    static const Figures mlp_backward[] = {
        {"fc2-dgrad", 2097152, 65536},
        {"fc2-wgrad", 2097152, 114688},
        {"swiglu-backward", 0, 163840}, // 10 n f
        {"fc1-dgrad", 4194304, 114688},
        {"fc1-wgrad", 4194304, 212992},
        {"norm-backward", 0, 65536},             // 8 n d
        {"bias-dropout-add-backward", 0, 40960}, // 5 n d
    };
    static const Figures projection_backward[] = {{"projection-dgrad", 1048576, 40960},
                                                  {"projection-wgrad", 1048576, 65536}};
    // 5 n seq q; 2 n (4 q + 4 cp kv)
    static const Figures attention_backward[] = {{"attention-backward", 5242880, 131072}};
    static const Figures qkv_backward[] = {
        {"rope-backward", 0, 49152},
        {"qk-norm-backward", 0, 98304}, // 8 n (q + kv)
        {"qkv-split-backward", 0, 65536},
        {"qkv-dgrad", 2097152, 65536},
        {"qkv-wgrad", 2097152, 114688},
        {"norm-backward", 0, 65536},
        {"bias-dropout-add-backward", 0, 40960},
    };
    static const Figures head[] = {{"norm", 0, 32768}, {"lm-head", 4194304, 114688}, {"loss", 0, 393216}};
    static const Figures head_backward[] = {{"loss-backward", 0, 262144},
                                            {"lm-head-dgrad", 4194304, 114688},
                                            {"lm-head-wgrad", 4194304, 212992},
                                            {"norm-backward", 0, 65536}};
    static const Figures embedding[] = {{"embedding", 0, 65536}};                    // 8 n d
    static const Figures embedding_backward[] = {{"embedding-backward", 0, 262144}}; // 8 n d + 12 v d
    g_auto(NjWorkload) workload = {0};
    NjLayer layer;
    NjStageEnds ends;

    workload_init(&workload, 2, 2, TRUE);
    nj_layer_build(&layer, &workload, 2);
    COMPARE("QKV", &layer.forward[NJ_BLOCK_QKV], qkv);
    COMPARE("attention", &layer.forward[NJ_BLOCK_ATTENTION], attention);
    COMPARE("projection", &layer.forward[NJ_BLOCK_PROJECTION], projection);
    COMPARE("MLP", &layer.forward[NJ_BLOCK_MLP], mlp);
    COMPARE("MLP backward", &layer.backward[NJ_BLOCK_MLP], mlp_backward);
    COMPARE("projection backward", &layer.backward[NJ_BLOCK_PROJECTION], projection_backward);
    COMPARE("attention backward", &layer.backward[NJ_BLOCK_ATTENTION], attention_backward);
    COMPARE("QKV backward", &layer.backward[NJ_BLOCK_QKV], qkv_backward);

    nj_stage_ends_build(&ends, &workload, 2);
    COMPARE("embedding", &ends.embedding_forward, embedding);
    COMPARE("embedding backward", &ends.embedding_backward, embedding_backward);
    COMPARE("head", &ends.head_forward, head);
    COMPARE("head backward", &ends.head_backward, head_backward);
    ck_assert_int_eq(ends.n_loss_all_reduces, 3);
    ck_assert_double_eq(ends.loss_all_reduce.link_bytes, 512); // 2 (t - 1) / t x 4 n

    // Wire: 2 (t - 1) / t x 2 n d; (cp - 1) x 4 n q: K and V travel repeated to the query heads.
    ck_assert_double_eq(layer.all_reduce.link_bytes, 16384);
    ck_assert_double_eq(layer.all_gather.link_bytes, 32768);
    ck_assert_double_eq(layer.reduce_scatter.link_bytes, 32768);
    ck_assert_double_eq_tol(layer.all_reduce.hbm_bytes, 1.7 * 16384, 1e-6);
    ck_assert_double_eq(layer.all_gather.hbm_bytes, 2 * 32768);
    ck_assert_double_eq(layer.reduce_scatter.hbm_bytes, 3 * 32768);
}
END_TEST

// The seconds and joules behind flop and bytes: 1000 GB/s at half efficiency, 80 W at the full rate; 100
// TFLOP/s and 200 W.
START_TEST(seconds_and_joules)
{
    g_auto(NjWorkload) workload = {0};
    NjLayer layer, slower;
    workload_init(&workload, 2, 2, FALSE);
    nj_layer_build(&layer, &workload, 2);

    const NjKernel *add = &layer.forward[NJ_BLOCK_QKV].kernels[0];
    ck_assert_int_eq(add->kind, NJ_KERNEL_MEMORY);
    ck_assert_double_eq_tol(add->latency_s, 3e-6, 1e-18);
    ck_assert_double_eq_tol(add->hbm_s / (57344 / 0.5e12), 1, 1e-12);
    ck_assert_double_eq_tol(add->hbm_j / (80 * 57344 / 1e12), 1, 1e-12);
    ck_assert_double_eq(add->sm_s, 0);

    const NjKernel *fc1 = &layer.forward[NJ_BLOCK_MLP].kernels[2];
    ck_assert_int_eq(fc1->kind, NJ_KERNEL_GEMM);
    ck_assert_double_eq_tol(fc1->sm_j / (200 * 4194304 / 100e12), 1, 1e-12);
    ck_assert_double_ge(fc1->sm_s, 4194304 / (0.5 * 100e12)); // never faster than its share of the peak

    const NjKernel *attention = &layer.forward[NJ_BLOCK_ATTENTION].kernels[0];
    ck_assert_int_eq(attention->kind, NJ_KERNEL_ATTENTION);
    ck_assert_double_eq_tol(attention->sm_j / (150 * 2097152 / 100e12), 1, 1e-12);

    // Half of 128 tokens are masked, 0.5 us each.
    NjStageEnds ends;
    nj_stage_ends_build(&ends, &workload, 2);
    ck_assert_double_eq_tol(ends.embedding_backward.kernels[0].latency_s, 3e-6 + 64 * 0.5e-6, 1e-15);
    ck_assert_double_eq_tol(ends.embedding_forward.kernels[0].latency_s, 3e-6, 1e-15);

    ck_assert_int_eq(layer.all_reduce.kind, NJ_KERNEL_COLLECTIVE);
    ck_assert_double_eq_tol(layer.all_reduce.latency_s, 2e-3, 1e-15);
    ck_assert_double_eq_tol(layer.all_gather.latency_s, 4e-3, 1e-15);
    ck_assert_double_eq_tol(layer.all_reduce.link_j / (20 * 16384 / 100e9), 1, 1e-12);
    ck_assert_double_ge(layer.all_reduce.link_s, 16384 / 100e9);

    // Half the share of the rate alone: twice the time.
    workload.gpu.gemm_share /= 2;
    workload.gpu.attention_forward_share /= 2;
    workload.gpu.allreduce_share /= 2;
    nj_layer_build(&slower, &workload, 2);
    ck_assert_double_eq_tol(slower.forward[NJ_BLOCK_MLP].kernels[2].sm_s / fc1->sm_s, 2, 1e-12);
    ck_assert_double_eq_tol(slower.forward[NJ_BLOCK_ATTENTION].kernels[0].sm_s / attention->sm_s, 2, 1e-12);
    ck_assert_double_eq_tol(slower.all_reduce.link_s / layer.all_reduce.link_s, 2, 1e-12);
    ck_assert_double_eq(slower.backward[NJ_BLOCK_ATTENTION].kernels[0].sm_s,
                        layer.backward[NJ_BLOCK_ATTENTION].kernels[0].sm_s);
}
END_TEST

static double sum_flop(const NjBlock *blocks)
{
    double sum = 0;
    for (guint b = 0; b < NJ_N_BLOCKS; b++)
        for (guint i = 0; i < blocks[b].n; i++)
            sum += blocks[b].kernels[i].flop;
    return sum;
}

// What a rank has of the whole layer: 1 / (tp cp) of the arithmetic; norms are repeated on every tensor rank.
START_TEST(shares_of_ranks)
{
    static const struct {
        const char *label;
        int tp, cp;
        double kv_heads; // on a rank
    } rows[] = {
        {"tp1", 1, 1, 4},
        {"tp2", 2, 1, 2},
        {"tp4", 4, 1, 1},
        {"cp2tp1", 1, 2, 4},
        {"cp2tp4", 4, 2, 1},
        {"cp4tp2", 2, 4, 2},
        {"tp8: kv heads held by two ranks each", 8, 1, 1},
    };
    g_auto(NjWorkload) one = {0};
    NjLayer whole;
    workload_init(&one, 1, 1, FALSE);
    nj_layer_build(&whole, &one, 2);
    // 2 n (d (2 q + 2 kv) + 3 d f) + 2 n seq q with n = 256.
    ck_assert_double_eq(sum_flop(whole.forward),
                        2.0 * 256 * (64 * (2 * 128 + 2 * 64) + 3 * 64 * 256) + 2.0 * 256 * 128 * 128);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const double ranks = rows[i].tp * rows[i].cp, n = 256.0 / rows[i].cp;
        g_auto(NjWorkload) workload = {0};
        NjLayer layer;
        workload_init(&workload, rows[i].tp, rows[i].cp, FALSE);
        nj_layer_build(&layer, &workload, 2);
        // Key and value heads beyond an even share are computed twice.
        const double repeated = 2 * n * 64 * 2 * 16 * (rows[i].kv_heads - 4.0 / rows[i].tp);
        ck_assert_msg(sum_flop(layer.forward) == sum_flop(whole.forward) / ranks + repeated, "%s: forward",
                      rows[i].label);
        ck_assert_msg(sum_flop(layer.backward) == sum_flop(whole.backward) / ranks + 2 * repeated,
                      "%s: backward", rows[i].label);
        ck_assert_msg(layer.forward[NJ_BLOCK_QKV].kernels[1].hbm_bytes == 4 * n * 64, "%s: norm",
                      rows[i].label);
        // Groups of one rank have nothing to send.
        ck_assert_msg(layer.all_reduce.link_bytes == 2.0 * (rows[i].tp - 1) / rows[i].tp * 2 * n * 64,
                      "%s: all-reduce", rows[i].label);
        ck_assert_msg((layer.all_reduce.link_s > 0) == (rows[i].tp > 1), "%s: all-reduce", rows[i].label);
        const double gathered = (rows[i].cp - 1) * 4 * n * 128 / rows[i].tp;
        ck_assert_msg(fabs(layer.all_gather.link_bytes - gathered) < 1e-6, "%s: all-gather", rows[i].label);
        ck_assert_msg((layer.all_gather.link_s > 0) == (rows[i].cp > 1), "%s: all-gather", rows[i].label);
        ck_assert_msg((layer.reduce_scatter.link_s > 0) == (rows[i].cp > 1), "%s: reduce-scatter",
                      rows[i].label);
    }
}
END_TEST

// A nanobatch has its sequences' share of everything but weights.
START_TEST(nanobatches)
{
    g_auto(NjWorkload) workload = {0};
    NjLayer whole, half;
    workload_init(&workload, 2, 1, TRUE);
    nj_layer_build(&whole, &workload, 2);
    nj_layer_build(&half, &workload, 1);
    ck_assert_double_eq(sum_flop(half.forward), sum_flop(whole.forward) / 2);
    ck_assert_double_eq(sum_flop(half.backward), sum_flop(whole.backward) / 2);
    ck_assert_double_eq(half.all_reduce.link_bytes, whole.all_reduce.link_bytes / 2);
    ck_assert_double_eq(half.all_reduce.latency_s, whole.all_reduce.latency_s);
    // FC1 reads its weights, 64 x 256, once each time.
    ck_assert_double_eq(2 * half.forward[NJ_BLOCK_MLP].kernels[2].hbm_bytes -
                            whole.forward[NJ_BLOCK_MLP].kernels[2].hbm_bytes,
                        2 * 64 * 256);
}
END_TEST

// Activations of a microbatch, 2 n d bytes, over the network or, where stages share a node, NVLink.
START_TEST(point_to_point)
{
    static const struct {
        const char *label;
        int tp, cp;
        double seconds;
    } rows[] = {
        {"tp8: a node a stage", 8, 1, 7e-6 + 2 * 256 * 64 / 10e9},
        {"cp2tp4: half the tokens", 4, 2, 7e-6 + 2 * 128 * 64 / 10e9},
        {"tp2: stages share a node", 2, 1, 7e-6 + 2 * 256 * 64 / 100e9},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(NjWorkload) workload = {0};
        workload_init(&workload, rows[i].tp, rows[i].cp, FALSE);
        ck_assert_msg(fabs(nj_point_to_point_s(&workload, 0) / rows[i].seconds - 1) < 1e-12, "%s: %.9g s",
                      rows[i].label, nj_point_to_point_s(&workload, 0));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer");
    TCase *tests = tcase_create("layer");
    tcase_add_test(tests, by_hand);
    tcase_add_test(tests, seconds_and_joules);
    tcase_add_test(tests, shares_of_ranks);
    tcase_add_test(tests, nanobatches);
    tcase_add_test(tests, point_to_point);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
