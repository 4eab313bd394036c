// SPDX-License-Identifier: MIT
#pragma once
// Plans as the Perseus and Kareus runtimes keep them: freqs_pipeline_NNNNN.py with the frequency of every
// instruction and, for Kareus, scheds_pipeline_NNNNN.py with the launch of every partition. Each is one
// Python list literal of per-stage lists of tuples, then comment lines with the solver's figures. The files
// are read as data, never executed, and written byte for byte in the layout of the tools:
//
//   [
//   [('forward', 1410), ('backward', 1380)],                          [('forward', 'rope_0-none-12-1024'),
//   ...
//   [('forward', 1410), ('backward', 1410)],
//   ]
//   # Iteration 1941 cost change: 1.648090108931953
//   # Iteration 1941 total cost: 1841.1092651600488                  sum of effective energies, J
//   # Iteration 1941 total cost with P2P: 2555.9592651600487         with static power over the whole time, J
//
// A launch is KERNEL_INDEX-none-SMS-1024 (threads per block last). What stands in place of "none" and the
// threads are checked for their form and not kept. "sequential" and "default" are nanojoule's own words.

#include "schedules/plan.h"

#include <glib.h>
#include <math.h>

G_BEGIN_DECLS

// The comment lines. A figure that is not there is NaN, and is not written.
typedef struct {
    gint64 iteration;                // step of the solver, 0 and up; -1: no comment lines at all
    double cost_change_j;            // effective energy above that of the step before
    double total_cost_j;             // effective energy of the iteration
    double total_cost_with_static_j; // total energy of the iteration
} NjPlanCosts;

#define NJ_PLAN_COSTS_NONE ((NjPlanCosts){-1, (double)NAN, (double)NAN, (double)NAN})

// Reads a plan; scheds_path may be NULL: all partitions by default. The launch file must match the frequency
// file instruction by instruction, and be of the same iteration where both say it. Initialises plan on
// success and validates it; costs may be NULL. FALSE and NJ_ERROR_FILE or NJ_ERROR_INPUT otherwise.
gboolean nj_plan_files_read(const char *freqs_path, const char *scheds_path, NjPlan *plan, NjPlanCosts *costs,
                            GError **error);

// Same from text in memory (each NUL-terminated at its length); the paths are used in messages only.
// scheds_text may be NULL.
gboolean nj_plan_files_parse(const char *freqs_path, const char *freqs_text, gsize freqs_length,
                             const char *scheds_path, const char *scheds_text, gsize scheds_length,
                             NjPlan *plan, NjPlanCosts *costs, GError **error);

// The text of either file for a valid plan. Transfer full.
char *nj_plan_freqs_format(const NjPlan *plan, const NjPlanCosts *costs);
char *nj_plan_scheds_format(const NjPlan *plan, const NjPlanCosts *costs);

// Writes the files, each as a whole or not at all (written aside, then renamed). scheds_path may be NULL.
gboolean nj_plan_files_write(const char *freqs_path, const char *scheds_path, const NjPlan *plan,
                             const NjPlanCosts *costs, GError **error);

G_END_DECLS
