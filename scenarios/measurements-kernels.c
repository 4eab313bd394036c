// SPDX-License-Identifier: MIT
// Measurements of single kernels: time, and power where it was measured. Columns kernel, frequency (MHz),
// time (s), power (W, may be left out or empty), and what the kernel needs: m, n, k for gemm; bytes for
// memory (HBM traffic) and for all_reduce, all_gather and reduce_scatter (one rank's whole message), with
// gpus and, where not the library's own number, sms.
#include "models/layer.h"
#include "scenarios/measurements-private.h"
#include "sim/error.h"
#include "sim/run.h"

#include <math.h>

typedef enum { KERNEL_GEMM, KERNEL_MEMORY, KERNEL_COLLECTIVE } KernelForm;

typedef struct {
    KernelForm form;
    double m, n, k, bytes;
    NjCollectiveKind collective;
    int gpus, sms; // sms 0: the library's own number
    double freq_mhz;
    gboolean has_power;
} KernelRow;

// Columns of the file; -1 where absent.
typedef struct {
    int kernel, m, n, k, bytes, gpus, sms, frequency, time, power;
} KernelColumns;

static void free_rows(gpointer data)
{
    g_array_unref(data);
}

static NjKernel make_kernel(const NjGpu *gpu, const KernelRow *row)
{
    switch (row->form) {
    case KERNEL_GEMM:
        return nj_single_gemm(gpu, row->m, row->n, row->k);
    case KERNEL_MEMORY:
        return nj_single_memory(gpu, row->bytes);
    case KERNEL_COLLECTIVE:
        return nj_single_collective(gpu, row->collective, row->gpus, row->bytes);
    }
    g_assert_not_reached();
}

static gboolean predict(const NjMeasurementSet *set, const NjGpu *gpu, double *predicted, GError **error)
{
    const GArray *rows = set->data;
    NjDeviceSpec spec;
    nj_gpu_device_spec(gpu, &spec);
    (void)error; // nothing a constant within its bounds can do wrong
    for (guint i = 0; i < rows->len; i++) {
        const KernelRow *row = &g_array_index(rows, KernelRow, i);
        const NjKernel kernel = make_kernel(gpu, row);
        const gboolean communicates = row->form == KERNEL_COLLECTIVE;
        NjProgram program;
        NjTaskRecord record;
        nj_program_init(&program);
        const NjOp op = {
            .kernel = nj_program_add_kernel(&program, &kernel),
            .sms = communicates ? (row->sms > 0 ? (guint)row->sms : (guint)gpu->collective_sms) : 0,
        };
        nj_program_add_op(&program, communicates ? NJ_STREAM_COMMUNICATION : NJ_STREAM_COMPUTE, op, 0);
        nj_run_alone(&spec, &program, row->freq_mhz, &record);
        nj_program_clear(&program);
        const double time_s = (double)record.duration / NJ_PS_PER_S;
        *predicted++ = time_s;
        if (row->has_power)
            *predicted++ = nj_task_record_dynamic_j(&record) + gpu->static_w * time_s;
    }
    return TRUE;
}

// A cell that the row's kernel needs.
static gboolean need_number(const NjCsv *csv, guint row, int column, const char *name, double *value,
                            GError **error)
{
    if (column < 0 || *csv->rows[row][column] == '\0') {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: %s: missing; a %s row needs it", csv->path,
                    csv->line_numbers[row], name, csv->rows[row][nj_csv_column(csv, "kernel")]);
        return FALSE;
    }
    return nj_csv_number(csv, row, column, 1, value, error);
}

static gboolean read_collective(const NjCsv *csv, guint i, const KernelColumns *c, const NjGpu *gpu,
                                KernelRow *row, GError **error)
{
    gint64 gpus = 0, sms = 0;
    row->form = KERNEL_COLLECTIVE;
    if (!need_number(csv, i, c->bytes, "bytes", &row->bytes, error))
        return FALSE;
    if (c->gpus < 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: gpus: missing; a collective needs it", csv->path,
                    csv->line_numbers[i]);
        return FALSE;
    }
    if (!nj_csv_integer(csv, i, c->gpus, 2, gpu->gpus_per_node, &gpus, error) ||
        (c->sms >= 0 && *csv->rows[i][c->sms] != '\0' &&
         !nj_csv_integer(csv, i, c->sms, 1, gpu->sm_count, &sms, error)))
        return FALSE;
    row->gpus = (int)gpus;
    row->sms = (int)sms;
    return TRUE;
}

static gboolean read_row(const NjCsv *csv, guint i, const KernelColumns *c, const NjGpu *gpu, KernelRow *row,
                         GError **error)
{
    const char *kernel = csv->rows[i][c->kernel];
    gint64 frequency;
    *row = (KernelRow){0};
    if (!nj_csv_integer(csv, i, c->frequency, 1, 10000, &frequency, error))
        return FALSE;
    if (!nj_gpu_has_freq(gpu, (int)frequency)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s:%u: frequency = %d: %s has %d to %d MHz in steps of %d", csv->path,
                    csv->line_numbers[i], (int)frequency, gpu->name, gpu->freq_min_mhz, gpu->freq_max_mhz,
                    gpu->freq_step_mhz);
        return FALSE;
    }
    row->freq_mhz = (double)frequency;
    if (g_str_equal(kernel, "gemm")) {
        row->form = KERNEL_GEMM;
        return need_number(csv, i, c->m, "m", &row->m, error) &&
               need_number(csv, i, c->n, "n", &row->n, error) &&
               need_number(csv, i, c->k, "k", &row->k, error);
    }
    if (g_str_equal(kernel, "memory")) {
        row->form = KERNEL_MEMORY;
        return need_number(csv, i, c->bytes, "bytes", &row->bytes, error);
    }
    if (nj_collective_parse(kernel, &row->collective) && row->collective != NJ_COLLECTIVE_ALLTOALL)
        return read_collective(csv, i, c, gpu, row, error);
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                "%s:%u: kernel = '%s': gemm, memory, all_reduce, all_gather or reduce_scatter is needed",
                csv->path, csv->line_numbers[i], kernel);
    return FALSE;
}

// A figure above zero.
static gboolean read_figure(const NjCsv *csv, guint i, int column, double *value, GError **error)
{
    if (!nj_csv_number(csv, i, column, 0, value, error))
        return FALSE;
    if (*value > 0)
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: %s: a measurement must be a number above 0",
                csv->path, csv->line_numbers[i], csv->columns[column]);
    return FALSE;
}

static gboolean read(NjMeasurementSet *set, const NjCsv *csv, const NjMeasurementOptions *options,
                     GError **error)
{
    const KernelColumns c = {
        .kernel = nj_csv_column(csv, "kernel"),
        .m = nj_csv_column(csv, "m"),
        .n = nj_csv_column(csv, "n"),
        .k = nj_csv_column(csv, "k"),
        .bytes = nj_csv_column(csv, "bytes"),
        .gpus = nj_csv_column(csv, "gpus"),
        .sms = nj_csv_column(csv, "sms"),
        .frequency = nj_csv_column(csv, "frequency"),
        .time = nj_csv_column(csv, "time"),
        .power = nj_csv_column(csv, "power"),
    };
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(KernelRow));
    set->data = rows;
    set->free_data = free_rows;
    set->predict = predict;
    for (guint i = 0; i < csv->n_rows; i++) {
        KernelRow row;
        double time_s, power_w = 0;
        if (!read_row(csv, i, &c, options->gpu, &row, error) || !read_figure(csv, i, c.time, &time_s, error))
            return FALSE;
        row.has_power = c.power >= 0 && *csv->rows[i][c.power] != '\0';
        if (row.has_power && !read_figure(csv, i, c.power, &power_w, error))
            return FALSE;
        const guint configuration = nj_measurement_configuration(set, csv->rows[i][c.kernel]);
        const NjMeasurement time = {NJ_FIGURE_TIME, configuration, time_s, csv->line_numbers[i]};
        const NjMeasurement energy = {NJ_FIGURE_ENERGY, configuration, power_w * time_s,
                                      csv->line_numbers[i]};
        g_array_append_val(set->measurements, time);
        if (row.has_power)
            g_array_append_val(set->measurements, energy);
        g_array_append_val(rows, row);
    }
    return TRUE;
}

static const char *const columns[] = {"kernel", "frequency", "time", NULL};

const NjMeasurementForm nj_measurement_form_kernels = {columns, read};
