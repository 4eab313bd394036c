// SPDX-License-Identifier: MIT
#include "schedules/plan-table.h"
#include "sim/error.h"
#include "tests/testing.h"

#include <math.h>
#include <string.h>

static char *read_fixture(void)
{
    g_autofree char *path = nj_test_fixture("plans/plans.csv");
    char *text = NULL;
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

START_TEST(reads_rows)
{
    GError *error = NULL;
    g_autofree char *path = nj_test_fixture("plans/plans.csv");
    g_autoptr(NjPlanTable) table = nj_plan_table_read(path, &error);
    nj_assert_ok(table != NULL, error);
    ck_assert_uint_eq(table->n_rows, 4);

    const NjPlanRow *three = &table->rows[0];
    ck_assert_str_eq(three->plan_id, "home/three");
    ck_assert_int_eq(three->method, NJ_METHOD_KAREUS);
    ck_assert_str_eq(three->model, "my model, v2");
    ck_assert_uint_eq(three->cp, 1);
    ck_assert_uint_eq(three->tp, 8);
    ck_assert_uint_eq(three->microbatch_size, 4);
    ck_assert_uint_eq(three->seq_len, 2048);
    ck_assert_uint_eq(three->microbatches, 2);
    ck_assert_double_eq(three->time_s, 1.5);
    ck_assert_double_eq(three->dynamic_energy_j, 10.25);
    ck_assert_double_eq(three->total_energy_j, 392.75);
    ck_assert_uint_eq(three->line, 2);
    ck_assert_uint_eq(three->plan.n_stages, 3);

    g_auto(NjPlan) expected = {0};
    const NjLaunch sequential = {NJ_LAUNCH_SEQUENTIAL};
    const NjLaunch norm_12 = {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 12};
    const NjLaunch norm_6 = {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 6};
    const NjPlanInstruction instructions[3][4] = {
        {{NJ_FORWARD, 1410, 2, {norm_12, sequential}},
         {NJ_FORWARD, 900, 2, {{NJ_LAUNCH_DEFAULT}, {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_LINEAR, 2, 3}}},
         {NJ_BACKWARD, 1380, 1, {{NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ATTENTION, 0, 21}}},
         {NJ_BACKWARD, 1410, 1, {{NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ROPE, 0, 6}}}},
        {{NJ_FORWARD, 1410, 2, {norm_12, norm_6}},
         {NJ_FORWARD, 1350, 2, {norm_12, norm_6}},
         {NJ_BACKWARD, 1350, 1, {sequential}},
         {NJ_BACKWARD, 1410, 1, {sequential}}},
        {{NJ_FORWARD, 1410, 2, {norm_12, norm_6}},
         {NJ_BACKWARD, 1350, 1, {{NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ACTIVATION, 0, 30}}},
         {NJ_FORWARD, 1350, 2, {norm_12, norm_6}},
         {NJ_BACKWARD, 1410, 1, {sequential}}},
    };
    nj_plan_init(&expected, 3);
    for (guint s = 0; s < 3; s++)
        for (guint i = 0; i < 4; i++)
            nj_plan_append(&expected, s, &instructions[s][i]);
    ck_assert(nj_plan_equal(&three->plan, &expected));

    const NjPlanRow *one = &table->rows[1];
    ck_assert_int_eq(one->method, NJ_METHOD_MEGATRON);
    ck_assert_uint_eq(one->plan.n_stages, 1);
    ck_assert(isnan(one->time_s) && isnan(one->dynamic_energy_j) && isnan(one->total_energy_j));
    ck_assert(!nj_plan_has_launches(&one->plan));
    ck_assert_int_eq(table->rows[2].method, NJ_METHOD_NANOBATCHING_PERSEUS);
    ck_assert_int_eq(table->rows[3].method, NJ_METHOD_MEGATRON_PERSEUS);
    ck_assert_uint_eq(table->rows[3].line, 5);
}
END_TEST

START_TEST(writes_the_same_bytes)
{
    GError *error = NULL;
    g_autofree char *text = read_fixture();
    g_autoptr(NjPlanTable) table = nj_plan_table_parse("t.csv", text, &error);
    nj_assert_ok(table != NULL, error);
    g_autofree char *again = nj_plan_table_format(table);
    ck_assert_str_eq(again, text);
}
END_TEST

START_TEST(writes_no_launch_columns_without_launches)
{
    g_autoptr(NjPlanTable) table = g_new0(NjPlanTable, 1);
    for (guint i = 0; i < 5; i++) {
        NjPlanRow *row = nj_plan_table_add(table);
        row->plan_id = g_strdup_printf("say \"%u\"", i);
        row->model = g_strdup("m");
        row->cp = row->tp = row->microbatch_size = row->seq_len = row->microbatches = 1;
        nj_plan_init(&row->plan, 1);
        nj_plan_append(&row->plan, 0, &(NjPlanInstruction){NJ_FORWARD, 900});
        nj_plan_append(&row->plan, 0, &(NjPlanInstruction){NJ_BACKWARD, 930});
    }
    table->rows[4].time_s = 1e-20;
    g_autofree char *text = nj_plan_table_format(table);
    ck_assert_str_eq(text, "plan_id,method,model,cp,tp,microbatch_size,seq_len,pipeline_stages,microbatches,"
                           "time_s,dynamic_energy_j,total_energy_j,stage0_freq_mhz\n"
                           "\"say \"\"0\"\"\",megatron,m,1,1,1,1,1,1,,,,F900 B930\n"
                           "\"say \"\"1\"\"\",megatron,m,1,1,1,1,1,1,,,,F900 B930\n"
                           "\"say \"\"2\"\"\",megatron,m,1,1,1,1,1,1,,,,F900 B930\n"
                           "\"say \"\"3\"\"\",megatron,m,1,1,1,1,1,1,,,,F900 B930\n"
                           "\"say \"\"4\"\"\",megatron,m,1,1,1,1,1,1,1e-20,,,F900 B930\n");
    GError *error = NULL;
    g_autoptr(NjPlanTable) back = nj_plan_table_parse("t.csv", text, &error);
    nj_assert_ok(back != NULL, error);
    ck_assert_double_eq(back->rows[4].time_s, 1e-20);
}
END_TEST

#define FIXED                                                                                                \
    "plan_id,method,model,cp,tp,microbatch_size,seq_len,pipeline_stages,microbatches,time_s,"                \
    "dynamic_energy_j,total_energy_j"
#define HEADER FIXED ",stage0_freq_mhz,stage1_freq_mhz,stage0_launch,stage1_launch\n"
#define KAREUS(LAUNCHES) HEADER "a,kareus,m,1,8,8,4096,2,1,,,,F9 B9,F9 B9," LAUNCHES "\n"

START_TEST(errors_name_line_column_and_token)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        // The header.
        {HEADER, "t.csv: no plans: at least one row is needed"},
        {"plan_id,method\n", "t.csv:1: no column 'model'; the header has plan_id,method"},
        {FIXED "\n", "t.csv:1: no column 'stage0_freq_mhz'; the header has " FIXED},
        {FIXED ",stage1_freq_mhz\n",
         "t.csv:1: no column 'stage0_freq_mhz'; the header has " FIXED ",stage1_freq_mhz"},
        {FIXED ",stage0_freq_mhz,stage1_launch\n",
         "t.csv:1: no column 'stage1_freq_mhz'; the header has " FIXED ",stage0_freq_mhz,stage1_launch"},
        {FIXED ",stage0_freq_mhz,cp\n", "t.csv:1: column 'cp' is there twice"},
        {FIXED ",stage0_freq\n",
         "t.csv:1: column 'stage0_freq' is not known: stageK_freq_mhz, stageK_launch with "
         "K from 0 and the columns from plan_id to total_energy_j are"},
        {FIXED ",stage9999_launch\n",
         "t.csv:1: column 'stage9999_launch' is not known: stageK_freq_mhz, stageK_launch with K from 0 and "
         "the columns from plan_id to total_energy_j are"},
        // What the plan was made for.
        {HEADER ",kareus,m,1,8,8,4096,2,1,,,,F9 B9,F9 B9,,\n",
         "t.csv:2: plan_id = '': a name for the plan is needed"},
        {HEADER "a,kareus,m,1,8,8,4096,2,1,,,,F9 B9,F9 B9,,\na,kareus,m,1,8,8,4096,2,1,,,,F9 B9,F9 B9,,\n",
         "t.csv:3: plan_id = 'a': line 2 has this plan_id already"},
        {HEADER "a,zeus,m,1,8,8,4096,2,1,,,,F9 B9,F9 B9,,\n",
         "t.csv:2: method = 'zeus': megatron, megatron+perseus, nanobatching+perseus or kareus is needed"},
        {HEADER "a,kareus,,1,8,8,4096,2,1,,,,F9 B9,F9 B9,,\n",
         "t.csv:2: model = '': the name of a model is needed"},
        {HEADER "a,kareus,m,0,8,8,4096,2,1,,,,F9 B9,F9 B9,,\n",
         "t.csv:2: cp = '0': an integer from 1 to 2147483647 is needed"},
        {HEADER "a,kareus,m,1,8.0,8,4096,2,1,,,,F9 B9,F9 B9,,\n",
         "t.csv:2: tp = '8.0': an integer from 1 to 2147483647 is needed"},
        {HEADER "a,kareus,m,1,8,-8,4096,2,1,,,,F9 B9,F9 B9,,\n",
         "t.csv:2: microbatch_size = '-8': an integer from 1 to 2147483647 is needed"},
        {HEADER "a,kareus,m,1,8,8,4k,2,1,,,,F9 B9,F9 B9,,\n",
         "t.csv:2: seq_len = '4k': an integer from 1 to 2147483647 is needed"},
        {HEADER "a,kareus,m,1,8,8,4096,2,,,,,F9 B9,F9 B9,,\n",
         "t.csv:2: microbatches = '': an integer from 1 to 2147483647 is needed"},
        {HEADER "a,kareus,m,1,8,8,4096,3,1,,,,F9 B9,F9 B9,,\n",
         "t.csv:2: pipeline_stages = '3': the header has columns for 2"},
        {HEADER "a,kareus,m,1,8,8,4096,1,1,,,,F9 B9,F9 B9,,\n",
         "t.csv:2: stage1_freq_mhz = 'F9 B9': nothing is needed here: pipeline_stages = 1"},
        {HEADER "a,kareus,m,1,8,8,4096,1,1,,,,F9 B9,,,F:default B:default\n",
         "t.csv:2: stage1_launch = 'F:default B:default': nothing is needed here: pipeline_stages = 1"},
        // Figures.
        {HEADER "a,kareus,m,1,8,8,4096,2,1,0,,,F9 B9,F9 B9,,\n",
         "t.csv:2: time_s = '0': a number above 0, or nothing, is needed"},
        {HEADER "a,kareus,m,1,8,8,4096,2,1,,nan,,F9 B9,F9 B9,,\n",
         "t.csv:2: dynamic_energy_j = 'nan': a number above 0, or nothing, is needed"},
        {HEADER "a,kareus,m,1,8,8,4096,2,1,,,3 J,F9 B9,F9 B9,,\n",
         "t.csv:2: total_energy_j = '3 J': a number above 0, or nothing, is needed"},
        // Frequencies.
        {HEADER "a,kareus,m,1,8,8,4096,2,1,,,,F9 B9,F9 X9,,\n",
         "t.csv:2: stage1_freq_mhz, token 2: 'X9': F or B and a frequency in whole MHz is needed, such as "
         "F1410"},
        {HEADER "a,kareus,m,1,8,8,4096,2,1,,,,F B9,F9 B9,,\n",
         "t.csv:2: stage0_freq_mhz, token 1: 'F': F or B and a frequency in whole MHz is needed, such as "
         "F1410"},
        {HEADER "a,kareus,m,1,8,8,4096,2,1,,,,F0 B9,F9 B9,,\n",
         "t.csv:2: stage0_freq_mhz, token 1: 'F0': F or B and a frequency in whole MHz is needed, such as "
         "F1410"},
        {HEADER "a,kareus,m,1,8,8,4096,2,1,,,,F9 B9.5,F9 B9,,\n",
         "t.csv:2: stage0_freq_mhz, token 2: 'B9.5': F or B and a frequency in whole MHz is needed, such as "
         "F1410"},
        {HEADER "a,kareus,m,1,8,8,4096,2,1,,,,F9 B9 F9,F9 B9,,\n",
         "t.csv:2: stage0_freq_mhz: 2 forward instructions where microbatches = 1: one for every microbatch "
         "is "
         "needed"},
        {HEADER "a,kareus,m,1,8,8,4096,2,1,,,,F9 B9,F9,,\n",
         "t.csv:2: stage1_freq_mhz: 0 backward instructions where microbatches = 1: one for every microbatch "
         "is needed"},
        // Launches.
        {HEADER "a,megatron+perseus,m,1,8,8,4096,2,1,,,,F9 B9,F9 B9,F:default B:default,\n",
         "t.csv:2: stage0_launch = 'F:default B:default': nothing is needed here: method megatron+perseus "
         "has no "
         "launch choices"},
        {KAREUS("F:default,F:default B:default"),
         "t.csv:2: stage0_launch: 1 instructions where stage0_freq_mhz has 2: one for each is needed"},
        {KAREUS("F:default B:default,F:default F:default"),
         "t.csv:2: stage1_launch, token 2: 'F:default': B: and its launches is needed, as the instruction is "
         "a "
         "backward"},
        {KAREUS("F:default default,"),
         "t.csv:2: stage0_launch, token 2: 'default': B: and its launches is needed, as the instruction is a "
         "backward"},
        {KAREUS("\"F:norm_0@12,norm_0 B:default\","),
         "t.csv:2: stage0_launch, token 1: launch 'norm_0': KERNEL_INDEX@SMS with KERNEL of norm, linear, "
         "rope, "
         "attn, activation (such as norm_0@12), sequential or default is needed"},
        {KAREUS("\"F:norm_0@12, B:default\","),
         "t.csv:2: stage0_launch, token 1: launch '': KERNEL_INDEX@SMS with KERNEL of norm, linear, rope, "
         "attn, activation (such as norm_0@12), sequential or default is needed"},
        {KAREUS("\"F:a,a B:default\","), "t.csv:2: stage0_launch, token 1: launch 'a': KERNEL_INDEX@SMS with "
                                         "KERNEL of norm, linear, rope, attn, "
                                         "activation (such as norm_0@12), sequential or default is needed"},
        {KAREUS("\"F:default B:default\",\"F:default,default B:default\""),
         "t.csv:2: stage 1, instruction 0: a forward with 2 launches where the forward of stage 0, "
         "instruction 0 "
         "has 1: all of a kind need as many"},
        {KAREUS("F:default B:default,"), "t.csv:2: stage 1, instruction 0: a forward with 0 launches where "
                                         "the forward of stage 0, instruction 0 "
                                         "has 1: all of a kind need as many"},
        {KAREUS(
             "\"F:rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,"
             "rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1 B:default\","),
         "t.csv:2: stage0_launch, token 1: 'rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,"
         "rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1,rope_0@1': 17 "
         "launches: at most 16 are read"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        ck_assert_msg(nj_plan_table_parse("t.csv", rows[i].text, &error) == NULL, "%s", rows[i].message);
        nj_assert_error(error, rows[i].message);
    }
    GError *error = NULL;
    ck_assert_ptr_null(nj_plan_table_read("/nowhere/plans.csv", &error));
    ck_assert_ptr_nonnull(strstr(error->message, "/nowhere/plans.csv"));
    g_clear_error(&error);
}
END_TEST

START_TEST(damaged_tables_never_crash)
{
    g_autofree char *text = read_fixture();
    guint read = 0, refused = 0;
    for (guint32 seed = 0; seed < 10000; seed++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *damaged = nj_test_mutate(text, seed);
        g_autoptr(NjPlanTable) table = nj_plan_table_parse("t.csv", damaged, &error);
        if (table == NULL) {
            ck_assert_msg(g_str_has_prefix(error->message, "t.csv:"), "%s", error->message);
            refused++;
            continue;
        }
        g_autofree char *once = nj_plan_table_format(table);
        g_autoptr(NjPlanTable) back = nj_plan_table_parse("t.csv", once, &error);
        nj_assert_ok(back != NULL, error);
        ck_assert_uint_eq(back->n_rows, table->n_rows);
        for (guint r = 0; r < back->n_rows; r++)
            ck_assert(nj_plan_equal(&back->rows[r].plan, &table->rows[r].plan));
        read++;
    }
    ck_assert_msg(read > 100 && refused > 5000, "%u read, %u refused", read, refused);
}
END_TEST

START_TEST(reference_table)
{
    GError *error = NULL;
    guint n_of_method[NJ_N_METHODS] = {0};
    g_autofree char *path = nj_test_reference("plans.csv");
    if (path == NULL)
        return;
    g_autoptr(NjPlanTable) table = nj_plan_table_read(path, &error);
    nj_assert_ok(table != NULL, error);
    ck_assert_uint_eq(table->n_rows, 146);
    for (guint r = 0; r < table->n_rows; r++) {
        const NjPlanRow *row = &table->rows[r];
        n_of_method[row->method]++;
        ck_assert_uint_eq(row->microbatches, 8);
        ck_assert_uint_eq(row->plan.n_stages, 2);
        ck_assert_uint_eq(row->plan.stages[0].n_instructions, 16);
        ck_assert_int_eq(nj_plan_has_launches(&row->plan), row->method == NJ_METHOD_KAREUS);
        // The planner's static power: 85 W, two stages.
        ck_assert_double_eq_tol(row->total_energy_j - row->dynamic_energy_j, 170 * row->time_s, 0.01);
    }
    ck_assert_uint_eq(n_of_method[NJ_METHOD_KAREUS], 6);
    ck_assert_uint_eq(n_of_method[NJ_METHOD_MEGATRON_PERSEUS], 70);
    ck_assert_uint_eq(n_of_method[NJ_METHOD_NANOBATCHING_PERSEUS], 70);

    g_autofree char *text = NULL;
    g_autofree char *again = nj_plan_table_format(table);
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    ck_assert_str_eq(again, text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan-table");
    TCase *tests = tcase_create("plan-table");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, reads_rows);
    tcase_add_test(tests, writes_the_same_bytes);
    tcase_add_test(tests, writes_no_launch_columns_without_launches);
    tcase_add_test(tests, errors_name_line_column_and_token);
    tcase_add_test(tests, damaged_tables_never_crash);
    tcase_add_test(tests, reference_table);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
