// SPDX-License-Identifier: MIT
#pragma once
// A plan says how one training iteration is run: per pipeline stage the instructions in execution order, each
// with the frequency its GPUs are set to and, for every partition of the instruction, how the partition's
// collective is launched. All ranks of a stage follow the same list. A plan knows no hardware, no model and
// no parallelism: whether a frequency exists, and how many partitions an instruction has, is checked by those
// who know. The launch list of a forward has one entry per partition type of the forward; that of a backward
// has first those of the recomputed forward, then those of the backward proper (tensor parallelism: 2, 2 + 2;
// context x tensor parallelism: 6, 6 + 8). An empty list stands for "every partition by default".

#include <glib.h>

G_BEGIN_DECLS

#define NJ_MAX_PARTITIONS 16

typedef enum { NJ_FORWARD, NJ_BACKWARD } NjInstructionKind;
#define NJ_N_INSTRUCTION_KINDS 2

typedef enum {
    NJ_LAUNCH_DEFAULT,    // as soon as possible, with the communication library's own share of SMs
    NJ_LAUNCH_SEQUENTIAL, // no overlap: collective and compute one after the other
    NJ_LAUNCH_AT,         // when the named compute kernel starts, on a given number of SMs
} NjLaunchMode;

typedef enum {
    NJ_LAUNCH_KERNEL_NORM,
    NJ_LAUNCH_KERNEL_LINEAR,
    NJ_LAUNCH_KERNEL_ROPE,
    NJ_LAUNCH_KERNEL_ATTENTION,
    NJ_LAUNCH_KERNEL_ACTIVATION,
} NjLaunchKernel;
#define NJ_N_LAUNCH_KERNELS 5

typedef struct {
    NjLaunchMode mode;
    NjLaunchKernel kernel; // NJ_LAUNCH_AT only, as the two below; 0 otherwise
    guint index;           // which kernel of that name within the partition, in execution order, from 0
    guint sms;             // SMs of the collective, at least 1
} NjLaunch;

typedef struct {
    NjInstructionKind kind;
    guint freq_mhz;
    guint n_launches; // 0: every partition by default
    NjLaunch launches[NJ_MAX_PARTITIONS];
} NjPlanInstruction;

typedef struct {
    guint n_instructions;
    guint capacity;                  // of instructions, kept by nj_plan_append()
    NjPlanInstruction *instructions; // [n_instructions] in execution order; owned
} NjPlanStage;

typedef struct {
    guint n_stages;
    NjPlanStage *stages; // [n_stages]; owned
} NjPlan;

// An empty plan of n_stages stages (0 is allowed: stages may be added). Free its insides with
// nj_plan_clear().
void nj_plan_init(NjPlan *plan, guint n_stages);

// Frees what the plan owns and leaves it empty; may be called twice, and on a plan set to zero bytes.
void nj_plan_clear(NjPlan *plan);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjPlan, nj_plan_clear)

// Adds an empty stage behind the last; returns its index.
guint nj_plan_add_stage(NjPlan *plan);

// Appends a copy of the instruction to a stage. Pointers into the stage's instructions become invalid.
void nj_plan_append(NjPlan *plan, guint stage, const NjPlanInstruction *instruction);

// Initialises copy with the same content; source and copy share nothing.
void nj_plan_copy(const NjPlan *plan, NjPlan *copy);

// Same stages, kinds, frequencies and launches. An empty launch list differs from one of written defaults.
gboolean nj_plan_equal(const NjPlan *a, const NjPlan *b);
gboolean nj_launch_equal(const NjLaunch *a, const NjLaunch *b);

// Checks what holds for every plan: at least one stage, no empty stage, frequencies above 0, launches within
// their ranges, and as many launches for every instruction of a kind (or none for all of that kind).
// FALSE and NJ_ERROR_INPUT otherwise; stages and instructions are counted from 0 in the message.
gboolean nj_plan_validate(const NjPlan *plan, GError **error);

// Whether any instruction has a launch list.
gboolean nj_plan_has_launches(const NjPlan *plan);

// "forward" or "backward"; 'F' or 'B'.
const char *nj_instruction_kind_name(NjInstructionKind kind);
char nj_instruction_kind_letter(NjInstructionKind kind);

// Reads "forward", "backward"; FALSE for other text, without an error (the caller knows file and line).
gboolean nj_instruction_kind_parse(const char *text, NjInstructionKind *kind);

// Name in files without its index: norm, linear, rope, attn, activation.
const char *nj_launch_kernel_name(NjLaunchKernel kernel);

// Reads a kernel with its index, such as "attn_0"; FALSE for other text, without an error.
gboolean nj_launch_kernel_parse(const char *text, NjLaunchKernel *kernel, guint *index);

// The token of a launch in plan tables and profiles: "norm_0@12", "sequential" or "default".
void nj_launch_append(const NjLaunch *launch, GString *out);

// Reads such a token; FALSE for other text, without an error.
gboolean nj_launch_parse(const char *text, NjLaunch *launch);

// What nj_launch_parse() accepts, for messages.
#define NJ_LAUNCH_TOKENS                                                                                     \
    "KERNEL_INDEX@SMS with KERNEL of norm, linear, rope, attn, activation (such as norm_0@12), sequential "  \
    "or default"

G_END_DECLS
