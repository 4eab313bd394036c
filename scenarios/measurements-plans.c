// SPDX-License-Identifier: MIT
// Measurements in the form of a plan table: iteration time and dynamic energy of a frequency plan.
#include "scenarios/measurements-private.h"
#include "scenarios/replay.h"
#include "sim/error.h"

#include <math.h>

#define NOISE 0.1 // relative; two runs of one plan differ by less

typedef struct {
    NjPlanTable *table;
    GArray *rows; // guint, those that are used, two measurements each
} Plans;

static void free_plans(gpointer data)
{
    Plans *plans = data;
    nj_plan_table_free(plans->table);
    g_array_unref(plans->rows);
    g_free(plans);
}

static gboolean predict(const NjMeasurementSet *set, const NjGpu *gpu, double *predicted, GError **error)
{
    const Plans *plans = set->data;
    g_autoptr(NjReplay) replay = nj_replay_new(gpu, TRUE);
    for (guint i = 0; i < plans->rows->len; i++) {
        NjReplayFigures figures;
        if (!nj_replay_row(replay, &plans->table->rows[g_array_index(plans->rows, guint, i)], &figures,
                           error))
            return FALSE;
        *predicted++ = figures.time_s;
        *predicted++ = figures.dynamic_energy_j;
    }
    return TRUE;
}

static gboolean check_figure(const char *path, const NjPlanRow *row, const char *column, double value,
                             GError **error)
{
    if (isfinite(value) && value > 0)
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: %s: a measurement must be a number above 0", path,
                row->line, column);
    return FALSE;
}

// The same plan of the same job, measured twice, must agree within the noise.
static gboolean check_agreement(const NjMeasurementSet *set, const Plans *plans, const NjPlanRow *row,
                                GError **error)
{
    for (guint i = 0; i < plans->rows->len; i++) {
        const NjPlanRow *other = &plans->table->rows[g_array_index(plans->rows, guint, i)];
        if (other->method != row->method || !g_str_equal(other->model, row->model) || other->cp != row->cp ||
            other->tp != row->tp || other->microbatch_size != row->microbatch_size ||
            other->seq_len != row->seq_len || other->microbatches != row->microbatches ||
            !nj_plan_equal(&other->plan, &row->plan))
            continue;
        const double time = fabs(row->time_s / other->time_s - 1);
        const double energy = fabs(row->dynamic_energy_j / other->dynamic_energy_j - 1);
        if (time <= NOISE && energy <= NOISE)
            continue;
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s:%u: the plan of line %u again, with %s %.1f %% off: measurements of one plan must "
                    "agree within "
                    "%.0f %%",
                    set->path, row->line, other->line, time > NOISE ? "time_s" : "dynamic_energy_j",
                    100 * fmax(time, energy), 100 * NOISE);
        return FALSE;
    }
    return TRUE;
}

static gboolean read(NjMeasurementSet *set, const NjCsv *csv, const NjMeasurementOptions *options,
                     GError **error)
{
    Plans *plans = g_new0(Plans, 1);
    set->data = plans;
    set->free_data = free_plans;
    set->predict = predict;
    plans->rows = g_array_new(FALSE, FALSE, sizeof(guint));
    plans->table = nj_plan_table_read(csv->path, error);
    if (plans->table == NULL)
        return FALSE;
    for (guint i = 0; i < plans->table->n_rows; i++) {
        const NjPlanRow *row = &plans->table->rows[i];
        if (options->skip != NULL && g_pattern_match_simple(options->skip, row->plan_id))
            continue;
        if (!check_figure(set->path, row, "time_s", row->time_s, error) ||
            !check_figure(set->path, row, "dynamic_energy_j", row->dynamic_energy_j, error) ||
            !check_agreement(set, plans, row, error))
            return FALSE;
        g_autofree char *name = nj_plan_row_configuration(row);
        const guint configuration = nj_measurement_configuration(set, name);
        const NjMeasurement time = {NJ_FIGURE_TIME, configuration, row->time_s, row->line};
        const NjMeasurement energy = {NJ_FIGURE_ENERGY, configuration, row->dynamic_energy_j, row->line};
        g_array_append_val(set->measurements, time);
        g_array_append_val(set->measurements, energy);
        g_array_append_val(plans->rows, i);
    }
    return TRUE;
}

static const char *const columns[] = {"plan_id",          "method",          "time_s",
                                      "dynamic_energy_j", "stage0_freq_mhz", NULL};

const NjMeasurementForm nj_measurement_form_plans = {columns, read};
