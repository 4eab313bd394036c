// SPDX-License-Identifier: MIT
#include "scenarios/command.h"
#include "scenarios/report.h"
#include "scenarios/scenario.h"

static int run(int argc, char **argv)
{
    g_autofree char *format_name = NULL, *arch = NULL;
    const GOptionEntry entries[] = {
        {"arch", 0, 0, G_OPTION_ARG_FILENAME, &arch,
         "Another architecture than the scenario's: a shipped name, a key file or a Hugging Face config.json",
         "NAME|FILE"},
        {"format", 0, 0, G_OPTION_ARG_STRING, &format_name, "text, csv or json (default text)", "FORMAT"},
        {NULL},
    };
    g_auto(GStrv) arguments = NULL;
    int status;
    if (!nj_command_parse(&nj_command_simulate, entries, NULL, argc, argv, 1, 1, &arguments, &status))
        return status;

    g_autoptr(GError) error = NULL;
    g_auto(NjScenario) scenario = {0};
    g_auto(NjPlan) plan = {0};
    g_auto(NjPipeline) pipeline = {0};
    g_autoptr(NjExecutor) executor = NULL;
    NjFormat format;
    NjIteration iteration;

    if (!nj_format_parse(format_name != NULL ? format_name : "text", &format, &error) ||
        !nj_scenario_load_with_arch(&scenario, arguments[0], arch, &error))
        return nj_command_fail(error);
    const NjWorkload *workload = &scenario.workload;
    nj_pipeline_init(&pipeline, scenario.schedule, (guint)workload->parallelism.pp,
                     (guint)workload->microbatches);
    executor = nj_executor_new(workload, nj_scenario_execution(&scenario));
    const NjExecuteOptions options = {.point_to_point = scenario.point_to_point,
                                      .optimizer = scenario.optimizer};
    if (!nj_scenario_plan(&scenario, &pipeline, &plan, &error) ||
        !nj_executor_run(executor, &pipeline, &plan, &options, &iteration, &error)) {
        g_prefix_error(&error, "%s: ", arguments[0]);
        return nj_command_fail(error);
    }
    nj_report_iteration(&scenario, &iteration, format, stdout);
    return 0;
}

const NjCommand nj_command_simulate = {
    .name = "simulate",
    .arguments = "SCENARIO",
    .summary = "time and energy of one training iteration, and where both go",
    .run = run,
};
