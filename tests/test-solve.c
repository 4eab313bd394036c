// SPDX-License-Identifier: MIT
// nanojoule solve, run as a program.
#include "schedules/csv.h"
#include "schedules/plan-files.h"
#include "schedules/profile-problem.h"
#include "tests/scratch.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

static guint count_entries(const char *path)
{
    guint n = 0;
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    ck_assert_msg(dir != NULL, "%s", path);
    while (g_dir_read_name(dir) != NULL)
        n++;
    return n;
}

// Runs "nanojoule solve" with the arguments, which are split at spaces; gives the exit status.
static int run_solve(const char *arguments, char **out, char **err)
{
    g_autoptr(GError) error = NULL;
    int wait_status;
    g_autofree char *line = g_strdup_printf("%s solve %s", g_getenv("NANOJOULE"), arguments);
    g_auto(GStrv) argv = g_strsplit(line, " ", -1);
    const gboolean ok =
        g_spawn_sync(NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, out, err, &wait_status, &error);
    nj_assert_ok(ok, error);
    ck_assert_msg(WIFEXITED(wait_status), "%s did not exit", line);
    return WEXITSTATUS(wait_status);
}

static char *read_text(const char *path)
{
    char *text = NULL;
    ck_assert_msg(g_file_get_contents(path, &text, NULL, NULL), "%s", path);
    return text;
}

#define CSV_HEADER "time_s,effective_energy_j,total_energy_j,bound_effective_energy_j\n"

START_TEST(golden_frontier)
{
    g_autofree char *profile = nj_test_fixture("solve/profile.csv");
    g_autofree char *dir = g_build_filename(scratch, "a", "plans", NULL);
    g_autofree char *arguments =
        g_strdup_printf("%s --microbatches 2 --static-power 10 --format csv -o %s", profile, dir);
    for (guint run = 0; run < 2; run++) { // a second run writes the same files again
        g_autofree char *out = NULL, *err = NULL;
        ck_assert_int_eq(run_solve(arguments, &out, &err), 0);
        ck_assert_str_eq(err, "");
        ck_assert_str_eq(out, CSV_HEADER "0.902,44.96,63,44.96\n"
                                         "0.901,45.47,63.49,45.47\n"
                                         "0.9,46.48,64.48,46.48\n");
        ck_assert_uint_eq(count_entries(dir), 6);
        for (guint k = 0; k < 6; k++) {
            g_autofree char *name = g_strdup_printf("%s_pipeline_%05u.py", k < 3 ? "freqs" : "scheds", k % 3);
            g_autofree char *written = g_build_filename(dir, name, NULL);
            g_autofree char *expected_name = g_strdup_printf("solve/%s", name);
            g_autofree char *expected = nj_test_fixture(expected_name);
            g_autofree char *written_text = read_text(written);
            g_autofree char *expected_text = read_text(expected);
            ck_assert_str_eq(written_text, expected_text);
        }
    }
}
END_TEST

START_TEST(rows_that_are_asked_for)
{
    static const struct {
        const char *label, *options, *out;
    } rows[] = {
        // Bound at the time asked for: half way between two breakpoints, and flat past the last.
        {"times in the order given", "--times 0.9015,0.9,5",
         CSV_HEADER "0.901,45.47,63.49,45.215\n0.9,46.48,64.48,46.48\n0.902,44.96,63,44.96\n"},
        {"fastest to nine digits", "--times 0.8999999996", CSV_HEADER "0.9,46.48,64.48,46.48\n"},
        {"a step that does not divide", "--step 0.0015",
         CSV_HEADER "0.902,44.96,63,44.96\n0.9,46.48,64.48,46.48\n0.9,46.48,64.48,46.48\n"},
        {"one step", "--step 1", CSV_HEADER "0.902,44.96,63,44.96\n0.9,46.48,64.48,46.48\n"},
        {"no static power", "--static-power 0 --step 1", CSV_HEADER "0.902,57,57,57\n0.9,58.5,58.5,58.5\n"},
    };
    g_autofree char *profile = nj_test_fixture("solve/profile.csv");
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *out = NULL, *err = NULL;
        g_autofree char *arguments =
            g_strdup_printf("-m 2 -p 10 %s -f csv --schedule 1f1b %s", rows[i].options, profile);
        ck_assert_int_eq(run_solve(arguments, &out, &err), 0);
        ck_assert_msg(strcmp(out, rows[i].out) == 0, "%s:\n%s", rows[i].label, out);
        ck_assert_str_eq(err, "");
    }
}
END_TEST

// Hundreds of plans: the same bytes on any number of threads.
START_TEST(threads)
{
    g_autofree char *profile = nj_test_fixture("solve/profile.csv");
    g_autofree char *first = NULL;
    for (guint jobs = 1; jobs <= 3; jobs++) {
        g_autofree char *out = NULL, *err = NULL;
        g_autofree char *arguments =
            g_strdup_printf("%s -m 12 -p 10 -f csv --step 0.00003 -j%u", profile, jobs);
        ck_assert_int_eq(run_solve(arguments, &out, &err), 0);
        ck_assert_str_eq(err, "");
        if (first == NULL)
            first = g_strdup(out);
        ck_assert_str_eq(out, first);
    }
    guint n_lines = 0;
    for (const char *c = first; *c != '\0'; c++)
        n_lines += *c == '\n';
    ck_assert_uint_gt(n_lines, 200);
}
END_TEST

START_TEST(no_choice_is_one_plan)
{
    g_autofree char *profile = g_build_filename(scratch, "p.csv", NULL);
    g_autofree char *dir = g_build_filename(scratch, "out", NULL);
    ck_assert(g_file_set_contents(profile,
                                  "stage,instruction,frequency,time,energy\n"
                                  "0,F,900,0.25,100\n0,B,930,0.5,200\n",
                                  -1, NULL));
    g_autofree char *out = NULL, *err = NULL, *freqs_text = NULL;
    g_autofree char *arguments = g_strdup_printf("%s -m 3 -p 80 -o %s", profile, dir);
    ck_assert_int_eq(run_solve(arguments, &out, &err), 0);
    g_autofree char *expected =
        g_strdup_printf("  time_s  effective_energy_j  total_energy_j  bound_effective_energy_j\n"
                        "2.250000             720.000         900.000                   720.000\n"
                        "\n"
                        "1 plan, iteration times from 2.250000 s (fastest) to 2.250000 s (slowest useful)\n"
                        "total energy at most 0.0000 %% above the convex bound at the plan's time\n"
                        "written to %s: freqs_pipeline_00000.py (slowest) to 00000\n",
                        dir);
    ck_assert_str_eq(out, expected);
    ck_assert_uint_eq(count_entries(dir), 1);
    g_autofree char *freqs = g_build_filename(dir, "freqs_pipeline_00000.py", NULL);
    freqs_text = read_text(freqs);
    ck_assert_str_eq(
        freqs_text,
        "[\n[('forward', 900), ('backward', 930), ('forward', 900), ('backward', 930), ('forward', "
        "900), ('backward', 930)],\n]\n# Iteration 0 cost change: 0.0\n# Iteration 0 total cost: "
        "720.0\n# Iteration 0 total cost with P2P: 900.0\n");
}
END_TEST

START_TEST(errors_and_exit_status)
{
    static const struct {
        int status;
        const char *options, *message;
    } rows[] = {
        {2, "-p 10", "nanojoule: solve: --microbatches from 1 to 100000 is needed\n"},
        {2, "-p 10 -m -1", "nanojoule: solve: --microbatches from 1 to 100000 is needed\n"},
        {2, "-m 2", "nanojoule: solve: --static-power of at least 0 W is needed, such as 85\n"},
        {2, "-m 2 -p -1", "nanojoule: solve: --static-power of at least 0 W is needed, such as 85\n"},
        {2, "-m 2 -p 10 -j0", "nanojoule: solve: --jobs from 1 to 1024 is needed\n"},
        {2, "-m 2 -p 10 --step 0", "nanojoule: solve: --step above 0 s is needed, such as 0.001\n"},
        {2, "-m 2 -p 10 --step 1e-9",
         "nanojoule: solve: --step 1e-09 gives more than 100000 plans: from 0.9 to 0.902 s, at least 2e-08 "
         "is "
         "needed\n"},
        {2, "-m 2 -p 10 --schedule 2f2b", "nanojoule: solve: --schedule '2f2b': one of 1f1b is needed\n"},
        {2, "-m 2 -p 10 --times 0.9,x",
         "nanojoule: solve: --times 'x': seconds above 0 with commas between them are needed\n"},
        {2, "-m 2 -p 10 --times 0.9,-1",
         "nanojoule: solve: --times '-1': seconds above 0 with commas between them are needed\n"},
        {2, "-m 2 -p 10 --times 0.9,",
         "nanojoule: solve: --times '': seconds above 0 with commas between them are needed\n"},
        {2, "-m 2 -p 10 --times=", "nanojoule: solve: --times: 1 to 100000 times are needed\n"},
        {1, "-m 2 -p 10 --times 0.9,0.8",
         "nanojoule: solve: --times 0.8: the fastest iteration takes 0.9 s\n"},
    };
    g_autofree char *profile = nj_test_fixture("solve/profile.csv");
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *out = NULL, *err = NULL;
        g_autofree char *dir = g_build_filename(scratch, "never", NULL);
        g_autofree char *arguments = g_strdup_printf("%s -o %s %s", rows[i].options, dir, profile);
        const int status = run_solve(arguments, &out, &err);
        ck_assert_str_eq(err, rows[i].message);
        ck_assert_int_eq(status, rows[i].status);
        ck_assert_str_eq(out, "");
        ck_assert(!g_file_test(dir, G_FILE_TEST_EXISTS));
    }

    g_autofree char *out = NULL, *err = NULL, *out_help = NULL, *err_help = NULL;
    ck_assert_int_eq(run_solve("-m 2 -p 10 /nowhere/p.csv", &out, &err), 1);
    ck_assert_ptr_nonnull(strstr(err, "/nowhere/p.csv"));
    ck_assert_int_eq(run_solve("--help", &out_help, &err_help), 0);
    ck_assert_ptr_nonnull(strstr(out_help, "--static-power=WATTS"));
    ck_assert_str_eq(err_help, "");
}
END_TEST

START_TEST(does_not_mix_runs)
{
    static const char *const strangers[] = {"freqs_pipeline_00003.py", "scheds_pipeline_123456.py"};
    g_autofree char *profile = nj_test_fixture("solve/profile.csv");
    for (guint i = 0; i < G_N_ELEMENTS(strangers); i++) {
        g_autofree char *out = NULL, *err = NULL, *out_again = NULL, *err_again = NULL;
        g_autofree char *stranger = g_build_filename(scratch, strangers[i], NULL);
        g_autofree char *neighbour = g_build_filename(scratch, "freqs_pipeline_x.py", NULL);
        g_autofree char *arguments = g_strdup_printf("%s -m 2 -p 10 -f csv -o %s", profile, scratch);
        ck_assert(g_file_set_contents(stranger, "", -1, NULL));
        ck_assert(g_file_set_contents(neighbour, "", -1, NULL));
        g_autofree char *expected = g_strdup_printf(
            "nanojoule: %s: holds plans of another run, such as %s: remove them or give another "
            "directory\n",
            scratch, strangers[i]);
        ck_assert_int_eq(run_solve(arguments, &out, &err), 1);
        ck_assert_str_eq(err, expected);
        ck_assert_uint_eq(count_entries(scratch), 2 + (i > 0 ? 6 : 0));
        g_remove(stranger);
        ck_assert_int_eq(run_solve(arguments, &out_again, &err_again), 0);
        ck_assert_uint_eq(count_entries(scratch), 1 + 6);
    }

    // Without launches, launch files of before would belong to no plan.
    g_autofree char *plain = g_build_filename(scratch, "p.csv", NULL);
    g_autofree char *out = NULL, *err = NULL;
    ck_assert(g_file_set_contents(plain, "stage,instruction,frequency,time,energy\n0,F,9,1,1\n0,B,9,1,1\n",
                                  -1, NULL));
    for (guint k = 1; k < 3; k++) {
        g_autofree char *name = g_strdup_printf("freqs_pipeline_%05u.py", k);
        g_autofree char *freqs = g_build_filename(scratch, name, NULL);
        g_remove(freqs);
    }
    g_autofree char *arguments = g_strdup_printf("%s -m 2 -p 0 -o %s", plain, scratch);
    ck_assert_int_eq(run_solve(arguments, &out, &err), 1);
    ck_assert_ptr_nonnull(strstr(err, "holds plans of another run, such as scheds_pipeline_0000"));

    // A file in place of the directory.
    g_autofree char *out_file = NULL, *err_file = NULL;
    g_autofree char *onto_file = g_strdup_printf("%s -m 2 -p 0 -o %s", plain, plain);
    g_autofree char *expected = g_strdup_printf("nanojoule: %s: cannot be made a directory: ", plain);
    ck_assert_int_eq(run_solve(onto_file, &out_file, &err_file), 1);
    ck_assert_msg(g_str_has_prefix(err_file, expected), "%s", err_file);
}
END_TEST

// A plan read back from its files takes the time and the energy that its row says.
static void check_plan(const NjProfileProblem *problem, const NjPlan *plan, double time_s, double effective_j)
{
    const NjProfile *profile = problem->profile;
    g_autofree double *duration_s = g_new0(double, problem->dag->n_tasks);
    double sum_j = 0;
    guint task = 0;
    for (guint s = 0; s < plan->n_stages; s++) {
        for (guint i = 0; i < plan->stages[s].n_instructions; i++, task++) {
            const NjPlanInstruction *instruction = &plan->stages[s].instructions[i];
            ck_assert_int_eq(nj_pipeline_instruction(&problem->pipeline, task)->kind, instruction->kind);
            for (guint r = 0; r < profile->n_rows; r++) {
                const NjProfileRow *row = &profile->rows[r];
                if (row->stage == s && row->instruction.kind == instruction->kind &&
                    row->instruction.freq_mhz == instruction->freq_mhz) {
                    duration_s[task] = row->time_s;
                    sum_j += row->energy_j - 85 * row->time_s;
                }
            }
            ck_assert_double_gt(duration_s[task], 0);
        }
    }
    ck_assert_uint_eq(task, problem->dag->n_tasks);
    ck_assert_double_eq_tol(nj_dag_longest_path_s(problem->dag, duration_s, NULL), time_s, 1e-8);
    ck_assert_double_eq_tol(sum_j, effective_j, 1e-5);
}

START_TEST(oracle)
{
    static const struct {
        const char *name;
        guint n_microbatches;
    } rows[] = {{"s2m8", 8}, {"s2m16", 16}, {"s4m8", 8}};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_autofree char *lp_name = g_strdup_printf("oracle/lp_%s.csv", rows[i].name);
        g_autofree char *profile_name = g_strdup_printf("oracle/profile_%s.csv", rows[i].name);
        g_autofree char *lp_path = nj_test_reference(lp_name);
        g_autofree char *profile_path = nj_test_reference(profile_name);
        if (lp_path == NULL || profile_path == NULL)
            return;
        g_autoptr(NjCsv) lp = nj_csv_read(lp_path, &error);
        nj_assert_ok(lp != NULL, error);
        const int realised = nj_csv_column(lp, "realised_time_s");
        g_autoptr(GString) times = g_string_new(NULL);
        for (guint r = 0; r < lp->n_rows; r++)
            g_string_append_printf(times, "%s%s", r > 0 ? "," : "", lp->rows[r][realised]);
        g_autofree char *dir = g_build_filename(scratch, rows[i].name, NULL);
        g_autofree char *out = NULL, *err = NULL;
        g_autofree char *arguments = g_strdup_printf("%s -m %u -p 85 -f csv -o %s --times %s", profile_path,
                                                     rows[i].n_microbatches, dir, times->str);
        ck_assert_int_eq(run_solve(arguments, &out, &err), 0);
        ck_assert_str_eq(err, "");

        g_autoptr(NjProfile) profile = nj_profile_read(profile_path, &error);
        g_autoptr(NjCsv) table = nj_csv_parse("solve", out, &error);
        nj_assert_ok(table != NULL && profile != NULL, error);
        ck_assert_uint_eq(table->n_rows, lp->n_rows);
        g_auto(NjProfileProblem) problem = {0};
        nj_profile_problem_init(&problem, profile, &nj_schedule_1f1b, rows[i].n_microbatches, 85);
        for (guint r = 0; r < lp->n_rows; r++) {
            double time_s, effective_j, total_j, bound_j, asked_s, lowtime_j, lp_j;
            nj_assert_ok(nj_csv_number(table, r, 0, 0, &time_s, &error), error);
            nj_assert_ok(nj_csv_number(table, r, 1, 0, &effective_j, &error), error);
            nj_assert_ok(nj_csv_number(table, r, 2, 0, &total_j, &error), error);
            nj_assert_ok(nj_csv_number(table, r, 3, 0, &bound_j, &error), error);
            nj_assert_ok(nj_csv_number(lp, r, realised, 0, &asked_s, &error), error);
            nj_assert_ok(nj_csv_number(lp, r, nj_csv_column(lp, "realised_dynamic"), 0, &lowtime_j, &error),
                         error);
            nj_assert_ok(nj_csv_number(lp, r, nj_csv_column(lp, "lpA_at_realised_dynamic"), 0, &lp_j, &error),
                         error);
            ck_assert_double_le(time_s, asked_s + 1e-8);
            ck_assert_double_eq_tol(bound_j, lp_j, 1e-6 * lp_j);
            ck_assert_double_eq_tol(total_j, effective_j + 85 * profile->n_stages * time_s, 1e-5);
            ck_assert_double_le(total_j, 1.003 * (bound_j + 85 * profile->n_stages * asked_s));
            ck_assert_double_le(effective_j, lowtime_j + 1e-5);

            // Times fall down the rows of the oracle, so files are numbered as rows are.
            g_autofree char *name = g_strdup_printf("freqs_pipeline_%05u.py", r);
            g_autofree char *path = g_build_filename(dir, name, NULL);
            g_auto(NjPlan) plan = {0};
            nj_assert_ok(nj_plan_files_read(path, NULL, &plan, NULL, &error), error);
            check_plan(&problem, &plan, time_s, effective_j);
        }
    }
}
END_TEST

// Plans come from a heuristic, which here finds some that take longer and cost more than their neighbours.
START_TEST(more_time_never_costs_more)
{
    GError *error = NULL;
    g_autofree char *profile = nj_test_reference("oracle/profile_s2m16.csv");
    if (profile == NULL)
        return;
    g_autoptr(GString) arguments = g_string_new(profile);
    g_string_append(arguments, " -m 16 -p 85 -f csv --times 5.48");
    for (guint i = 1; i <= 40; i++)
        g_string_append_printf(arguments, ",5.%u", 4800 + 5 * i);
    g_autofree char *out = NULL, *err = NULL;
    ck_assert_int_eq(run_solve(arguments->str, &out, &err), 0);
    g_autoptr(NjCsv) table = nj_csv_parse("solve", out, &error);
    nj_assert_ok(table != NULL, error);
    ck_assert_uint_eq(table->n_rows, 41);
    for (guint r = 1; r < table->n_rows; r++) {
        double faster_s, slower_s, faster_j, slower_j;
        nj_assert_ok(nj_csv_number(table, r - 1, 0, 0, &faster_s, &error), error);
        nj_assert_ok(nj_csv_number(table, r, 0, 0, &slower_s, &error), error);
        nj_assert_ok(nj_csv_number(table, r - 1, 1, 0, &faster_j, &error), error);
        nj_assert_ok(nj_csv_number(table, r, 1, 0, &slower_j, &error), error);
        ck_assert_double_ge(slower_s, faster_s);
        ck_assert_double_le(slower_j, faster_j);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("solve");
    TCase *tests = tcase_create("solve");
    tcase_add_checked_fixture(tests, make_scratch, remove_scratch);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, golden_frontier);
    tcase_add_test(tests, rows_that_are_asked_for);
    tcase_add_test(tests, threads);
    tcase_add_test(tests, no_choice_is_one_plan);
    tcase_add_test(tests, errors_and_exit_status);
    tcase_add_test(tests, does_not_mix_runs);
    tcase_add_test(tests, oracle);
    tcase_add_test(tests, more_time_never_costs_more);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
