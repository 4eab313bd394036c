// SPDX-License-Identifier: MIT
#include "sim/program.h"

#include <math.h>

void nj_program_init(NjProgram *program)
{
    *program = (NjProgram){.kernels = g_array_new(FALSE, FALSE, sizeof(NjKernel))};
    for (guint i = 0; i < NJ_N_STREAMS; i++)
        program->ops[i] = g_array_new(FALSE, FALSE, sizeof(NjOp));
}

void nj_program_clear(NjProgram *program)
{
    g_clear_pointer(&program->kernels, g_array_unref);
    for (guint i = 0; i < NJ_N_STREAMS; i++)
        g_clear_pointer(&program->ops[i], g_array_unref);
}

guint32 nj_program_add_kernel(NjProgram *program, const NjKernel *kernel)
{
    g_array_append_val(program->kernels, *kernel);
    return program->kernels->len - 1;
}

guint32 nj_program_n_ops(const NjProgram *program, NjStream stream)
{
    return program->ops[stream]->len;
}

guint32 nj_program_add_op(NjProgram *program, NjStream stream, NjOp op, double dispatch_s)
{
    const guint n_other =
        nj_program_n_ops(program, stream == NJ_STREAM_COMPUTE ? NJ_STREAM_COMMUNICATION : NJ_STREAM_COMPUTE);
    g_assert(op.kernel < program->kernels->len);
    // The host dispatches in order, so whatever an operation waits for has been added; anything else never
    // ends.
    g_assert(op.after_other <= n_other && op.with_other <= n_other);
    program->host += (NjTime)llround(dispatch_s * NJ_PS_PER_S);
    op.dispatched = program->host;
    op.dispatch_ns = (guint32)fmin(floor(dispatch_s * 1e9), G_MAXUINT32);
    g_array_append_val(program->ops[stream], op);
    return program->ops[stream]->len - 1;
}
