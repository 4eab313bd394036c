// SPDX-License-Identifier: MIT
#pragma once
// A run as Chrome trace event JSON, which Perfetto and chrome://tracing open. A process stands for a GPU of a
// stage (all of a stage are alike) and has three threads:
//
//   host            what the host dispatches, operation by operation
//   compute         an instruction (F3: the forward of microbatch 3), in it its kernels; waiting in between
//   communication   collectives, from launch to end: waiting for their peers they hold their SMs
//
// Flows lead from the last operation of an instruction to the first one of the instruction of another stage
// that depends on it. Counters: power, clock, use of SMs and HBM. Times are microseconds with picoseconds
// behind the point, so that nothing is lost.
//
// Energy adds up: the joules of kernels and of waiting are dynamic energy; with static_w x time_s of every
// stage they sum to the report's, as the integral of the power counter does.
//
// Events are written as the run goes on, in the order in which operations end; the memory needed grows with
// the number of instructions, never with that of events. The file is written aside and renamed at the end;
// a name that ends in ".gz" is compressed.

#include "scenarios/scenario.h"

G_BEGIN_DECLS

typedef struct NjTrace NjTrace;

// Only what happens between from_s and to_s (HUGE_VAL: to the end) is written. Scenario and pipeline must
// outlive the trace. Transfer full.
NjTrace *nj_trace_new(const char *path, const NjScenario *scenario, const NjPipeline *pipeline, double from_s,
                      double to_s, GError **error);
// Removes what was not finished.
void nj_trace_free(NjTrace *trace);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjTrace, nj_trace_free)

// To run with. Transfer none.
const NjObserver *nj_trace_observer(const NjTrace *trace);

// After the run: completes the file and moves it to its path. A write that failed during the run is told
// here.
gboolean nj_trace_finish(NjTrace *trace, const NjIteration *iteration, GError **error);

G_END_DECLS
