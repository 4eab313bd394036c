// SPDX-License-Identifier: MIT
#include "schedules/lowering.h"
#include "tests/testing.h"

#include <math.h>

// A small workload on the shipped GPU: two sequences, so that a nanobatch is one.
static void workload_init(NjWorkload *workload, int tp, int cp, int microbatch_size)
{
    *workload = (NjWorkload){
        .parallelism = {tp, cp, 2, 1},
        .microbatch_size = microbatch_size,
        .microbatches = 2,
        .seq_len = 1024,
    };
    ck_assert(nj_arch_load(&workload->arch, "llama-3.2-1b", NULL));
    ck_assert(nj_gpu_load(&workload->gpu, "a100-sxm4-40gb", NULL));
    workload->gpu.collective_sms = 24; // whatever was fitted
    nj_workload_split_layers(workload);
    ck_assert(nj_workload_check(workload, NULL));
}

// One line an operation of a stream: name, what of the other stream must have ended (e) or begun (b), SMs.
static char *draw(const NjProgram *program, NjStream stream)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < program->ops[stream]->len; i++) {
        const NjOp *op = &g_array_index(program->ops[stream], NjOp, i);
        const NjKernel *kernel = &g_array_index(program->kernels, NjKernel, op->kernel);
        g_string_append_printf(text, "%s%s", i > 0 ? " " : "", kernel->name);
        if (op->after_other > 0)
            g_string_append_printf(text, "/e%u", op->after_other);
        if (op->with_other > 0)
            g_string_append_printf(text, "/b%u", op->with_other);
        if (op->sms > 0)
            g_string_append_printf(text, "@%u", op->sms);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

typedef struct {
    const char *label;
    int tp, cp;
    NjExecution execution;
    NjInstructionKind kind;
    guint stage;
    const char *compute, *communication;
} Case;

// A layer is QKV (bias-dropout-add, norm, qkv, qkv-split, rope), attention, projection, MLP
// (bias-dropout-add, norm, fc1, swiglu, fc2). One layer of the last stage, without its ends where that is
// said.
START_TEST(timelines)
{
#define QKV(e) "bias-dropout-add" e " norm" e " qkv" e " qkv-split" e " rope" e
#define MLP(e) "bias-dropout-add" e " norm" e " fc1" e " swiglu" e " fc2" e
#define HEAD(e) "norm" e " lm-head" e " loss" e
#define MLPB(e)                                                                                              \
    "fc2-dgrad" e " fc2-wgrad" e " swiglu-backward" e " fc1-dgrad" e " fc1-wgrad" e " norm-backward" e       \
    " bias-dropout-add-backward" e
#define PROJB(e) "projection-dgrad" e " projection-wgrad" e
#define ATTB(e) "attention-backward" e
#define QKVB(e)                                                                                              \
    "rope-backward" e " qkv-split-backward" e " qkv-dgrad" e " qkv-wgrad" e " norm-backward" e               \
    " bias-dropout-add-backward" e
    static const Case cases[] = {
        // compute: QKV att proj .... MLP ....... head
        // comm.:                AR      AR            loss x 3
        {"sequential, tensor parallel", 8, 1, NJ_EXECUTION_SEQUENTIAL, NJ_FORWARD, 1,
         QKV("") " attention projection " MLP("/e1") " " HEAD("/e2"),
         "all-reduce/e7@24 all-reduce/e12@24 all-reduce/e15@24 all-reduce/e15@24 all-reduce/e15@24"},
        // compute: QKV .. att proj .... MLP .... head
        // comm.:       AG          AR       AR         loss x 3
        {"sequential, context parallel", 4, 2, NJ_EXECUTION_SEQUENTIAL, NJ_FORWARD, 1,
         QKV("") " attention/e1 projection/e1 " MLP("/e2") " " HEAD("/e3"),
         "all-gather/e5@24 all-reduce/e7@24 all-reduce/e12@24 all-reduce/e15@24 all-reduce/e15@24 "
         "all-reduce/e15@24"},
        // compute: att A | att B | MLP A | MLP B |      head
        // comm.:         | AR A  | AR B  | AR A  | AR B      loss x 3
        {"nanobatched, tensor parallel", 8, 1, NJ_EXECUTION_NANOBATCHED, NJ_FORWARD, 1,
         QKV("") " attention projection " QKV("") " attention projection " MLP("/e1") " " MLP("/e2") " " HEAD(
             "/e4"),
         "all-reduce/e7@24 all-reduce/e14@24 all-reduce/e19@24 all-reduce/e24@24 all-reduce/e27@24 "
         "all-reduce/e27@24 "
         "all-reduce/e27@24"},
        // compute: QKV A | QKV B | att A | att B | MLP A | MLP B |      head
        // comm.:         | AG A  | AG B  | AR A  | AR B  | AR A  | AR B      loss x 3
        {"nanobatched, context parallel", 4, 2, NJ_EXECUTION_NANOBATCHED, NJ_FORWARD, 1,
         QKV("") " " QKV("") " attention/e1 projection/e1 attention/e2 projection/e2 " MLP("/e3") " " MLP(
             "/e4") " " HEAD("/e6"),
         "all-gather/e5@24 all-gather/e10@24 all-reduce/e12@24 all-reduce/e14@24 all-reduce/e19@24 "
         "all-reduce/e24@24 "
         "all-reduce/e27@24 all-reduce/e27@24 all-reduce/e27@24"},
        // The first stage: embedding and its all-reduce before; nothing behind.
        {"sequential, first stage", 8, 1, NJ_EXECUTION_SEQUENTIAL, NJ_FORWARD, 0,
         "embedding " QKV("/e1") " attention/e1 projection/e1 " MLP("/e2"),
         "all-reduce/e1@24 all-reduce/e8@24 all-reduce/e13@24"},
        // A backward: the recomputed forward, then MLP, projection, attention, QKV.
        // compute: QKV att proj .... MLP .... MLPb .... PROJb ATTb QKVb .... embedding
        // comm.:                AR       AR        AR                    AR
        {"sequential, tensor parallel, backward of the first stage", 8, 1, NJ_EXECUTION_SEQUENTIAL,
         NJ_BACKWARD, 0,
         QKV("") " attention projection " MLP("/e1") " " MLPB("/e2") " " PROJB("/e3") " " ATTB(
             "/e3") " " QKVB("/e3") " embedding-backward/e4",
         "all-reduce/e7@24 all-reduce/e12@24 all-reduce/e19@24 all-reduce/e28@24"},
        // compute: head .... QKV att proj .... MLP .... MLPb .... PROJb ATTb QKVb
        // comm.:         AR               AR       AR        AR                    AR
        {"sequential, tensor parallel, backward of the last stage", 8, 1, NJ_EXECUTION_SEQUENTIAL,
         NJ_BACKWARD, 1,
         "loss-backward lm-head-dgrad lm-head-wgrad norm-backward " QKV(
             "/e1") " attention/e1 projection/e1 " MLP("/e2") " " MLPB("/e3") " " PROJB("/e4") " " ATTB("/e4") " " QKVB("/e4"),
         "all-reduce/e4@24 all-reduce/e11@24 all-reduce/e16@24 all-reduce/e23@24 all-reduce/e32@24"},
        // compute: QKV .. att proj .... MLP .... MLPb .... PROJb .. ATTb .. QKVb .... embedding
        // comm.:       AG          AR       AR        AR         AG      RS      AR
        {"sequential, context parallel, backward of the first stage", 4, 2, NJ_EXECUTION_SEQUENTIAL,
         NJ_BACKWARD, 0,
         QKV("") " attention/e1 projection/e1 " MLP("/e2") " " MLPB("/e3") " " PROJB("/e4") " " ATTB(
             "/e5") " " QKVB("/e6") " embedding-backward/e7",
         "all-gather/e5@24 all-reduce/e7@24 all-reduce/e12@24 all-reduce/e19@24 all-gather/e21@24 "
         "reduce-scatter/e22@24 all-reduce/e28@24"},
        // att: QKV, attention, projection; attb: projection, attention and QKV of the backward.
        // compute: att A | att B | MLP A | MLP B | MLPb A | MLPb B | attb A | attb B |      embedding
        // comm.:         | AR A  | AR B  | AR A  | AR B   | AR A   | AR B   | AR A   | AR B
        {"nanobatched, tensor parallel, backward of the first stage", 8, 1, NJ_EXECUTION_NANOBATCHED,
         NJ_BACKWARD, 0,
         QKV("") " attention projection " QKV("") " attention projection " MLP("/e1") " " MLP("/e2") " " MLPB("/e3") " " MLPB(
             "/e4") " " PROJB("/e5") " " ATTB("/e5") " " QKVB("/e5") " " PROJB("/e6") " " ATTB("/e6") " " QKVB("/e6") " embedding-backward/e8",
         "all-reduce/e7@24 all-reduce/e14@24 all-reduce/e19@24 all-reduce/e24@24 all-reduce/e31@24 "
         "all-reduce/e38@24 all-reduce/e47@24 all-reduce/e56@24"},
        // compute: QKV A | QKV B | att A | att B | MLP A | MLP B | MLPb A | MLPb B | PROJb A | PROJb B | ATTb
        // A
        // comm.:         | AG A  | AG B  | AR A  | AR B  | AR A  | AR B   | AR A   | AR B    | AG A    | AG B
        // compute: ATTb B | QKVb A | QKVb B |      embedding
        // comm.:   RS A   | RS B   | AR A   | AR B
        {"nanobatched, context parallel, backward of the first stage", 4, 2, NJ_EXECUTION_NANOBATCHED,
         NJ_BACKWARD, 0,
         QKV("") " " QKV("") " attention/e1 projection/e1 attention/e2 projection/e2 " MLP("/e3") " " MLP(
             "/e"
             "4") " " MLPB("/e5") " " MLPB("/e6") " " PROJB("/e7") " " PROJB("/e8") " " ATTB("/e9") " " ATTB("/e10") " " QKVB("/e11") " " QKVB("/e12") " embedding-backward/e14",
         "all-gather/e5@24 all-gather/e10@24 all-reduce/e12@24 all-reduce/e14@24 all-reduce/e19@24 "
         "all-reduce/e24@24 "
         "all-reduce/e31@24 all-reduce/e38@24 all-gather/e40@24 all-gather/e42@24 reduce-scatter/e43@24 "
         "reduce-scatter/e44@24 all-reduce/e50@24 all-reduce/e56@24"},
        // A single GPU a stage has no collectives.
        {"sequential, one GPU", 1, 1, NJ_EXECUTION_SEQUENTIAL, NJ_FORWARD, 1,
         QKV("") " attention projection " MLP("") " " HEAD(""), ""},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        const Case *c = &cases[i];
        g_autoptr(GError) error = NULL;
        g_auto(NjWorkload) workload = {0};
        NjLowering lowering;
        NjProgram program;
        workload_init(&workload, c->tp, c->cp, 2);
        nj_lowering_init(&lowering, &workload);
        nj_program_init(&program);
        nj_assert_ok(
            nj_lowering_build(&lowering, c->execution, c->kind, c->stage, 1, NULL, 0, &program, &error),
            error);
        g_autofree char *compute = draw(&program, NJ_STREAM_COMPUTE);
        g_autofree char *communication = draw(&program, NJ_STREAM_COMMUNICATION);
        ck_assert_msg(g_str_equal(compute, c->compute), "%s, compute:\n%s\n%s", c->label, compute,
                      c->compute);
        ck_assert_msg(g_str_equal(communication, c->communication), "%s, communication:\n%s\n%s", c->label,
                      communication, c->communication);
        nj_program_clear(&program);
    }
}
END_TEST

// Launched with attention, K and V wait for as long as attention takes on the SMs that the collective leaves;
// launched behind it, or as an all-reduce, nothing waits. Forward partitions: 2 is attention and projection
// beside an all-gather, 3 beside an all-reduce; of a backward 6 + 2 is attention beside an all-gather.
START_TEST(copies_wait_behind_attention)
{
    static const struct {
        const char *label;
        NjInstructionKind kind;
        guint partition;
        NjLaunch launch;
        double attention_on; // SMs; 0: no waiting
    } rows[] = {
        {"default", NJ_FORWARD, 2, {NJ_LAUNCH_DEFAULT, 0, 0, 0}, 84},
        {"at attention", NJ_FORWARD, 2, {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ATTENTION, 0, 8}, 100},
        {"at the projection", NJ_FORWARD, 2, {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_LINEAR, 0, 8}, 0},
        {"all-reduce", NJ_FORWARD, 3, {NJ_LAUNCH_DEFAULT, 0, 0, 0}, 0},
        {"all-reduce at attention", NJ_FORWARD, 3, {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ATTENTION, 0, 8}, 0},
        {"beside QKV", NJ_FORWARD, 1, {NJ_LAUNCH_DEFAULT, 0, 0, 0}, 0},
        {"backward", NJ_BACKWARD, 6 + 2, {NJ_LAUNCH_DEFAULT, 0, 0, 0}, 84},
    };
    g_auto(NjWorkload) workload = {0};
    NjLowering lowering;
    workload_init(&workload, 4, 2, 2);
    nj_lowering_init(&lowering, &workload);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        NjProgram program;
        nj_program_init(&program);
        ck_assert(nj_lowering_build_partition(&lowering, rows[i].kind, rows[i].partition, &rows[i].launch,
                                              &program, NULL));
        const NjOp *op = &g_array_index(program.ops[NJ_STREAM_COMMUNICATION], NjOp, 0);
        const NjKernel *collective = &g_array_index(program.kernels, NjKernel, op->kernel);
        const gboolean all_reduce = g_str_equal(collective->name, "all-reduce");
        const NjBlock *blocks =
            rows[i].kind == NJ_FORWARD ? lowering.nano[0].forward : lowering.nano[0].backward;
        double wanted_s =
            1e-3 * (all_reduce ? workload.gpu.overlapped_allreduce_ms : workload.gpu.overlapped_allgather_ms);
        if (rows[i].attention_on > 0)
            wanted_s += blocks[NJ_BLOCK_ATTENTION].kernels[0].sm_s * 108 / rows[i].attention_on;
        ck_assert_msg(fabs(collective->latency_s - wanted_s) < 1e-12, "%s: %g s instead of %g", rows[i].label,
                      collective->latency_s, wanted_s);
        ck_assert_msg(op->dispatched == 0, "%s: the host is not ahead", rows[i].label);
        nj_program_clear(&program);
    }
}
END_TEST

// From layer to layer nanobatch A runs beside what B left; nothing is exposed in between.
START_TEST(layers_follow_without_a_break)
{
    g_auto(NjWorkload) workload = {0};
    NjLowering lowering;
    NjProgram program;
    workload_init(&workload, 8, 1, 2);
    workload.parallelism.pp = 3; // the stage in the middle
    nj_lowering_init(&lowering, &workload);
    nj_program_init(&program);
    ck_assert(
        nj_lowering_build(&lowering, NJ_EXECUTION_NANOBATCHED, NJ_FORWARD, 1, 2, NULL, 0, &program, NULL));
    g_autofree char *compute = draw(&program, NJ_STREAM_COMPUTE);
    g_autofree char *communication = draw(&program, NJ_STREAM_COMMUNICATION);
    // compute: att A | att B | MLP A | MLP B | att A | att B | MLP A | MLP B |
    // comm.:         | AR A  | AR B  | AR A  | AR B  | AR A  | AR B  | AR A  | AR B
    ck_assert_str_eq(
        compute,
        QKV("") " attention projection " QKV("") " attention projection " MLP("/e1") " " MLP("/e2") " " QKV(
            "/e3") " attention/e3 projection/e3 " QKV("/e4") " attention/e4 projection/e4 " MLP("/e5") " " MLP("/e6"));
    ck_assert_str_eq(communication,
                     "all-reduce/e7@24 all-reduce/e14@24 all-reduce/e19@24 all-reduce/e24@24 "
                     "all-reduce/e31@24 all-reduce/e38@24 all-reduce/e43@24 all-reduce/e48@24");
    nj_program_clear(&program);
}
END_TEST

// An instruction whose launches are all in sequence is not cut into nanobatches, in either execution.
START_TEST(all_in_sequence_is_not_cut)
{
    NjLaunch launches[NJ_MAX_PARTITIONS];
    char *drawn[4];
    g_auto(NjWorkload) workload = {0};
    NjLowering lowering;
    for (guint i = 0; i < NJ_MAX_PARTITIONS; i++)
        launches[i] = (NjLaunch){.mode = NJ_LAUNCH_SEQUENTIAL};
    workload_init(&workload, 8, 1, 2);
    nj_lowering_init(&lowering, &workload);
    for (guint i = 0; i < 4; i++) {
        NjProgram program;
        nj_program_init(&program);
        ck_assert(nj_lowering_build(&lowering,
                                    i % 2 == 0 ? NJ_EXECUTION_SEQUENTIAL : NJ_EXECUTION_NANOBATCHED,
                                    NJ_BACKWARD, 0, 1, launches, i < 3 ? 4 : 0, &program, NULL));
        g_autofree char *compute = draw(&program, NJ_STREAM_COMPUTE);
        g_autofree char *communication = draw(&program, NJ_STREAM_COMMUNICATION);
        drawn[i] = g_strdup_printf("%s | %s | %" G_GINT64_FORMAT, compute, communication, program.host);
        nj_program_clear(&program);
    }
    ck_assert_str_eq(drawn[0], drawn[1]);
    ck_assert_str_eq(drawn[0], drawn[2]);
    ck_assert_str_ne(drawn[0], drawn[3]);
    for (guint i = 0; i < 4; i++)
        g_free(drawn[i]);
}
END_TEST

// Three sequences are cut into two and one; a single one is not cut.
START_TEST(nanobatches_of_odd_microbatches)
{
    static const struct {
        int microbatch_size;
        double tokens[NJ_N_NANOBATCHES]; // a norm's bytes tell them: 4 n d
    } rows[] = {{1, {0, 0}}, {2, {1024, 1024}}, {3, {2048, 1024}}, {8, {4096, 4096}}};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(NjWorkload) workload = {0};
        NjLowering lowering;
        workload_init(&workload, 8, 1, rows[i].microbatch_size);
        nj_lowering_init(&lowering, &workload);
        for (guint nano = 0; nano < NJ_N_NANOBATCHES; nano++)
            ck_assert_double_eq(lowering.nano[nano].forward[NJ_BLOCK_QKV].kernels[1].hbm_bytes,
                                4 * rows[i].tokens[nano] * 2048);
        ck_assert_double_eq(lowering.whole.forward[NJ_BLOCK_QKV].kernels[1].hbm_bytes,
                            4.0 * 1024 * rows[i].microbatch_size * 2048);
    }
}
END_TEST

// A backward repeats the layer's forward, then runs it in reverse: twice the matrix products, and
// attention 2.5 times.
START_TEST(backward_repeats_the_forward)
{
    static const NjExecution executions[] = {NJ_EXECUTION_SEQUENTIAL, NJ_EXECUTION_NANOBATCHED};
    for (guint e = 0; e < G_N_ELEMENTS(executions); e++) {
        g_auto(NjWorkload) workload = {0};
        NjLowering lowering;
        double flop[2] = {0}; // forward, backward of two layers without the stage's ends
        workload_init(&workload, 4, 2, 4);
        nj_lowering_init(&lowering, &workload);
        for (guint kind = 0; kind < 2; kind++) {
            for (int layers = 1; layers <= 3; layers += 2) {
                NjProgram program;
                nj_program_init(&program);
                ck_assert(nj_lowering_build(&lowering, executions[e], (NjInstructionKind)kind, 0, layers,
                                            NULL, 0, &program, NULL));
                double sum = 0;
                for (guint i = 0; i < program.kernels->len; i++)
                    sum += g_array_index(program.kernels, NjKernel, i).flop;
                flop[kind] += layers == 3 ? sum : -sum;
                nj_program_clear(&program);
            }
        }
        // Per GPU and layer: n tokens, weights / tp, causal attention.
        const double n = 4 * 1024 / 2.0, d = 2048, q = 2048, kv = 512, f = 8192;
        const double gemms = 2 * n * d * (2 * q + 2 * kv + 3 * f) / 4, attention = 2 * n * 1024 * q / 4;
        ck_assert_double_eq_tol(flop[0] / (2 * (gemms + attention)), 1, 1e-9);
        ck_assert_double_eq_tol(flop[1] / (2 * (3 * gemms + 3.5 * attention)), 1, 1e-9);
    }
}
END_TEST

START_TEST(launch_points)
{
    g_auto(NjWorkload) workload = {0};
    NjLowering lowering;
    NjProgram program;
    workload_init(&workload, 8, 1, 2);
    nj_lowering_init(&lowering, &workload);
    ck_assert_uint_eq(nj_partition_count(&workload.parallelism, NJ_FORWARD), 2);
    ck_assert_uint_eq(nj_partition_count(&workload.parallelism, NJ_BACKWARD), 4);
    ck_assert_uint_eq(nj_partition_weight(&workload.parallelism, NJ_FORWARD, 0), 2);

    // Launched with rope on 12 SMs: when five compute operations of the partition have begun.
    const NjLaunch rope = {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ROPE, 0, 12};
    nj_program_init(&program);
    ck_assert(nj_lowering_build_partition(&lowering, NJ_FORWARD, 0, &rope, &program, NULL));
    g_autofree char *communication = draw(&program, NJ_STREAM_COMMUNICATION);
    ck_assert_str_eq(communication, "all-reduce/b5@12");
    nj_program_clear(&program);

    // In sequence: compute waits for the collective.
    const NjLaunch sequential = {.mode = NJ_LAUNCH_SEQUENTIAL};
    nj_program_init(&program);
    ck_assert(nj_lowering_build_partition(&lowering, NJ_FORWARD, 1, &sequential, &program, NULL));
    g_autofree char *compute = draw(&program, NJ_STREAM_COMPUTE);
    ck_assert_str_eq(compute, MLP("/e1"));
    nj_program_clear(&program);

    // The published search space: 4 kernels x 10 SM counts for attention, 3 x 10 for the MLP, and in
    // sequence.
    static const guint sizes[] = {41, 31};
    for (guint partition = 0; partition < 2; partition++) {
        g_autoptr(GArray) launches = g_array_new(FALSE, FALSE, sizeof(NjLaunch));
        nj_partition_search_space(&lowering, NJ_FORWARD, partition, launches);
        ck_assert_uint_eq(launches->len, sizes[partition]);
    }
    nj_workload_clear(&workload);
    workload_init(&workload, 4, 2, 2);
    ck_assert_uint_eq(nj_partition_count(&workload.parallelism, NJ_FORWARD), 6);
    ck_assert_uint_eq(nj_partition_count(&workload.parallelism, NJ_BACKWARD), 14);
}
END_TEST

START_TEST(errors)
{
    const NjLaunch at = {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 12};
    static const struct {
        NjExecution execution;
        NjInstructionKind kind;
        int tp, cp, microbatch_size;
        guint n_launches;
        NjLaunch first;
        const char *message;
    } rows[] = {
        {NJ_EXECUTION_NANOBATCHED,
         NJ_FORWARD,
         8,
         1,
         2,
         1,
         {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 12},
         "a forward has 1 launch choices: 2 are needed, one a partition"},
        {NJ_EXECUTION_SEQUENTIAL,
         NJ_FORWARD,
         8,
         1,
         2,
         2,
         {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 12},
         "a forward of sequential execution has launch choices: only nanobatched execution has partitions"},
        {NJ_EXECUTION_NANOBATCHED,
         NJ_FORWARD,
         8,
         1,
         2,
         2,
         {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ACTIVATION, 0, 12},
         "launch activation_0@12: its partition has no such kernel"},
        {NJ_EXECUTION_NANOBATCHED,
         NJ_FORWARD,
         8,
         1,
         2,
         2,
         {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 1, 12},
         "launch norm_1@12: its partition has no such kernel"},
        {NJ_EXECUTION_NANOBATCHED,
         NJ_FORWARD,
         8,
         1,
         2,
         2,
         {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 108},
         "launch on 108 SMs: 1 to 107 are possible"},
        {NJ_EXECUTION_NANOBATCHED,
         NJ_FORWARD,
         8,
         1,
         1,
         0,
         {NJ_LAUNCH_DEFAULT, 0, 0, 0},
         "microbatch_size = 1: nanobatching needs at least 2 sequences to cut the microbatch in two"},
        {NJ_EXECUTION_NANOBATCHED,
         NJ_FORWARD,
         8,
         1,
         2,
         2,
         {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 0},
         "launch on 0 SMs: 1 to 107 are possible"},
        {NJ_EXECUTION_NANOBATCHED,
         NJ_BACKWARD,
         8,
         1,
         2,
         2,
         {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 12},
         "a backward has 2 launch choices: 4 are needed, one a partition"},
        {NJ_EXECUTION_NANOBATCHED,
         NJ_FORWARD,
         4,
         2,
         2,
         2,
         {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 12},
         "a forward has 2 launch choices: 6 are needed, one a partition"},
        {NJ_EXECUTION_NANOBATCHED,
         NJ_BACKWARD,
         4,
         2,
         2,
         6,
         {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 12},
         "a backward has 6 launch choices: 14 are needed, one a partition"},
        {NJ_EXECUTION_NANOBATCHED,
         NJ_BACKWARD,
         8,
         1,
         2,
         4,
         {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 2, 12},
         "launch norm_2@12: its partition has no such kernel"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_auto(NjWorkload) workload = {0};
        NjLowering lowering;
        NjProgram program;
        NjLaunch launches[NJ_MAX_PARTITIONS] = {rows[i].first};
        for (guint k = 1; k < NJ_MAX_PARTITIONS; k++)
            launches[k] = at;
        workload_init(&workload, rows[i].tp, rows[i].cp, rows[i].microbatch_size);
        nj_lowering_init(&lowering, &workload);
        nj_program_init(&program);
        ck_assert(!nj_lowering_build(&lowering, rows[i].execution, rows[i].kind, 1, 1, launches,
                                     rows[i].n_launches, &program, &error));
        nj_assert_error(error, rows[i].message);
        nj_program_clear(&program);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lowering");
    TCase *tests = tcase_create("lowering");
    tcase_add_test(tests, timelines);
    tcase_add_test(tests, copies_wait_behind_attention);
    tcase_add_test(tests, layers_follow_without_a_break);
    tcase_add_test(tests, all_in_sequence_is_not_cut);
    tcase_add_test(tests, nanobatches_of_odd_microbatches);
    tcase_add_test(tests, backward_repeats_the_forward);
    tcase_add_test(tests, launch_points);
    tcase_add_test(tests, errors);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
