// SPDX-License-Identifier: MIT
// Power of a GPU of every stage over time, and the clock beneath. A run has tens of thousands of intervals of
// constant power: bins keep their mean, which keeps the energy, and their highest power.
#include "plots/plot.h"

#include <math.h>

#define N_BINS 480
#define MAX_SHOWN 8

typedef struct {
    double energy_j, peak_w, clock_mhz_s, busy_s;
} Bin;

typedef struct {
    double bin_ps;
    guint n_stages;
    Bin *bins; // [n_stages * N_BINS]
} Collected;

static void on_interval(gpointer user, const NjInterval *interval)
{
    Collected *all = user;
    Bin *bins = &all->bins[interval->device * N_BINS];
    guint at = (guint)fmin((double)interval->start / all->bin_ps, N_BINS - 1);
    for (double start = (double)interval->start; at < N_BINS && start < (double)interval->end; at++) {
        const double end =
            at + 1 == N_BINS ? (double)interval->end : fmin((double)interval->end, (at + 1) * all->bin_ps);
        const double part_s = fmax(end - start, 0) / NJ_PS_PER_S;
        bins[at].energy_j += interval->power_w * part_s;
        bins[at].clock_mhz_s += interval->freq_mhz * part_s;
        bins[at].busy_s += interval->freq_mhz > 0 ? part_s : 0;
        bins[at].peak_w = fmax(bins[at].peak_w, interval->power_w);
        start = end;
    }
}

static gboolean build(NjPlotInput *input, const NjPlotOptions *options, NjFigure *figure, GError **error)
{
    const NjScenario *scenario = &input->scenario;
    const guint n_stages = (guint)scenario->workload.parallelism.pp;
    NjIteration iteration;
    // The bins need the length of the run.
    {
        g_auto(NjPipeline) pipeline = {0};
        g_auto(NjPlan) plan = {0};
        if (!nj_plot_run(scenario, options, NULL, &pipeline, &plan, &iteration, error))
            return FALSE;
    }
    g_auto(NjPipeline) pipeline = {0};
    g_auto(NjPlan) plan = {0};
    g_autofree Bin *bins = g_new0(Bin, n_stages * N_BINS);
    Collected all = {(double)iteration.duration / N_BINS, n_stages, bins};
    const NjObserver observer = {on_interval, NULL, NULL, &all};
    if (!nj_plot_run(scenario, options, &observer, &pipeline, &plan, &iteration, error))
        return FALSE;

    const double time_s = (double)iteration.duration / NJ_PS_PER_S, bin_s = time_s / N_BINS;
    const guint n_shown = MIN(n_stages, MAX_SHOWN);
    double peak_w = scenario->workload.gpu.power_limit_w;
    nj_figure_begin_block(figure, "power", "stage time_s power_w peak_w clock_mhz");
    for (guint i = 0; i < n_shown; i++) {
        const guint stage = n_shown > 1 ? i * (n_stages - 1) / (n_shown - 1) : 0;
        for (guint b = 0; b < N_BINS; b++) {
            const Bin *bin = &bins[stage * N_BINS + b];
            nj_figure_add_integer(figure, (int)stage);
            nj_figure_add_real(figure, (b + 0.5) * bin_s);
            nj_figure_add_real(figure, bin->energy_j / bin_s);
            nj_figure_add_real(figure, bin->peak_w);
            nj_figure_add_real(figure, bin->busy_s > 0 ? bin->clock_mhz_s / bin->busy_s : (double)NAN);
            nj_figure_end_row(figure);
            peak_w = fmax(peak_w, bin->peak_w);
        }
    }
    nj_figure_end_block(figure);
    nj_figure_begin_block(figure, "averages", "stage average_w");
    for (guint i = 0; i < n_shown; i++) {
        const guint stage = n_shown > 1 ? i * (n_stages - 1) / (n_shown - 1) : 0;
        double sum_j = 0;
        for (guint b = 0; b < N_BINS; b++)
            sum_j += bins[stage * N_BINS + b].energy_j;
        nj_figure_add_integer(figure, (int)stage);
        nj_figure_add_real(figure, sum_j / time_s);
        nj_figure_end_row(figure);
    }
    nj_figure_end_block(figure);
    g_autofree char *title = nj_plot_title(&scenario->workload);
    NjMethod method;
    nj_method_parse(nj_plot_shown_method(scenario, options), &method);
    g_autofree char *full = g_strdup_printf("%s: %s", nj_plot_method_title(method), title);
    nj_figure_set_text(figure, "plot_title", full);
    nj_figure_set_integer(figure, "n_shown", (int)n_shown);
    nj_figure_set_real(figure, "duration_s", time_s);
    nj_figure_set_real(figure, "limit_w", scenario->workload.gpu.power_limit_w);
    nj_figure_set_real(figure, "top_w", 50 * ceil((peak_w + 10) / 50));
    nj_figure_set_real(figure, "clock_low", scenario->workload.gpu.freq_min_mhz);
    nj_figure_set_real(figure, "clock_high", scenario->workload.gpu.freq_max_mhz);
    figure->height = 190 + 150 * (int)n_shown;
    return TRUE;
}

const NjPlotKind nj_plot_power = {
    .name = "power",
    .summary = "power of every stage over time, with average, limit and clock",
    .reads = {[NJ_INPUT_SCENARIO] = TRUE},
    .build = build,
};
