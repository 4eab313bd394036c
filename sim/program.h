// SPDX-License-Identifier: MIT
#pragma once
// A program: what a device's host dispatches for one instruction. Operations stand on two streams, compute
// and communication; each stream runs its operations in order, one at a time. An operation may also wait for
// the other stream: until a number of its operations have ended, or have begun to work (a launch point). It
// cannot start before the host has dispatched it; the host dispatches in program order and never waits for
// the device.

#include "sim/engine.h"
#include "sim/kernel.h"

G_BEGIN_DECLS

typedef enum { NJ_STREAM_COMPUTE, NJ_STREAM_COMMUNICATION, NJ_N_STREAMS } NjStream;

typedef struct {
    guint32 kernel;      // index into the program's kernels
    guint32 after_other; // operations of the other stream that must have ended
    guint32 with_other;  // operations of the other stream that must have begun to work
    guint32 sms;         // SMs a collective occupies; 0 for compute
    guint32 dispatch_ns; // of the host's time before dispatched, what it spent on this operation (for traces)
    NjTime dispatched;   // since the start of the program
} NjOp;

typedef struct {
    GArray *kernels;           // NjKernel
    GArray *ops[NJ_N_STREAMS]; // NjOp, in stream order
    NjTime host; // since the start of the program, when the host has dispatched everything added so far
} NjProgram;

void nj_program_init(NjProgram *program);
void nj_program_clear(NjProgram *program);

// Adds a kernel's description (copied); gives its index.
guint32 nj_program_add_kernel(NjProgram *program, const NjKernel *kernel);

// Dispatches an operation behind those added before, dispatch_s after the previous one. Gives its position in
// its stream.
guint32 nj_program_add_op(NjProgram *program, NjStream stream, NjOp op, double dispatch_s);

// Operations on a stream so far.
guint32 nj_program_n_ops(const NjProgram *program, NjStream stream);

G_END_DECLS
