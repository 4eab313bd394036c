// SPDX-License-Identifier: MIT
// GPT architectures, software stacks, groups of ranks, and what follows the last backward: closed forms.
#include "models/network.h"
#include "models/update.h"
#include "schedules/execute.h"
#include "tests/testing.h"

#include <glib/gstdio.h>
#include <math.h>

#define assert_near(value, expected) ck_assert_double_eq_tol((value) / (expected), 1, 1e-9)

static void workload_init(NjWorkload *workload, NjParallelism parallelism, int heads, int seq_len,
                          int microbatch_size)
{
    *workload = (NjWorkload){
        .parallelism = parallelism,
        .microbatch_size = microbatch_size,
        .microbatches = 2,
        .seq_len = seq_len,
    };
    GError *error = NULL;
    nj_arch_init_gpt(&workload->arch, 4, 1024, heads, 51200, seq_len);
    nj_assert_ok(nj_gpu_load(&workload->gpu, "a100-sxm4-80gb", &error), error);
    nj_assert_ok(nj_stack_load(&workload->stack, "megatron-2022", &error), error);
    nj_workload_split_layers(workload);
    nj_assert_ok(nj_workload_check(workload, &error), error);
}

static void count(const NjBlock *blocks, guint *n, double *flop)
{
    *n = 0;
    *flop = 0;
    for (guint b = 0; b < NJ_N_BLOCKS; b++) {
        *n += blocks[b].n;
        for (guint i = 0; i < blocks[b].n; i++)
            *flop += blocks[b].kernels[i].flop;
    }
}

// Narayanan et al. 2021 (arXiv 2104.04473), equation 2, and the weight and bias of the last norm.
START_TEST(parameters_of_a_gpt)
{
    g_auto(NjArch) arch = {0};
    GError *error = NULL;
    nj_assert_ok(nj_arch_load(&arch, "gpt-3-175b", &error), error);
    const double l = 96, h = 12288, v = 51200, s = 2048;
    assert_near(nj_arch_parameters(&arch),
                12 * l * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * l * h)) + 2 * h);
    ck_assert(nj_arch_is_gpt_like(&arch));
    g_auto(NjArch) llama = {0};
    nj_assert_ok(nj_arch_load(&llama, "llama-3.2-1b", &error), error);
    ck_assert(!nj_arch_is_gpt_like(&llama));
}
END_TEST

#define ARCH                                                                                                 \
    "[architecture]\nname = a\ntitle = A\nhidden = 64\nlayers = 2\nheads = 4\nkv_heads = 4\nhead_dim = 16\n" \
    "ffn = 256\nvocab = 128\nqk_norm = false\ntied_embeddings = true\n"

START_TEST(architecture_errors)
{
    static const struct {
        const char *keys, *message;
    } rows[] = {
        {"mlp = relu\n", "./arch.ini: [architecture] mlp = relu: swiglu or gelu is needed"},
        {"norm = batch\n", "./arch.ini: [architecture] norm = batch: rmsnorm or layernorm is needed"},
        {"biases = 1\n", "./arch.ini: [architecture] biases = 1: true or false is needed"},
        {"positions = learned\n", "./arch.ini: [architecture] max_positions: missing; positions = learned "
                                  "needs the size of its table"},
        {"max_positions = 64\n",
         "./arch.ini: [architecture] max_positions: only positions = learned has a table"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *text = g_strconcat(ARCH, rows[i].keys, NULL);
        ck_assert(g_file_set_contents("./arch.ini", text, -1, NULL));
        NjArch arch;
        GError *error = NULL;
        ck_assert(!nj_arch_load(&arch, "./arch.ini", &error));
        nj_assert_error(error, rows[i].message);
    }
    g_remove("./arch.ini");
}
END_TEST

START_TEST(layer_kernels)
{
    g_auto(NjWorkload) w = {0};
    workload_init(&w, (NjParallelism){2, 1, 1, 1}, 16, 1024, 2);
    const double n = 2048, d = 1024, s = 1024;
    NjLayer layer;
    guint n_forward, n_backward;
    double forward, backward;
    nj_layer_build(&layer, &w, 2);
    count(layer.forward, &n_forward, &forward);
    count(layer.backward, &n_backward, &backward);
    // Linear layers 12 d^2 weights, scores and context over the whole square.
    assert_near(forward, (24 * n * d * d + 4 * n * s * d) / 2);
    assert_near(backward, 2 * forward);
    ck_assert_uint_eq(n_forward, 15);
    ck_assert_uint_eq(n_backward, 43);

    // A stack that accumulates in GEMMs saves a kernel for each of 12 parameters.
    g_auto(NjStack) fused = {0};
    GError *error = NULL;
    nj_assert_ok(nj_stack_load(&fused, "kareus", &error), error);
    const NjStack eager = w.stack;
    w.stack = fused;
    nj_layer_build(&layer, &w, 2);
    w.stack = eager;
    count(layer.backward, &n_backward, &backward);
    ck_assert_uint_eq(n_backward, 31);
}
END_TEST

// Every key changes its own kernels.
START_TEST(keys_one_by_one)
{
    static const struct {
        const char *label;
        int mlp, norm, positions, attention;
        gboolean biases;
        guint n_forward;
    } rows[] = {
        {"GELU alone", NJ_MLP_GELU, NJ_NORM_RMSNORM, NJ_POSITIONS_ROPE, NJ_ATTENTION_FLASH, FALSE, 12},
        {"scores alone", NJ_MLP_SWIGLU, NJ_NORM_RMSNORM, NJ_POSITIONS_ROPE, NJ_ATTENTION_MATERIALIZED, FALSE,
         15},
        {"biases alone", NJ_MLP_SWIGLU, NJ_NORM_RMSNORM, NJ_POSITIONS_ROPE, NJ_ATTENTION_FLASH, TRUE, 13},
        {"learned positions alone", NJ_MLP_SWIGLU, NJ_NORM_RMSNORM, NJ_POSITIONS_LEARNED, NJ_ATTENTION_FLASH,
         FALSE, 11},
        {"layer norm alone", NJ_MLP_SWIGLU, NJ_NORM_LAYERNORM, NJ_POSITIONS_ROPE, NJ_ATTENTION_FLASH, FALSE,
         12},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(NjWorkload) w = {0};
        workload_init(&w, (NjParallelism){1, 1, 1, 1}, 16, 1024, 1);
        w.arch.mlp = rows[i].mlp;
        w.arch.norm = rows[i].norm;
        w.arch.positions = rows[i].positions;
        w.arch.attention = rows[i].attention;
        w.arch.biases = rows[i].biases;
        NjLayer layer;
        guint n;
        double flop;
        nj_layer_build(&layer, &w, 1);
        count(layer.forward, &n, &flop);
        ck_assert_msg(n == rows[i].n_forward, "%s: %u kernels", rows[i].label, n);
        // SwiGLU has 12 d f flop a token, GELU 8; flash attention computes half the square.
        const double t = 1024, d = 1024;
        const double mlp = (rows[i].mlp == NJ_MLP_GELU ? 16 : 24) * t * d * d;
        const double attention = (rows[i].attention == NJ_ATTENTION_FLASH ? 2 : 4) * t * t * d;
        ck_assert_msg(fabs(flop / (8 * t * d * d + mlp + attention) - 1) < 1e-9, "%s: %g flop", rows[i].label,
                      flop);
    }
}
END_TEST

// The fused softmax needs a multiple of 4 (sequence, head) pairs on a rank and at most 2048 keys.
START_TEST(softmax_without_a_fused_kernel)
{
    static const struct {
        int tp, microbatch_size, seq_len;
        guint n_forward;
    } rows[] = {{8, 2, 1024, 15}, {8, 1, 1024, 19}, {4, 1, 2048, 15}, {4, 1, 4096, 19}};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(NjWorkload) w = {0};
        workload_init(&w, (NjParallelism){rows[i].tp, 1, 1, 1}, 16, rows[i].seq_len, rows[i].microbatch_size);
        NjLayer layer;
        guint n_forward, n_backward;
        double flop;
        nj_layer_build(&layer, &w, rows[i].microbatch_size);
        count(layer.forward, &n_forward, &flop);
        count(layer.backward, &n_backward, &flop);
        ck_assert_uint_eq(n_forward, rows[i].n_forward);
        ck_assert_uint_eq(n_backward, 28 + rows[i].n_forward);
    }
}
END_TEST

START_TEST(groups_of_ranks)
{
    static const struct {
        NjParallelism p;
        NjGroup tensor, gradient, embedding;
    } rows[] = {
        {{1, 1, 1, 64}, {1, 1, 1}, {64, 8, 8}, {1, 1, 1}},
        {{2, 1, 1, 32}, {2, 2, 1}, {32, 4, 8}, {1, 1, 1}},
        {{8, 1, 2, 4}, {8, 8, 1}, {4, 1, 4}, {2, 1, 2}},
        {{1, 1, 4, 2}, {1, 1, 1}, {2, 2, 1}, {2, 1, 2}}, // stage 3 begins at rank 6 of 8, its second is 7
        {{16, 1, 1, 4}, {16, 8, 2}, {4, 1, 4}, {1, 1, 1}},
        {{2, 2, 1, 2}, {2, 2, 1}, {4, 4, 1}, {1, 1, 1}},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(NjWorkload) w = {0};
        workload_init(&w, rows[i].p, 16, 1024, 1);
        const NjGroup groups[] = {nj_workload_tensor_group(&w), nj_workload_gradient_group(&w),
                                  nj_workload_embedding_group(&w)};
        const NjGroup wanted[] = {rows[i].tensor, rows[i].gradient, rows[i].embedding};
        for (guint k = 0; k < 3; k++)
            ck_assert_msg(groups[k].size == wanted[k].size && groups[k].local == wanted[k].local &&
                              groups[k].nodes == wanted[k].nodes,
                          "row %u, group %u: %d, %d, %d", i, k, groups[k].size, groups[k].local,
                          groups[k].nodes);
    }
}
END_TEST

START_TEST(collectives_across_nodes)
{
    g_auto(NjGpu) gpu = {0};
    GError *error = NULL;
    nj_assert_ok(nj_gpu_load(&gpu, "a100-sxm4-80gb", &error), error);
    gpu.network_latency_us = 0;
    gpu.kernels.collective.launch_us = gpu.kernels.collective.simple_us = gpu.kernels.collective.hop_us = 0;
    gpu.kernels.collective.simple_share = 0.5; // NVLink carries 150 GB/s
    gpu.network_efficiency = 0.8;              // 10 GB/s a GPU
    static const struct {
        NjGroup group;
        double wire, rate;
    } rows[] = {
        {{4, 1, 4}, 1.5, 10},    // one rank a node
        {{16, 8, 2}, 1.875, 80}, // all of a node
        {{16, 2, 8}, 1.875, 20}, // a quarter
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        assert_near(nj_group_collective_s(&gpu, NJ_COLLECTIVE_ALL_REDUCE, &rows[i].group, 1e9),
                    rows[i].wire / rows[i].rate);
    gpu.network_gb_s = 1000; // then NVLink is the slower
    assert_near(nj_group_collective_s(&gpu, NJ_COLLECTIVE_ALL_REDUCE, &rows[1].group, 1e9), 1.875 / 150);
    gpu.network_latency_us = 10;
    gpu.kernels.collective.hop_us = 1;
    // A tree of 8 nodes is 3 deep, a chain of 2 has one hop; up and down.
    assert_near(nj_group_collective_s(&gpu, NJ_COLLECTIVE_ALL_REDUCE, &rows[2].group, 0), 2 * 31e-6);
    assert_near(nj_group_collective_s(&gpu, NJ_COLLECTIVE_ALL_GATHER, &rows[2].group, 0), 31e-6);
}
END_TEST

START_TEST(transfers_between_stages)
{
    g_auto(NjWorkload) w = {0};
    workload_init(&w, (NjParallelism){4, 1, 4, 1}, 16, 1024, 1);
    const double bytes = 2 * 1024.0 * 1024, latency_s = 1e-6 * w.gpu.network_latency_us;
    // Two stages a node: 0 and 1, then 2 and 3.
    ck_assert(nj_workload_same_node(&w, 0));
    ck_assert(!nj_workload_same_node(&w, 1));
    ck_assert(nj_workload_same_node(&w, 2));
    assert_near(nj_point_to_point_s(&w, 0), latency_s + bytes / 300e9);
    w.stack.scatter_gather = FALSE;
    assert_near(nj_point_to_point_s(&w, 1), latency_s + bytes / 12.5e9);
    w.stack.scatter_gather = TRUE;
    const NjGroup tensor = {4, 4, 1};
    assert_near(nj_point_to_point_s(&w, 1),
                latency_s + bytes / 4 / 12.5e9 +
                    nj_group_collective_s(&w.gpu, NJ_COLLECTIVE_ALL_GATHER, &tensor, bytes) /
                        w.gpu.allgather_share);
}
END_TEST

static double kernel_s(const NjKernel *kernel)
{
    return kernel->latency_s + fmax(kernel->sm_s, fmax(kernel->hbm_s, kernel->link_s));
}

// A slow host: the last kernel ends its own time after the last dispatch. A fast one: kernels follow each
// other.
START_TEST(host_bound)
{
    static const double dispatch_us[] = {100000, 0};
    for (guint i = 0; i < G_N_ELEMENTS(dispatch_us); i++) {
        g_auto(NjWorkload) w = {0};
        workload_init(&w, (NjParallelism){1, 1, 1, 1}, 16, 1024, 4);
        w.stack.dispatch_sequential_us = dispatch_us[i];
        NjLowering lowering;
        NjDeviceSpec spec;
        NjProgram program;
        NjTaskRecord record;
        nj_lowering_init(&lowering, &w);
        nj_gpu_device_spec(&w.gpu, &spec);
        nj_program_init(&program);
        ck_assert(nj_lowering_build(&lowering, NJ_EXECUTION_SEQUENTIAL, NJ_BACKWARD, 0, 4, NULL, 0, &program,
                                    NULL));
        nj_run_alone(&spec, &program, w.gpu.freq_max_mhz, &record);
        const guint n = nj_program_n_ops(&program, NJ_STREAM_COMPUTE);
        double sum_s = 0, last_s = 0;
        for (guint k = 0; k < n; k++) {
            const NjOp *op = &g_array_index(program.ops[NJ_STREAM_COMPUTE], NjOp, k);
            last_s = kernel_s(&g_array_index(program.kernels, NjKernel, op->kernel));
            sum_s += last_s;
        }
        const double expected_s = i == 0 ? n * 0.1 + last_s : sum_s;
        ck_assert_double_eq_tol((double)record.duration / NJ_PS_PER_S / expected_s, 1, 1e-7);
        nj_program_clear(&program);
    }
}
END_TEST

static void backward_flop(NjRecompute recompute, double *flop)
{
    g_auto(NjWorkload) w = {0};
    workload_init(&w, (NjParallelism){1, 1, 1, 1}, 16, 1024, 2);
    w.recompute = recompute;
    g_autoptr(NjExecutor) executor = nj_executor_new(&w, NJ_EXECUTION_SEQUENTIAL);
    const NjPlanInstruction backward = {.kind = NJ_BACKWARD, .freq_mhz = 1410};
    const NjTaskRecord *record = nj_executor_profile(executor, 0, &backward, NULL);
    ck_assert_ptr_nonnull(record);
    *flop = record->flop;
}

START_TEST(recomputation)
{
    const double n = 2048, d = 1024, s = 1024, layers = 4;
    double none, selective, full;
    backward_flop(NJ_RECOMPUTE_NONE, &none);
    backward_flop(NJ_RECOMPUTE_SELECTIVE, &selective);
    backward_flop(NJ_RECOMPUTE_FULL, &full);
    assert_near(selective - none, layers * 4 * n * s * d);
    assert_near(full - none, layers * (24 * n * d * d + 4 * n * s * d));

    g_auto(NjWorkload) w = {0};
    workload_init(&w, (NjParallelism){1, 1, 1, 1}, 16, 1024, 2);
    w.recompute = NJ_RECOMPUTE_SELECTIVE;
    g_autoptr(NjExecutor) executor = nj_executor_new(&w, NJ_EXECUTION_NANOBATCHED);
    const NjPlanInstruction backward = {.kind = NJ_BACKWARD, .freq_mhz = 1410};
    GError *error = NULL;
    ck_assert_ptr_null(nj_executor_profile(executor, 0, &backward, &error));
    nj_assert_error(error,
                    "recompute = selective: nanobatching needs full recomputation, its partitions hold it");
}
END_TEST

static double run_s(const NjWorkload *w, gboolean optimizer, NjIteration *iteration)
{
    g_auto(NjPipeline) pipeline = {0};
    g_auto(NjPlan) plan = {0};
    nj_pipeline_init(&pipeline, &nj_schedule_1f1b, (guint)w->parallelism.pp, (guint)w->microbatches);
    nj_plan_uniform(&pipeline, (guint)w->gpu.freq_max_mhz, &plan);
    g_autoptr(NjExecutor) executor = nj_executor_new(w, NJ_EXECUTION_SEQUENTIAL);
    const NjExecuteOptions options = {.optimizer = optimizer};
    GError *error = NULL;
    nj_assert_ok(nj_executor_run(executor, &pipeline, &plan, &options, iteration, &error), error);
    return (double)iteration->duration / NJ_PS_PER_S;
}

static double seconds(NjTime time)
{
    return (double)time / NJ_PS_PER_S;
}

START_TEST(update_behind_the_pipeline)
{
    g_auto(NjWorkload) w = {0};
    workload_init(&w, (NjParallelism){1, 1, 1, 1}, 16, 1024, 2);
    w.stack.dispatch_sequential_us = 0;
    NjIteration iteration;
    const double pipeline_s = run_s(&w, FALSE, &iteration);
    ck_assert_int_eq(iteration.stages[0].reduction, 0);
    ck_assert_int_eq(iteration.stages[0].step, 0);

    // One rank: nothing to reduce; 6 bytes a parameter to copy, 56 for the step.
    const double step_s = run_s(&w, TRUE, &iteration) - pipeline_s;
    ck_assert_int_eq(iteration.stages[0].reduction, 0);
    const double parameters = 4 * (12.0 * 1024 * 1024) + 51200.0 * 1024;
    const double copies = 4 * 12, kernels = copies + 6;
    ck_assert_double_eq_tol(step_s,
                            62 * parameters / (w.gpu.hbm_gb_s * 1e9 * w.gpu.hbm_efficiency) +
                                kernels * w.gpu.kernel_gap_us * 1e-6,
                            2e-3 * step_s); // the memory model counts norms too
    assert_near(step_s, seconds(iteration.stages[0].step));

    // Data parallelism reduces with or without the optimizer.
    w.parallelism.dp = 8;
    const NjGroup group = {8, 8, 1};
    const double reduced_s = run_s(&w, FALSE, &iteration) - pipeline_s;
    assert_near(reduced_s, seconds(iteration.stages[0].reduction));
    const double message = 2 * parameters;
    const double expected_s =
        2 * message / (w.gpu.hbm_gb_s * 1e9 * w.gpu.hbm_efficiency) + w.gpu.kernel_gap_us * 1e-6 +
        nj_group_collective_s(&w.gpu, NJ_COLLECTIVE_ALL_REDUCE, &group, message) / w.gpu.allreduce_share +
        1e-3 * w.gpu.allreduce_latency_ms;
    ck_assert_double_eq_tol(reduced_s / expected_s, 1,
                            0.05); // SMs of the collective do not saturate the link
    ck_assert_double_ge(reduced_s, expected_s * (1 - 1e-3));
}
END_TEST

// The first and the last stage share the embedding; all stages step together.
START_TEST(update_of_stages)
{
    g_auto(NjWorkload) w = {0};
    workload_init(&w, (NjParallelism){1, 1, 4, 1}, 16, 1024, 2);
    NjIteration iteration;
    run_s(&w, TRUE, &iteration);
    ck_assert_int_gt(iteration.stages[0].reduction, 0);
    ck_assert_int_eq(iteration.stages[0].reduction, iteration.stages[3].reduction);
    ck_assert_int_eq(iteration.stages[1].reduction, 0);
    ck_assert_int_gt(iteration.stages[0].step, iteration.stages[1].step);
    w.arch.tied_embeddings = FALSE;
    run_s(&w, TRUE, &iteration);
    ck_assert_int_eq(iteration.stages[0].reduction, 0);

    NjUpdate update;
    w.parallelism.cp = 2; // context-parallel ranks hold the same weights
    nj_update_build(&update, &w, 1);
    ck_assert_double_gt(update.gradient_all_reduce.link_bytes, 0);
    assert_near(update.gradient_all_reduce.link_bytes,
                2 * nj_arch_layer_parameters(&w.arch) - 2 * 9 * 1024.0 -
                    2 * 2 * 1024.0); // the memory model leaves out biases
}
END_TEST

START_TEST(carried_over_constants)
{
    g_auto(NjGpu) from = {0};
    GError *error = NULL;
    nj_assert_ok(nj_gpu_load(&from, "a100-sxm4-40gb", &error), error);
    ck_assert_ptr_null(nj_gpu_note(&from));
    static const struct {
        const char *name, *title;
        double work_w; // power limit minus static power
    } rows[] = {{"a100-sxm4-80gb", "NVIDIA A100-SXM4-80GB", 315},
                {"h100-sxm5-80gb", "NVIDIA H100-SXM5-80GB", 580},
                {"a40", "NVIDIA A40", 230}};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(NjGpu) gpu = {0};
        nj_assert_ok(nj_gpu_load(&gpu, rows[i].name, &error), error);
        ck_assert_double_eq(gpu.gemm_share, from.gemm_share);
        ck_assert_double_eq(gpu.kernel_gap_us, from.kernel_gap_us);
        assert_near(gpu.gemm_w, from.gemm_w * rows[i].work_w / 315);
        assert_near(gpu.clock_w, from.clock_w * rows[i].work_w / 315);
        g_autofree char *note = nj_gpu_note(&gpu);
        g_autofree char *expected = g_strdup_printf(
            "the constants of %s are not calibrated: carried over from a100-sxm4-40gb", rows[i].title);
        ck_assert_str_eq(note, expected);
    }
}
END_TEST

#define GPU(extra)                                                                                           \
    "[gpu]\nname = X\ncalibrated = false\n" extra                                                            \
    "sm_count = 1\npeak_tflop_s = 1\nhbm_gb_s = 1\nhbm_gib = 1\nnvlink_gb_s = 1\ngpus_per_node = 1\n"        \
    "network_gb_s = 1\nnetwork_efficiency = 1\nfreq_min_mhz = 1\nfreq_max_mhz = 1\nfreq_step_mhz = 1\n"      \
    "static_w = 1\npower_limit_w = 2\nkernels = a100\n"

START_TEST(carried_over_errors)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {GPU("constants_of = a40\n"),
         "./gpu.ini: [gpu] constants_of = a40: a GPU with constants of its own is needed"},
        {GPU("constants_of = ./gpu.ini\n"),
         "./gpu.ini: [gpu] constants_of = ./gpu.ini: a GPU with constants of its own is needed"},
        {GPU("constants_of = ./none.ini\n"),
         "./gpu.ini: [gpu] constants_of = ./none.ini: ./none.ini: No such "
         "file or directory"},
        {GPU(""), "./gpu.ini: [model] gemm_share: missing; needed: GEMM rate inside training over the rate "
                  "alone"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        ck_assert(g_file_set_contents("./gpu.ini", rows[i].text, -1, NULL));
        NjGpu gpu;
        GError *error = NULL;
        ck_assert(!nj_gpu_load(&gpu, "./gpu.ini", &error));
        nj_assert_error(error, rows[i].message);
    }
    // A constant of its own stands; without another GPU's name the note says so.
    const char *text = GPU("constants_of = a100-sxm4-40gb\n") "[model]\ngemm_share = 0.5\n";
    ck_assert(g_file_set_contents("./gpu.ini", text, -1, NULL));
    g_auto(NjGpu) gpu = {0};
    GError *error = NULL;
    nj_assert_ok(nj_gpu_load(&gpu, "./gpu.ini", &error), error);
    ck_assert_double_eq(gpu.gemm_share, 0.5);
    g_clear_pointer(&gpu.constants_of, g_free);
    g_autofree char *note = nj_gpu_note(&gpu);
    ck_assert_str_eq(note, "the constants of X are not calibrated");
    g_remove("./gpu.ini");
}
END_TEST

START_TEST(stacks)
{
    static const struct {
        const char *bytes, *message;
    } rows[] = {
        {"3", "./stack.ini: [stack] gradient_bytes = 3: 2 or 4 is needed"},
        {"8", "./stack.ini: [stack] gradient_bytes = 8: an integer from 2 to 4 bytes is needed"},
    };
    NjStack stack;
    GError *error = NULL;
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *text = g_strdup_printf(
            "[stack]\nname = s\ndispatch_us = 1\ndispatch_partition_us = 1\ndispatch_sequential_us = 1\n"
            "fused_gradients = true\ngradient_bytes = %s\nscatter_gather = true\n",
            rows[i].bytes);
        ck_assert(g_file_set_contents("./stack.ini", text, -1, NULL));
        ck_assert(!nj_stack_load(&stack, "./stack.ini", &error));
        nj_assert_error(error, rows[i].message);
    }
    g_remove("./stack.ini");
    ck_assert(!nj_stack_load(&stack, "abacus", &error));
    nj_assert_error(error,
                    "abacus: not in models/stacks; shipped: kareus, megatron-2022; or give the path of a "
                    ".ini file");
    // The testbed's stack is what a workload without one has; neither has dispatch times of its own.
    g_auto(NjGpu) gpu = {0};
    g_auto(NjStack) kareus = {0}, megatron = {0};
    nj_assert_ok(nj_gpu_load(&gpu, "a100-sxm4-40gb", &error), error);
    nj_assert_ok(nj_stack_load(&kareus, "kareus", &error), error);
    nj_assert_ok(nj_stack_load(&megatron, "megatron-2022", &error), error);
    const NjStack unnamed = {0};
    const NjStack named = nj_stack_on_gpu(&kareus, &gpu), builtin = nj_stack_on_gpu(&unnamed, &gpu);
    ck_assert_double_eq(named.dispatch_us, gpu.dispatch_us);
    ck_assert_double_eq(builtin.dispatch_us, gpu.dispatch_us);
    ck_assert_double_eq(named.dispatch_partition_us, builtin.dispatch_partition_us);
    ck_assert_double_eq(named.dispatch_sequential_us, builtin.dispatch_sequential_us);
    ck_assert_int_eq(named.gradient_bytes, builtin.gradient_bytes);
    ck_assert_int_eq(named.fused_gradients, builtin.fused_gradients);
    ck_assert_int_eq(named.scatter_gather, builtin.scatter_gather);
    const NjStack own = nj_stack_on_gpu(&megatron, &gpu);
    ck_assert_double_eq(own.dispatch_sequential_us, megatron.dispatch_sequential_us);
    ck_assert_double_eq(own.dispatch_us, gpu.dispatch_us);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpt");
    TCase *tcase = tcase_create("gpt");
    tcase_add_test(tcase, parameters_of_a_gpt);
    tcase_add_test(tcase, architecture_errors);
    tcase_add_test(tcase, layer_kernels);
    tcase_add_test(tcase, keys_one_by_one);
    tcase_add_test(tcase, softmax_without_a_fused_kernel);
    tcase_add_test(tcase, groups_of_ranks);
    tcase_add_test(tcase, collectives_across_nodes);
    tcase_add_test(tcase, transfers_between_stages);
    tcase_add_test(tcase, host_bound);
    tcase_add_test(tcase, recomputation);
    tcase_add_test(tcase, update_behind_the_pipeline);
    tcase_add_test(tcase, update_of_stages);
    tcase_add_test(tcase, carried_over_constants);
    tcase_add_test(tcase, carried_over_errors);
    tcase_add_test(tcase, stacks);
    suite_add_tcase(suite, tcase);
    return nj_test_run(suite);
}
