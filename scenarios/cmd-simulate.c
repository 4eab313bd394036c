// SPDX-License-Identifier: MIT
#include "scenarios/command.h"
#include "scenarios/report.h"
#include "scenarios/scenario.h"
#include "scenarios/trace.h"
#include "sim/error.h"

#include <math.h>

typedef struct {
    char *format, *arch, *trace;
    double from_s, to_s; // of the trace
} Options;

static void options_clear(Options *options)
{
    g_free(options->format);
    g_free(options->arch);
    g_free(options->trace);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

static gboolean check_options(const Options *options, NjFormat *format, GError **error)
{
    if (options->trace == NULL && (options->from_s != 0 || isfinite(options->to_s)))
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "simulate: --trace-from and --trace-to say what part of --trace to write: it is missing");
    else if (!(options->from_s >= 0 && options->from_s < options->to_s))
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "simulate: --trace-from %g --trace-to %g: 0 <= from < to is needed, in seconds",
                    options->from_s, options->to_s);
    else
        return nj_format_parse(options->format != NULL ? options->format : "text", format, error);
    return FALSE;
}

static gboolean run_scenario(const NjScenario *scenario, const Options *given, NjIteration *iteration,
                             GError **error)
{
    const NjWorkload *workload = &scenario->workload;
    g_auto(NjPlan) plan = {0};
    g_auto(NjPipeline) pipeline = {0};
    g_autoptr(NjTrace) trace = NULL;
    NjExecuteOptions options = nj_scenario_execute_options(scenario);
    nj_pipeline_init(&pipeline, scenario->schedule, (guint)workload->parallelism.pp,
                     (guint)workload->microbatches);
    g_autoptr(NjExecutor) executor = nj_executor_new(workload, nj_scenario_execution(scenario));
    if (given->trace != NULL) {
        trace = nj_trace_new(given->trace, scenario, &pipeline, given->from_s, given->to_s, error);
        if (trace == NULL)
            return FALSE;
        options.observer = nj_trace_observer(trace);
    }
    if (!nj_scenario_plan(scenario, &pipeline, &plan, error) ||
        !nj_executor_run(executor, &pipeline, &plan, &options, iteration, error)) {
        g_prefix_error(error, "%s: ", scenario->path);
        return FALSE;
    }
    return trace == NULL || nj_trace_finish(trace, iteration, error);
}

static int run(int argc, char **argv)
{
    g_auto(Options) options = {.to_s = HUGE_VAL};
    const GOptionEntry entries[] = {
        {"arch", 0, 0, G_OPTION_ARG_FILENAME, &options.arch,
         "Another architecture than the scenario's: a shipped name, a key file or a Hugging Face config.json",
         "NAME|FILE"},
        {"format", 0, 0, G_OPTION_ARG_STRING, &options.format, "text, csv or json (default text)", "FORMAT"},
        {"trace", 0, 0, G_OPTION_ARG_FILENAME, &options.trace,
         "Write every kernel as Chrome trace event JSON, for Perfetto; compressed where the name ends in .gz",
         "FILE"},
        {"trace-from", 0, 0, G_OPTION_ARG_DOUBLE, &options.from_s, "Only from this time on", "SECONDS"},
        {"trace-to", 0, 0, G_OPTION_ARG_DOUBLE, &options.to_s, "Only up to this time", "SECONDS"},
        {NULL},
    };
    g_auto(GStrv) arguments = NULL;
    int status;
    if (!nj_command_parse(&nj_command_simulate, entries, NULL, argc, argv, 1, 1, &arguments, &status))
        return status;

    g_autoptr(GError) error = NULL;
    g_auto(NjScenario) scenario = {0};
    NjFormat format;
    NjIteration iteration;
    if (!check_options(&options, &format, &error) ||
        !nj_scenario_load_with_arch(&scenario, arguments[0], options.arch, &error) ||
        !run_scenario(&scenario, &options, &iteration, &error))
        return nj_command_fail(error);
    nj_report_iteration(&scenario, &iteration, format, stdout);
    return 0;
}

const NjCommand nj_command_simulate = {
    .name = "simulate",
    .arguments = "SCENARIO",
    .summary = "time and energy of one training iteration, and where both go",
    .run = run,
};
