// SPDX-License-Identifier: MIT
#include "scenarios/command.h"
#include "scenarios/progress.h"
#include "scenarios/sweep-scenario.h"
#include "scenarios/sweep.h"
#include "sim/error.h"

#include <stdlib.h>

#ifdef NJ_MPI
#include "scenarios/ranks.h"
#endif

typedef struct {
    char *output, *where, *shard;
    int jobs, limit;
    gboolean dry_run, quiet;
} Options;

static void options_clear(Options *options)
{
    g_free(options->output);
    g_free(options->where);
    g_free(options->shard);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

static gboolean check_options(const Options *options, NjSelection *selection, GError **error)
{
    if (options->output == NULL)
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "sweep: -o FILE is needed");
    else if (options->jobs < 0 || options->jobs > 4096)
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "--jobs %d: 1 to 4096 threads are needed",
                    options->jobs);
    else if (options->limit < 0)
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "--limit %d: a number of points is needed",
                    options->limit);
    else {
        *selection = (NjSelection){.where = options->where, .limit = (guint)options->limit};
        return options->shard == NULL ||
               nj_shard_parse(options->shard, &selection->shard, &selection->n_shards, error);
    }
    return FALSE;
}

static gboolean estimate(const NjScenarioSweep *sweep, const NjSweepOptions *options, GError **error)
{
    NjSweepEstimate result;
    if (!nj_sweep_estimate(sweep->grid, sweep->evaluator, options, &result, error))
        return FALSE;
    for (guint i = 0; i < sweep->grid->n_axes; i++) {
        g_autofree char *values = g_strjoinv(" ", sweep->grid->axes[i].values);
        printf("%s: %s\n", sweep->grid->axes[i].name, values);
    }
    printf("%u points", result.n_points);
    if (result.n_before > 0)
        printf(", of which %u are done", result.n_before);
    if (result.n_sampled > 0) {
        g_autofree char *time = result.estimated_s < 10 ? g_strdup_printf("%.2g s", result.estimated_s)
                                                        : nj_progress_format_seconds(result.estimated_s);
        printf("; about %s on %u threads (%u sampled, %.2g ms each)", time, options->jobs, result.n_sampled,
               1e3 * result.sampled_s / result.n_sampled);
    }
    printf("\n");
    return TRUE;
}

static gboolean run_sweep(const NjScenarioSweep *sweep, const NjSweepOptions *options, gboolean quiet,
                          GError **error)
{
    NjSweepSummary summary;
    if (!nj_sweep_run(sweep->grid, sweep->evaluator, options, &summary, error))
        return FALSE;
    if (quiet)
        return TRUE;
    if (summary.n_cut_bytes > 0)
        printf("%s: a record that an earlier run left torn was dropped; its point was computed again\n",
               options->output);
    printf("%s: %u points", options->output, summary.n_points);
    if (summary.n_before > 0)
        printf(", %u of them from an earlier run", summary.n_before);
    if (summary.n_computed > 0)
        printf(", %u computed in %.2f s (%.0f a second), of which %u cannot exist", summary.n_computed,
               summary.elapsed_s, summary.n_computed / MAX(summary.elapsed_s, 1e-9), summary.n_impossible);
    printf("\n");
    return TRUE;
}

// What all ranks of a job must agree in.
static char *identity_of(const NjScenarioSweep *sweep, const char *inputs)
{
    g_autofree char *all = g_strconcat(NJ_VERSION, "\n", inputs, "\n", sweep->text, NULL);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, all, -1);
}

static gboolean sweep_file(const char *path, const Options *given, NjRanks *ranks, GError **error)
{
    g_auto(NjScenarioSweep) sweep = {0};
    NjSweepOptions options = {.output = given->output,
                              .scenario_path = path,
                              .progress = given->quiet ? NULL : stderr,
                              .ranks = ranks};
    if (!check_options(given, &options.selection, error) || !nj_scenario_sweep_load(&sweep, path, error))
        return FALSE;
    g_autofree char *inputs = nj_scenario_sweep_inputs(&sweep, error);
    if (inputs == NULL)
        return FALSE;
    g_autofree char *identity = identity_of(&sweep, inputs);
    guint n_processors = g_get_num_processors();
#ifdef NJ_MPI
    if (ranks != NULL)
        n_processors = MAX(n_processors / (guint)nj_ranks_local_size(ranks), 1);
#endif
    options.jobs = given->jobs > 0 ? (guint)given->jobs : n_processors;
    options.scenario_text = sweep.text;
    options.inputs = inputs;
#ifdef NJ_MPI
    if (ranks != NULL && nj_ranks_rank(ranks) > 0) {
        nj_ranks_work(ranks, identity, sweep.grid, sweep.evaluator, options.jobs);
        return TRUE;
    }
    if (ranks != NULL)
        nj_ranks_set_identity(ranks, identity);
#endif
    return given->dry_run ? estimate(&sweep, &options, error)
                          : run_sweep(&sweep, &options, given->quiet, error);
}

static int run(int argc, char **argv)
{
    g_auto(Options) options = {0};
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output, "Result store to write, or to go on with",
         "FILE"},
        {"jobs", 'j', 0, G_OPTION_ARG_INT, &options.jobs, "Threads (default: one a core)", "N"},
        {"where", 'w', 0, G_OPTION_ARG_STRING, &options.where,
         "Only points whose axes meet a condition: axis OP value, joined by 'and'", "CONDITION"},
        {"limit", 'n', 0, G_OPTION_ARG_INT, &options.limit, "Only the first N of those", "N"},
        {"shard", 0, 0, G_OPTION_ARG_STRING, &options.shard,
         "Only every n-th of those from the i-th on (from 0), for 'nanojoule merge'", "i/n"},
        {"dry-run", 0, 0, G_OPTION_ARG_NONE, &options.dry_run, "Tell points and time needed, compute nothing",
         NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &options.quiet, "Show no progress and no summary", NULL},
        {NULL},
    };
    g_auto(GStrv) arguments = NULL;
    int status;
    if (!nj_command_parse(
            &nj_command_sweep, entries,
            "Every list in the scenario is an axis of the grid: a;b;c, start:stop:step, 1..64 *2.\n"
            "A sweep that was stopped or killed goes on when it is started again.",
            argc, argv, 1, 1, &arguments, &status))
        return status;
    g_autoptr(GError) error = NULL;
#ifdef NJ_MPI
    g_autoptr(NjRanks) ranks = nj_ranks_join();
#else
    NjRanks *const ranks = NULL;
#endif
    if (sweep_file(arguments[0], &options, ranks, &error))
        return 0;
#ifdef NJ_MPI
    // Rank 0 speaks for all, and a launcher would end it when another rank fails.
    if (ranks != NULL && nj_ranks_rank(ranks) > 0) {
        nj_ranks_fail(ranks, error->message);
        return 0;
    }
#endif
    return nj_command_fail(error);
}

const NjCommand nj_command_sweep = {
    .name = "sweep",
    .arguments = "SCENARIO -o STORE",
    .summary = "a grid of iterations into a result store",
    .run = run,
};
