// SPDX-License-Identifier: MIT
#include "models/stack.h"

#include "models/data.h"
#include "sim/error.h"

#include <stddef.h>

#define REAL(member, what)                                                                                   \
    {                                                                                                        \
        "stack", #member, NJ_FIELD_REAL, offsetof(NjStack, member), FALSE, 0, 1000, "us", what               \
    }
#define FLAG(member, what)                                                                                   \
    {                                                                                                        \
        "stack", #member, NJ_FIELD_BOOL, offsetof(NjStack, member), TRUE, 0, 1, "", what                     \
    }

static const NjField fields[] = {
    {"stack", "name", NJ_FIELD_TEXT, offsetof(NjStack, name), TRUE, 0, 0, "", "the stack's name"},
    REAL(dispatch_us, "host time per kernel, nanobatching engine"),
    REAL(dispatch_partition_us, "host time per partition, nanobatching engine"),
    REAL(dispatch_sequential_us, "host time per kernel, sequential engine"),
    FLAG(fused_gradients, "whether weight-gradient GEMMs accumulate in place"),
    {"stack", "gradient_bytes", NJ_FIELD_INT, offsetof(NjStack, gradient_bytes), TRUE, 2, 4, "bytes",
     "size of a gradient that is accumulated and reduced"},
    FLAG(scatter_gather, "whether tensor-parallel ranks share the transfer between stages"),
};

gboolean nj_stack_load(NjStack *stack, const char *name_or_path, GError **error)
{
    *stack = (NjStack){.dispatch_us = -1, .dispatch_partition_us = -1, .dispatch_sequential_us = -1};
    g_autofree char *path = nj_data_locate("models/stacks", name_or_path, ".ini", error);
    if (path == NULL)
        return FALSE;
    g_autoptr(GKeyFile) file = nj_keyfile_load(path, error);
    if (file == NULL || !nj_keyfile_read(file, path, fields, G_N_ELEMENTS(fields), stack, error)) {
        nj_stack_clear(stack);
        return FALSE;
    }
    if (stack->gradient_bytes == 3) {
        nj_keyfile_error(error, path, "stack", "gradient_bytes", "3", "2 or 4 is needed");
        nj_stack_clear(stack);
        return FALSE;
    }
    return TRUE;
}

NjStack nj_stack_on_gpu(const NjStack *stack, const NjGpu *gpu)
{
    static const NjStack testbed = {NULL, -1, -1, -1, TRUE, 4, FALSE};
    NjStack result = stack->name != NULL ? *stack : testbed;
    if (result.dispatch_us < 0)
        result.dispatch_us = gpu->dispatch_us;
    if (result.dispatch_partition_us < 0)
        result.dispatch_partition_us = gpu->dispatch_partition_us;
    if (result.dispatch_sequential_us < 0)
        result.dispatch_sequential_us = gpu->dispatch_sequential_us;
    return result;
}

void nj_stack_clear(NjStack *stack)
{
    g_clear_pointer(&stack->name, g_free);
}
