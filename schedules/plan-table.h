// SPDX-License-Identifier: MIT
#pragma once
// A plan table: one plan a row of a CSV file, with what it was made for and the planner's own figures.
// Columns:
//
//   plan_id,method,model,cp,tp,microbatch_size,seq_len,pipeline_stages,microbatches,
//   time_s,dynamic_energy_j,total_energy_j,stage0_freq_mhz,...,stage0_launch,...
//
// microbatch_size counts sequences; energies are of one rank of each stage, summed over stages.
// stageK_freq_mhz lists stage K's instructions in execution order, "F1410 B900 ..."; stageK_launch its
// launches, "F:norm_0@12,norm_0@18 B:attn_0@21,...", one group an instruction, or nothing: every partition by
// default. Launch columns may be left out. There are as many frequency columns as the largest
// pipeline_stages; rows of fewer stages leave the others empty. The planner's three figures may be empty
// (unknown).

#include "schedules/plan.h"

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
    NJ_METHOD_MEGATRON,             // megatron: sequential execution, clocks left at the maximum
    NJ_METHOD_MEGATRON_PERSEUS,     // megatron+perseus: sequential execution, a frequency per instruction
    NJ_METHOD_NANOBATCHING_PERSEUS, // nanobatching+perseus: overlap by default launches
    NJ_METHOD_KAREUS,               // kareus: a launch choice per partition
} NjMethod;
#define NJ_N_METHODS 4

typedef struct {
    char *plan_id;
    NjMethod method;
    char *model;
    guint cp, tp;
    guint microbatch_size; // sequences
    guint seq_len;         // tokens
    guint microbatches;
    double time_s, dynamic_energy_j, total_energy_j; // the planner's; NaN where the file has none
    NjPlan plan;                                     // n_stages = pipeline_stages
    guint line;                                      // of the file, for messages; 0: none
} NjPlanRow;

typedef struct {
    guint n_rows;
    NjPlanRow *rows; // [n_rows] in file order; owned
} NjPlanTable;

// Reads and validates a whole table ("-": standard input). NULL and NJ_ERROR_INPUT with file, line, column,
// token and what would be right otherwise. Transfer full.
NjPlanTable *nj_plan_table_read(const char *path, GError **error);
// Same from text in memory; path is used in messages only.
NjPlanTable *nj_plan_table_parse(const char *path, const char *text, GError **error);

void nj_plan_table_free(NjPlanTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjPlanTable, nj_plan_table_free)

// Appends a row of zeros and NaN figures with an empty plan; pointers to rows become invalid. The table owns
// what is put into it. Starting from g_new0(NjPlanTable, 1) gives an empty table.
NjPlanRow *nj_plan_table_add(NjPlanTable *table);

// The table as CSV; launch columns only where a plan has launches. Figures have the digits that read back to
// the same number, at least 4 behind the point for times and 3 for energies. Transfer full.
char *nj_plan_table_format(const NjPlanTable *table);

// "megatron", "megatron+perseus", "nanobatching+perseus", "kareus".
const char *nj_method_name(NjMethod method);
gboolean nj_method_parse(const char *text, NjMethod *method);

// Reads a launch list as tables and profiles have it, "norm_0@12,norm_0@18", into an instruction. where
// begins the message: "file.csv:2: stage0_launch, token 3". FALSE and NJ_ERROR_INPUT otherwise.
gboolean nj_launch_list_parse(const char *where, const char *text, NjPlanInstruction *instruction,
                              GError **error);
// Appends a stage as a table's cells have it: "F1410 B900 ...", and "F:norm_0@12,norm_0@18 B:attn_0@21,...",
// of which nothing where no instruction has launches.
void nj_plan_stage_freqs_append(const NjPlanStage *stage, GString *out);
void nj_plan_stage_launches_append(const NjPlanStage *stage, GString *out);
// Appends a launch list.
void nj_launch_list_append(const NjPlanInstruction *instruction, GString *out);

G_END_DECLS
