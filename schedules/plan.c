// SPDX-License-Identifier: MIT
#include "schedules/plan.h"

#include "sim/error.h"

#include <string.h>

static const char *const KIND_NAMES[NJ_N_INSTRUCTION_KINDS] = {
    [NJ_FORWARD] = "forward",
    [NJ_BACKWARD] = "backward",
};

static const char *const KERNEL_NAMES[NJ_N_LAUNCH_KERNELS] = {
    [NJ_LAUNCH_KERNEL_NORM] = "norm",
    [NJ_LAUNCH_KERNEL_LINEAR] = "linear",
    [NJ_LAUNCH_KERNEL_ROPE] = "rope",
    [NJ_LAUNCH_KERNEL_ATTENTION] = "attn",
    [NJ_LAUNCH_KERNEL_ACTIVATION] = "activation",
};

void nj_plan_init(NjPlan *plan, guint n_stages)
{
    plan->n_stages = n_stages;
    plan->stages = g_new0(NjPlanStage, n_stages);
}

void nj_plan_clear(NjPlan *plan)
{
    for (guint s = 0; s < plan->n_stages; s++)
        g_free(plan->stages[s].instructions);
    g_free(plan->stages);
    *plan = (NjPlan){0};
}

guint nj_plan_add_stage(NjPlan *plan)
{
    plan->stages = g_renew(NjPlanStage, plan->stages, plan->n_stages + 1);
    plan->stages[plan->n_stages] = (NjPlanStage){0};
    return plan->n_stages++;
}

void nj_plan_append(NjPlan *plan, guint stage, const NjPlanInstruction *instruction)
{
    g_assert(stage < plan->n_stages && instruction->n_launches <= NJ_MAX_PARTITIONS);
    NjPlanStage *s = &plan->stages[stage];
    if (s->n_instructions == s->capacity) {
        s->capacity = MAX(16, 2 * s->capacity);
        s->instructions = g_renew(NjPlanInstruction, s->instructions, s->capacity);
    }
    s->instructions[s->n_instructions++] = *instruction;
}

void nj_plan_copy(const NjPlan *plan, NjPlan *copy)
{
    nj_plan_init(copy, plan->n_stages);
    for (guint s = 0; s < plan->n_stages; s++) {
        const NjPlanStage *from = &plan->stages[s];
        NjPlanInstruction *instructions = g_new(NjPlanInstruction, from->n_instructions);
        if (from->n_instructions > 0)
            memcpy(instructions, from->instructions, from->n_instructions * sizeof *instructions);
        copy->stages[s] = (NjPlanStage){from->n_instructions, from->n_instructions, instructions};
    }
}

gboolean nj_launch_equal(const NjLaunch *a, const NjLaunch *b)
{
    if (a->mode != b->mode)
        return FALSE;
    return a->mode != NJ_LAUNCH_AT || (a->kernel == b->kernel && a->index == b->index && a->sms == b->sms);
}

static gboolean instruction_equal(const NjPlanInstruction *a, const NjPlanInstruction *b)
{
    if (a->kind != b->kind || a->freq_mhz != b->freq_mhz || a->n_launches != b->n_launches)
        return FALSE;
    for (guint i = 0; i < a->n_launches; i++)
        if (!nj_launch_equal(&a->launches[i], &b->launches[i]))
            return FALSE;
    return TRUE;
}

gboolean nj_plan_equal(const NjPlan *a, const NjPlan *b)
{
    if (a->n_stages != b->n_stages)
        return FALSE;
    for (guint s = 0; s < a->n_stages; s++) {
        if (a->stages[s].n_instructions != b->stages[s].n_instructions)
            return FALSE;
        for (guint i = 0; i < a->stages[s].n_instructions; i++)
            if (!instruction_equal(&a->stages[s].instructions[i], &b->stages[s].instructions[i]))
                return FALSE;
    }
    return TRUE;
}

static gboolean validate_launch(const NjLaunch *launch, guint stage, guint i, guint l, GError **error)
{
    switch (launch->mode) {
    case NJ_LAUNCH_DEFAULT:
    case NJ_LAUNCH_SEQUENTIAL:
        return TRUE;
    case NJ_LAUNCH_AT:
        if ((guint)launch->kernel >= NJ_N_LAUNCH_KERNELS) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "stage %u, instruction %u, launch %u: kernel number %u: 0 to %d is needed", stage, i,
                        l, (guint)launch->kernel, NJ_N_LAUNCH_KERNELS - 1);
            return FALSE;
        }
        if (launch->sms == 0) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "stage %u, instruction %u, launch %u: 0 SMs: at least 1 is needed", stage, i, l);
            return FALSE;
        }
        return TRUE;
    }
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                "stage %u, instruction %u, launch %u: mode number %u: 0 to %d is needed", stage, i, l,
                (guint)launch->mode, NJ_LAUNCH_AT);
    return FALSE;
}

gboolean nj_plan_validate(const NjPlan *plan, GError **error)
{
    // The first instruction of each kind sets the number of launches of its kind.
    const NjPlanInstruction *first[NJ_N_INSTRUCTION_KINDS] = {NULL};
    guint first_stage[NJ_N_INSTRUCTION_KINDS], first_index[NJ_N_INSTRUCTION_KINDS];

    if (plan->n_stages == 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "no stages: at least one is needed");
        return FALSE;
    }
    for (guint s = 0; s < plan->n_stages; s++) {
        const NjPlanStage *stage = &plan->stages[s];
        if (stage->n_instructions == 0) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "stage %u: no instructions: at least one is needed",
                        s);
            return FALSE;
        }
        for (guint i = 0; i < stage->n_instructions; i++) {
            const NjPlanInstruction *instruction = &stage->instructions[i];
            const guint kind = (guint)instruction->kind;
            if (kind >= NJ_N_INSTRUCTION_KINDS) {
                g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                            "stage %u, instruction %u: kind number %u: 0 to %d is needed", s, i, kind,
                            NJ_N_INSTRUCTION_KINDS - 1);
                return FALSE;
            }
            if (instruction->freq_mhz == 0) {
                g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                            "stage %u, instruction %u: frequency 0 MHz: a positive one is needed", s, i);
                return FALSE;
            }
            if (first[kind] == NULL) {
                first[kind] = instruction;
                first_stage[kind] = s;
                first_index[kind] = i;
            } else if (instruction->n_launches != first[kind]->n_launches) {
                g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                            "stage %u, instruction %u: a %s with %u launches where the %s of stage %u, "
                            "instruction %u has %u: all of a kind need as many",
                            s, i, KIND_NAMES[kind], instruction->n_launches, KIND_NAMES[kind],
                            first_stage[kind], first_index[kind], first[kind]->n_launches);
                return FALSE;
            }
            for (guint l = 0; l < instruction->n_launches; l++)
                if (!validate_launch(&instruction->launches[l], s, i, l, error))
                    return FALSE;
        }
    }
    return TRUE;
}

gboolean nj_plan_has_launches(const NjPlan *plan)
{
    for (guint s = 0; s < plan->n_stages; s++)
        for (guint i = 0; i < plan->stages[s].n_instructions; i++)
            if (plan->stages[s].instructions[i].n_launches > 0)
                return TRUE;
    return FALSE;
}

const char *nj_instruction_kind_name(NjInstructionKind kind)
{
    g_assert((guint)kind < NJ_N_INSTRUCTION_KINDS);
    return KIND_NAMES[kind];
}

char nj_instruction_kind_letter(NjInstructionKind kind)
{
    switch (kind) {
    case NJ_FORWARD:
        return 'F';
    case NJ_BACKWARD:
        return 'B';
    }
    g_assert_not_reached();
}

gboolean nj_instruction_kind_parse(const char *text, NjInstructionKind *kind)
{
    for (guint k = 0; k < NJ_N_INSTRUCTION_KINDS; k++) {
        if (g_str_equal(text, KIND_NAMES[k])) {
            *kind = (NjInstructionKind)k;
            return TRUE;
        }
    }
    return FALSE;
}

const char *nj_launch_kernel_name(NjLaunchKernel kernel)
{
    g_assert((guint)kernel < NJ_N_LAUNCH_KERNELS);
    return KERNEL_NAMES[kernel];
}

// Digits only, no sign or space: the tokens are written by programs, and what is odd is better refused.
static gboolean parse_count(const char *text, guint minimum, guint *value)
{
    guint64 number;
    if (!g_ascii_string_to_unsigned(text, 10, minimum, G_MAXINT, &number, NULL))
        return FALSE;
    *value = (guint)number;
    return TRUE;
}

gboolean nj_launch_kernel_parse(const char *text, NjLaunchKernel *kernel, guint *index)
{
    for (guint k = 0; k < NJ_N_LAUNCH_KERNELS; k++) {
        const gsize length = strlen(KERNEL_NAMES[k]);
        if (strncmp(text, KERNEL_NAMES[k], length) == 0 && text[length] == '_') {
            *kernel = (NjLaunchKernel)k;
            return parse_count(text + length + 1, 0, index);
        }
    }
    return FALSE;
}

void nj_launch_append(const NjLaunch *launch, GString *out)
{
    switch (launch->mode) {
    case NJ_LAUNCH_DEFAULT:
        g_string_append(out, "default");
        return;
    case NJ_LAUNCH_SEQUENTIAL:
        g_string_append(out, "sequential");
        return;
    case NJ_LAUNCH_AT:
        g_string_append_printf(out, "%s_%u@%u", nj_launch_kernel_name(launch->kernel), launch->index,
                               launch->sms);
        return;
    }
    g_assert_not_reached();
}

gboolean nj_launch_parse(const char *text, NjLaunch *launch)
{
    *launch = (NjLaunch){NJ_LAUNCH_DEFAULT};
    if (g_str_equal(text, "default"))
        return TRUE;
    if (g_str_equal(text, "sequential")) {
        launch->mode = NJ_LAUNCH_SEQUENTIAL;
        return TRUE;
    }
    const char *at = strchr(text, '@');
    if (at == NULL)
        return FALSE;
    g_autofree char *kernel = g_strndup(text, (gsize)(at - text));
    launch->mode = NJ_LAUNCH_AT;
    return nj_launch_kernel_parse(kernel, &launch->kernel, &launch->index) &&
           parse_count(at + 1, 1, &launch->sms);
}
