// SPDX-License-Identifier: MIT
#pragma once
// Published tables regenerated. A comparison file says which configurations a table has, and what was
// published:
//
//   [comparison]
//   table = max-throughput                   name in machine-readable output
//   title = ...                              heading
//   source = ...                             where the published cells come from
//   gpu, pipeline_stages, microbatches       of every configuration
//   metrics = time_reduction;energy_reduction
//   methods = megatron+perseus;nanobatching+perseus;kareus
//
//   [llama-3.2-3b tp8 8 x 4096]              model, parallelism, microbatch size x sequence length
//   layers_per_stage = 15;13                 even where left out
//   kareus = 12.3;19.6                       published, %, a value a metric; "none": no plan qualified; "-":
//   nothing kareus.rerun = 13.70;14.23               the authors' second run
//
// or lists other comparison files: [comparison] include = a.ini;b.ini. Metrics:
//   time_reduction, energy_reduction         of the fastest plan against Megatron-LM
//   iso_time_energy_reduction                least energy of a plan no slower than the fastest Megatron-LM +
//   Perseus
//                                            plan, against that plan's
//   iso_energy_time_reduction                least time of a plan that uses no more energy than the
//   least-energy
//                                            Megatron-LM + Perseus plan, against that plan's

#include "scenarios/frontier.h"
#include "scenarios/progress.h"
#include "scenarios/table.h"

G_BEGIN_DECLS

typedef enum {
    NJ_METRIC_TIME_REDUCTION,
    NJ_METRIC_ENERGY_REDUCTION,
    NJ_METRIC_ISO_TIME,
    NJ_METRIC_ISO_ENERGY,
    NJ_N_METRICS,
} NjMetric;

// A value in percent, that no plan qualified, or nothing.
typedef enum { NJ_CELL_EMPTY, NJ_CELL_NONE, NJ_CELL_VALUE } NjCellState;

typedef struct {
    NjCellState state;
    double value;
} NjCellValue;

typedef struct {
    guint table;         // index into tables
    guint configuration; // index into configurations
    NjMethod method;
    NjMetric metric;
    NjCellValue simulated, published, rerun;
} NjComparisonCell;

typedef struct {
    char *name, *title, *source;
} NjComparisonTable;

typedef struct {
    NjWorkload workload;
    NjFrontier frontiers[NJ_N_METHODS]; // after the run
    gboolean needed[NJ_N_METHODS];
    char *failures[NJ_N_METHODS]; // why a method cannot run here, or NULL; its cells are "none"
} NjComparisonConfiguration;

typedef struct {
    GArray *tables;            // NjComparisonTable
    GPtrArray *configurations; // NjComparisonConfiguration *; tables share equal ones
    GArray *cells;             // NjComparisonCell, in the files' order
} NjComparison;

gboolean nj_comparison_load(NjComparison *comparison, const char *path, GError **error);
void nj_comparison_clear(NjComparison *comparison);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjComparison, nj_comparison_clear)

// Runs every configuration on so many threads and fills the simulated cells. A method that cannot execute a
// configuration is no error. progress may be NULL; it is shown from the caller's thread only. stop may be
// NULL; once it is not 0, threads end what they are at and the run fails (NJ_ERROR_STOPPED).
gboolean nj_comparison_run(NjComparison *comparison, guint jobs, NjProgress *progress,
                           const volatile int *stop, GError **error);

// The value of a metric, given the executed frontiers: none where one that it needs has no plans.
NjCellValue nj_metric_value(NjMetric metric, const NjFrontier *method, const NjFrontier *megatron,
                            const NjFrontier *megatron_perseus);

// One row a cell: table,model,parallelism,microbatch_size,seq_len,method,metric,simulated_pct,published_pct.
// Transfer full.
NjTable *nj_comparison_table(const NjComparison *comparison);

// The tables in the paper's layout, and the summary.
void nj_comparison_print(const NjComparison *comparison, FILE *out);

// Over cells where both are values: their number, mean and maximum absolute difference, in points.
guint nj_comparison_differences(const NjComparison *comparison, gboolean rerun, double *mean_abs,
                                double *max_abs);

const char *nj_metric_name(NjMetric metric);

G_END_DECLS
