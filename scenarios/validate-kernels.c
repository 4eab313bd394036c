// SPDX-License-Identifier: MIT
// Forms of single kernels, one kernel at a time on an idle GPU.
#include "models/gpu.h"
#include "models/kernel-time.h"
#include "scenarios/validate-private.h"
#include "sim/error.h"

static const double ms_per_s = 1e3;

typedef struct {
    NjKernelConstants constants;
    NjKernelHardware hardware;
} Setup;

static void setup_clear(Setup *setup)
{
    nj_kernel_constants_clear(&setup->constants);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Setup, setup_clear)

// Constants and the GPU to predict for; a note where they do not belong together.
static gboolean load_setup(Setup *setup, const NjValidateOptions *options, NjValidation *validation,
                           GError **error)
{
    const char *kernels = options->kernels != NULL ? options->kernels : "a100";
    if (!nj_kernel_constants_load(&setup->constants, kernels, error))
        return FALSE;
    setup->hardware = setup->constants.measured_hardware;
    if (options->gpu == NULL)
        return TRUE;
    g_auto(NjGpu) gpu = {0};
    if (!nj_gpu_load(&gpu, options->gpu, error))
        return FALSE;
    setup->hardware = (NjKernelHardware){gpu.sm_count, gpu.peak_tflop_s, gpu.hbm_gb_s, gpu.nvlink_gb_s};
    if (!g_str_equal(gpu.name, setup->constants.measured_on)) {
        g_autofree char *note =
            g_strdup_printf("Constants measured on %s are carried over to %s by its peaks.",
                            setup->constants.measured_on, gpu.name);
        nj_validation_set_note(validation, note);
    }
    return TRUE;
}

static gboolean read_counts(const NjCsv *csv, guint row, const char *const *columns, guint n, gint64 minimum,
                            gint64 *values, GError **error)
{
    for (guint i = 0; i < n; i++)
        if (!nj_csv_integer(csv, row, nj_csv_column(csv, columns[i]), minimum, 1 << 30, &values[i], error))
            return FALSE;
    return TRUE;
}

static gboolean bad_value(const NjCsv *csv, guint row, const char *column, const char *wanted, GError **error)
{
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: %s = '%s': %s", csv->path, csv->line_numbers[row],
                column, csv->rows[row][nj_csv_column(csv, column)], wanted);
    return FALSE;
}

// "10-100 GFLOP": bands of a factor of ten between low and high.
static void add_to_decade(NjValidation *validation, double value, double low, double high, const char *unit)
{
    double bound = low;
    g_autofree char *label = NULL;
    if (value < low) {
        label = g_strdup_printf("< %g %s", low, unit);
        bound = 0;
    } else if (value >= high) {
        label = g_strdup_printf(">= %g %s", high, unit);
        bound = high;
    } else {
        while (value >= bound * 10)
            bound *= 10;
        label = g_strdup_printf("%g-%g %s", bound, bound * 10, unit);
    }
    nj_validation_add_to_group(validation, "size", label, bound);
}

// The limit from which a form's accuracy is quoted.
static void add_to_side(NjValidation *validation, const char *kind, double value, double limit,
                        const char *unit)
{
    g_autofree char *label =
        g_strdup_printf("%s %g%s%s", value < limit ? "<" : ">=", limit, unit[0] != '\0' ? " " : "", unit);
    nj_validation_add_to_group(validation, kind, label, value < limit ? 0 : 1);
}

static void add_to_count(NjValidation *validation, const char *kind, gint64 count)
{
    g_autofree char *label = g_strdup_printf("%" G_GINT64_FORMAT, count);
    nj_validation_add_to_group(validation, kind, label, (double)count);
}

static const char *const gemm_header[] = {"m", "n", "k", "latency_ms", NULL};

static gboolean predict_gemm(const NjCsv *csv, const NjValidateOptions *options, NjValidation *validation,
                             GError **error)
{
    g_auto(Setup) setup = {0};
    if (!load_setup(&setup, options, validation, error))
        return FALSE;
    for (guint row = 0; row < csv->n_rows; row++) {
        gint64 shape[3];
        double measured_ms;
        if (!read_counts(csv, row, gemm_header, 3, 1, shape, error) ||
            !nj_validate_positive(csv, row, nj_csv_column(csv, "latency_ms"), &measured_ms, error))
            return FALSE;
        const double predicted_s = nj_gemm_time(&setup.constants, &setup.hardware, setup.hardware.sm_count,
                                                shape[0], shape[1], shape[2])
                                       .total_s;
        const double gflop = nj_gemm_flop(shape[0], shape[1], shape[2]) / 1e9;
        nj_validation_add_row(validation, predicted_s * ms_per_s, measured_ms);
        add_to_side(validation, "bar", gflop, 1, "GFLOP");
        add_to_decade(validation, gflop, 0.01, 1000, "GFLOP");
        // Fewer rows than a tile, a few tiles, many: decode, small batches, training.
        nj_validation_add_to_group(validation, "m",
                                   shape[0] <= 64    ? "<= 64"
                                   : shape[0] <= 512 ? "65-512"
                                                     : "> 512",
                                   (double)(shape[0] > 64) + (double)(shape[0] > 512));
    }
    return TRUE;
}

const NjValidateForm nj_validate_gemm = {
    .name = "gemm",
    .description = "bf16 GEMMs of m x n x k alone on a GPU",
    .header = gemm_header,
    .column = "latency_ms",
    .ref_column = "ref_latency_ms",
    .unit = "ms",
    .predict = predict_gemm,
};

static const char *const attention_header[] = {"batch",    "seq_len",    "heads", "kv_heads",
                                               "head_dim", "latency_ms", NULL};

static gboolean predict_attention(const NjCsv *csv, const NjValidateOptions *options,
                                  NjValidation *validation, GError **error)
{
    g_auto(Setup) setup = {0};
    if (!load_setup(&setup, options, validation, error))
        return FALSE;
    for (guint row = 0; row < csv->n_rows; row++) {
        gint64 shape[5];
        double measured_ms;
        if (!read_counts(csv, row, attention_header, 5, 1, shape, error) ||
            !nj_validate_positive(csv, row, nj_csv_column(csv, "latency_ms"), &measured_ms, error))
            return FALSE;
        const gint64 batch = shape[0], seq_len = shape[1], heads = shape[2], kv_heads = shape[3];
        if (heads % kv_heads != 0)
            return bad_value(csv, row, "kv_heads", "a divisor of heads is needed", error);
        const double predicted_s =
            nj_attention_time(&setup.constants, &setup.hardware, setup.hardware.sm_count, batch, seq_len,
                              heads, kv_heads, shape[4])
                .total_s;
        nj_validation_add_row(validation, predicted_s * ms_per_s, measured_ms);
        add_to_side(validation, "bar", (double)seq_len, 1024, "tokens");
        add_to_count(validation, "seq_len", seq_len);
        add_to_count(validation, "batch", batch);
        nj_validation_add_to_group(validation, "kv_heads", kv_heads == heads ? "= heads" : "< heads",
                                   kv_heads == heads ? 1 : 0);
    }
    return TRUE;
}

const NjValidateForm nj_validate_attention = {
    .name = "attention",
    .description = "causal flash attention forward alone on a GPU",
    .header = attention_header,
    .column = "latency_ms",
    .ref_column = "ref_latency_ms",
    .unit = "ms",
    .predict = predict_attention,
};

static const struct {
    const char *name;
    int bytes;
} dtypes[] = {{"half", 2}, {"bfloat16", 2}, {"float", 4}, {"int8", 1}};

static int dtype_bytes(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(dtypes); i++)
        if (g_str_equal(name, dtypes[i].name))
            return dtypes[i].bytes;
    return 0;
}

static const char *const collective_header[] = {"collective",       "dtype",      "gpus",
                                                "message_elements", "latency_ms", NULL};

static gboolean predict_collective(const NjCsv *csv, const NjValidateOptions *options,
                                   NjValidation *validation, GError **error)
{
    g_auto(Setup) setup = {0};
    if (!load_setup(&setup, options, validation, error))
        return FALSE;
    for (guint row = 0; row < csv->n_rows; row++) {
        NjCollectiveKind kind;
        if (!nj_collective_parse(csv->rows[row][nj_csv_column(csv, "collective")], &kind))
            return bad_value(csv, row, "collective",
                             "all_reduce, all_gather, reduce_scatter or alltoall is needed", error);
        const char *dtype = csv->rows[row][nj_csv_column(csv, "dtype")];
        const int element_bytes = dtype_bytes(dtype);
        if (element_bytes == 0)
            return bad_value(csv, row, "dtype", "half, bfloat16, float or int8 is needed", error);
        gint64 gpus, elements;
        double measured_ms;
        if (!nj_csv_integer(csv, row, nj_csv_column(csv, "gpus"), 2, 1024, &gpus, error) ||
            !nj_csv_integer(csv, row, nj_csv_column(csv, "message_elements"), 1, G_MAXINT64 / 8, &elements,
                            error) ||
            !nj_validate_positive(csv, row, nj_csv_column(csv, "latency_ms"), &measured_ms, error))
            return FALSE;
        const double message_bytes = (double)elements * element_bytes;
        const double predicted_s =
            nj_collective_time(&setup.constants, &setup.hardware, kind, (int)gpus, message_bytes);
        nj_validation_add_row(validation, predicted_s * ms_per_s, measured_ms);
        add_to_side(validation, "bar", message_bytes / 1e6, 1, "MB");
        add_to_decade(validation, message_bytes / 1e6, 0.001, 100, "MB");
        nj_validation_add_to_group(validation, "collective", nj_collective_name(kind), kind);
        add_to_count(validation, "gpus", gpus);
        nj_validation_add_to_group(validation, "dtype", dtype, -element_bytes);
    }
    return TRUE;
}

const NjValidateForm nj_validate_collective = {
    .name = "collective",
    .description =
        "collectives over the GPUs of a node; a message is what one rank ends or starts with, whole",
    .header = collective_header,
    .column = "latency_ms",
    .ref_column = "ref_latency_ms",
    .unit = "ms",
    .predict = predict_collective,
};
