// SPDX-License-Identifier: MIT
// Pipelines drawn instruction by instruction, and plans executed on them against a slow longest path.
#include "schedules/execute.h"
#include "tests/testing.h"

#include <math.h>
#include <string.h>

#define MAX_STAGES 4
#define MAX_MICROBATCHES 6

// "F0 F1 B0 B1": a stage's instructions with their microbatches.
static char *draw(const NjPipeline *pipeline, guint stage)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = nj_pipeline_first(pipeline, stage); i < nj_pipeline_first(pipeline, stage + 1); i++) {
        const NjInstruction *instruction = nj_pipeline_instruction(pipeline, i);
        ck_assert_uint_eq(instruction->stage, stage);
        g_string_append_printf(text, "%s%c%u", text->len > 0 ? " " : "",
                               nj_instruction_kind_letter(instruction->kind), instruction->microbatch);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

START_TEST(one_forward_one_backward)
{
    static const struct {
        guint n_stages, n_microbatches;
        const char *stages[3];
    } rows[] = {
        {1, 3, {"F0 B0 F1 B1 F2 B2"}},
        {2, 1, {"F0 B0", "F0 B0"}},
        {2, 4, {"F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"}},
        // A stage runs ahead by as many microbatches as stages follow it.
        {3, 4, {"F0 F1 F2 B0 F3 B1 B2 B3", "F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"}},
        // Fewer microbatches than stages: all forwards first.
        {3, 2, {"F0 F1 B0 B1", "F0 F1 B0 B1", "F0 B0 F1 B1"}},
    };
    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_auto(NjPipeline) pipeline = {0};
        nj_pipeline_init(&pipeline, &nj_schedule_1f1b, rows[r].n_stages, rows[r].n_microbatches);
        for (guint s = 0; s < rows[r].n_stages; s++) {
            g_autofree char *text = draw(&pipeline, s);
            ck_assert_str_eq(text, rows[r].stages[s]);
        }
        // Each microbatch goes down and up between every two neighbours; nothing else depends.
        ck_assert_uint_eq(pipeline.dependencies->len, 2 * (rows[r].n_stages - 1) * rows[r].n_microbatches);
        for (guint i = 0; i < pipeline.dependencies->len; i++) {
            const NjDependency *d = &g_array_index(pipeline.dependencies, NjDependency, i);
            const NjInstruction *from = nj_pipeline_instruction(&pipeline, d->from);
            const NjInstruction *to = nj_pipeline_instruction(&pipeline, d->to);
            ck_assert_uint_eq(from->microbatch, to->microbatch);
            ck_assert_int_eq(from->kind, to->kind);
            ck_assert_uint_eq(to->stage, from->kind == NJ_FORWARD ? from->stage + 1 : from->stage - 1);
        }
    }
}
END_TEST

START_TEST(schedules_by_name)
{
    ck_assert_ptr_eq(nj_pipeline_schedule_find("1f1b"), &nj_schedule_1f1b);
    ck_assert_ptr_null(nj_pipeline_schedule_find("1F1B"));
    for (const NjPipelineSchedule *const *s = nj_pipeline_schedules(); *s != NULL; s++)
        ck_assert_ptr_eq(nj_pipeline_schedule_find((*s)->name), *s);
}
END_TEST

static void workload_init(NjWorkload *workload, guint n_stages, int n_microbatches)
{
    *workload = (NjWorkload){
        .parallelism = {8, 1, (int)n_stages, 1},
        .microbatch_size = 2,
        .microbatches = n_microbatches,
        .seq_len = 512,
    };
    GError *error = NULL;
    nj_assert_ok(nj_arch_load(&workload->arch, "llama-3.2-1b", &error), error);
    nj_assert_ok(nj_gpu_load(&workload->gpu, "a100-sxm4-40gb", &error), error);
    nj_workload_split_layers(workload);
    nj_assert_ok(nj_workload_check(workload, &error), error);
}

typedef NjTime Durations[MAX_STAGES][2];

// Ends of all instructions, moved later until nothing moves: after the stage's previous instruction, and
// after the neighbour's with the transfer. Knows 1F1B only by the pictures above.
static NjTime slow_makespan(guint n_stages, guint m, Durations durations, NjTime transfer)
{
    NjTime end[MAX_STAGES][MAX_MICROBATCHES][2] = {{{0}}}, last = 0;
    for (gboolean moved = TRUE; moved;) {
        moved = FALSE;
        for (guint s = 0; s < n_stages; s++) {
            NjTime previous = 0;
            const guint ahead = MIN(m, n_stages - 1 - s);
            guint next[2] = {0, 0};
            for (guint i = 0; i < 2 * m; i++) {
                // Forwards until far enough ahead, then in turn, then the backwards that are left.
                const guint kind = next[0] < m && next[0] <= next[1] + ahead ? 0 : 1;
                const guint microbatch = next[kind]++;
                NjTime start = previous;
                if (kind == 0 && s > 0)
                    start = MAX(start, end[s - 1][microbatch][0] + transfer);
                if (kind == 1 && s + 1 < n_stages)
                    start = MAX(start, end[s + 1][microbatch][1] + transfer);
                previous = start + durations[s][kind];
                moved = moved || previous != end[s][microbatch][kind];
                end[s][microbatch][kind] = previous;
                last = MAX(last, previous);
            }
        }
    }
    return last;
}

START_TEST(iterations_against_a_slow_path)
{
    for (guint n_stages = 1; n_stages <= MAX_STAGES; n_stages++) {
        for (guint m = 1; m <= MAX_MICROBATCHES; m += 2) {
            for (guint variant = 0; variant < 4; variant++) {
                const NjExecuteOptions options = {.point_to_point = variant % 2, .unlocked = variant / 2};
                GError *error = NULL;
                g_auto(NjWorkload) workload = {0};
                g_auto(NjPipeline) pipeline = {0};
                g_auto(NjPlan) plan = {0};
                NjIteration iteration;
                Durations durations;
                double busy_j = 0, bubble_s = 0;

                workload_init(&workload, n_stages, (int)m);
                nj_pipeline_init(&pipeline, &nj_schedule_1f1b, n_stages, m);
                nj_plan_uniform(&pipeline, 1200, &plan);
                g_autoptr(NjExecutor) executor = nj_executor_new(&workload, NJ_EXECUTION_SEQUENTIAL);
                nj_assert_ok(nj_executor_run(executor, &pipeline, &plan, &options, &iteration, &error),
                             error);
                for (guint s = 0; s < n_stages; s++) {
                    NjTime busy = 0;
                    for (guint kind = 0; kind < 2; kind++) {
                        const NjPlanInstruction instruction = {.kind = (NjInstructionKind)kind,
                                                               .freq_mhz = 1200};
                        const NjTaskRecord *record = nj_executor_profile(executor, s, &instruction, &error);
                        nj_assert_ok(record != NULL, error);
                        durations[s][kind] = record->duration;
                        busy += m * record->duration;
                        busy_j += m * nj_task_record_dynamic_j(record);
                    }
                    ck_assert_int_eq(iteration.stages[s].sum.duration, busy);
                    ck_assert_int_eq(iteration.stages[s].bubble, iteration.duration - busy);
                    bubble_s += (double)iteration.stages[s].bubble / NJ_PS_PER_S;
                }
                const NjTime transfer = options.point_to_point
                                            ? (NjTime)llround(nj_point_to_point_s(&workload, 0) * NJ_PS_PER_S)
                                            : 0;
                ck_assert_int_eq(iteration.duration, slow_makespan(n_stages, m, durations, transfer));

                // Unlocked clocks keep the clock tree running while a stage waits.
                const double waiting_w = options.unlocked ? workload.gpu.clock_w : 0;
                ck_assert_double_eq_tol(iteration.dynamic_j / (busy_j + waiting_w * bubble_s), 1, 1e-9);
                ck_assert_double_eq_tol(iteration.static_j / (workload.gpu.static_w * n_stages *
                                                              (double)iteration.duration / NJ_PS_PER_S),
                                        1, 1e-9);
            }
        }
    }
}
END_TEST

// Kernel by kernel for an observer, or from remembered records: the same bytes.
START_TEST(observed_and_remembered)
{
    static const NjExecution executions[] = {NJ_EXECUTION_SEQUENTIAL, NJ_EXECUTION_NANOBATCHED};
    for (guint e = 0; e < G_N_ELEMENTS(executions); e++) {
        const NjObserver silent = {0};
        NjExecuteOptions options = {.point_to_point = TRUE};
        NjIteration remembered, observed;
        g_auto(NjWorkload) workload = {0};
        g_auto(NjPipeline) pipeline = {0};
        g_auto(NjPlan) plan = {0};
        workload_init(&workload, 3, 4);
        nj_pipeline_init(&pipeline, &nj_schedule_1f1b, 3, 4);
        nj_plan_uniform(&pipeline, 1410, &plan);
        plan.stages[1].instructions[2].freq_mhz = 900;
        g_autoptr(NjExecutor) executor = nj_executor_new(&workload, executions[e]);
        memset(&remembered, 0, sizeof remembered);
        memset(&observed, 0, sizeof observed);
        ck_assert(nj_executor_run(executor, &pipeline, &plan, &options, &remembered, NULL));
        options.observer = &silent;
        ck_assert(nj_executor_run(executor, &pipeline, &plan, &options, &observed, NULL));
        ck_assert_int_eq(remembered.duration, observed.duration);
        ck_assert(memcmp(&remembered.dynamic_j, &observed.dynamic_j, sizeof observed.dynamic_j) == 0);
        for (guint s = 0; s < 3; s++)
            ck_assert_mem_eq(&remembered.stages[s].sum, &observed.stages[s].sum, sizeof(NjTaskRecord));
    }
}
END_TEST

START_TEST(plans_that_do_not_fit)
{
    static const NjLaunch norm = {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 12};
    static const struct {
        const char *label;
        guint n_stages, n_microbatches; // of the plan
        guint stage, instruction;       // that is changed
        NjPlanInstruction changed;
        const char *message;
    } rows[] = {
        {"stages", 3, 4, 0, 0, {NJ_FORWARD, 1410, 0, {{0}}}, "the plan has 3 stages, the pipeline 2"},
        {"microbatches",
         2,
         3,
         0,
         0,
         {NJ_FORWARD, 1410, 0, {{0}}},
         "stage 0: the plan has 6 instructions, the pipeline 8"},
        {"order",
         2,
         4,
         1,
         1,
         {NJ_FORWARD, 1410, 0, {{0}}},
         "stage 1, instruction 1: the plan has a forward, the pipeline a backward"},
        {"clock",
         2,
         4,
         1,
         3,
         {NJ_BACKWARD, 1400, 0, {{0}}},
         "stage 1, instruction 3: frequency 1400 MHz: NVIDIA A100-SXM4-40GB has 900 to 1410 MHz in steps of "
         "30"},
        {"launches",
         2,
         4,
         0,
         1,
         {NJ_FORWARD, 1410, 1, {norm}},
         "stage 0, instruction 1: a forward has 1 launch choices: 2 are needed, one a partition"},
    };
    for (guint extrapolate = 0; extrapolate < 2; extrapolate++) {
        for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
            const NjExecuteOptions options = {0};
            GError *error = NULL;
            NjIteration iteration;
            g_auto(NjWorkload) workload = {0};
            g_auto(NjPipeline) pipeline = {0}, other = {0};
            g_auto(NjPlan) plan = {0};
            workload_init(&workload, 2, 4);
            nj_pipeline_init(&pipeline, &nj_schedule_1f1b, 2, 4);
            nj_pipeline_init(&other, &nj_schedule_1f1b, rows[i].n_stages, rows[i].n_microbatches);
            nj_plan_uniform(&other, 1410, &plan);
            plan.stages[rows[i].stage].instructions[rows[i].instruction] = rows[i].changed;
            g_autoptr(NjExecutor) executor = nj_executor_new(&workload, NJ_EXECUTION_NANOBATCHED);
            nj_executor_set_extrapolate(executor, extrapolate);
            ck_assert_msg(!nj_executor_run(executor, &pipeline, &plan, &options, &iteration, &error), "%s",
                          rows[i].label);
            nj_assert_error(error, rows[i].message);
        }
    }
}
END_TEST

// Stages of at most three layers are run as they are; longer ones are extended from two and three.
START_TEST(extrapolation)
{
    static const struct {
        guint n_stages;
        double tolerance;
    } rows[] = {{8, 0}, {4, 1e-3}, {1, 1e-3}}; // 2, 4 and 16 layers a stage
    const NjPlanInstruction instruction = {.kind = NJ_BACKWARD, .freq_mhz = 1110};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(NjWorkload) workload = {0};
        workload_init(&workload, rows[i].n_stages, 1);
        g_autoptr(NjExecutor) whole = nj_executor_new(&workload, NJ_EXECUTION_NANOBATCHED);
        g_autoptr(NjExecutor) quick = nj_executor_new(&workload, NJ_EXECUTION_NANOBATCHED);
        nj_executor_set_extrapolate(quick, TRUE);
        const NjTaskRecord *a = nj_executor_profile(whole, 0, &instruction, NULL);
        const NjTaskRecord *b = nj_executor_profile(quick, 0, &instruction, NULL);
        ck_assert_ptr_eq(b, nj_executor_profile(quick, 0, &instruction, NULL)); // remembered
        ck_assert_double_le(fabs((double)b->duration / (double)a->duration - 1), rows[i].tolerance);
        ck_assert_double_le(fabs(nj_task_record_dynamic_j(b) / nj_task_record_dynamic_j(a) - 1),
                            rows[i].tolerance);
        ck_assert_double_eq_tol(b->flop / a->flop, 1, 1e-12);
        ck_assert_double_eq_tol(b->link_bytes / a->link_bytes, 1, 1e-12);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("execute");
    TCase *tests = tcase_create("execute");
    tcase_add_test(tests, one_forward_one_backward);
    tcase_add_test(tests, schedules_by_name);
    tcase_add_test(tests, iterations_against_a_slow_path);
    tcase_add_test(tests, observed_and_remembered);
    tcase_add_test(tests, plans_that_do_not_fit);
    tcase_add_test(tests, extrapolation);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
