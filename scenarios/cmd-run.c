// SPDX-License-Identifier: MIT
#include "scenarios/command.h"
#include "scenarios/comparison.h"
#include "sim/error.h"

#include <signal.h>
#include <unistd.h>

// Set by Ctrl-C; looked at between plans. A second one does not wait for that.
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    signal(signal_number, SIG_DFL);
    interrupted = 1;
}

static int run(int argc, char **argv)
{
    g_autofree char *format_name = NULL;
    int jobs = (int)g_get_num_processors();
    const GOptionEntry entries[] = {
        {"format", 0, 0, G_OPTION_ARG_STRING, &format_name, "text, csv or json (default text)", "FORMAT"},
        {"jobs", 'j', 0, G_OPTION_ARG_INT, &jobs, "Threads (default: all cores)", "N"},
        {NULL},
    };
    g_auto(GStrv) arguments = NULL;
    int status;
    if (!nj_command_parse(
            &nj_command_run, entries,
            "COMPARISON is a file such as scenarios/paper.ini: configurations, methods, metrics and what "
            "was published.",
            argc, argv, 1, 1, &arguments, &status))
        return status;

    g_autoptr(GError) error = NULL;
    g_auto(NjComparison) comparison = {0};
    NjFormat format;
    NjProgress progress;
    if (jobs < 1) {
        g_set_error(&error, NJ_ERROR, NJ_ERROR_USAGE, "run: --jobs: at least 1 is needed");
        return nj_command_fail(error);
    }
    // Most comparisons are over before a line could be read: a terminal gets a bar, a log nothing.
    nj_progress_init(&progress, isatty(STDERR_FILENO) ? stderr : NULL, "frontiers", 0, 0);
    signal(SIGINT, on_interrupt);
    if (!nj_format_parse(format_name != NULL ? format_name : "text", &format, &error) ||
        !nj_comparison_load(&comparison, arguments[0], &error) ||
        !nj_comparison_run(&comparison, (guint)jobs, &progress, &interrupted, &error))
        return nj_command_fail(error);
    if (format == NJ_FORMAT_TEXT) {
        nj_comparison_print(&comparison, stdout);
    } else {
        g_autoptr(NjTable) table = nj_comparison_table(&comparison);
        nj_table_print(table, format, stdout);
    }
    return 0;
}

const NjCommand nj_command_run = {
    .name = "run",
    .arguments = "COMPARISON",
    .summary = "regenerate published tables and compare",
    .run = run,
};
