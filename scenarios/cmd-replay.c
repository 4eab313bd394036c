// SPDX-License-Identifier: MIT
#include "scenarios/command.h"
#include "scenarios/replay.h"
#include "scenarios/report.h"
#include "scenarios/scenario.h"
#include "scenarios/table.h"
#include "schedules/plan-files.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

static const NjColumn csv_columns[] = {
    {"plan_id", NJ_COLUMN_TEXT, 0, "", "plan"},
    {"time_s", NJ_COLUMN_REAL, 3, "s", "simulated iteration time"},
    {"dynamic_energy_j", NJ_COLUMN_REAL, 1, "J",
     "simulated dynamic energy, per rank of a stage, summed over stages"},
    {"total_energy_j", NJ_COLUMN_REAL, 1, "J", "same with static energy"},
    {"ref_time_s", NJ_COLUMN_REAL, 3, "s", "the file's"},
    {"ref_dynamic_energy_j", NJ_COLUMN_REAL, 1, "J", "the file's"},
    {"ref_total_energy_j", NJ_COLUMN_REAL, 1, "J", "the file's"},
    {"time_pct", NJ_COLUMN_REAL, 2, "%", "simulated over the file's, minus 1"},
    {"dynamic_pct", NJ_COLUMN_REAL, 2, "%", "same for dynamic energy"},
    {"total_pct", NJ_COLUMN_REAL, 2, "%", "same for total energy"},
};
#define N_CSV_COLUMNS 7 // the contract of --format csv; text and JSON add the differences

static const NjColumn summary_columns[] = {
    {"configuration", NJ_COLUMN_TEXT, 0, "", "model, parallelism, microbatch size x sequence length"},
    {"method", NJ_COLUMN_TEXT, 0, "", "method"},
    {"plans", NJ_COLUMN_INTEGER, 0, "1", "number of plans"},
    {"time_mean_pct", NJ_COLUMN_REAL, 2, "%", "mean signed difference of time"},
    {"time_mean_abs_pct", NJ_COLUMN_REAL, 2, "%", "mean absolute difference of time"},
    {"dynamic_mean_pct", NJ_COLUMN_REAL, 2, "%", "same of dynamic energy"},
    {"dynamic_mean_abs_pct", NJ_COLUMN_REAL, 2, "%", ""},
    {"total_mean_pct", NJ_COLUMN_REAL, 2, "%", "same of total energy"},
    {"total_mean_abs_pct", NJ_COLUMN_REAL, 2, "%", ""},
};

typedef struct {
    char *configuration;
    const char *method;
    guint n;
    double sum[3], sum_abs[3]; // time, dynamic, total
} Group;

static void group_free(gpointer data)
{
    Group *group = data;
    g_free(group->configuration);
    g_free(group);
}

static double percent(double value, double reference)
{
    return reference > 0 ? 100.0 * (value / reference - 1.0) : (double)NAN;
}

static void count(Group *group, const double *differences)
{
    group->n++;
    for (guint i = 0; i < 3; i++) {
        group->sum[i] += differences[i];
        group->sum_abs[i] += fabs(differences[i]);
    }
}

static Group *group_for(GPtrArray *groups, const NjPlanRow *row)
{
    g_autofree char *configuration = nj_plan_row_configuration(row);
    const char *method = nj_method_name(row->method);
    for (guint i = 0; i < groups->len; i++) {
        Group *group = groups->pdata[i];
        if (g_str_equal(group->configuration, configuration) && g_str_equal(group->method, method))
            return group;
    }
    Group *group = g_new0(Group, 1);
    group->configuration = g_steal_pointer(&configuration);
    group->method = method;
    g_ptr_array_add(groups, group);
    return group;
}

static void add_summary_row(NjTable *table, const Group *group)
{
    nj_table_add_row(table);
    nj_table_set_text(table, 0, group->configuration);
    nj_table_set_text(table, 1, group->method);
    nj_table_set_integer(table, 2, group->n);
    for (guint i = 0; i < 3; i++) {
        nj_table_set_real(table, 3 + 2 * i, group->sum[i] / group->n);
        nj_table_set_real(table, 4 + 2 * i, group->sum_abs[i] / group->n);
    }
}

static void print_summary(GPtrArray *groups, const Group *all)
{
    g_autoptr(NjTable) table = nj_table_new(summary_columns, G_N_ELEMENTS(summary_columns));
    for (guint i = 0; i < groups->len; i++)
        add_summary_row(table, groups->pdata[i]);
    if (all->n > 0)
        add_summary_row(table, all);
    g_print("\nSimulated against the file's figures, by configuration and method:\n\n");
    nj_table_print(table, NJ_FORMAT_TEXT, stdout);
}

static gboolean replay_table(const NjPlanTable *plans, NjReplay *replay, NjFormat format, GError **error)
{
    g_autoptr(GPtrArray) groups = g_ptr_array_new_with_free_func(group_free);
    const guint n_columns = format == NJ_FORMAT_CSV ? N_CSV_COLUMNS : G_N_ELEMENTS(csv_columns);
    g_autoptr(NjTable) table = nj_table_new(csv_columns, n_columns);
    Group all = {.configuration = (char *)"all", .method = "all"};

    for (guint i = 0; i < plans->n_rows; i++) {
        const NjPlanRow *row = &plans->rows[i];
        NjReplayFigures figures;
        if (!nj_replay_row(replay, row, &figures, error))
            return FALSE;
        const double simulated[] = {figures.time_s, figures.dynamic_energy_j, figures.total_energy_j};
        const double reference[] = {row->time_s, row->dynamic_energy_j, row->total_energy_j};
        double differences[3];
        nj_table_add_row(table);
        nj_table_set_text(table, 0, row->plan_id);
        for (guint k = 0; k < 3; k++) {
            differences[k] = percent(simulated[k], reference[k]);
            nj_table_set_real(table, 1 + k, simulated[k]);
            nj_table_set_real(table, 4 + k, reference[k]);
            if (n_columns > N_CSV_COLUMNS)
                nj_table_set_real(table, 7 + k, differences[k]);
        }
        if (isfinite(differences[0]) && isfinite(differences[1]) && isfinite(differences[2])) {
            count(group_for(groups, row), differences);
            count(&all, differences);
        }
    }
    nj_table_print(table, format, stdout);
    if (format == NJ_FORMAT_TEXT)
        print_summary(groups, &all);
    return TRUE;
}

// One plan as the tools write it, with the scenario for all they leave out.
static gboolean read_plan_files(const char *freqs, const char *scheds, const NjScenario *scenario,
                                NjPlanTable *plans, GError **error)
{
    NjPlan plan;
    NjPlanCosts costs;
    if (!nj_plan_files_read(freqs, scheds, &plan, &costs, error))
        return FALSE;
    const NjWorkload *workload = &scenario->workload;
    NjPlanRow *row = nj_plan_table_add(plans);
    row->plan_id = g_path_get_basename(freqs);
    row->method = scheds != NULL ? NJ_METHOD_KAREUS : scenario->method;
    row->model = g_strdup(workload->arch.name);
    row->cp = (guint)workload->parallelism.cp;
    row->tp = (guint)workload->parallelism.tp;
    row->microbatch_size = (guint)workload->microbatch_size;
    row->seq_len = (guint)workload->seq_len;
    row->microbatches = (guint)workload->microbatches;
    row->plan = plan;
    row->dynamic_energy_j = costs.total_cost_j;
    row->total_energy_j = costs.total_cost_with_static_j;
    // The planner adds static power over the whole iteration on every stage.
    row->time_s = (row->total_energy_j - row->dynamic_energy_j) / (workload->gpu.static_w * plan.n_stages);
    return TRUE;
}

static gboolean replay_plan_table(const char *path, const char *gpu_name, NjFormat format, GError **error)
{
    g_autoptr(NjPlanTable) plans = nj_plan_table_read(path, error);
    g_auto(NjGpu) gpu = {0};
    if (plans == NULL || !nj_gpu_load(&gpu, gpu_name, error))
        return FALSE;
    g_autoptr(NjReplay) replay = nj_replay_new(&gpu, FALSE);
    if (!replay_table(plans, replay, format, error))
        return FALSE;
    nj_report_note(&gpu);
    return TRUE;
}

static gboolean replay_plan_files(const char *freqs, const char *scheds, const char *scenario_path,
                                  NjFormat format, GError **error)
{
    g_auto(NjScenario) scenario = {0};
    g_autoptr(NjPlanTable) plans = g_new0(NjPlanTable, 1);
    if (!nj_scenario_load(&scenario, scenario_path, error) ||
        !read_plan_files(freqs, scheds, &scenario, plans, error))
        return FALSE;
    g_autoptr(NjReplay) replay = nj_replay_new_of_scenario(&scenario);
    if (!replay_table(plans, replay, format, error))
        return FALSE;
    nj_report_note(&scenario.workload.gpu);
    return TRUE;
}

// A table says what its plans ran but for the GPU, a scenario says all of it.
static gboolean check_usage(GStrv arguments, gboolean table, const char *gpu_name, const char *scenario_path,
                            GError **error)
{
    if (table && arguments[1] != NULL)
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "replay: %s: only a FREQS.py plan has a second file",
                    arguments[1]);
    else if (table && scenario_path != NULL)
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "replay: --scenario %s: a plan table says itself what its plans ran", scenario_path);
    else if (!table && scenario_path == NULL)
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "replay: %s: --scenario must say what this plan ran",
                    arguments[0]);
    else if (!table && gpu_name != NULL)
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "replay: --gpu %s: the scenario of a FREQS.py plan says what it ran on", gpu_name);
    else
        return TRUE;
    return FALSE;
}

static int run(int argc, char **argv)
{
    g_autofree char *gpu_name = NULL, *format_name = NULL, *scenario_path = NULL;
    const GOptionEntry entries[] = {
        {"gpu", 0, 0, G_OPTION_ARG_STRING, &gpu_name, "GPU that plan tables ran on (default a100-sxm4-40gb)",
         "NAME|FILE"},
        {"scenario", 0, 0, G_OPTION_ARG_FILENAME, &scenario_path, "What a plan in the tools' own files ran",
         "FILE"},
        {"format", 0, 0, G_OPTION_ARG_STRING, &format_name, "text, csv or json (default text)", "FORMAT"},
        {NULL},
    };
    g_auto(GStrv) arguments = NULL;
    int status;
    if (!nj_command_parse(
            &nj_command_replay, entries,
            "PLANS.csv has a plan a row, with the columns\n"
            "  plan_id,method,model,cp,tp,microbatch_size,seq_len,pipeline_stages,microbatches,time_s,\n"
            "  dynamic_energy_j,total_energy_j,stage0_freq_mhz,...,stage0_launch,...\n"
            "FREQS.py [SCHEDS.py] is one plan as the runtimes read it; --scenario says what it ran.\n"
            "Figures are a planner's: no transfers between stages; Kareus' dynamic energy with its safety "
            "factor "
            "of 1.15.\nEnergies are per rank of a stage, summed over stages.",
            argc, argv, 1, 2, &arguments, &status))
        return status;

    g_autoptr(GError) error = NULL;
    NjFormat format;
    const gboolean table = !g_str_has_suffix(arguments[0], ".py");
    if (!check_usage(arguments, table, gpu_name, scenario_path, &error) ||
        !nj_format_parse(format_name != NULL ? format_name : "text", &format, &error))
        return nj_command_fail(error);
    return (table ? replay_plan_table(arguments[0], gpu_name != NULL ? gpu_name : "a100-sxm4-40gb", format,
                                      &error)
                  : replay_plan_files(arguments[0], arguments[1], scenario_path, format, &error))
               ? 0
               : nj_command_fail(error);
}

const NjCommand nj_command_replay = {
    .name = "replay",
    .arguments = "PLANS.csv | FREQS.py [SCHEDS.py]",
    .summary = "run published plans and compare with their figures",
    .run = run,
};
