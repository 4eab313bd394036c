// SPDX-License-Identifier: MIT
// Where the time and the energy of a GPU go, for the fastest plan of every method side by side.
#include "plots/plot.h"
#include "sim/error.h"

#include <math.h>

enum {
    PART_GEMM,
    PART_ATTENTION,
    PART_MEMORY,
    PART_COLLECTIVE,
    PART_GAP,
    PART_WAITING,
    PART_STATIC,
    N_PARTS
};

static const char *const part_names[N_PARTS] = {
    "GEMM", "attention", "HBM-bound", "collective", "host gaps", "waiting", "static, always",
};

typedef struct {
    double time_s[N_PARTS], energy_j[N_PARTS];
} Parts;

static void sum_up(const NjIteration *iteration, Parts *parts)
{
    static const NjActivity activities[] = {NJ_ACTIVITY_GEMM, NJ_ACTIVITY_ATTENTION, NJ_ACTIVITY_MEMORY,
                                            NJ_ACTIVITY_COLLECTIVE, NJ_ACTIVITY_GAP};
    const double n = iteration->n_stages;
    *parts = (Parts){0};
    for (guint s = 0; s < iteration->n_stages; s++) {
        const NjStageResult *stage = &iteration->stages[s];
        for (guint i = 0; i < G_N_ELEMENTS(activities); i++)
            parts->time_s[i] += (double)stage->sum.activity[activities[i]] / NJ_PS_PER_S / n;
        parts->time_s[PART_WAITING] += (double)stage->bubble / NJ_PS_PER_S / n;
        for (guint i = 0; i < NJ_N_KERNEL_KINDS; i++)
            parts->energy_j[i] += stage->sum.energy_j[i] / n;
        parts->energy_j[PART_WAITING] += stage->waiting_j / n;
    }
    parts->energy_j[PART_STATIC] = iteration->static_j / n;
}

static void add_bar(NjFigure *figure, guint bar, guint panel, const double *values)
{
    double below = 0;
    for (guint part = 0; part < N_PARTS; part++) {
        nj_figure_add_integer(figure, (int)panel);
        nj_figure_add_integer(figure, (int)bar);
        nj_figure_add_integer(figure, (int)part);
        nj_figure_add_real(figure, values[part]);
        nj_figure_add_real(figure, below);
        below += values[part];
        nj_figure_add_real(figure, below);
        nj_figure_end_row(figure);
    }
}

static gboolean build(NjPlotInput *input, const NjPlotOptions *options, NjFigure *figure, GError **error)
{
    const NjScenario *scenario = &input->scenario;
    Parts parts[NJ_N_METHODS];
    double longest_s = 0, largest_j = 0;
    guint n = 0;
    NjMethod methods[NJ_N_METHODS];
    for (guint m = 0; m < NJ_N_METHODS; m++) {
        g_auto(NjPipeline) pipeline = {0};
        g_auto(NjPlan) plan = {0};
        NjIteration iteration;
        NjPlotOptions own = *options;
        own.method_name = nj_method_name((NjMethod)m);
        g_autoptr(GError) reason = NULL;
        if (!nj_plot_run(scenario, &own, NULL, &pipeline, &plan, &iteration, &reason)) {
            if (g_error_matches(reason, NJ_ERROR, NJ_ERROR_IMPOSSIBLE))
                continue; // a microbatch of one sequence has no nanobatches
            g_propagate_error(error, g_steal_pointer(&reason));
            return FALSE;
        }
        sum_up(&iteration, &parts[n]);
        double time_s = 0, energy_j = 0;
        for (guint part = 0; part < N_PARTS; part++) {
            time_s += parts[n].time_s[part];
            energy_j += parts[n].energy_j[part];
        }
        longest_s = fmax(longest_s, time_s);
        largest_j = fmax(largest_j, energy_j);
        methods[n++] = (NjMethod)m;
    }
    nj_figure_begin_block(figure, "parts", "panel method part value below above");
    for (guint i = 0; i < n; i++) {
        add_bar(figure, methods[i], 0, parts[i].time_s);
        add_bar(figure, methods[i], 1, parts[i].energy_j);
    }
    nj_figure_end_block(figure);
    nj_figure_begin_block(figure, "names", "part name");
    for (guint part = 0; part < N_PARTS; part++) {
        nj_figure_add_integer(figure, (int)part);
        nj_figure_add_text(figure, part_names[part]);
        nj_figure_end_row(figure);
    }
    nj_figure_end_block(figure);
    g_autofree char *title = nj_plot_title(&scenario->workload);
    g_autofree char *full = g_strdup_printf("%s: fastest plan of each method", title);
    nj_figure_set_text(figure, "plot_title", full);
    nj_figure_set_real(figure, "longest_s", longest_s);
    nj_figure_set_real(figure, "largest_j", largest_j);
    return TRUE;
}

const NjPlotKind nj_plot_breakdown = {
    .name = "breakdown",
    .summary = "time and energy of a GPU by kind of kernel, methods side by side",
    .reads = {[NJ_INPUT_SCENARIO] = TRUE},
    .build = build,
};
