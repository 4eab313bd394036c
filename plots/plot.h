// SPDX-License-Identifier: MIT
#pragma once
// Kinds of plots. Each is one file that exports one NjPlotKind and turns an input into a figure's data; a
// registry lists them. An input is a result store, a scenario, a comparison or a CSV table; each kind says
// which it reads.

#include "plots/figure.h"
#include "scenarios/comparison.h"
#include "scenarios/scenario.h"
#include "scenarios/store.h"
#include "schedules/csv.h"

G_BEGIN_DECLS

typedef enum {
    NJ_INPUT_STORE,      // .h5, of a sweep
    NJ_INPUT_SCENARIO,   // .ini
    NJ_INPUT_COMPARISON, // .ini with a [comparison]
    NJ_INPUT_TABLE,      // CSV: "-" for standard input, or .csv
    NJ_N_INPUTS,
} NjPlotInputType;

typedef struct {
    const char *path;
    NjPlotInputType type;
    NjStore *store;
    NjScenario scenario;
    NjComparison comparison;
    NjTable *table; // of a CSV: columns all of whose fields are numbers are REAL, others TEXT
    NjCsv *csv;     // owns the names of its columns
} NjPlotInput;

typedef struct {
    const char *where;       // rows of a store or table
    const char *x, *y;       // axes of a heat map
    const char *value;       // column of a heat map
    const char *zoom;        // an instruction: "0:F3"
    const char *method_name; // whose plan a timeline shows, or NULL: what simulate runs
    double time_s;           // ... at this time; HUGE_VAL: the fastest
    guint jobs;
} NjPlotOptions;

typedef struct {
    const char *name;
    const char *summary;
    gboolean reads[NJ_N_INPUTS];
    // Fills an initialised figure. The input is of a type that the kind reads.
    gboolean (*build)(NjPlotInput *input, const NjPlotOptions *options, NjFigure *figure, GError **error);
} NjPlotKind;

extern const NjPlotKind nj_plot_breakdown, nj_plot_frontier, nj_plot_heatmap, nj_plot_power,
    nj_plot_sensitivity, nj_plot_tables, nj_plot_timeline;

// All kinds, NULL-terminated.
const NjPlotKind *const *nj_plot_kinds(void);
// By name, or NULL and an error of NJ_ERROR_USAGE that lists them.
const NjPlotKind *nj_plot_kind_find(const char *name, GError **error);

// Opens and reads an input; an error where the kind does not read such.
gboolean nj_plot_input_open(NjPlotInput *input, const char *path, const NjPlotKind *kind, GError **error);
void nj_plot_input_clear(NjPlotInput *input);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjPlotInput, nj_plot_input_clear)

// A table of a store or the CSV table, rows that meet options->where. It lives no longer than the input.
// Transfer full.
NjTable *nj_plot_rows(NjPlotInput *input, const char *table, const NjPlotOptions *options, GError **error);
// A number of either type as a double, NaN where missing.
double nj_plot_number(const NjTable *table, guint row, guint column);

// "Llama 3.2 3B tp8, 8 x 4096": the workload in a line. Transfer full.
char *nj_plot_title(const NjWorkload *workload);
// "Megatron-LM + Perseus" and so on; static.
const char *nj_plot_method_title(NjMethod method);

// Runs one iteration of a scenario with an observer: what simulate runs, or with options->method_name that
// method's own plan at options->time_s. pipeline and plan are initialised.
gboolean nj_plot_run(const NjScenario *scenario, const NjPlotOptions *options, const NjObserver *observer,
                     NjPipeline *pipeline, NjPlan *plan, NjIteration *iteration, GError **error);
// The method's name as in options, else what the scenario says. Static.
const char *nj_plot_shown_method(const NjScenario *scenario, const NjPlotOptions *options);

G_END_DECLS
