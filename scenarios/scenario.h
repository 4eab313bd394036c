// SPDX-License-Identifier: MIT
#pragma once
// A scenario file says what is trained, on what, and how it is executed:
//
//   [workload]   model, seq_len, microbatch_size, microbatches
//   [cluster]    gpu, parallelism, pipeline_stages, layers_per_stage
//   [execution]  method, schedule, frequency_mhz, deadline_s, freqs_file, scheds_file, point_to_point, stack,
//                recompute (full, selective or none), optimizer
//
// A name of a model or GPU is a shipped file; a path is relative to the scenario file. Every error names
// file, group, key, value and what would be right.

#include "models/keyfile.h"
#include "models/workload.h"
#include "scenarios/planning.h"
#include "schedules/execute.h"
#include "schedules/plan-table.h"

G_BEGIN_DECLS

typedef struct {
    char *path;
    NjWorkload workload;
    NjMethod method;
    const NjPipelineSchedule *schedule;
    int frequency_mhz; // of every instruction where no plan is given; 0: left to the method
    double deadline_s; // of a planned method's plan; 0: the fastest plan
    char *freqs_file;  // plan files, or NULL
    char *scheds_file;
    gboolean point_to_point;
    gboolean optimizer; // the iteration ends with the optimizer's step; published plans leave it out
} NjScenario;

// The table of all keys, with unit and meaning; the offsets are nobody else's.
const NjField *nj_scenario_fields(guint *n_fields);

gboolean nj_scenario_load(NjScenario *scenario, const char *path, GError **error);
// Same with another architecture than the file's (a shipped name, or a path relative to the current folder);
// NULL: the file's.
gboolean nj_scenario_load_with_arch(NjScenario *scenario, const char *path, const char *arch, GError **error);
// From a key file in memory; path stands in messages and is where relative paths start. The error's code is
// NJ_ERROR_IMPOSSIBLE where each value is right by itself.
gboolean nj_scenario_from_keyfile(NjScenario *scenario, GKeyFile *file, const char *path, GError **error);
// The file that a value of a scenario at path names: a path in the scenario is relative to the scenario file,
// a plain name stays a name. Transfer full.
char *nj_scenario_resolve(const char *path, const char *name);
void nj_scenario_clear(NjScenario *scenario);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjScenario, nj_scenario_clear)

// How the scenario executes its instructions.
NjExecution nj_scenario_execution(const NjScenario *scenario);

// How the scenario is executed, without an observer. Clocks are unlocked where Megatron-LM has no frequency
// given.
NjExecuteOptions nj_scenario_execute_options(const NjScenario *scenario);

// Where the scenario's plan comes from, in words: "plan files", "all instructions at 1410 MHz", ... Transfer
// full.
char *nj_scenario_describe_plan(const NjScenario *scenario);

// The scenario's plan: from its plan files; the same frequency everywhere where it has frequency_mhz, or the
// method is Megatron-LM (the highest); else what the method plans: its fastest plan, or of those whose
// execution takes no longer than deadline_s the one of least energy. The error's code is NJ_ERROR_IMPOSSIBLE
// where the method has none. Initialises plan.
gboolean nj_scenario_plan(const NjScenario *scenario, const NjPipeline *pipeline, NjPlan *plan,
                          GError **error);

// The published testbed's split of layers over two stages: 15 + 13 of 28, so that the stage with the LM head
// has two layers fewer; an even split for other numbers of stages.
void nj_split_layers_as_published(NjWorkload *workload);

G_END_DECLS
