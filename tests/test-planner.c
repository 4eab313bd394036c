// SPDX-License-Identifier: MIT
// The planner's search against brute force over whole instructions, and what a planner keeps to.
#include "scenarios/scenario.h"
#include "sim/error.h"
#include "tests/testing.h"

#include <math.h>
#include <string.h>

// Two layers a stage and a few clocks, so that every launch list can be tried on whole instructions.
static void load_tiny(NjScenario *scenario, const char *parallelism)
{
    GError *error = NULL;
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autofree char *text =
        g_strdup_printf("[workload]\nmodel = llama-3.2-1b\nseq_len = 4096\nmicrobatch_size = 8\n"
                        "microbatches = 3\n[cluster]\ngpu = a100-sxm4-40gb\nparallelism = %s\n"
                        "pipeline_stages = 2\n[execution]\nmethod = kareus\n",
                        parallelism);
    ck_assert(g_key_file_load_from_data(file, text, strlen(text), G_KEY_FILE_NONE, NULL));
    nj_assert_ok(nj_scenario_from_keyfile(scenario, file, "s.ini", &error), error);
    NjWorkload *workload = &scenario->workload;
    workload->arch.layers = 4;
    workload->layers[0] = workload->layers[1] = 2;
    workload->gpu.freq_min_mhz = 1110;
    workload->gpu.freq_step_mhz = 150; // 1110, 1260, 1410
}

// A price of time, in W: an option is best at a price where energy + price x time is least. All prices
// together are the lower hull of the options.
static const double prices_w[] = {0, 20, 50, 80, 120, 180, 250, 400, 800, 3000};
#define N_PRICES G_N_ELEMENTS(prices_w)

static void take_best(double *best_j, double time_s, double effective_j)
{
    for (guint p = 0; p < N_PRICES; p++)
        best_j[p] = fmin(best_j[p], effective_j + prices_w[p] * time_s);
}

static void best_of_profile(const NjProfile *profile, const NjWorkload *workload, guint stage,
                            NjInstructionKind kind, double *best_j)
{
    for (guint p = 0; p < N_PRICES; p++)
        best_j[p] = HUGE_VAL;
    for (guint r = 0; r < profile->n_rows; r++) {
        const NjProfileRow *row = &profile->rows[r];
        if (row->stage == stage && row->instruction.kind == kind)
            take_best(best_j, row->time_s, row->energy_j - workload->gpu.static_w * row->time_s);
    }
}

static void take_instruction(NjExecutor *executor, const NjPlanInstruction *instruction, double *best_j)
{
    GError *error = NULL;
    const NjTaskRecord *record = nj_executor_profile(executor, 0, instruction, &error);
    nj_assert_ok(record != NULL, error);
    take_best(best_j, (double)record->duration / NJ_PS_PER_S, nj_task_record_dynamic_j(record));
}

typedef struct {
    guint n;
    GArray *launches[NJ_MAX_PARTITIONS]; // NjLaunch, by partition
} Space;

static void space_init(Space *space, const NjExecutor *executor, const NjWorkload *workload,
                       NjInstructionKind kind)
{
    space->n = nj_partition_count(&workload->parallelism, kind);
    for (guint p = 0; p < space->n; p++) {
        space->launches[p] = g_array_new(FALSE, FALSE, sizeof(NjLaunch));
        nj_partition_search_space(nj_executor_lowering(executor), kind, p, space->launches[p]);
    }
}

static void space_clear(Space *space)
{
    for (guint p = 0; p < space->n; p++)
        g_array_unref(space->launches[p]);
}

// Nothing of the whole search space is better, at any price, than what partitions searched one by one and
// composed gave. They were searched alone; in an instruction they have neighbours, which matter this little.
#define COMPOSITION_TOLERANCE 1e-4

static void check_best(const double *planned_j, const double *brute_j, const char *what)
{
    for (guint p = 0; p < N_PRICES; p++)
        ck_assert_msg(planned_j[p] <= brute_j[p] * (1 + COMPOSITION_TOLERANCE),
                      "%s, %g W: planned %.6f J, brute force %.6f J", what, prices_w[p], planned_j[p],
                      brute_j[p]);
}

START_TEST(forward_as_brute_force)
{
    GError *error = NULL;
    g_auto(NjScenario) scenario = {0};
    load_tiny(&scenario, "tp8");
    const NjWorkload *workload = &scenario.workload;
    g_autoptr(NjPlanner) planner = nj_planner_new(workload, NJ_METHOD_KAREUS, &nj_schedule_1f1b, &error);
    nj_assert_ok(planner != NULL, error);
    g_autoptr(NjExecutor) executor = nj_executor_new(workload, NJ_EXECUTION_NANOBATCHED);
    Space space;
    space_init(&space, executor, workload, NJ_FORWARD);
    ck_assert_uint_eq(space.n, 2);
    double brute_j[N_PRICES], planned_j[N_PRICES];
    for (guint p = 0; p < N_PRICES; p++)
        brute_j[p] = HUGE_VAL;
    guint n_tried = 0;
    for (guint freq = 1110; freq <= 1410; freq += 150) {
        NjPlanInstruction instruction = {.kind = NJ_FORWARD, .freq_mhz = freq, .n_launches = 2};
        for (guint a = 0; a < space.launches[0]->len; a++) {
            for (guint b = 0; b < space.launches[1]->len; b++) {
                instruction.launches[0] = g_array_index(space.launches[0], NjLaunch, a);
                instruction.launches[1] = g_array_index(space.launches[1], NjLaunch, b);
                take_instruction(executor, &instruction, brute_j);
                n_tried++;
            }
        }
    }
    space_clear(&space);
    ck_assert_uint_gt(n_tried, 1000);
    best_of_profile(nj_planner_profile(planner), workload, 0, NJ_FORWARD, planned_j);
    check_best(planned_j, brute_j, "forward");
    // The planner's rows are themselves of the space: never better than all of it.
    for (guint p = 0; p < N_PRICES; p++)
        ck_assert_double_ge(planned_j[p], brute_j[p] * (1 - 1e-12));
}
END_TEST

// Where the space is too large to try everything: launch lists at random, half of them one change away from
// the planner's own.
START_TEST(no_random_choice_is_better)
{
    static const struct {
        const char *parallelism;
        NjInstructionKind kind;
    } rows[] = {{"tp8", NJ_BACKWARD}, {"cp2tp4", NJ_FORWARD}, {"cp2tp4", NJ_BACKWARD}};
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_auto(NjScenario) scenario = {0};
        load_tiny(&scenario, rows[i].parallelism);
        const NjWorkload *workload = &scenario.workload;
        g_autoptr(NjPlanner) planner = nj_planner_new(workload, NJ_METHOD_KAREUS, &nj_schedule_1f1b, &error);
        nj_assert_ok(planner != NULL, error);
        g_autoptr(NjExecutor) executor = nj_executor_new(workload, NJ_EXECUTION_NANOBATCHED);
        const NjProfile *profile = nj_planner_profile(planner);
        Space space;
        space_init(&space, executor, workload, rows[i].kind);
        double random_j[N_PRICES], planned_j[N_PRICES];
        for (guint p = 0; p < N_PRICES; p++)
            random_j[p] = HUGE_VAL;
        for (guint n = 0; n < 1500; n++) {
            NjPlanInstruction instruction = {.kind = rows[i].kind, .n_launches = space.n};
            instruction.freq_mhz = 1110 + 150 * (guint)g_rand_int_range(rand, 0, 3);
            const NjProfileRow *own = &profile->rows[g_rand_int_range(rand, 0, (gint32)profile->n_rows)];
            const gboolean near = n % 2 == 0 && own->instruction.kind == rows[i].kind;
            if (near)
                instruction = own->instruction;
            const guint changed = (guint)g_rand_int_range(rand, 0, (gint32)space.n);
            for (guint p = 0; p < space.n; p++) {
                const guint l = (guint)g_rand_int_range(rand, 0, (gint32)space.launches[p]->len);
                if (!near || p == changed)
                    instruction.launches[p] = g_array_index(space.launches[p], NjLaunch, l);
            }
            take_instruction(executor, &instruction, random_j);
        }
        best_of_profile(profile, workload, 0, rows[i].kind, planned_j);
        check_best(planned_j, random_j, rows[i].parallelism);
        space_clear(&space);
    }
}
END_TEST

// Every row is a whole instruction as the executor runs it, its launches those that were composed.
START_TEST(rows_are_what_execution_gives)
{
    for (guint m = NJ_METHOD_MEGATRON_PERSEUS; m < NJ_N_METHODS; m++) {
        GError *error = NULL;
        g_auto(NjScenario) scenario = {0};
        load_tiny(&scenario, "cp2tp4");
        const NjWorkload *workload = &scenario.workload;
        const NjMethod method = (NjMethod)m;
        g_autoptr(NjPlanner) planner = nj_planner_new(workload, method, &nj_schedule_1f1b, &error);
        nj_assert_ok(planner != NULL, error);
        const NjProfile *profile = nj_planner_profile(planner);
        g_autoptr(NjExecutor) executor = nj_executor_new(workload, nj_method_execution(method));
        guint n_rows[2][2] = {0}, n_overlapped = 0;
        for (guint r = 0; r < profile->n_rows; r++) {
            const NjProfileRow *row = &profile->rows[r];
            const NjTaskRecord *record = nj_executor_profile(executor, row->stage, &row->instruction, &error);
            nj_assert_ok(record != NULL, error);
            const double time_s = (double)record->duration / NJ_PS_PER_S;
            ck_assert(row->time_s == time_s);
            ck_assert(row->energy_j == nj_task_record_dynamic_j(record) + workload->gpu.static_w * time_s);
            const guint n_partitions = nj_partition_count(&workload->parallelism, row->instruction.kind);
            ck_assert_uint_eq(row->instruction.n_launches, method == NJ_METHOD_KAREUS ? n_partitions : 0);
            n_rows[row->stage][row->instruction.kind]++;
            for (guint p = 0; p < row->instruction.n_launches; p++)
                n_overlapped += row->instruction.launches[p].mode == NJ_LAUNCH_AT;
        }
        for (guint s = 0; s < 2; s++)
            for (guint k = 0; k < 2; k++)
                ck_assert_uint_ge(n_rows[s][k], 3); // every clock at the least
        ck_assert_uint_eq(n_overlapped > 0, method == NJ_METHOD_KAREUS);
    }
}
END_TEST

// Kareus has sequential execution to choose from, so it is never worse: an instruction at any price, nor an
// iteration of any time.
START_TEST(kareus_is_never_worse_than_sequential)
{
    static const char *const cases[] = {"tp8", "tp2", "cp2tp4", "cp4tp2"};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *error = NULL;
        g_auto(NjScenario) scenario = {0};
        load_tiny(&scenario, cases[i]);
        const NjWorkload *workload = &scenario.workload;
        g_autoptr(NjPlanner) kareus = nj_planner_new(workload, NJ_METHOD_KAREUS, &nj_schedule_1f1b, &error);
        nj_assert_ok(kareus != NULL, error);
        g_autoptr(NjPlanner) sequential =
            nj_planner_new(workload, NJ_METHOD_MEGATRON_PERSEUS, &nj_schedule_1f1b, &error);
        nj_assert_ok(sequential != NULL, error);
        for (guint stage = 0; stage < 2; stage++) {
            for (guint k = 0; k < NJ_N_INSTRUCTION_KINDS; k++) {
                double own_j[N_PRICES], other_j[N_PRICES];
                best_of_profile(nj_planner_profile(kareus), workload, stage, (NjInstructionKind)k, own_j);
                best_of_profile(nj_planner_profile(sequential), workload, stage, (NjInstructionKind)k,
                                other_j);
                for (guint p = 0; p < N_PRICES; p++)
                    ck_assert_double_le(own_j[p], other_j[p]);
            }
        }
        guint n;
        const NjFrontierPoint *points = nj_solver_points(nj_planner_solver(sequential), &n);
        for (guint p = 0; p < n; p++) {
            double bound_j;
            nj_assert_ok(nj_solver_bound(nj_planner_solver(kareus), points[p].time_s, &bound_j, &error),
                         error);
            ck_assert_double_le(bound_j, points[p].effective_j * (1 + 1e-9));
        }
    }
}
END_TEST

START_TEST(plans_follow_the_choice)
{
    GError *error = NULL;
    g_auto(NjScenario) scenario = {0};
    load_tiny(&scenario, "tp8");
    g_autoptr(NjPlanner) planner =
        nj_planner_new(&scenario.workload, NJ_METHOD_KAREUS, &nj_schedule_1f1b, &error);
    nj_assert_ok(planner != NULL, error);
    g_autoptr(NjSolverPlan) choice = nj_solver_plan_fastest(nj_planner_solver(planner));
    g_auto(NjPlan) plan = {0};
    NjIteration iteration;
    nj_planner_plan(planner, choice, &plan);
    // Without transfers execution takes what was planned, and uses it.
    const NjExecuteOptions options = {.point_to_point = FALSE};
    nj_assert_ok(nj_executor_run(nj_planner_executor(planner), nj_planner_pipeline(planner), &plan, &options,
                                 &iteration, &error),
                 error);
    ck_assert_double_eq_tol((double)iteration.duration / NJ_PS_PER_S, choice->time_s, 1e-9);
    ck_assert_double_eq_tol(iteration.dynamic_j, choice->effective_j, 1e-6);
}
END_TEST

START_TEST(what_cannot_run)
{
    GError *error = NULL;
    g_auto(NjScenario) scenario = {0};
    load_tiny(&scenario, "tp8");
    scenario.workload.microbatch_size = 1;
    ck_assert_ptr_null(
        nj_planner_new(&scenario.workload, NJ_METHOD_NANOBATCHING_PERSEUS, &nj_schedule_1f1b, &error));
    ck_assert(g_error_matches(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE));
    g_clear_error(&error);
    // Kareus keeps sequential execution.
    g_autoptr(NjPlanner) kareus =
        nj_planner_new(&scenario.workload, NJ_METHOD_KAREUS, &nj_schedule_1f1b, &error);
    nj_assert_ok(kareus != NULL, error);
    const NjProfile *profile = nj_planner_profile(kareus);
    for (guint r = 0; r < profile->n_rows; r++)
        for (guint p = 0; p < profile->rows[r].instruction.n_launches; p++)
            ck_assert_int_eq(profile->rows[r].instruction.launches[p].mode, NJ_LAUNCH_SEQUENTIAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("planner");
    TCase *tcase = tcase_create("planner");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, forward_as_brute_force);
    tcase_add_test(tcase, no_random_choice_is_better);
    tcase_add_test(tcase, rows_are_what_execution_gives);
    tcase_add_test(tcase, kareus_is_never_worse_than_sequential);
    tcase_add_test(tcase, plans_follow_the_choice);
    tcase_add_test(tcase, what_cannot_run);
    suite_add_tcase(suite, tcase);
    return nj_test_run(suite);
}
