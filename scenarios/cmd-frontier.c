// SPDX-License-Identifier: MIT
// nanojoule frontier: the time-energy frontier of a scenario's workload under one method or all, and its
// plans.
#include "scenarios/command.h"
#include "scenarios/frontier.h"
#include "scenarios/replay.h"
#include "scenarios/scenario.h"
#include "scenarios/table.h"
#include "schedules/plan-files.h"
#include "sim/error.h"

#include <glib/gstdio.h>
#include <math.h>

#define ALL_POINTS 20 // of a frontier, where --points says nothing

typedef struct {
    char *method, *format, *output;
    int points, plan;
    double at_time_s, at_energy_j, deadline_s;
} Options;

static void options_clear(Options *options)
{
    g_free(options->method);
    g_free(options->format);
    g_free(options->output);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

// What a method gave.
typedef struct {
    NjFrontier frontier;
    double waiting_j; // --deadline: of the cluster, from the end of the plan until then
} Result;

static void clear_result(gpointer data)
{
    nj_frontier_clear(&((Result *)data)->frontier);
}

static void clear_plan(gpointer data)
{
    nj_executed_plan_clear(data);
}

static const NjMethod all_methods[] = {NJ_METHOD_MEGATRON, NJ_METHOD_MEGATRON_PERSEUS,
                                       NJ_METHOD_NANOBATCHING_PERSEUS, NJ_METHOD_KAREUS};

// The methods asked for: --method, else the scenario's.
static gboolean choose_methods(const Options *options, const NjScenario *scenario, GArray *methods,
                               GError **error)
{
    NjMethod method = scenario->method;
    if (options->method != NULL && g_str_equal(options->method, "all")) {
        g_array_append_vals(methods, all_methods, G_N_ELEMENTS(all_methods));
        return TRUE;
    }
    if (options->method != NULL && !nj_method_parse(options->method, &method)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "frontier: --method %s: all, megatron, megatron+perseus, nanobatching+perseus or kareus "
                    "is needed",
                    options->method);
        return FALSE;
    }
    g_array_append_val(methods, method);
    return TRUE;
}

static gboolean check_options(const Options *options, NjFormat *format, GError **error)
{
    const int n_single =
        isfinite(options->at_time_s) + isfinite(options->at_energy_j) + isfinite(options->deadline_s);
    const char *wrong = NULL;
    if (n_single > 1)
        wrong = "only one of --at-time, --at-energy and --deadline can be met";
    else if (n_single == 1 && (options->points > 0 || options->plan >= 0))
        wrong = "--points and --plan choose from the whole frontier, --at-time, --at-energy and --deadline "
                "one plan of it";
    else if (options->plan >= 0 && options->points > 0)
        wrong = "--points asks for many plans, --plan for one";
    else if (!(options->at_time_s > 0 && options->at_energy_j > 0 && options->deadline_s > 0))
        wrong = "--at-time, --at-energy and --deadline: more than 0 is needed";
    else if (options->plan < -1)
        wrong = "--plan: a number from 0 is needed";
    else if (options->points == 0 || options->points < -1)
        wrong = "--points: at least 1 is needed";
    if (wrong == NULL)
        return nj_format_parse(options->format != NULL ? options->format : "text", format, error);
    g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "frontier: %s", wrong);
    return FALSE;
}

static gboolean plan_by_number(NjPlanning *planning, guint number, NjExecutedPlan *plan, GError **error)
{
    const guint count = nj_planning_count(planning);
    if (number < count)
        return nj_planning_plan(planning, number, plan, error);
    g_set_error(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE,
                "--plan %u: there are plans 0 (slowest) to %u (fastest)", number, count - 1);
    return FALSE;
}

// A figure as it is written stands for all that round to it at the nine significant digits that tables print:
// what was read off a frontier can be asked for. This gives the last of them.
static double last_meant(double value)
{
    return value + 0.5 * pow(10, floor(log10(value)) - 8);
}

// The one plan that an option asks for.
static gboolean run_single(NjPlanning *planning, const Options *options, NjExecutedPlan *plan, GError **error)
{
    if (options->plan >= 0)
        return plan_by_number(planning, (guint)options->plan, plan, error);
    if (isfinite(options->at_energy_j))
        return nj_planning_within(planning, last_meant(options->at_energy_j), plan, error);
    if (isfinite(options->at_time_s))
        return nj_planning_by(planning, last_meant(options->at_time_s), FALSE, plan, error);
    return nj_planning_by(planning, last_meant(options->deadline_s), TRUE, plan, error);
}

static gboolean is_single(const Options *options)
{
    return options->plan >= 0 || isfinite(options->at_time_s) || isfinite(options->at_energy_j) ||
           isfinite(options->deadline_s);
}

static gboolean run_method(const NjScenario *scenario, NjMethod method, const Options *options,
                           Result *result, GError **error)
{
    const guint n_points = options->points > 0 ? (guint)options->points : ALL_POINTS;
    const NjFrontierOptions how = {.step_s = NJ_FRONTIER_STEP_S,
                                   .point_to_point = scenario->point_to_point,
                                   .optimizer = scenario->optimizer};
    NjExecutedPlan plan;
    *result = (Result){0};
    g_autoptr(NjPlanning) planning =
        nj_planning_new(&scenario->workload, method, scenario->schedule, &how, error);
    if (planning != NULL && !is_single(options) &&
        nj_frontier_execute(planning, method, n_points, NULL, &result->frontier, error))
        return TRUE;
    if (planning != NULL && is_single(options) && run_single(planning, options, &plan, error)) {
        result->frontier = (NjFrontier){method, g_array_new(FALSE, TRUE, sizeof(NjExecutedPlan))};
        g_array_set_clear_func(result->frontier.plans, clear_plan);
        g_array_append_val(result->frontier.plans, plan);
        if (isfinite(options->deadline_s))
            result->waiting_j = nj_planning_waiting_j(planning, &plan, options->deadline_s);
        return TRUE;
    }
    if (planning == NULL || options->plan >= 0)
        g_prefix_error(error, "%s: ", nj_method_name(method));
    return FALSE;
}

// A plan's stages as plan tables have them, separated by |.
static char *format_plan(const NjPlan *plan, void (*append)(const NjPlanStage *stage, GString *out))
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint s = 0; s < plan->n_stages; s++) {
        const gsize before = text->len;
        append(&plan->stages[s], text);
        if (before > 0 && text->len > before)
            g_string_insert_c(text, (gssize)before, '|');
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void print_plan(const Result *result, const NjExecutedPlan *plan)
{
    const NjMethod method = result->frontier.method;
    g_print("%s, plan %u: %.4f s, %.1f J", nj_method_name(method), plan->number, plan->time_s,
            plan->energy_j);
    if (result->waiting_j > 0)
        g_print(", then waits for %.1f J", result->waiting_j);
    g_print("\n");
    for (guint s = 0; s < plan->plan.n_stages; s++) {
        g_autoptr(GString) frequencies = g_string_new(NULL);
        g_autoptr(GString) launches = g_string_new(NULL);
        nj_plan_stage_freqs_append(&plan->plan.stages[s], frequencies);
        nj_plan_stage_launches_append(&plan->plan.stages[s], launches);
        g_print("  stage %u  %s\n", s, frequencies->str);
        if (launches->len > 0)
            g_print("           %s\n", launches->str);
    }
}

static NjTable *make_table(const GArray *results, const NjWorkload *workload)
{
    static const NjColumn columns[] = {
        {"method", NJ_COLUMN_TEXT, 0, "", "method"},
        {"plan", NJ_COLUMN_INTEGER, 0, "1", "number: steps of 1 ms from the slowest plan"},
        {"time_s", NJ_COLUMN_REAL, 4, "s", "iteration time, executed"},
        {"energy_j", NJ_COLUMN_REAL, 1, "J", "energy of the cluster, executed"},
        {"average_power_w", NJ_COLUMN_REAL, 1, "W", "average power of a GPU"},
        {"planned_time_s", NJ_COLUMN_REAL, 4, "s", "the planner's iteration time"},
        {"planned_energy_j", NJ_COLUMN_REAL, 1, "J", "the planner's energy"},
        {"bound_gap_pct", NJ_COLUMN_REAL, 3, "%",
         "planner's energy above the convex bound, which no plan of that time is below"},
        {"waiting_energy_j", NJ_COLUMN_REAL, 1, "J",
         "energy of the cluster from the plan's end until --deadline; 0 without"},
        {"frequencies", NJ_COLUMN_TEXT, 0, "MHz", "of every instruction, stages separated by |"},
        {"launches", NJ_COLUMN_TEXT, 0, "", "of every partition, stages separated by |"},
    };
    NjTable *table = nj_table_new(columns, G_N_ELEMENTS(columns));
    for (guint f = 0; f < results->len; f++) {
        const NjFrontier *frontier = &g_array_index(results, Result, f).frontier;
        for (guint i = 0; i < frontier->plans->len; i++) {
            const NjExecutedPlan *plan = &g_array_index(frontier->plans, NjExecutedPlan, i);
            g_autofree char *frequencies = format_plan(&plan->plan, nj_plan_stage_freqs_append);
            g_autofree char *launches = format_plan(&plan->plan, nj_plan_stage_launches_append);
            nj_table_add_row(table);
            nj_table_set_text(table, 0, nj_method_name(frontier->method));
            nj_table_set_integer(table, 1, plan->number);
            nj_table_set_real(table, 2, plan->time_s);
            nj_table_set_real(table, 3, plan->energy_j);
            nj_table_set_real(table, 4,
                              plan->energy_j / plan->time_s / nj_parallelism_gpus(&workload->parallelism));
            nj_table_set_real(table, 5, plan->planned_time_s);
            nj_table_set_real(table, 6, plan->planned_energy_j);
            nj_table_set_real(table, 7, 100 * (plan->planned_energy_j / plan->bound_energy_j - 1));
            nj_table_set_real(table, 8, g_array_index(results, Result, f).waiting_j);
            nj_table_set_text(table, 9, frequencies);
            nj_table_set_text(table, 10, launches);
        }
    }
    return table;
}

// The table without the plans, for people.
static void print_people(const GArray *results, const NjWorkload *workload)
{
    g_autoptr(NjTable) whole = make_table(results, workload);
    NjColumn columns[8];
    for (guint c = 0; c < G_N_ELEMENTS(columns); c++)
        columns[c] = *nj_table_column(whole, c);
    g_autoptr(NjTable) table = nj_table_new(columns, G_N_ELEMENTS(columns));
    for (guint row = 0; row < nj_table_n_rows(whole); row++) {
        nj_table_add_row(table);
        nj_table_set_text(table, 0, nj_table_get_text(whole, row, 0));
        nj_table_set_integer(table, 1, nj_table_get_integer(whole, row, 1));
        for (guint c = 2; c < G_N_ELEMENTS(columns); c++)
            nj_table_set_real(table, c, nj_table_get_real(whole, row, c));
    }
    nj_table_print(table, NJ_FORMAT_TEXT, stdout);
    g_autofree char *note = nj_gpu_note(&workload->gpu);
    if (note != NULL)
        g_print("\nNote: %s.\n", note);
}

// One folder a method where there are several.
static gboolean write_plans(const GArray *results, const NjWorkload *workload, const char *output,
                            GError **error)
{
    const NjParallelism *p = &workload->parallelism;
    const double ranks = (double)p->tp * p->cp * p->dp;
    const double static_w = workload->gpu.static_w * p->pp;
    for (guint f = 0; f < results->len; f++) {
        const NjFrontier *frontier = &g_array_index(results, Result, f).frontier;
        g_autofree char *folder = results->len > 1
                                      ? g_build_filename(output, nj_method_name(frontier->method), NULL)
                                      : g_strdup(output);
        if (g_mkdir_with_parents(folder, 0755) != 0) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: cannot be made", folder);
            return FALSE;
        }
        for (guint i = 0; i < frontier->plans->len; i++) {
            const NjExecutedPlan *plan = &g_array_index(frontier->plans, NjExecutedPlan, i);
            g_autofree char *freqs = g_strdup_printf("%s/freqs_pipeline_%05u.py", folder, plan->number);
            g_autofree char *scheds = g_strdup_printf("%s/scheds_pipeline_%05u.py", folder, plan->number);
            const double time_s = isfinite(plan->planned_time_s) ? plan->planned_time_s : plan->time_s;
            const double total_j =
                (isfinite(plan->planned_energy_j) ? plan->planned_energy_j : plan->energy_j) / ranks;
            // As the real planners write it, with Kareus' safety factor.
            const double factor = frontier->method == NJ_METHOD_KAREUS ? NJ_KAREUS_SAFETY_FACTOR : 1.0;
            const double effective_j = factor * (total_j - static_w * time_s);
            const NjPlanCosts costs = {plan->number, (double)NAN, effective_j,
                                       effective_j + static_w * time_s};
            if (!nj_plan_files_write(freqs, nj_plan_has_launches(&plan->plan) ? scheds : NULL, &plan->plan,
                                     &costs, error))
                return FALSE;
        }
    }
    return TRUE;
}

static void print_plans(const GArray *results)
{
    for (guint f = 0; f < results->len; f++) {
        const NjFrontier *frontier = &g_array_index(results, Result, f).frontier;
        for (guint i = 0; i < frontier->plans->len; i++)
            print_plan(&g_array_index(results, Result, f),
                       &g_array_index(frontier->plans, NjExecutedPlan, i));
    }
}

static int run(int argc, char **argv)
{
    g_auto(Options) options = {
        .points = -1, .plan = -1, .at_time_s = HUGE_VAL, .at_energy_j = HUGE_VAL, .deadline_s = HUGE_VAL};
    const GOptionEntry entries[] = {
        {"method", 0, 0, G_OPTION_ARG_STRING, &options.method, "A method, or all (default: the scenario's)",
         "METHOD"},
        {"points", 0, 0, G_OPTION_ARG_INT, &options.points,
         "Plans to execute, evenly spaced in time (default 20)", "N"},
        {"plan", 0, 0, G_OPTION_ARG_INT, &options.plan,
         "Print this plan: clocks of instructions, launches of partitions", "K"},
        {"at-time", 0, 0, G_OPTION_ARG_DOUBLE, &options.at_time_s,
         "The plan of least energy no later than this", "SECONDS"},
        {"at-energy", 0, 0, G_OPTION_ARG_DOUBLE, &options.at_energy_j,
         "The fastest plan that uses no more than this", "JOULES"},
        {"deadline", 0, 0, G_OPTION_ARG_DOUBLE, &options.deadline_s,
         "Another pipeline (a straggler) ends then: the plan of least energy that is no slower", "SECONDS"},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output, "Write the plans' files there", "DIR"},
        {"format", 0, 0, G_OPTION_ARG_STRING, &options.format, "text, csv or json (default text)", "FORMAT"},
        {NULL},
    };
    g_auto(GStrv) arguments = NULL;
    int status;
    if (!nj_command_parse(&nj_command_frontier, entries,
                          "Energies are of the whole cluster. CSV and JSON have every plan in full.", argc,
                          argv, 1, 1, &arguments, &status))
        return status;

    g_autoptr(GError) error = NULL;
    g_auto(NjScenario) scenario = {0};
    g_autoptr(GArray) methods = g_array_new(FALSE, FALSE, sizeof(NjMethod));
    g_autoptr(GArray) results = g_array_new(FALSE, FALSE, sizeof(Result));
    g_array_set_clear_func(results, clear_result);
    NjFormat format;
    if (!check_options(&options, &format, &error) || !nj_scenario_load(&scenario, arguments[0], &error) ||
        !choose_methods(&options, &scenario, methods, &error))
        return nj_command_fail(error);
    for (guint i = 0; i < methods->len; i++) {
        Result result;
        if (!run_method(&scenario, g_array_index(methods, NjMethod, i), &options, &result, &error)) {
            // Of all methods, those that can.
            if (methods->len == 1)
                return nj_command_fail(error);
            g_printerr("nanojoule: %s\n", error->message);
            g_clear_error(&error);
            continue;
        }
        g_array_append_val(results, result);
    }
    if (format != NJ_FORMAT_TEXT) {
        g_autoptr(NjTable) table = make_table(results, &scenario.workload);
        nj_table_print(table, format, stdout);
    } else if (!is_single(&options)) {
        print_people(results, &scenario.workload);
    } else {
        print_plans(results);
    }
    if (options.output != NULL && !write_plans(results, &scenario.workload, options.output, &error))
        return nj_command_fail(error);
    return results->len > 0 ? 0 : 1;
}

const NjCommand nj_command_frontier = {
    .name = "frontier",
    .arguments = "SCENARIO",
    .summary = "a job's time-energy frontier and its plans",
    .run = run,
};
