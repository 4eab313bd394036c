// SPDX-License-Identifier: MIT
#include "scenarios/command.h"
#include "scenarios/store.h"
#include "scenarios/sweep-scenario.h"
#include "scenarios/sweep.h"
#include "sim/error.h"

// The grid is that of the scenario in the first shard.
static gboolean merge(const char *const *paths, const char *output, GError **error)
{
    g_autoptr(NjStore) first = nj_store_open(paths[0], error);
    g_auto(NjScenarioSweep) sweep = {0};
    return first != NULL &&
           nj_scenario_sweep_from_text(&sweep, nj_store_info(first)->text, paths[0], error) &&
           nj_sweep_merge(paths, g_strv_length((char **)paths), sweep.grid, sweep.evaluator, output, error);
}

static int run(int argc, char **argv)
{
    g_autofree char *output = NULL;
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "Result store to write", "FILE"},
        {NULL},
    };
    g_auto(GStrv) arguments = NULL;
    int status;
    if (!nj_command_parse(
            &nj_command_merge, entries,
            "All shards of one sweep are needed; the result has the bytes of a sweep without --shard.", argc,
            argv, 1, -1, &arguments, &status))
        return status;
    g_autoptr(GError) error = NULL;
    if (output == NULL)
        g_set_error(&error, NJ_ERROR, NJ_ERROR_USAGE, "merge: -o FILE is needed");
    else
        merge((const char *const *)arguments, output, &error);
    return error != NULL ? nj_command_fail(error) : 0;
}

const NjCommand nj_command_merge = {
    .name = "merge",
    .arguments = "-o STORE SHARD...",
    .summary = "join the shards of a sweep",
    .run = run,
};
