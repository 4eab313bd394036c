// SPDX-License-Identifier: MIT
#include "models/memory.h"
#include "schedules/csv.h"
#include "tests/testing.h"

#include <math.h>
#include <string.h>

// GPT shapes: no grouped queries, MLP of 4 d without a gate, scores materialised, dropout.
static NjMemoryShape gpt(int hidden, int heads, int tp, const int *layers)
{
    return (NjMemoryShape){.hidden = hidden,
                           .heads = heads,
                           .q_width = hidden,
                           .kv_width = hidden,
                           .ffn = 4 * hidden,
                           .vocab = 51200,
                           .dropout = TRUE,
                           .tp = tp,
                           .cp = 1,
                           .pp = 1,
                           .dp = 1,
                           .recompute = NJ_RECOMPUTE_NONE,
                           .seq_len = 2048,
                           .microbatch_size = 1,
                           .microbatches = 1,
                           .layers = layers,
                           .tied_embeddings = TRUE};
}

// Korthikanti et al. 2022, table 2: activation bytes of a transformer layer.
START_TEST(layer_formulas_of_the_paper)
{
    const int layers[] = {96};
    const double s = 2048, b = 1, h = 12288, a = 96, t = 8, sbh = s * b * h;
    const struct {
        const char *label;
        int tp;
        gboolean sequence_parallel;
        NjRecompute recompute;
        double bytes;
    } rows[] = {
        {"no parallelism", 1, FALSE, NJ_RECOMPUTE_NONE, sbh * (34 + 5 * a * s / h)},
        {"tensor", 8, FALSE, NJ_RECOMPUTE_NONE, sbh * (10 + 24 / t + 5 * a * s / (h * t))},
        {"tensor + sequence", 8, TRUE, NJ_RECOMPUTE_NONE, sbh * (34 / t + 5 * a * s / (h * t))},
        {"tensor, selective", 8, FALSE, NJ_RECOMPUTE_SELECTIVE, sbh * (10 + 24 / t)},
        {"tensor + sequence, selective", 8, TRUE, NJ_RECOMPUTE_SELECTIVE, sbh * 34 / t},
        {"full", 8, FALSE, NJ_RECOMPUTE_FULL, sbh * 2},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        NjMemoryShape shape = gpt(12288, 96, rows[i].tp, layers);
        shape.sequence_parallel = rows[i].sequence_parallel;
        shape.recompute = rows[i].recompute;
        ck_assert_msg(fabs(nj_memory_layer_kept(&shape) / rows[i].bytes - 1) < 1e-12, "%s", rows[i].label);
    }
    // Full recomputation needs one layer's worth while it is at work.
    NjMemoryShape shape = gpt(12288, 96, 8, layers);
    const double whole = nj_memory_layer_kept(&shape);
    shape.recompute = NJ_RECOMPUTE_FULL;
    ck_assert_double_eq(nj_memory_layer_working(&shape), whole);
}
END_TEST

START_TEST(optimizer_bytes)
{
    const int layers[] = {2};
    NjMemoryShape shape = gpt(64, 4, 1, layers);
    shape.dp = 4;
    const double parameters = 2 * (12.0 * 64 * 64 + 2 * 64) + 51200.0 * 64 + 64;
    NjMemory memory;
    nj_memory_of_stage(&shape, 0, 0, &memory);
    ck_assert_double_eq(nj_memory_parameters(&shape, 0), parameters);
    ck_assert_double_eq(memory.bytes[NJ_MEMORY_WEIGHTS] + memory.bytes[NJ_MEMORY_GRADIENTS] +
                            memory.bytes[NJ_MEMORY_OPTIMIZER],
                        18 * parameters);
    shape.distributed_optimizer = TRUE;
    nj_memory_of_stage(&shape, 0, 0, &memory);
    ck_assert_double_eq(memory.bytes[NJ_MEMORY_OPTIMIZER], 3 * parameters);
    shape.tied_embeddings = FALSE;
    ck_assert_double_eq(nj_memory_parameters(&shape, 0), parameters + 51200.0 * 64);
}
END_TEST

START_TEST(stages_of_a_workload)
{
    g_autoptr(GError) error = NULL;
    g_auto(NjWorkload) workload = {.parallelism = {.tp = 4, .cp = 2, .pp = 2, .dp = 1},
                                   .microbatch_size = 8,
                                   .microbatches = 8,
                                   .seq_len = 4096};
    nj_assert_ok(nj_arch_load(&workload.arch, "llama-3.2-3b", &error), error);
    nj_assert_ok(nj_gpu_load(&workload.gpu, "a100-sxm4-40gb", &error), error);
    workload.layers[0] = 15;
    workload.layers[1] = 13;
    NjMemoryShape shape;
    NjMemory first, last, fullest;
    nj_memory_shape_from_workload(&workload, FALSE, &shape);
    nj_memory_of_stage(&shape, 0, 0, &first);
    nj_memory_of_stage(&shape, 1, 0, &last);
    const double n = 8 * 4096 / 2, d = 3072;
    // Both stages hold a copy of the embedding's matrix: on the whole, its weights count twice.
    const double matrix = 128256.0 * d / 4;
    ck_assert_double_eq_tol(nj_memory_parameters(&shape, 0) + nj_memory_parameters(&shape, 1),
                            (nj_arch_parameters(&workload.arch) - 28 * 2 * d - d -
                             128256 * d * (workload.arch.tied_embeddings ? 1 : 2)) /
                                    4 +
                                28 * 2 * d + d + 2 * matrix,
                            1);
    // Two microbatches in flight on the first stage, one on the last.
    ck_assert_double_eq(first.bytes[NJ_MEMORY_ACTIVATIONS], 2 * (15 * 2 * n * d + n * d));
    ck_assert_double_eq(last.bytes[NJ_MEMORY_ACTIVATIONS], 13 * 2 * n * d + 4 * n * d);
    ck_assert_double_eq(first.bytes[NJ_MEMORY_LOGITS], 0);
    ck_assert_double_eq(last.bytes[NJ_MEMORY_LOGITS], 6 * n * 128256 / 4);
    // Norms, QKV and FC1 inputs and masks: 10 n d; split by 4: Q, K, V, projection input, 3 f, and the sums'
    // logarithms. Gathered: K and V of the whole sequence, repeated to the query heads.
    const double split = n * 2 * (3072 + 2 * 1024 + 3072 + 3 * 8192) / 4 + 4 * n * 24 / 4;
    ck_assert_double_eq(first.bytes[NJ_MEMORY_WORKING], 10 * n * d + split + 2 * n * 2 * 2 * 3072 / 4);
    ck_assert_double_eq(first.bytes[NJ_MEMORY_NANOBATCH], 0);
    ck_assert_int_eq(nj_memory_of_fullest_stage(&shape, &fullest), 1);
    ck_assert_double_eq(nj_memory_total(&fullest), nj_memory_total(&last));
    // Every configuration of the testbed ran on 40 GiB.
    ck_assert_double_lt(nj_memory_total(&last), 40 * NJ_GIB);

    nj_memory_shape_from_workload(&workload, TRUE, &shape);
    nj_memory_of_stage(&shape, 0, 0, &first);
    ck_assert_double_eq(first.bytes[NJ_MEMORY_NANOBATCH], 2 * n * d);
    // Fewer microbatches than stages: no more can be in flight.
    shape.microbatches = 1;
    nj_memory_of_stage(&shape, 0, 0, &first);
    ck_assert_double_eq(first.bytes[NJ_MEMORY_ACTIVATIONS], 15 * 2 * n * d + n * d);
}
END_TEST

static double number(const NjCsv *csv, guint row, const char *column)
{
    return g_ascii_strtod(csv->rows[row][nj_csv_column(csv, column)], NULL);
}

static guint find_run(const NjCsv *runs, const char *model)
{
    for (guint row = 0; row < runs->n_rows; row++)
        if (g_str_equal(runs->rows[row][nj_csv_column(runs, "set")], "korthikanti22") &&
            g_str_equal(runs->rows[row][nj_csv_column(runs, "model")], model))
            return row;
    ck_abort_msg("no run of %s", model);
    return 0;
}

// Megatron-LM, first pipeline stage: every figure within 10 %.
START_TEST(measured_by_megatron)
{
    g_autofree char *path = nj_test_reference("measured/megatron_memory_gib.csv");
    g_autofree char *runs_path = nj_test_reference("measured/published.csv");
    if (path == NULL || runs_path == NULL)
        return;
    g_autoptr(GError) error = NULL;
    g_autoptr(NjCsv) measured = nj_csv_read(path, &error);
    nj_assert_ok(measured != NULL, error);
    g_autoptr(NjCsv) runs = nj_csv_read(runs_path, &error);
    nj_assert_ok(runs != NULL, error);
    double worst = 0;
    for (guint i = 0; i < measured->n_rows; i++) {
        const char *const *row = (const char *const *)measured->rows[i];
        const guint run = find_run(runs, row[nj_csv_column(measured, "model")]);
        const int pp = (int)number(runs, run, "pp");
        const int layers[] = {(int)number(runs, run, "layers") / pp};
        NjMemoryShape shape = gpt((int)number(runs, run, "hidden"), (int)number(runs, run, "heads"),
                                  (int)number(runs, run, "tp"), layers);
        shape.pp = pp;
        shape.microbatch_size = (int)number(runs, run, "mbs");
        shape.microbatches = (int)(number(runs, run, "gbs") / shape.microbatch_size);
        shape.sequence_parallel = g_str_equal(row[nj_csv_column(measured, "sequence_parallel")], "yes");
        if (g_str_equal(row[nj_csv_column(measured, "recompute")], "selective"))
            shape.recompute = NJ_RECOMPUTE_SELECTIVE;
        const double chunks = number(runs, run, "interleave_v");
        NjMemory memory;
        nj_memory_of_stage(&shape, 0, chunks > 1 ? pp + (pp - 1) / chunks : 0, &memory);
        const double *bytes = memory.bytes;
        const double predicted =
            g_str_equal(row[nj_csv_column(measured, "part")], "activations")
                ? bytes[NJ_MEMORY_ACTIVATIONS] + bytes[NJ_MEMORY_WORKING] + bytes[NJ_MEMORY_LOGITS]
                : bytes[NJ_MEMORY_WEIGHTS] + bytes[NJ_MEMORY_GRADIENTS] + bytes[NJ_MEMORY_OPTIMIZER];
        const double off = predicted / NJ_GIB / number(measured, i, "measured_gib") - 1;
        worst = MAX(worst, fabs(off));
        ck_assert_msg(fabs(off) < 0.1, "%s %s %s: %.2f GiB is off by %.1f %%", row[0], row[1], row[2],
                      predicted / NJ_GIB, 100 * off);
    }
    g_printerr("memory: %u figures, worst off by %.1f %%\n", measured->n_rows, 100 * worst);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *tests = tcase_create("memory");
    tcase_add_test(tests, layer_formulas_of_the_paper);
    tcase_add_test(tests, optimizer_bytes);
    tcase_add_test(tests, stages_of_a_workload);
    tcase_add_test(tests, measured_by_megatron);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
