// SPDX-License-Identifier: MIT
// Forms of whole training iterations of GPT models, as Megatron-LM ran them in 2021 and 2022: 1F1B, highest
// clock, pipeline, gradient reduction and optimizer's step. What the files do not say: a vocabulary of 51200,
// an MLP of 4 times the hidden size, tied embeddings (Megatron-LM's defaults).
#include "models/stack.h"
#include "scenarios/validate-private.h"
#include "schedules/execute.h"
#include "sim/error.h"

static const double ms_per_s = 1e3;

enum {
    COLUMN_GPUS,
    COLUMN_BATCH,
    COLUMN_MICROBATCH,
    COLUMN_HIDDEN,
    COLUMN_HEADS,
    COLUMN_LAYERS,
    COLUMN_SEQ,
    COLUMN_TP,
    COLUMN_DP,
    COLUMN_PP,
    N_COUNTS
};

#define COUNT_COLUMNS                                                                                        \
    "gpus", "global_batch", "microbatch_size", "hidden", "heads", "layers", "seq_len", "tp", "dp", "pp"
static const char *const node_header[] = {COUNT_COLUMNS, "iteration_ms", NULL};
static const char *const nodes_header[] = {COUNT_COLUMNS, "iteration_ms", "parameters_b", NULL};

static const int vocab = 51200;

// What all rows share.
typedef struct {
    NjGpu gpu;
    NjStack stack;
    NjRecompute recompute;
} Setup;

static void setup_clear(Setup *setup)
{
    nj_gpu_clear(&setup->gpu);
    nj_stack_clear(&setup->stack);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Setup, setup_clear)

static gboolean parse_recompute(const char *text, NjRecompute *recompute, GError **error)
{
    for (int i = 0; nj_recompute_names[i] != NULL; i++) {
        if (g_str_equal(nj_recompute_names[i], text)) {
            *recompute = (NjRecompute)i;
            return TRUE;
        }
    }
    g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                "validate: --recompute %s: full, selective or none is needed", text);
    return FALSE;
}

static gboolean load_setup(Setup *setup, const NjValidateOptions *options, NjRecompute recompute,
                           NjValidation *validation, GError **error)
{
    setup->recompute = recompute;
    if (!nj_gpu_load(&setup->gpu, options->gpu != NULL ? options->gpu : "a100-sxm4-80gb", error) ||
        !nj_stack_load(&setup->stack, options->stack != NULL ? options->stack : "megatron-2022", error) ||
        (options->recompute != NULL && !parse_recompute(options->recompute, &setup->recompute, error)))
        return FALSE;
    g_autoptr(GString) note = g_string_new(NULL);
    g_string_printf(note, "Predicted for %s, stack %s, recomputation %s.", setup->gpu.name, setup->stack.name,
                    nj_recompute_names[setup->recompute]);
    g_autofree char *gpu_note = nj_gpu_note(&setup->gpu);
    if (gpu_note != NULL)
        g_string_append_printf(note, " Note: %s.", gpu_note);
    nj_validation_set_note(validation, note->str);
    return TRUE;
}

static gboolean bad_row(const NjCsv *csv, guint row, GError **error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

static gboolean bad_row(const NjCsv *csv, guint row, GError **error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: %s", csv->path, csv->line_numbers[row], message);
    return FALSE;
}

static gboolean read_counts(const NjCsv *csv, guint row, int *counts, GError **error)
{
    for (guint i = 0; i < N_COUNTS; i++) {
        gint64 value;
        if (!nj_csv_integer(csv, row, nj_csv_column(csv, node_header[i]), 1, 1 << 20, &value, error))
            return FALSE;
        counts[i] = (int)value;
    }
    const int ranks = counts[COLUMN_TP] * counts[COLUMN_DP] * counts[COLUMN_PP];
    if (counts[COLUMN_GPUS] != ranks)
        return bad_row(csv, row, error, "gpus = %d: tp x dp x pp is %d", counts[COLUMN_GPUS], ranks);
    const int at_once = counts[COLUMN_DP] * counts[COLUMN_MICROBATCH];
    if (counts[COLUMN_BATCH] % at_once != 0)
        return bad_row(csv, row, error,
                       "global_batch = %d: a multiple of dp x microbatch_size = %d is needed",
                       counts[COLUMN_BATCH], at_once);
    if (counts[COLUMN_HIDDEN] % counts[COLUMN_HEADS] != 0)
        return bad_row(csv, row, error, "hidden = %d: a multiple of heads = %d is needed",
                       counts[COLUMN_HIDDEN], counts[COLUMN_HEADS]);
    if (counts[COLUMN_PP] > NJ_MAX_STAGES)
        return bad_row(csv, row, error, "pp = %d: at most %d stages are possible", counts[COLUMN_PP],
                       NJ_MAX_STAGES);
    return TRUE;
}

// The workload borrows the set-up's GPU and stack; its architecture is its own.
static gboolean build_workload(NjWorkload *workload, const Setup *setup, const NjCsv *csv, guint row,
                               const int *counts, GError **error)
{
    *workload = (NjWorkload){
        .gpu = setup->gpu,
        .stack = setup->stack,
        .recompute = setup->recompute,
        .parallelism = {counts[COLUMN_TP], 1, counts[COLUMN_PP], counts[COLUMN_DP]},
        .microbatch_size = counts[COLUMN_MICROBATCH],
        .microbatches = counts[COLUMN_BATCH] / (counts[COLUMN_DP] * counts[COLUMN_MICROBATCH]),
        .seq_len = counts[COLUMN_SEQ],
    };
    nj_arch_init_gpt(&workload->arch, counts[COLUMN_LAYERS], counts[COLUMN_HIDDEN], counts[COLUMN_HEADS],
                     vocab, counts[COLUMN_SEQ]);
    nj_workload_split_layers(workload);
    if (nj_workload_check(workload, error))
        return TRUE;
    g_prefix_error(error, "%s:%u: ", csv->path, csv->line_numbers[row]);
    nj_arch_clear(&workload->arch);
    return FALSE;
}

static gboolean simulate(const NjWorkload *workload, double *iteration_s, GError **error)
{
    g_auto(NjPipeline) pipeline = {0};
    g_auto(NjPlan) plan = {0};
    const NjExecuteOptions options = {.point_to_point = TRUE, .optimizer = TRUE};
    NjIteration iteration;
    nj_pipeline_init(&pipeline, &nj_schedule_1f1b, (guint)workload->parallelism.pp,
                     (guint)workload->microbatches);
    nj_plan_uniform(&pipeline, (guint)workload->gpu.freq_max_mhz, &plan);
    g_autoptr(NjExecutor) executor = nj_executor_new(workload, NJ_EXECUTION_SEQUENTIAL);
    if (!nj_executor_run(executor, &pipeline, &plan, &options, &iteration, error))
        return FALSE;
    *iteration_s = (double)iteration.duration / NJ_PS_PER_S;
    return TRUE;
}

static void add_groups(NjValidation *validation, guint row, const int *counts)
{
    static const struct {
        const char *kind;
        int column;
    } groups[] = {{"tp", COLUMN_TP},
                  {"pp", COLUMN_PP},
                  {"dp", COLUMN_DP},
                  {"hidden", COLUMN_HIDDEN},
                  {"microbatch_size", COLUMN_MICROBATCH},
                  {"gpus", COLUMN_GPUS}};
    // Rows are counted from 1; the odd ones were used to fit the stack's dispatch.
    nj_validation_add_to_group(validation, "rows", row % 2 == 0 ? "odd" : "even", row % 2);
    for (guint i = 0; i < G_N_ELEMENTS(groups); i++) {
        g_autofree char *value = g_strdup_printf("%d", counts[groups[i].column]);
        nj_validation_add_to_group(validation, groups[i].kind, value, counts[groups[i].column]);
    }
}

static gboolean predict(const NjCsv *csv, const NjValidateOptions *options, NjRecompute recompute,
                        NjValidation *validation, GError **error)
{
    g_auto(Setup) setup = {0};
    if (!load_setup(&setup, options, recompute, validation, error))
        return FALSE;
    for (guint row = 0; row < csv->n_rows; row++) {
        int counts[N_COUNTS];
        double measured_ms, predicted_s;
        NjWorkload workload;
        if (!read_counts(csv, row, counts, error) ||
            !nj_validate_positive(csv, row, nj_csv_column(csv, "iteration_ms"), &measured_ms, error) ||
            !build_workload(&workload, &setup, csv, row, counts, error))
            return FALSE;
        const gboolean ok = simulate(&workload, &predicted_s, error);
        nj_arch_clear(&workload.arch);
        if (!ok)
            return FALSE;
        nj_validation_add_row(validation, predicted_s, measured_ms / ms_per_s);
        add_groups(validation, row, counts);
    }
    return TRUE;
}

// The files only say "recompute on". With full recomputation the larger rows of one node would need more than
// the GPU's peaks, so that they can only have repeated attention (models/MEASURED.md).
static gboolean predict_node(const NjCsv *csv, const NjValidateOptions *options, NjValidation *validation,
                             GError **error)
{
    return predict(csv, options, NJ_RECOMPUTE_SELECTIVE, validation, error);
}

static gboolean predict_nodes(const NjCsv *csv, const NjValidateOptions *options, NjValidation *validation,
                              GError **error)
{
    return predict(csv, options, NJ_RECOMPUTE_FULL, validation, error);
}

const NjValidateForm nj_validate_iterations_node = {
    .name = "iterations",
    .description = "training iterations of GPT models with Megatron-LM on one node",
    .header = node_header,
    .column = "iteration_s",
    .ref_column = "ref_iteration_s",
    .unit = "s",
    .predict = predict_node,
};

const NjValidateForm nj_validate_iterations_nodes = {
    .name = "iterations-nodes",
    .description = "training iterations of GPT models with Megatron-LM on several nodes",
    .header = nodes_header,
    .column = "iteration_s",
    .ref_column = "ref_iteration_s",
    .unit = "s",
    .predict = predict_nodes,
};
