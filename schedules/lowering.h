// SPDX-License-Identifier: MIT
#pragma once
// From an instruction to a program: which kernels the host dispatches to which stream in which order.
//
// Sequential: the whole microbatch, kernel after kernel, every collective exposed.
//
// Nanobatched: the microbatch is cut into two nanobatches A and B that run the same steps in turn; a step is
// a group of blocks, and the collective that follows a step runs beside the next step, which belongs to the
// other nanobatch:
//
//   compute  | attention A | attention B | MLP A       | MLP B       | next layer's attention A | ...
//   comm.    |             | AR of att A | AR of att B | AR of MLP A | AR of MLP B              | ...
//
// A step with the collective beside it is a partition. It ends when both have ended: the next step needs that
// collective, the next collective follows this step. A backward first repeats the layer's forward (full
// activation recomputation; sequential execution may keep some or all activations instead), then runs
// backward, layer by layer from the last.
//
// Partition types, in the order of launch lists (context parallelism adds the all-gather of K and V before
// attention and the reduce-scatter of their gradients behind it):
//   TP forward:   attention | AR, MLP | AR                    TP backward: those two, then attention | AR,
//   MLP | AR CPxTP forward: QKV | AR, QKV | AG, attention+projection | AG, the same | AR, MLP | AR, MLP | AR
//   CPxTP backward: those six, then projection | AR, projection | AG, attention | AG, attention | RS, QKV |
//   RS,
//                   QKV | AR, MLP | AR, MLP | AR

#include "models/layer.h"
#include "models/update.h"
#include "schedules/plan.h"
#include "sim/program.h"

G_BEGIN_DECLS

typedef enum { NJ_EXECUTION_SEQUENTIAL, NJ_EXECUTION_NANOBATCHED } NjExecution;

#define NJ_N_NANOBATCHES 2

// A workload's kernels, made once.
typedef struct {
    const NjWorkload *workload; // not owned
    NjStack stack;              // its name is the workload's
    NjLayer whole;              // of a microbatch
    NjLayer nano[NJ_N_NANOBATCHES];
    NjStageEnds ends;
} NjLowering;

void nj_lowering_init(NjLowering *lowering, const NjWorkload *workload);

// Partition types of an instruction: the length of its launch list.
guint nj_partition_count(const NjParallelism *parallelism, NjInstructionKind kind);

// Builds the program of a stage's instruction. launches: [nj_partition_count()], or n_launches 0 for all
// default. An instruction whose launches are all sequential is not cut into nanobatches. layers: how many,
// normally the stage's. The error says what is wrong with the launch list.
gboolean nj_lowering_build(const NjLowering *lowering, NjExecution execution, NjInstructionKind kind,
                           guint stage, int layers, const NjLaunch *launches, guint n_launches,
                           NjProgram *program, GError **error);

// Builds the program that follows a stage's last backward: first the reduction of gradients, then, once all
// stages know their norm, the optimizer's step. Either may have nothing to do.
void nj_lowering_build_reduction(const NjLowering *lowering, guint stage, NjProgram *program);
void nj_lowering_build_step(const NjLowering *lowering, guint stage, NjProgram *program);

// Builds one partition alone, as a program: partition type of the instruction kind, for the search of launch
// choices.
gboolean nj_lowering_build_partition(const NjLowering *lowering, NjInstructionKind kind, guint partition,
                                     const NjLaunch *launch, NjProgram *program, GError **error);

// How many partitions of this type a layer has (of equal size, but for a microbatch of an odd number of
// sequences).
guint nj_partition_weight(const NjParallelism *parallelism, NjInstructionKind kind, guint partition);

// The published search space of a partition type: every launch point on every SM count (3..30 by 3 for
// collectives of tensor parallelism, 1..20 for those of context parallelism), then sequential execution.
// Appends NjLaunch.
void nj_partition_search_space(const NjLowering *lowering, NjInstructionKind kind, guint partition,
                               GArray *launches);

G_END_DECLS
