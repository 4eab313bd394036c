// SPDX-License-Identifier: MIT
#include "scenarios/sweep-scenario.h"

#include "models/data.h"
#include "models/memory.h"
#include "scenarios/frontier.h"
#include "scenarios/scenario.h"
#include "sim/error.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

// Keys whose values are lists in a plain scenario too.
static const char *const literal_keys[] = {"cluster.layers_per_stage", NULL};

enum {
    POINT_GPUS,
    POINT_CALIBRATED,
    POINT_TIME,
    POINT_ENERGY,
    POINT_ENERGY_STATIC,
    POINT_ENERGY_DYNAMIC,
    POINT_ENERGY_PER_TOKEN,
    POINT_TOKENS,
    POINT_MFU,
    POINT_POWER_AVERAGE,
    POINT_POWER_PEAK,
    POINT_MEMORY,
    POINT_BUBBLE,
    POINT_EXPOSED,
    POINT_OVERLAPPED,
    N_POINT_COLUMNS,
};

static const NjColumn point_columns[N_POINT_COLUMNS] = {
    [POINT_GPUS] = {"gpus", NJ_COLUMN_INTEGER, 0, "1", "GPUs of the cluster"},
    [POINT_CALIBRATED] =
        {"gpu_calibrated", NJ_COLUMN_TEXT, 0, "",
         "yes: the GPU's constants were fitted on it; no: they are carried over from another"},
    [POINT_TIME] = {"time_s", NJ_COLUMN_REAL, 4, "s", "time of an iteration"},
    [POINT_ENERGY] = {"energy_j", NJ_COLUMN_REAL, 1, "J", "energy of an iteration, all GPUs"},
    [POINT_ENERGY_STATIC] = {"energy_static_j", NJ_COLUMN_REAL, 1, "J", "its static part, all GPUs"},
    [POINT_ENERGY_DYNAMIC] = {"energy_dynamic_j", NJ_COLUMN_REAL, 1, "J", "its dynamic part, all GPUs"},
    [POINT_ENERGY_PER_TOKEN] = {"energy_per_token_j", NJ_COLUMN_REAL, 5, "J", "energy of a token, all GPUs"},
    [POINT_TOKENS] = {"tokens_per_s", NJ_COLUMN_REAL, 0, "1/s", "tokens trained a second, all GPUs"},
    [POINT_MFU] = {"mfu", NJ_COLUMN_REAL, 4, "1", "model flop utilisation, share of the peak"},
    [POINT_POWER_AVERAGE] = {"power_average_w", NJ_COLUMN_REAL, 1, "W", "average power of a GPU"},
    [POINT_POWER_PEAK] = {"power_peak_w", NJ_COLUMN_REAL, 1, "W", "highest power of a GPU"},
    [POINT_MEMORY] = {"memory_bytes", NJ_COLUMN_INTEGER, 0, "B", "memory a GPU of the fullest stage needs"},
    [POINT_BUBBLE] = {"bubble_s", NJ_COLUMN_REAL, 4, "s", "time a GPU waits for other stages, average"},
    [POINT_EXPOSED] = {"exposed_communication_s", NJ_COLUMN_REAL, 4, "s",
                       "time a GPU does nothing but a collective, average"},
    [POINT_OVERLAPPED] = {"overlapped_communication_s", NJ_COLUMN_REAL, 4, "s",
                          "time of collectives beside compute, average of the GPUs"},
};

enum {
    FRONTIER_METHOD,
    FRONTIER_NUMBER,
    FRONTIER_TIME,
    FRONTIER_ENERGY,
    FRONTIER_TIME_REDUCTION,
    FRONTIER_ENERGY_REDUCTION,
    FRONTIER_PLAN,
    FRONTIER_REASON,
    N_FRONTIER_COLUMNS,
};

static const NjColumn frontier_columns[N_FRONTIER_COLUMNS] = {
    [FRONTIER_METHOD] = {"method", NJ_COLUMN_TEXT, 0, "", "method that executes the plan"},
    [FRONTIER_NUMBER] = {"number", NJ_COLUMN_INTEGER, 0, "1",
                         "of the plan, as frontier --plan takes it: steps of 1 ms from the slowest"},
    [FRONTIER_TIME] = {"time_s", NJ_COLUMN_REAL, 4, "s", "time of an iteration"},
    [FRONTIER_ENERGY] = {"energy_j", NJ_COLUMN_REAL, 1, "J", "energy of an iteration, all GPUs"},
    [FRONTIER_TIME_REDUCTION] = {"time_reduction_pct", NJ_COLUMN_REAL, 2, "%",
                                 "time saved against the baseline's fastest plan"},
    [FRONTIER_ENERGY_REDUCTION] = {"energy_reduction_pct", NJ_COLUMN_REAL, 2, "%",
                                   "energy saved against the baseline's fastest plan"},
    [FRONTIER_PLAN] = {"plan", NJ_COLUMN_TEXT, 0, "", "clocks of every instruction, stages separated by |"},
    [FRONTIER_REASON] = {"reason", NJ_COLUMN_TEXT, 0, "",
                         "why the method cannot run here; then a row has no plan"},
};

enum { BREAKDOWN_KIND, BREAKDOWN_TIME, BREAKDOWN_ENERGY, N_BREAKDOWN_COLUMNS };

static const NjColumn breakdown_columns[N_BREAKDOWN_COLUMNS] = {
    [BREAKDOWN_KIND] =
        {"kind", NJ_COLUMN_TEXT, 0, "",
         "kind of kernel, or what else takes time or energy: host_gap, pipeline_bubble, static"},
    [BREAKDOWN_TIME] = {"time_s", NJ_COLUMN_REAL, 4, "s",
                        "time of a GPU, average; of a collective, its exposed part; sums to the iteration's"},
    [BREAKDOWN_ENERGY] = {"energy_j", NJ_COLUMN_REAL, 1, "J",
                          "energy of a GPU, average; sums to the iteration's over the GPUs"},
};

// What group [sweep] asks of every point besides one execution.
typedef struct {
    NjMethod frontiers[NJ_N_METHODS]; // methods whose frontiers are wanted
    guint n_frontiers;
    NjMethod baseline;
    int points; // plans of a frontier
} Wish;

typedef struct {
    NjEvaluator base;
    char *path;
    char *text;
    GKeyFile *file; // the scenario without [sweep], with the values of the point evaluated last
    Wish wish;
} ScenarioEvaluator;

typedef struct {
    char *frontiers, *baseline;
    int points;
} WishValues;

static const NjField wish_fields[] = {
    {"sweep", "frontiers", NJ_FIELD_TEXT, offsetof(WishValues, frontiers), TRUE, 0, 0, "",
     "methods, separated by ';'"},
    {"sweep", "baseline", NJ_FIELD_TEXT, offsetof(WishValues, baseline), FALSE, 0, 0, "",
     "method whose fastest plan reductions are against"},
    {"sweep", "points", NJ_FIELD_INT, offsetof(WishValues, points), FALSE, 1, 1000, "",
     "plans of a frontier"},
};

static gboolean read_methods(const char *path, const WishValues *values, Wish *wish, GError **error)
{
    g_auto(GStrv) names = g_strsplit(values->frontiers, ";", -1);
    for (guint i = 0; names[i] != NULL; i++) {
        if (*g_strstrip(names[i]) == '\0' && names[i + 1] == NULL)
            break; // a list may end in its separator
        if (wish->n_frontiers == NJ_N_METHODS ||
            !nj_method_parse(names[i], &wish->frontiers[wish->n_frontiers++])) {
            nj_keyfile_error(
                error, path, "sweep", "frontiers", values->frontiers,
                "up to four of megatron, megatron+perseus, nanobatching+perseus and kareus, separated by "
                "';', are needed");
            return FALSE;
        }
    }
    if (values->baseline != NULL && !nj_method_parse(values->baseline, &wish->baseline)) {
        nj_keyfile_error(error, path, "sweep", "baseline", values->baseline,
                         "megatron, megatron+perseus, nanobatching+perseus or kareus is needed");
        return FALSE;
    }
    return TRUE;
}

// Reads group [sweep] and takes it out of the file: the rest is a scenario.
static gboolean take_wish(GKeyFile *file, const char *path, Wish *wish, GError **error)
{
    *wish = (Wish){.baseline = NJ_METHOD_MEGATRON_PERSEUS, .points = 10};
    if (!g_key_file_has_group(file, "sweep"))
        return TRUE;
    WishValues values = {.points = wish->points};
    g_autoptr(GKeyFile) only = g_key_file_new();
    g_auto(GStrv) keys = g_key_file_get_keys(file, "sweep", NULL, NULL);
    for (guint i = 0; keys[i] != NULL; i++) {
        g_autofree char *value = g_key_file_get_value(file, "sweep", keys[i], NULL);
        g_key_file_set_value(only, "sweep", keys[i], value);
    }
    const gboolean ok = nj_keyfile_read(only, path, wish_fields, G_N_ELEMENTS(wish_fields), &values, error) &&
                        read_methods(path, &values, wish, error);
    wish->points = values.points;
    g_free(values.frontiers);
    g_free(values.baseline);
    g_key_file_remove_group(file, "sweep", NULL);
    return ok;
}

static double seconds(NjTime time)
{
    return (double)time / NJ_PS_PER_S;
}

static void add_part(NjTable *table, const char *kind, double time_s, double energy_j)
{
    nj_table_add_row(table);
    nj_table_set_text(table, BREAKDOWN_KIND, kind);
    nj_table_set_real(table, BREAKDOWN_TIME, time_s);
    nj_table_set_real(table, BREAKDOWN_ENERGY, energy_j);
}

static void fill_breakdown(const NjIteration *iteration, NjTable *table)
{
    static const struct {
        const char *name;
        NjActivity activity;
        NjKernelKind kind;
    } kinds[] = {
        {"gemm", NJ_ACTIVITY_GEMM, NJ_KERNEL_GEMM},
        {"attention", NJ_ACTIVITY_ATTENTION, NJ_KERNEL_ATTENTION},
        {"hbm_bound", NJ_ACTIVITY_MEMORY, NJ_KERNEL_MEMORY},
        {"collective", NJ_ACTIVITY_COLLECTIVE, NJ_KERNEL_COLLECTIVE},
    };
    const double n = iteration->n_stages;
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        double time_s = 0, energy_j = 0;
        for (guint s = 0; s < iteration->n_stages; s++) {
            time_s += seconds(iteration->stages[s].sum.activity[kinds[i].activity]);
            energy_j += iteration->stages[s].sum.energy_j[kinds[i].kind];
        }
        add_part(table, kinds[i].name, time_s / n, energy_j / n);
    }
    double gap_s = 0, bubble_s = 0, waiting_j = 0;
    for (guint s = 0; s < iteration->n_stages; s++) {
        gap_s += seconds(iteration->stages[s].sum.activity[NJ_ACTIVITY_GAP]);
        bubble_s += seconds(iteration->stages[s].bubble);
        waiting_j += iteration->stages[s].waiting_j;
    }
    add_part(table, "host_gap", gap_s / n, 0);
    add_part(table, "pipeline_bubble", bubble_s / n, waiting_j / n);
    add_part(table, "static", 0, iteration->static_j / n);
}

static void fill_point(const NjScenario *scenario, const NjIteration *iteration, NjTable *table)
{
    const NjWorkload *workload = &scenario->workload;
    const NjParallelism *p = &workload->parallelism;
    const double gpus = nj_parallelism_gpus(p), ranks = p->tp * p->cp * p->dp; // of a stage
    const double time_s = seconds(iteration->duration);
    const double tokens =
        (double)workload->microbatches * workload->microbatch_size * workload->seq_len * p->dp;
    const double static_j = iteration->static_j * ranks, dynamic_j = iteration->dynamic_j * ranks;
    const double energy_j = static_j + dynamic_j;
    double peak_w = 0, bubble_s = 0, exposed_s = 0, overlapped_s = 0;
    for (guint s = 0; s < iteration->n_stages; s++) {
        const NjStageResult *stage = &iteration->stages[s];
        peak_w = fmax(peak_w, stage->sum.peak_w);
        bubble_s += seconds(stage->bubble) / iteration->n_stages;
        exposed_s += seconds(stage->sum.activity[NJ_ACTIVITY_COLLECTIVE]) / iteration->n_stages;
        overlapped_s += seconds(stage->sum.overlapped) / iteration->n_stages;
    }
    const double reals[N_POINT_COLUMNS] = {
        [POINT_TIME] = time_s,
        [POINT_ENERGY] = energy_j,
        [POINT_ENERGY_STATIC] = static_j,
        [POINT_ENERGY_DYNAMIC] = dynamic_j,
        [POINT_ENERGY_PER_TOKEN] = energy_j / tokens,
        [POINT_TOKENS] = tokens / time_s,
        [POINT_MFU] = nj_arch_flop_per_token(&workload->arch, workload->seq_len) * tokens /
                      (workload->gpu.peak_tflop_s * 1e12 * gpus * time_s),
        [POINT_POWER_AVERAGE] = energy_j / gpus / time_s,
        [POINT_POWER_PEAK] = peak_w,
        [POINT_BUBBLE] = bubble_s,
        [POINT_EXPOSED] = exposed_s,
        [POINT_OVERLAPPED] = overlapped_s,
    };
    for (guint c = 0; c < N_POINT_COLUMNS; c++)
        if (point_columns[c].type == NJ_COLUMN_REAL)
            nj_table_set_real(table, c, reals[c]);
}

// FALSE where the GPU is too small.
static gboolean check_memory(const NjScenario *scenario, NjPointResult *result)
{
    NjMemoryShape shape;
    NjMemory memory;
    const NjGpu *gpu = &scenario->workload.gpu;
    nj_memory_shape_from_workload(&scenario->workload,
                                  nj_scenario_execution(scenario) == NJ_EXECUTION_NANOBATCHED, &shape);
    const int stage = nj_memory_of_fullest_stage(&shape, &memory);
    const double bytes = nj_memory_total(&memory);
    nj_table_set_integer(result->tables[NJ_RESULT_POINTS], POINT_MEMORY, (gint64)bytes);
    if (bytes <= gpu->hbm_gib * NJ_GIB)
        return TRUE;
    result->reason = g_strdup_printf("stage %d needs %.1f GiB a GPU, %s has %g", stage, bytes / NJ_GIB,
                                     gpu->name, gpu->hbm_gib);
    return FALSE;
}

static gboolean simulate(const NjScenario *scenario, NjIteration *iteration, GError **error)
{
    const NjWorkload *workload = &scenario->workload;
    g_auto(NjPlan) plan = {0};
    g_auto(NjPipeline) pipeline = {0};
    nj_pipeline_init(&pipeline, scenario->schedule, (guint)workload->parallelism.pp,
                     (guint)workload->microbatches);
    g_autoptr(NjExecutor) executor = nj_executor_new(workload, nj_scenario_execution(scenario));
    const NjExecuteOptions options = nj_scenario_execute_options(scenario);
    return nj_scenario_plan(scenario, &pipeline, &plan, error) &&
           nj_executor_run(executor, &pipeline, &plan, &options, iteration, error);
}

static char *format_plan(const NjPlan *plan)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint s = 0; s < plan->n_stages; s++) {
        g_string_append(text, s > 0 ? "|" : "");
        nj_plan_stage_freqs_append(&plan->stages[s], text);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void fill_frontier(const NjFrontier *frontier, const NjExecutedPlan *baseline, NjTable *table)
{
    for (guint i = 0; i < frontier->plans->len; i++) {
        const NjExecutedPlan *plan = &g_array_index(frontier->plans, NjExecutedPlan, i);
        g_autofree char *text = format_plan(&plan->plan);
        nj_table_add_row(table);
        nj_table_set_text(table, FRONTIER_METHOD, nj_method_name(frontier->method));
        nj_table_set_integer(table, FRONTIER_NUMBER, plan->number);
        nj_table_set_real(table, FRONTIER_TIME, plan->time_s);
        nj_table_set_real(table, FRONTIER_ENERGY, plan->energy_j);
        nj_table_set_real(table, FRONTIER_TIME_REDUCTION, 100 * (1 - plan->time_s / baseline->time_s));
        nj_table_set_real(table, FRONTIER_ENERGY_REDUCTION, 100 * (1 - plan->energy_j / baseline->energy_j));
        nj_table_set_text(table, FRONTIER_PLAN, text);
    }
}

// One method's frontier; where it cannot run here, why. FALSE for other errors.
static gboolean run_frontier(const Wish *wish, const NjScenario *scenario, NjMethod method,
                             NjFrontier *frontier, char **reason, GError **error)
{
    const NjFrontierOptions options = {
        .step_s = NJ_FRONTIER_STEP_S,
        .n_points = (guint)wish->points,
        .point_to_point = scenario->point_to_point,
        .optimizer = scenario->optimizer,
    };
    GError *failure = NULL;
    *reason = NULL;
    if (nj_frontier_run(&scenario->workload, method, scenario->schedule, &options, frontier, &failure))
        return TRUE;
    *frontier = (NjFrontier){0};
    if (!g_error_matches(failure, NJ_ERROR, NJ_ERROR_IMPOSSIBLE)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    *reason = g_strdup(failure->message);
    g_error_free(failure);
    return TRUE;
}

// The frontiers of the methods asked for, in their order, against the baseline's fastest plan (no reductions
// where that cannot run). A method that cannot run here is a row that says why.
static gboolean add_frontiers(const Wish *wish, const NjScenario *scenario, NjTable *table, GError **error)
{
    static const NjExecutedPlan nothing = {.time_s = (double)NAN, .energy_j = (double)NAN};
    g_auto(NjFrontier) baseline = {0};
    g_autofree char *baseline_reason = NULL;
    if (!run_frontier(wish, scenario, wish->baseline, &baseline, &baseline_reason, error))
        return FALSE;
    const NjExecutedPlan *against = baseline.plans != NULL ? nj_frontier_fastest(&baseline) : &nothing;
    for (guint i = 0; i < wish->n_frontiers; i++) {
        const NjMethod method = wish->frontiers[i];
        g_auto(NjFrontier) own = {0};
        g_autofree char *own_reason = NULL;
        const gboolean shared = method == wish->baseline;
        if (!shared && !run_frontier(wish, scenario, method, &own, &own_reason, error))
            return FALSE;
        const NjFrontier *frontier = shared ? &baseline : &own;
        if (frontier->plans != NULL) {
            fill_frontier(frontier, against, table);
            continue;
        }
        nj_table_add_row(table);
        nj_table_set_text(table, FRONTIER_METHOD, nj_method_name(method));
        nj_table_set_text(table, FRONTIER_REASON, shared ? baseline_reason : own_reason);
    }
    return TRUE;
}

// An error that says the point cannot exist becomes its reason, without the file's name.
static gboolean take_reason(const ScenarioEvaluator *self, NjPointResult *result, GError *failure,
                            GError **error)
{
    if (!g_error_matches(failure, NJ_ERROR, NJ_ERROR_IMPOSSIBLE)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    g_autofree char *prefix = g_strconcat(self->path, ": ", NULL);
    const char *message = failure->message;
    result->reason = g_strdup(g_str_has_prefix(message, prefix) ? message + strlen(prefix) : message);
    g_error_free(failure);
    return TRUE;
}

static gboolean evaluate(NjEvaluator *evaluator, const NjGrid *grid, guint point, NjPointResult *result,
                         GError **error)
{
    ScenarioEvaluator *self = (ScenarioEvaluator *)evaluator;
    NjTable *points = result->tables[NJ_RESULT_POINTS];
    GError *failure = NULL;
    g_auto(NjScenario) scenario = {0};
    nj_grid_apply(grid, point, self->file);
    if (!nj_scenario_from_keyfile(&scenario, self->file, self->path, &failure))
        return take_reason(self, result, failure, error);
    nj_table_set_integer(points, POINT_GPUS, nj_parallelism_gpus(&scenario.workload.parallelism));
    nj_table_set_text(points, POINT_CALIBRATED, scenario.workload.gpu.calibrated ? "yes" : "no");
    if (!check_memory(&scenario, result))
        return TRUE;
    NjIteration iteration;
    if (!simulate(&scenario, &iteration, &failure))
        return take_reason(self, result, failure, error);
    fill_point(&scenario, &iteration, points);
    fill_breakdown(&iteration, result->tables[NJ_RESULT_BREAKDOWN]);
    return self->wish.n_frontiers == 0 ||
           add_frontiers(&self->wish, &scenario, result->tables[NJ_RESULT_FRONTIERS], error);
}

static NjEvaluator *new_evaluator(const char *text, const char *path);

static NjEvaluator *clone_evaluator(const NjEvaluator *evaluator)
{
    const ScenarioEvaluator *self = (const ScenarioEvaluator *)evaluator;
    return new_evaluator(self->text, self->path);
}

static void free_evaluator(NjEvaluator *evaluator)
{
    ScenarioEvaluator *self = (ScenarioEvaluator *)evaluator;
    g_key_file_unref(self->file);
    g_free(self->path);
    g_free(self->text);
    g_free(self);
}

static NjEvaluator *new_evaluator(const char *text, const char *path)
{
    ScenarioEvaluator *self = g_new0(ScenarioEvaluator, 1);
    self->base = (NjEvaluator){
        .results = {[NJ_RESULT_POINTS] = {point_columns, N_POINT_COLUMNS},
                    [NJ_RESULT_FRONTIERS] = {frontier_columns, N_FRONTIER_COLUMNS},
                    [NJ_RESULT_BREAKDOWN] = {breakdown_columns, N_BREAKDOWN_COLUMNS}},
        .evaluate = evaluate,
        .clone = clone_evaluator,
        .free = free_evaluator,
    };
    self->path = g_strdup(path);
    self->text = g_strdup(text);
    self->file = g_key_file_new();
    g_key_file_load_from_data(self->file, text, (gsize)-1, G_KEY_FILE_NONE, NULL); // parsed once before
    take_wish(self->file, path, &self->wish, NULL);
    return &self->base;
}

// Columns of axes say what the scenario's keys say.
static void describe_axes(NjGrid *grid)
{
    guint n_fields;
    const NjField *fields = nj_scenario_fields(&n_fields);
    for (guint i = 0; i < grid->n_axes; i++) {
        NjAxis *axis = &grid->axes[i];
        for (guint f = 0; f < n_fields; f++) {
            if (!g_str_equal(fields[f].group, axis->group) || !g_str_equal(fields[f].key, axis->key))
                continue;
            g_free(axis->description);
            axis->description = g_strdup(fields[f].description);
            if (axis->type != NJ_COLUMN_TEXT && *fields[f].unit != '\0') {
                g_free(axis->unit);
                axis->unit = g_strdup(fields[f].unit);
            }
        }
    }
}

gboolean nj_scenario_sweep_from_text(NjScenarioSweep *sweep, const char *text, const char *path,
                                     GError **error)
{
    *sweep = (NjScenarioSweep){.path = g_strdup(path), .text = g_strdup(text)};
    g_autoptr(GKeyFile) file = g_key_file_new();
    GError *failure = NULL;
    if (!g_utf8_validate(text, -1, NULL) ||
        !g_key_file_load_from_data(file, text, (gsize)-1, G_KEY_FILE_NONE, &failure)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: %s", path,
                    failure != NULL ? failure->message : "not UTF-8 text");
        g_clear_error(&failure);
    } else {
        Wish wish;
        sweep->grid =
            take_wish(file, path, &wish, error) ? nj_grid_new(file, path, literal_keys, error) : NULL;
    }
    if (sweep->grid == NULL) {
        nj_scenario_sweep_clear(sweep);
        return FALSE;
    }
    describe_axes(sweep->grid);
    sweep->evaluator = new_evaluator(text, path);
    return TRUE;
}

gboolean nj_scenario_sweep_load(NjScenarioSweep *sweep, const char *path, GError **error)
{
    *sweep = (NjScenarioSweep){0};
    g_autoptr(GKeyFile) file = nj_keyfile_load(path, error);
    if (file == NULL)
        return FALSE;
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, error))
        return FALSE;
    return nj_scenario_sweep_from_text(sweep, text, path, error);
}

void nj_scenario_sweep_clear(NjScenarioSweep *sweep)
{
    g_clear_pointer(&sweep->evaluator, nj_evaluator_free);
    g_clear_pointer(&sweep->grid, nj_grid_free);
    g_clear_pointer(&sweep->text, g_free);
    g_clear_pointer(&sweep->path, g_free);
}

// ---- Inputs

// The values a key takes in the grid. Transfer full.
static char **values_of(const NjScenarioSweep *sweep, GKeyFile *file, const char *group, const char *key)
{
    for (guint i = 0; i < sweep->grid->n_axes; i++) {
        const NjAxis *axis = &sweep->grid->axes[i];
        if (g_str_equal(axis->group, group) && g_str_equal(axis->key, key))
            return g_strdupv(axis->values);
    }
    char **values = g_new0(char *, 2);
    values[0] = g_key_file_get_string(file, group, key, NULL);
    return values;
}

static gboolean add_input(GPtrArray *lines, const char *scenario_path, const char *folder, const char *value,
                          GError **error)
{
    g_autofree char *name = nj_scenario_resolve(scenario_path, value);
    g_autofree char *path = folder != NULL ? nj_data_locate(folder, name, ".ini", error) : g_strdup(name);
    if (path == NULL)
        return FALSE;
    g_autofree char *bytes = NULL;
    gsize size;
    if (!g_file_get_contents(path, &bytes, &size, error))
        return FALSE;
    g_autofree char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)bytes, size);
    g_ptr_array_add(lines, g_strdup_printf("%s %s\n", value, sum));
    return TRUE;
}

static int compare_lines(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *nj_scenario_sweep_inputs(const NjScenarioSweep *sweep, GError **error)
{
    static const struct {
        const char *group, *key, *folder;
    } keys[] = {
        {"workload", "model", "models/archs"},   {"cluster", "gpu", "models/gpus"},
        {"execution", "stack", "models/stacks"}, {"execution", "freqs_file", NULL},
        {"execution", "scheds_file", NULL},
    };
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_key_file_load_from_data(file, sweep->text, (gsize)-1, G_KEY_FILE_NONE, NULL);
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_auto(GStrv) values = values_of(sweep, file, keys[i].group, keys[i].key);
        for (char **value = values; *value != NULL; value++)
            if (!add_input(lines, sweep->path, keys[i].folder, *value, error)) {
                g_prefix_error(error, "%s: [%s] %s = %s: ", sweep->path, keys[i].group, keys[i].key, *value);
                return NULL;
            }
    }
    g_ptr_array_sort(lines, compare_lines);
    g_ptr_array_add(lines, NULL);
    return g_strjoinv(NULL, (char **)lines->pdata);
}
