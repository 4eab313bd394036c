// SPDX-License-Identifier: MIT
#include "plots/plot.h"
#include "scenarios/query.h"
#include "scenarios/where.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

static const NjPlotKind *const kinds[] = {
    &nj_plot_frontier, &nj_plot_timeline, &nj_plot_power,       &nj_plot_breakdown,
    &nj_plot_heatmap,  &nj_plot_tables,   &nj_plot_sensitivity, NULL,
};

const NjPlotKind *const *nj_plot_kinds(void)
{
    return kinds;
}

const NjPlotKind *nj_plot_kind_find(const char *name, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (const NjPlotKind *const *kind = kinds; *kind != NULL; kind++) {
        if (g_str_equal((*kind)->name, name))
            return *kind;
        g_string_append_printf(known, "%s%s", known->len > 0 ? ", " : "", (*kind)->name);
    }
    g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "plot: unknown kind '%s'; there are %s", name, known->str);
    return NULL;
}

static gboolean is_number(const char *text)
{
    char *end;
    g_ascii_strtod(text, &end);
    return end != text && *end == '\0';
}

// An empty field is a missing number.
static gboolean is_numeric(const NjCsv *csv, guint column)
{
    gboolean any = FALSE;
    for (guint row = 0; row < csv->n_rows; row++) {
        const char *text = csv->rows[row][column];
        if (*text != '\0' && !is_number(text))
            return FALSE;
        any = any || *text != '\0';
    }
    return any;
}

static NjTable *table_from_csv(const NjCsv *csv)
{
    g_autofree NjColumn *columns = g_new0(NjColumn, csv->n_columns);
    for (guint c = 0; c < csv->n_columns; c++)
        columns[c] =
            (NjColumn){csv->columns[c], is_numeric(csv, c) ? NJ_COLUMN_REAL : NJ_COLUMN_TEXT, 4, "", ""};
    NjTable *table = nj_table_new(columns, csv->n_columns);
    for (guint row = 0; row < csv->n_rows; row++) {
        nj_table_add_row(table);
        for (guint c = 0; c < csv->n_columns; c++) {
            const char *text = csv->rows[row][c];
            if (*text == '\0')
                continue;
            if (columns[c].type == NJ_COLUMN_REAL)
                nj_table_set_real(table, c, g_ascii_strtod(text, NULL));
            else
                nj_table_set_text(table, c, text);
        }
    }
    return table;
}

static gboolean type_of(const char *path, NjPlotInputType *type, GError **error)
{
    if (g_str_equal(path, "-") || g_str_has_suffix(path, ".csv")) {
        *type = NJ_INPUT_TABLE;
    } else if (g_str_has_suffix(path, ".h5")) {
        *type = NJ_INPUT_STORE;
    } else if (g_str_has_suffix(path, ".ini")) {
        g_autoptr(GKeyFile) file = nj_keyfile_load(path, error);
        if (file == NULL)
            return FALSE;
        *type = g_key_file_has_group(file, "comparison") ? NJ_INPUT_COMPARISON : NJ_INPUT_SCENARIO;
    } else {
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "%s: a store (.h5), a scenario or comparison (.ini), a table (.csv) or - is needed",
                    path);
        return FALSE;
    }
    return TRUE;
}

static gboolean check_type(const NjPlotKind *kind, const char *path, NjPlotInputType type, GError **error)
{
    static const char *const names[NJ_N_INPUTS] = {
        [NJ_INPUT_STORE] = "a store (.h5)",
        [NJ_INPUT_SCENARIO] = "a scenario (.ini)",
        [NJ_INPUT_COMPARISON] = "a comparison (.ini)",
        [NJ_INPUT_TABLE] = "a table (.csv or -)",
    };
    if (kind->reads[type])
        return TRUE;
    g_autoptr(GString) wanted = g_string_new(NULL);
    for (guint i = 0; i < NJ_N_INPUTS; i++)
        if (kind->reads[i])
            g_string_append_printf(wanted, "%s%s", wanted->len > 0 ? " or " : "", names[i]);
    g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "%s: is %s; plot %s reads %s", path, names[type], kind->name,
                wanted->str);
    return FALSE;
}

gboolean nj_plot_input_open(NjPlotInput *input, const char *path, const NjPlotKind *kind, GError **error)
{
    *input = (NjPlotInput){.path = path};
    if (!type_of(path, &input->type, error) || !check_type(kind, path, input->type, error))
        return FALSE;
    switch (input->type) {
    case NJ_INPUT_STORE:
        input->store = nj_store_open(path, error);
        return input->store != NULL;
    case NJ_INPUT_SCENARIO:
        return nj_scenario_load(&input->scenario, path, error);
    case NJ_INPUT_COMPARISON:
        return nj_comparison_load(&input->comparison, path, error);
    case NJ_INPUT_TABLE:
        input->csv = nj_csv_read(path, error);
        if (input->csv == NULL)
            return FALSE;
        input->path = input->csv->path;
        input->table = table_from_csv(input->csv);
        return TRUE;
    case NJ_N_INPUTS:
        break;
    }
    g_assert_not_reached();
}

void nj_plot_input_clear(NjPlotInput *input)
{
    g_clear_pointer(&input->store, nj_store_free);
    g_clear_pointer(&input->table, nj_table_free);
    g_clear_pointer(&input->csv, nj_csv_free);
    nj_scenario_clear(&input->scenario);
    nj_comparison_clear(&input->comparison);
}

static NjTable *filter_table(const NjTable *table, const char *where, GError **error)
{
    const guint n_columns = nj_table_n_columns(table);
    g_autofree NjColumn *columns = g_new(NjColumn, n_columns);
    for (guint c = 0; c < n_columns; c++)
        columns[c] = *nj_table_column(table, c);
    g_autoptr(NjWhere) condition = NULL;
    if (where != NULL && (condition = nj_where_new(where, columns, n_columns, error)) == NULL)
        return NULL;
    NjTable *rows = nj_table_new(columns, n_columns);
    for (guint row = 0; row < nj_table_n_rows(table); row++) {
        if (condition != NULL && !nj_where_match(condition, table, row))
            continue;
        nj_table_add_row(rows);
        for (guint c = 0; c < n_columns; c++)
            nj_table_copy_cell(rows, c, table, row, c);
    }
    return rows;
}

NjTable *nj_plot_rows(NjPlotInput *input, const char *table, const NjPlotOptions *options, GError **error)
{
    if (input->type == NJ_INPUT_TABLE)
        return filter_table(input->table, options->where, error);
    const int index = nj_store_find_table(input->store, table, error);
    return index < 0 ? NULL : nj_query_read(input->store, (guint)index, options->where, error);
}

double nj_plot_number(const NjTable *table, guint row, guint column)
{
    if (nj_table_is_missing(table, row, column))
        return (double)NAN;
    return nj_table_column(table, column)->type == NJ_COLUMN_INTEGER
               ? (double)nj_table_get_integer(table, row, column)
               : nj_table_get_real(table, row, column);
}

char *nj_plot_title(const NjWorkload *workload)
{
    g_autofree char *degrees = nj_parallelism_format(&workload->parallelism, TRUE);
    return g_strdup_printf("%s, %s, %d x %d", workload->arch.title, degrees, workload->microbatch_size,
                           workload->seq_len);
}

const char *nj_plot_method_title(NjMethod method)
{
    static const char *const titles[NJ_N_METHODS] = {"Megatron-LM", "Megatron-LM + Perseus",
                                                     "Nanobatching + Perseus", "Kareus"};
    return titles[method];
}

const char *nj_plot_shown_method(const NjScenario *scenario, const NjPlotOptions *options)
{
    return options->method_name != NULL ? options->method_name : nj_method_name(scenario->method);
}

gboolean nj_plot_run(const NjScenario *scenario, const NjPlotOptions *options, const NjObserver *observer,
                     NjPipeline *pipeline, NjPlan *plan, NjIteration *iteration, GError **error)
{
    const NjWorkload *workload = &scenario->workload;
    NjMethod method = scenario->method;
    NjExecution execution = nj_scenario_execution(scenario);
    NjExecuteOptions how = nj_scenario_execute_options(scenario);
    how.observer = observer;
    gboolean ok;
    if (options->method_name != NULL && !nj_method_parse(options->method_name, &method)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "--method %s: megatron, megatron+perseus, nanobatching+perseus or kareus is needed",
                    options->method_name);
        return FALSE;
    }
    nj_pipeline_init(pipeline, scenario->schedule, (guint)workload->parallelism.pp,
                     (guint)workload->microbatches);
    if (options->method_name == NULL) {
        ok = nj_scenario_plan(scenario, pipeline, plan, error);
    } else {
        const NjFrontierOptions frontier = {
            .step_s = NJ_FRONTIER_STEP_S,
            .point_to_point = scenario->point_to_point,
            .optimizer = scenario->optimizer,
        };
        NjExecutedPlan executed;
        execution = nj_method_execution(method);
        how.unlocked = method == NJ_METHOD_MEGATRON;
        g_autoptr(NjPlanning) planning =
            nj_planning_new(workload, method, scenario->schedule, &frontier, error);
        ok = planning != NULL &&
             (isfinite(options->time_s) ? nj_planning_by(planning, options->time_s, FALSE, &executed, error)
                                        : nj_planning_fastest(planning, &executed, error));
        if (ok)
            *plan = executed.plan;
    }
    g_autoptr(NjExecutor) executor = nj_executor_new(workload, execution);
    ok = ok && nj_executor_run(executor, pipeline, plan, &how, iteration, error);
    if (!ok)
        g_prefix_error(error, "%s: ", scenario->path);
    return ok;
}
