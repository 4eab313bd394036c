// SPDX-License-Identifier: MIT
#include "plots/plot.h"
#include "scenarios/command.h"
#include "sim/error.h"

#include <math.h>
#include <stdio.h>

typedef struct {
    char *output, *where, *x, *y, *value, *zoom, *method;
    double time_s;
    int jobs;
    gboolean script;
} Options;

static void options_clear(Options *options)
{
    char *texts[] = {options->output, options->where, options->x,     options->y,
                     options->value,  options->zoom,  options->method};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(texts[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

// Options that a kind has no use for are mistakes.
static gboolean check_options(const Options *given, const NjPlotKind *kind, GError **error)
{
    const gboolean heatmap = kind == &nj_plot_heatmap, timeline = kind == &nj_plot_timeline;
    const gboolean run = timeline || kind == &nj_plot_power;
    const struct {
        const char *name;
        gboolean set, used;
    } options[] = {
        {"--where", given->where != NULL, heatmap || kind == &nj_plot_frontier},
        {"--x", given->x != NULL, heatmap},
        {"--y", given->y != NULL, heatmap},
        {"--value", given->value != NULL, heatmap},
        {"--zoom", given->zoom != NULL, timeline},
        {"--method", given->method != NULL, run},
        {"--time", isfinite(given->time_s), run},
    };
    for (guint i = 0; i < G_N_ELEMENTS(options); i++) {
        if (options[i].set && !options[i].used) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "plot: %s has no %s", kind->name, options[i].name);
            return FALSE;
        }
    }
    if (isfinite(given->time_s) && given->method == NULL)
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "plot: --time is of the plan of --method: it is missing");
    else if (given->output == NULL && !given->script)
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "plot: -o FILE or --script is needed");
    else if (given->jobs < 1 || given->jobs > 4096)
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "--jobs %d: 1 to 4096 threads are needed", given->jobs);
    else
        return TRUE;
    return FALSE;
}

static gboolean plot(const char *path, const NjPlotKind *kind, const Options *given, GError **error)
{
    g_auto(NjPlotInput) input = {0};
    g_auto(NjFigure) figure = {0};
    const NjPlotOptions options = {
        .where = given->where,
        .x = given->x,
        .y = given->y,
        .value = given->value,
        .zoom = given->zoom,
        .method_name = given->method,
        .time_s = given->time_s,
        .jobs = (guint)given->jobs,
    };
    nj_figure_init(&figure);
    if (!nj_plot_input_open(&input, path, kind, error) || !kind->build(&input, &options, &figure, error))
        return FALSE;
    if (!given->script)
        return nj_figure_draw(&figure, kind->name, given->output, error);
    g_autofree char *by_default = g_strconcat(kind->name, ".svg", NULL);
    const char *output = given->output != NULL ? given->output : by_default;
    g_autofree char *script = nj_figure_script(&figure, kind->name, output, output, error);
    if (script == NULL)
        return FALSE;
    fputs(script, stdout);
    return TRUE;
}

static char *describe_kinds(void)
{
    GString *text = g_string_new("Kinds:\n");
    for (const NjPlotKind *const *kind = nj_plot_kinds(); *kind != NULL; kind++)
        g_string_append_printf(text, "  %-12s %s\n", (*kind)->name, (*kind)->summary);
    g_string_append(text,
                    "\nINPUT is a scenario or comparison (.ini), a sweep's store (.h5), a table (.csv) or - "
                    "for a table on standard\ninput; plots/README.md says which kind reads what.\n"
                    "Example: nanojoule plot scenarios/llama-3.2-3b-tp8.ini timeline --method kareus -o "
                    "timeline.svg");
    return g_string_free(text, FALSE);
}

static int run(int argc, char **argv)
{
    g_auto(Options) options = {.time_s = HUGE_VAL, .jobs = (int)g_get_num_processors()};
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output, "Picture to write: .svg, .png or .pdf",
         "FILE"},
        {"script", 0, 0, G_OPTION_ARG_NONE, &options.script, "Print the gnuplot script with its data instead",
         NULL},
        {"where", 'w', 0, G_OPTION_ARG_STRING, &options.where,
         "heatmap, frontier: only rows that meet a condition", "CONDITION"},
        {"x", 0, 0, G_OPTION_ARG_STRING, &options.x, "heatmap: axis across (default: the first)", "AXIS"},
        {"y", 0, 0, G_OPTION_ARG_STRING, &options.y, "heatmap: axis upwards (default: the next)", "AXIS"},
        {"value", 0, 0, G_OPTION_ARG_STRING, &options.value,
         "heatmap: column to show (default energy_per_token_j)", "COLUMN"},
        {"zoom", 0, 0, G_OPTION_ARG_STRING, &options.zoom, "timeline: the kernels of an instruction",
         "STAGE:F|B MICROBATCH"},
        {"method", 0, 0, G_OPTION_ARG_STRING, &options.method,
         "timeline, power: the fastest plan of a method instead of what 'simulate' runs", "METHOD"},
        {"time", 0, 0, G_OPTION_ARG_DOUBLE, &options.time_s,
         "timeline, power: the method's plan of least energy that is no slower", "SECONDS"},
        {"jobs", 'j', 0, G_OPTION_ARG_INT, &options.jobs, "Threads (default: one a core)", "N"},
        {NULL},
    };
    g_autofree char *description = describe_kinds();
    g_auto(GStrv) arguments = NULL;
    int status;
    if (!nj_command_parse(&nj_command_plot, entries, description, argc, argv, 2, 2, &arguments, &status))
        return status;
    g_autoptr(GError) error = NULL;
    const NjPlotKind *kind = nj_plot_kind_find(arguments[1], &error);
    if (kind == NULL || !check_options(&options, kind, &error) || !plot(arguments[0], kind, &options, &error))
        return nj_command_fail(error);
    return 0;
}

const NjCommand nj_command_plot = {
    .name = "plot",
    .arguments = "INPUT KIND",
    .summary = "draw a result with gnuplot",
    .run = run,
};
