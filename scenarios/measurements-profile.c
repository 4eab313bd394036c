// SPDX-License-Identifier: MIT
// Measurements in the form of an instruction profile: time and energy of one instruction of one stage at one
// frequency, and a scenario that says what was run.
#include "scenarios/measurements-private.h"
#include "scenarios/scenario.h"
#include "schedules/profile.h"
#include "sim/error.h"

typedef struct {
    NjProfile *profile;
    NjScenario scenario;
} Profile;

static void free_profile(gpointer data)
{
    Profile *profile = data;
    nj_profile_free(profile->profile);
    nj_scenario_clear(&profile->scenario);
    g_free(profile);
}

static gboolean predict(const NjMeasurementSet *set, const NjGpu *gpu, double *predicted, GError **error)
{
    const Profile *profile = set->data;
    NjWorkload workload = profile->scenario.workload; // shares the architecture's and the GPU's texts
    workload.gpu = *gpu;
    g_autoptr(NjExecutor) executor = nj_executor_new(&workload, nj_scenario_execution(&profile->scenario));
    nj_executor_set_extrapolate(executor, TRUE);
    for (guint i = 0; i < profile->profile->n_rows; i++) {
        const NjProfileRow *row = &profile->profile->rows[i];
        const NjTaskRecord *record = nj_executor_profile(executor, row->stage, &row->instruction, error);
        if (record == NULL) {
            g_prefix_error(error, "%s:%u: ", set->path, row->line);
            return FALSE;
        }
        const double time_s = (double)record->duration / NJ_PS_PER_S;
        *predicted++ = time_s;
        *predicted++ = nj_task_record_dynamic_j(record) + gpu->static_w * time_s;
    }
    return TRUE;
}

static gboolean check_row(const NjMeasurementSet *set, const Profile *profile, const NjProfileRow *row,
                          const NjGpu *gpu, GError **error)
{
    const guint n_stages = (guint)profile->scenario.workload.parallelism.pp;
    if (row->stage >= n_stages) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: stage %u: %s has %u stages", set->path,
                    row->line, row->stage, profile->scenario.path, n_stages);
        return FALSE;
    }
    if (!nj_gpu_has_freq(gpu, (int)row->instruction.freq_mhz)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s:%u: frequency = %u: %s has %d to %d MHz in steps of %d", set->path, row->line,
                    row->instruction.freq_mhz, gpu->name, gpu->freq_min_mhz, gpu->freq_max_mhz,
                    gpu->freq_step_mhz);
        return FALSE;
    }
    if (row->energy_j > 0)
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: energy: a measurement must be a number above 0",
                set->path, row->line);
    return FALSE;
}

static gboolean read(NjMeasurementSet *set, const NjCsv *csv, const NjMeasurementOptions *options,
                     GError **error)
{
    if (options->scenario == NULL) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "calibrate: %s is an instruction profile: --scenario must say what was run", csv->path);
        return FALSE;
    }
    Profile *profile = g_new0(Profile, 1);
    set->data = profile;
    set->free_data = free_profile;
    set->predict = predict;
    if (!nj_scenario_load(&profile->scenario, options->scenario, error))
        return FALSE;
    profile->profile = nj_profile_read(csv->path, error);
    if (profile->profile == NULL)
        return FALSE;
    for (guint i = 0; i < profile->profile->n_rows; i++) {
        const NjProfileRow *row = &profile->profile->rows[i];
        if (!check_row(set, profile, row, options->gpu, error))
            return FALSE;
        // Left out together: a stage's instruction over all its frequencies.
        g_autofree char *name =
            g_strdup_printf("stage %u %s", row->stage, nj_instruction_kind_name(row->instruction.kind));
        const guint configuration = nj_measurement_configuration(set, name);
        const NjMeasurement time = {NJ_FIGURE_TIME, configuration, row->time_s, row->line};
        const NjMeasurement energy = {NJ_FIGURE_ENERGY, configuration, row->energy_j, row->line};
        g_array_append_val(set->measurements, time);
        g_array_append_val(set->measurements, energy);
    }
    return TRUE;
}

static const char *const columns[] = {"stage", "instruction", "frequency", "time", "energy", NULL};

const NjMeasurementForm nj_measurement_form_profile = {columns, read};
