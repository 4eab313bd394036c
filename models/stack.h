// SPDX-License-Identifier: MIT
#pragma once
// The software stack that trains: what a host needs to dispatch a kernel, and what the framework does with
// gradients, masters and messages. It belongs neither to the GPU nor to the model. Read from a key file under
// models/stacks/; dispatch times that the file leaves out are those of the GPU's file, which were fitted
// together with its constants.
//
// Gradients. A fused stack lets the weight-gradient GEMM add to the gradient in place. Otherwise a hook adds
// each parameter's gradient with a kernel of its own, and before the optimizer another kernel a parameter
// copies gradients of 2 bytes to fp32.

#include "models/gpu.h"

G_BEGIN_DECLS

typedef struct {
    char *name;
    double dispatch_us;            // host time per kernel, nanobatching engine; below 0: the GPU's
    double dispatch_partition_us;  // host time per partition, nanobatching engine
    double dispatch_sequential_us; // host time per kernel, sequential engine
    gboolean fused_gradients;
    int gradient_bytes;      // of an accumulated and reduced gradient: 2 or 4
    gboolean scatter_gather; // a tensor-parallel rank sends 1 / tp of the activations to the next stage,
                             // whose ranks then gather them
} NjStack;

// Loads a stack by the name of a shipped file ("megatron-2022") or by path.
gboolean nj_stack_load(NjStack *stack, const char *name_or_path, GError **error);
// The stack with the GPU's dispatch times where it has none; the testbed's (models/stacks/kareus.ini) for a
// stack without a name. The name stays the given stack's.
NjStack nj_stack_on_gpu(const NjStack *stack, const NjGpu *gpu);
void nj_stack_clear(NjStack *stack);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjStack, nj_stack_clear)

G_END_DECLS
