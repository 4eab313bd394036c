// SPDX-License-Identifier: MIT
#pragma once
// What follows the last backward of an iteration on a rank of a stage: gradients are averaged over the ranks
// that hold the same weights, the first and the last stage add up the gradient of the embedding they share,
// and Adam updates fp32 masters.
//
// Bytes per parameter, with gradients of g bytes:
//   division by the number of ranks            2 g
//   all-reduce                                 g in the message
//   gradients to fp32, a kernel a parameter    2 + 4   where g = 2
//   unscaling and a look for infinities        8       where g = 2 (loss scaling)
//   norm of the gradients                      4
//   clipping                                   8
//   Adam                                       28: reads 4 values, writes master and both moments
//   masters to 16 bits                         4 + 2
//   clearing the gradients                     g

#include "models/layer.h"

G_BEGIN_DECLS

typedef struct {
    NjKernel division;
    NjKernel gradient_all_reduce;  // nothing to do in a group of one
    NjKernel embedding_all_reduce; // likewise, and on stages without the embedding
    NjKernel copy;                 // of one parameter's gradient to fp32, an average parameter
    guint n_copies;
    NjBlock step;
} NjUpdate;

void nj_update_build(NjUpdate *update, const NjWorkload *workload, int stage);

// Seconds until all stages know the norm of all gradients.
double nj_update_norm_s(const NjWorkload *workload);

G_END_DECLS
