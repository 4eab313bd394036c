// SPDX-License-Identifier: MIT
#include "schedules/plan-files.h"
#include "schedules/python-literal.h"
#include "sim/error.h"
#include "tests/testing.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

static char *read_text(const char *path)
{
    char *text = NULL;
    ck_assert_msg(g_file_get_contents(path, &text, NULL, NULL), "%s", path);
    return text;
}

// The plan of the fixture pair, built by hand.
static void fixture_plan(NjPlan *plan)
{
    const NjLaunch norm_12 = {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 12};
    const NjLaunch norm_6 = {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 6};
    const NjLaunch linear = {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_LINEAR, 1, 3};
    const NjLaunch rope = {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ROPE, 0, 12};
    const NjLaunch attn_3 = {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ATTENTION, 0, 3};
    const NjLaunch attn_21 = {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ATTENTION, 0, 21};
    const NjLaunch activation = {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ACTIVATION, 0, 30};
    const NjLaunch sequential = {NJ_LAUNCH_SEQUENTIAL};
    const NjLaunch by_default = {NJ_LAUNCH_DEFAULT};
    const NjPlanInstruction instructions[2][4] = {
        {{NJ_FORWARD, 1410, 2, {norm_12, sequential}},
         {NJ_FORWARD, 900, 2, {linear, by_default}},
         {NJ_BACKWARD, 1380, 3, {rope, norm_6, attn_3}},
         {NJ_BACKWARD, 1410, 3, {rope, norm_6, activation}}},
        {{NJ_FORWARD, 1410, 2, {norm_12, sequential}},
         {NJ_BACKWARD, 1350, 3, {sequential, sequential, sequential}},
         {NJ_FORWARD, 1350, 2, {attn_21, by_default}},
         {NJ_BACKWARD, 1410, 3, {rope, norm_6, attn_3}}},
    };
    nj_plan_init(plan, 2);
    for (guint s = 0; s < 2; s++)
        for (guint i = 0; i < 4; i++)
            nj_plan_append(plan, s, &instructions[s][i]);
}

START_TEST(golden_pair)
{
    GError *error = NULL;
    g_autofree char *freqs_path = nj_test_fixture("plans/freqs_pipeline_00042.py");
    g_autofree char *scheds_path = nj_test_fixture("plans/scheds_pipeline_00042.py");
    g_auto(NjPlan) plan = {0};
    g_auto(NjPlan) expected = {0};
    NjPlanCosts costs;
    fixture_plan(&expected);

    nj_assert_ok(nj_plan_files_read(freqs_path, scheds_path, &plan, &costs, &error), error);
    ck_assert(nj_plan_equal(&plan, &expected));
    ck_assert_int_eq(costs.iteration, 42);
    ck_assert_double_eq(costs.cost_change_j, 0.125);
    ck_assert_double_eq(costs.total_cost_j, 300);
    ck_assert_double_eq(costs.total_cost_with_static_j, 512.3000000000001);

    g_autofree char *freqs_text = read_text(freqs_path);
    g_autofree char *scheds_text = read_text(scheds_path);
    g_autofree char *freqs = nj_plan_freqs_format(&expected, &costs);
    g_autofree char *scheds = nj_plan_scheds_format(&expected, &costs);
    ck_assert_str_eq(freqs, freqs_text);
    ck_assert_str_eq(scheds, scheds_text);
}
END_TEST

START_TEST(writes_files_whole)
{
    GError *error = NULL;
    g_autofree char *dir = g_dir_make_tmp("nanojoule-XXXXXX", NULL);
    g_autofree char *freqs_path = g_build_filename(dir, "freqs_pipeline_00000.py", NULL);
    g_autofree char *scheds_path = g_build_filename(dir, "scheds_pipeline_00000.py", NULL);
    g_autofree char *nowhere = g_build_filename(dir, "no", "freqs.py", NULL);
    g_auto(NjPlan) plan = {0};
    g_auto(NjPlan) back = {0};
    NjPlanCosts costs;
    fixture_plan(&plan);

    nj_assert_ok(nj_plan_files_write(freqs_path, scheds_path, &plan, &NJ_PLAN_COSTS_NONE, &error), error);
    nj_assert_ok(nj_plan_files_read(freqs_path, scheds_path, &back, &costs, &error), error);
    ck_assert(nj_plan_equal(&plan, &back));
    ck_assert_int_eq(costs.iteration, -1);
    ck_assert(isnan(costs.total_cost_j));

    ck_assert(!nj_plan_files_write(nowhere, NULL, &plan, &costs, &error));
    ck_assert(g_error_matches(error, NJ_ERROR, NJ_ERROR_FILE));
    g_autofree char *cannot_write = g_strdup_printf("%s: cannot be written: ", nowhere);
    ck_assert_msg(g_str_has_prefix(error->message, cannot_write), "%s", error->message);
    g_clear_error(&error);

    nj_plan_clear(&back);
    ck_assert(!nj_plan_files_read(freqs_path, nowhere, &back, NULL, &error));
    ck_assert(g_error_matches(error, NJ_ERROR, NJ_ERROR_FILE));
    g_autofree char *cannot_read = g_strdup_printf("%s: cannot be read: ", nowhere);
    ck_assert_msg(g_str_has_prefix(error->message, cannot_read), "%s", error->message);
    g_clear_error(&error);
    g_unlink(freqs_path);
    g_unlink(scheds_path);
    ck_assert_int_eq(g_rmdir(dir), 0); // nothing else was left behind
}
END_TEST

static gboolean parse(const char *freqs, const char *scheds, NjPlan *plan, NjPlanCosts *costs, GError **error)
{
    return nj_plan_files_parse("f.py", freqs, strlen(freqs), "s.py", scheds,
                               scheds != NULL ? strlen(scheds) : 0, plan, costs, error);
}

START_TEST(tolerates_python)
{
    static const struct {
        const char *label, *freqs, *scheds;
    } rows[] = {
        {"as written", "[\n[('forward', 1410), ('backward', 900)],\n]\n", NULL},
        {"one line, no trailing comma", "[[('forward',1410),('backward',900)]]", NULL},
        {"double quotes, lists, floats, CRLF",
         "[\r\n[[\"forward\", 1410.0], [\"backward\", 9e2],],\r\n]\r\n# x\r\n", NULL},
        {"comments everywhere", "# a\n[ # b ]\n[('forward', # c\n1410), ('backward', +900)] # d\n] # e",
         NULL},
        {"parentheses around a value", "[[(('forward'), (1410)), ('backward', 900,)]]", NULL},
        {"tuple of lists, byte order mark", "\xef\xbb\xbf([('forward', 1410), ('backward', 900)],)", NULL},
        {"launch tuples of one", "[[('forward', 1410), ('backward', 900)]]",
         "[[('forward',), ('backward',)]]"},
    };
    g_auto(NjPlan) expected = {0};
    nj_plan_init(&expected, 1);
    nj_plan_append(&expected, 0, &(NjPlanInstruction){NJ_FORWARD, 1410});
    nj_plan_append(&expected, 0, &(NjPlanInstruction){NJ_BACKWARD, 900});
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_auto(NjPlan) plan = {0};
        const gboolean ok = parse(rows[i].freqs, rows[i].scheds, &plan, NULL, &error);
        ck_assert_msg(ok, "%s: %s", rows[i].label, error != NULL ? error->message : "");
        ck_assert_msg(nj_plan_equal(&plan, &expected), "%s", rows[i].label);
    }
    // Without launches the launch file still round-trips.
    g_autofree char *scheds = nj_plan_scheds_format(&expected, &NJ_PLAN_COSTS_NONE);
    ck_assert_str_eq(scheds, "[\n[('forward',), ('backward',)],\n]\n");
}
END_TEST

START_TEST(launch_form)
{
    GError *error = NULL;
    g_auto(NjPlan) plan = {0};
    // What stands for "none" and the threads per block is free, and written back as the tools write it.
    nj_assert_ok(parse("[[('forward', 1)]]", "[[('forward', 'attn_2-bf16-7-512')]]", &plan, NULL, &error),
                 error);
    g_autofree char *scheds = nj_plan_scheds_format(&plan, &NJ_PLAN_COSTS_NONE);
    ck_assert_str_eq(scheds, "[\n[('forward', 'attn_2-none-7-1024')],\n]\n");
}
END_TEST

#define LAUNCH_NEEDED                                                                                        \
    "a launch is needed: 'KERNEL_INDEX-none-SMS-1024' with KERNEL of norm, linear, rope, attn, activation "  \
    "(such as 'norm_0-none-12-1024'), 'sequential' or 'default'"

START_TEST(errors_name_file_line_and_what_is_right)
{
    static const char FREQS[] = "[[('forward', 9), ('backward', 9)],\n[('forward', 9), ('backward', 9)]]\n";
    static const struct {
        const char *freqs, *scheds, *message;
    } rows[] = {
        // The literal itself.
        {"", NULL, "f.py:1: the end of the file where a list, tuple, string, number or None is expected"},
        {"# only this\n", NULL,
         "f.py:2: the end of the file where a list, tuple, string, number or None is expected"},
        {"[\n[('forward', int(9))]]", NULL,
         "f.py:2: 'int' where a list, tuple, string, number or None is expected"},
        {"[\n[('forward' 9)]]", NULL, "f.py:2: '9' where ',' or ')' (opened at line 2) is expected"},
        {"[\n[('forward', 9)]\n", NULL,
         "f.py:3: the end of the file where ',' or ']' (opened at line 1) is expected"},
        {"[[('forward', 9)]] + []", NULL, "f.py:1: '+' where a comment or the end of the file is expected"},
        {"[,]", NULL, "f.py:1: ',' where a list, tuple, string, number or None is expected"},
        {"[[('forward\n', 9)]]", NULL, "f.py:1: a string is not closed: ' is needed before the line ends"},
        {"[[('for\\x', 9)]]", NULL, "f.py:1: a backslash in a string: only \\\\, \\' and \\\" are read"},
        {"[[('forward', 0x9)]]", NULL, "f.py:1: '0x9' where a number is expected"},
        {"[[('forward', 9MHz)]]", NULL, "f.py:1: '9MHz' where a number is expected"},
        {"[[('forward', -)]]", NULL, "f.py:1: '-' where a number is expected"},
        {"[[('forward', 1e999)]]", NULL, "f.py:1: the number 1e999 is too large"},
        {"[[('forward', 99999999999999999999)]]", NULL,
         "f.py:1: the number 99999999999999999999 is too large"},
        {"[[('forward', Nonesuch)]]", NULL,
         "f.py:1: 'Nonesuch' where a list, tuple, string, number or None is expected"},
        {"[[\xff]]", NULL, "f.py:1: byte 0xff where a list, tuple, string, number or None is expected"},
        {"[[\x01]]", NULL, "f.py:1: byte 0x01 where a list, tuple, string, number or None is expected"},
        // Frequencies.
        {"'forward'", NULL,
         "f.py:1: a string where a list of stages is needed: [[('forward', 1410), ('backward', 1380), ...], "
         "...]"},
        {"[\nNone]", NULL,
         "f.py:2: stage 0: None where a list of instructions is needed: [[('forward', 1410), ('backward', "
         "1380), ...], ...]"},
        {"[('forward', 9)]", NULL,
         "f.py:1: stage 0, instruction 0: 'forward': a pair is needed, such as ('forward', 1410)"},
        {"[[('forward', 9, 9)]]", NULL,
         "f.py:1: stage 0, instruction 0: ('forward', 9, 9): a pair is needed, such as ('forward', 1410)"},
        {"[[('forward',)]]", NULL,
         "f.py:1: stage 0, instruction 0: ('forward',): a pair is needed, such as ('forward', 1410)"},
        {"[[('forward', 9),\n('sideways', 9)]]", NULL,
         "f.py:2: stage 0, instruction 1: 'sideways': 'forward' or 'backward' is needed"},
        {"[[(9, 9)]]", NULL, "f.py:1: stage 0, instruction 0: 9: 'forward' or 'backward' is needed"},
        {"[[('forward', -9)]]", NULL,
         "f.py:1: stage 0, instruction 0: -9: a frequency in whole MHz above 0 is needed, such as 1410"},
        {"[[('forward', 9.5)]]", NULL,
         "f.py:1: stage 0, instruction 0: 9.5: a frequency in whole MHz above 0 is needed, such as 1410"},
        {"[[('forward', '1410')]]", NULL,
         "f.py:1: stage 0, instruction 0: '1410': a frequency in whole MHz above 0 is needed, such as 1410"},
        {"[[('forward', [None, 'a long one', 'and a longer one', 9.25e-7])]]", NULL,
         "f.py:1: stage 0, instruction 0: [None, 'a long one', 'and a longer on...: a frequency in whole MHz "
         "above 0 is needed, such as 1410"},
        {"[]", NULL, "f.py: no stages: at least one is needed"},
        {"[[('forward', 9)], []]", NULL, "f.py: stage 1: no instructions: at least one is needed"},
        // Comments.
        {"[[('forward', 9)]]\n# Iteration 7 total cost: much", NULL,
         "f.py:2: '# Iteration 7 total cost: much': '# Iteration NUMBER total cost: JOULES' is needed"},
        {"[[('forward', 9)]]\n# Iteration -7 cost change: 1", NULL,
         "f.py:2: '# Iteration -7 cost change: 1': '# Iteration NUMBER cost change: JOULES' is needed"},
        {"[[('forward', 9)]]\n# Iteration 7 cost change: 1\n# Iteration 8 total cost with P2P: 1", NULL,
         "f.py:3: iteration 8 where a line above says 7: one file holds one iteration"},
        // Launches.
        {FREQS, "9",
         "s.py:1: an integer where a list of stages is needed: [[('forward', 'norm_0-none-12-1024', ...), "
         "...], ...]"},
        {FREQS, "[[]]", "s.py:1: 1 stages where f.py has 2: both files must match"},
        {FREQS, "[[('forward',)],\n[]]",
         "s.py:1: stage 0: 1 instructions where f.py has 2: both files must match"},
        {FREQS, "[[('forward',), ('backward',)],\n[('backward',), ('backward',)]]",
         "s.py:2: stage 1, instruction 0: 'backward': f.py has forward here, and both files must match"},
        {FREQS, "[[('forward',), ()],\n[('backward',), ('backward',)]]",
         "s.py:1: stage 0, instruction 1: (): a tuple is needed, such as ('forward', 'norm_0-none-12-1024')"},
        {"[[('forward', 9)]]", "[[('forward', 'norm_0-none-0-1024')]]",
         "s.py:1: stage 0, instruction 0: 'norm_0-none-0-1024': " LAUNCH_NEEDED},
        {"[[('forward', 9)]]", "[[('forward', 'norm_0-none-1')]]",
         "s.py:1: stage 0, instruction 0: 'norm_0-none-1': " LAUNCH_NEEDED},
        {"[[('forward', 9)]]", "[[('forward', 'norm_0--1-1024')]]",
         "s.py:1: stage 0, instruction 0: 'norm_0--1-1024': " LAUNCH_NEEDED},
        {"[[('forward', 9)]]", "[[('forward', 'norm_0-none-1-1024-1')]]",
         "s.py:1: stage 0, instruction 0: 'norm_0-none-1-1024-1': " LAUNCH_NEEDED},
        {"[[('forward', 9)]]", "[[('forward', 'sequential', None)]]",
         "s.py:1: stage 0, instruction 0: None: " LAUNCH_NEEDED},
        {"[[('forward', 9)]]",
         "[[('forward', 'default', 'default', 'default', 'default', 'default', 'default', 'default', "
         "'default', 'default', 'default', 'default', 'default', 'default', 'default', 'default', "
         "'default', 'default')]]",
         "s.py:1: stage 0, instruction 0: 17 launches: at most 16 are read"},
        {FREQS,
         "[[('forward', 'default'), ('backward',)], [('forward', 'default', 'default'), ('backward',)]]",
         "s.py: stage 1, instruction 0: a forward with 2 launches where the forward of stage 0, instruction "
         "0 has 1: all of a kind need as many"},
        {"[[('forward', 9)]]\n# Iteration 7 cost change: 1.5",
         "[[('forward',)]]\n# Iteration 8 total cost: 1",
         "s.py: of iteration 8 where f.py is of iteration 7: both files must be of one plan"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_auto(NjPlan) plan = {0};
        ck_assert_msg(!parse(rows[i].freqs, rows[i].scheds, &plan, NULL, &error), "%s", rows[i].message);
        nj_assert_error(error, rows[i].message);
        ck_assert_uint_eq(plan.n_stages, 0);
    }

    GError *error = NULL;
    g_auto(NjPlan) plan = {0};
    g_autofree char *deep = g_strnfill(100000, '[');
    ck_assert(!parse(deep, NULL, &plan, NULL, &error));
    nj_assert_error(error, "f.py:1: nested deeper than 32");
    static const char NUL_INSIDE[] = "[[('forward', 9)\0]]";
    ck_assert(
        !nj_plan_files_parse("f.py", NUL_INSIDE, sizeof NUL_INSIDE - 1, NULL, NULL, 0, &plan, NULL, &error));
    nj_assert_error(error, "f.py:1: byte 0x00 where ',' or ']' (opened at line 1) is expected");
}
END_TEST

START_TEST(floats_as_python_writes_them)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0, "0.0"},
        {300, "300.0"},
        {1841.1092651600488, "1841.1092651600488"},
        {0.1, "0.1"},
        {-2.5, "-2.5"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {1.5e300, "1.5e+300"},
        {0.0001, "0.0001"},
        {0.00001, "1e-05"},
        {0.1 + 0.2, "0.30000000000000004"},
        {123456, "123456.0"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GString) out = g_string_new(NULL);
        nj_python_append_float(rows[i].value, out);
        ck_assert_str_eq(out->str, rows[i].text);
    }
}
END_TEST

// Whatever is read from a damaged file is refused, or a valid plan that survives a round trip.
START_TEST(damaged_files_never_crash)
{
    g_autofree char *freqs_path = nj_test_fixture("plans/freqs_pipeline_00042.py");
    g_autofree char *scheds_path = nj_test_fixture("plans/scheds_pipeline_00042.py");
    g_autofree char *freqs_text = read_text(freqs_path);
    g_autofree char *scheds_text = read_text(scheds_path);
    guint read = 0, refused = 0;
    for (guint32 seed = 0; seed < 20000; seed++) {
        g_autoptr(GError) error = NULL;
        g_auto(NjPlan) plan = {0};
        NjPlanCosts costs;
        g_autofree char *freqs = seed % 2 == 0 ? nj_test_mutate(freqs_text, seed) : g_strdup(freqs_text);
        g_autofree char *scheds = seed % 2 == 1 ? nj_test_mutate(scheds_text, seed) : g_strdup(scheds_text);
        if (!parse(freqs, scheds, &plan, &costs, &error)) {
            ck_assert(g_str_has_prefix(error->message, "f.py:") || g_str_has_prefix(error->message, "s.py:"));
            refused++;
            continue;
        }
        g_auto(NjPlan) back = {0};
        g_autofree char *freqs_again = nj_plan_freqs_format(&plan, &costs);
        g_autofree char *scheds_again = nj_plan_scheds_format(&plan, &costs);
        nj_assert_ok(parse(freqs_again, scheds_again, &back, NULL, &error), error);
        ck_assert(nj_plan_equal(&plan, &back));
        read++;
    }
    ck_assert_msg(read > 100 && refused > 10000, "%u read, %u refused", read, refused);
}
END_TEST

START_TEST(reference_files)
{
    static const struct {
        const char *freqs, *scheds;
        gint64 iteration;
    } rows[] = {
        {"raw/freqs_pipeline_01941.py", NULL, 1941},
        {"raw/freqs_pipeline_02495.py", "raw/scheds_pipeline_02495.py", 2495},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_auto(NjPlan) plan = {0};
        NjPlanCosts costs;
        g_autofree char *freqs_path = nj_test_reference(rows[i].freqs);
        g_autofree char *scheds_path = rows[i].scheds != NULL ? nj_test_reference(rows[i].scheds) : NULL;
        if (freqs_path == NULL || (rows[i].scheds != NULL && scheds_path == NULL))
            return;
        nj_assert_ok(nj_plan_files_read(freqs_path, scheds_path, &plan, &costs, &error), error);
        ck_assert_int_eq(costs.iteration, rows[i].iteration);
        ck_assert_uint_eq(plan.n_stages, 2);
        ck_assert_uint_eq(plan.stages[1].n_instructions, 16);
        ck_assert_uint_eq(plan.stages[0].instructions[2].n_launches, scheds_path != NULL ? 4 : 0);
        g_autofree char *freqs_text = read_text(freqs_path);
        g_autofree char *freqs = nj_plan_freqs_format(&plan, &costs);
        ck_assert_str_eq(freqs, freqs_text);
        if (scheds_path != NULL) {
            g_autofree char *scheds_text = read_text(scheds_path);
            g_autofree char *scheds = nj_plan_scheds_format(&plan, &costs);
            ck_assert_str_eq(scheds, scheds_text);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan-files");
    TCase *tests = tcase_create("plan-files");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, golden_pair);
    tcase_add_test(tests, writes_files_whole);
    tcase_add_test(tests, tolerates_python);
    tcase_add_test(tests, launch_form);
    tcase_add_test(tests, errors_name_file_line_and_what_is_right);
    tcase_add_test(tests, floats_as_python_writes_them);
    tcase_add_test(tests, damaged_files_never_crash);
    tcase_add_test(tests, reference_files);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
