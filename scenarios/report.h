// SPDX-License-Identifier: MIT
#pragma once
// The report of one simulated iteration: time, throughput, energy, power, and both broken down.

#include "scenarios/scenario.h"
#include "scenarios/table.h"

#include <stdio.h>

G_BEGIN_DECLS

// Rows section, metric, unit, value. Sections: iteration, energy, power, time_breakdown and energy_breakdown
// (averages over the GPUs), communication, memory_breakdown (of a GPU of the fullest stage), memory. Transfer
// full.
NjTable *nj_report_table(const NjScenario *scenario, const NjIteration *iteration);

// Says on standard error that a GPU is not calibrated, if so: beside reports that are read by programs.
void nj_report_note(const NjGpu *gpu);

// Prints the report: aligned for people, or the table's rows as CSV or JSON.
void nj_report_iteration(const NjScenario *scenario, const NjIteration *iteration, NjFormat format,
                         FILE *out);

G_END_DECLS
