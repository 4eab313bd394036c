// SPDX-License-Identifier: MIT
#include "schedules/plan.h"
#include "tests/testing.h"

static const NjPlanInstruction FORWARD = {
    NJ_FORWARD, 1410, 2, {{NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 12}, {NJ_LAUNCH_SEQUENTIAL}}};
static const NjPlanInstruction BACKWARD = {NJ_BACKWARD, 900, 1, {{NJ_LAUNCH_DEFAULT}}};

// Two stages of one microbatch each, all alike but for one instruction of the second stage.
static void make_plan(const NjPlanInstruction *other, NjPlan *plan)
{
    nj_plan_init(plan, 2);
    nj_plan_append(plan, 0, &FORWARD);
    nj_plan_append(plan, 0, &BACKWARD);
    nj_plan_append(plan, 1, other);
    nj_plan_append(plan, 1, &BACKWARD);
}

START_TEST(copy_is_equal_and_separate)
{
    g_auto(NjPlan) plan = {0};
    g_auto(NjPlan) copy = {0};
    make_plan(&FORWARD, &plan);
    nj_plan_copy(&plan, &copy);
    ck_assert(nj_plan_equal(&plan, &copy));
    for (guint i = 0; i < 40; i++) // past every capacity
        nj_plan_append(&copy, 1, &BACKWARD);
    ck_assert(!nj_plan_equal(&plan, &copy));
    ck_assert_uint_eq(plan.stages[1].n_instructions, 2);
    ck_assert_uint_eq(copy.stages[1].n_instructions, 42);
    ck_assert_uint_eq(copy.stages[1].instructions[41].freq_mhz, 900);

    nj_plan_clear(&copy);
    nj_plan_clear(&copy);
    ck_assert_uint_eq(copy.n_stages, 0);
    ck_assert(!nj_plan_equal(&plan, &copy));
    ck_assert_uint_eq(nj_plan_add_stage(&copy), 0);
    g_auto(NjPlan) empty_stage = {0};
    nj_plan_copy(&copy, &empty_stage);
    ck_assert(nj_plan_equal(&copy, &empty_stage));
}
END_TEST

START_TEST(every_difference_counts)
{
    static const struct {
        const char *label;
        gboolean equal;
        NjPlanInstruction other;
    } rows[] = {
        {"same", TRUE, {NJ_FORWARD, 1410, 2, {{NJ_LAUNCH_AT, 0, 0, 12}, {NJ_LAUNCH_SEQUENTIAL}}}},
        {"unused fields",
         TRUE,
         {NJ_FORWARD, 1410, 2, {{NJ_LAUNCH_AT, 0, 0, 12}, {NJ_LAUNCH_SEQUENTIAL, 1, 2, 3}}}},
        {"kind", FALSE, {NJ_BACKWARD, 1410, 2, {{NJ_LAUNCH_AT, 0, 0, 12}, {NJ_LAUNCH_SEQUENTIAL}}}},
        {"frequency", FALSE, {NJ_FORWARD, 1380, 2, {{NJ_LAUNCH_AT, 0, 0, 12}, {NJ_LAUNCH_SEQUENTIAL}}}},
        {"number of launches", FALSE, {NJ_FORWARD, 1410, 1, {{NJ_LAUNCH_AT, 0, 0, 12}}}},
        {"kernel", FALSE, {NJ_FORWARD, 1410, 2, {{NJ_LAUNCH_AT, 1, 0, 12}, {NJ_LAUNCH_SEQUENTIAL}}}},
        {"index", FALSE, {NJ_FORWARD, 1410, 2, {{NJ_LAUNCH_AT, 0, 1, 12}, {NJ_LAUNCH_SEQUENTIAL}}}},
        {"SMs", FALSE, {NJ_FORWARD, 1410, 2, {{NJ_LAUNCH_AT, 0, 0, 15}, {NJ_LAUNCH_SEQUENTIAL}}}},
        {"mode", FALSE, {NJ_FORWARD, 1410, 2, {{NJ_LAUNCH_AT, 0, 0, 12}, {NJ_LAUNCH_DEFAULT}}}},
    };
    g_auto(NjPlan) plan = {0};
    make_plan(&FORWARD, &plan);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(NjPlan) other = {0};
        make_plan(&rows[i].other, &other);
        ck_assert_msg(nj_plan_equal(&plan, &other) == rows[i].equal, "%s", rows[i].label);
    }
}
END_TEST

START_TEST(validation_says_what_is_wrong)
{
    static const struct {
        const char *message; // NULL: valid
        NjPlanInstruction other;
    } rows[] = {
        {NULL, {NJ_FORWARD, 900, 2, {{NJ_LAUNCH_DEFAULT}, {NJ_LAUNCH_AT, 4, 9, 1}}}},
        {"stage 1, instruction 0: frequency 0 MHz: a positive one is needed", {NJ_FORWARD, 0, 2}},
        {"stage 1, instruction 0: kind number 7: 0 to 1 is needed", {(NjInstructionKind)7, 1410, 2}},
        {"stage 1, instruction 0: a forward with 0 launches where the forward of stage 0, instruction 0 has "
         "2: "
         "all of a kind need as many",
         {NJ_FORWARD, 1410, 0}},
        {"stage 1, instruction 0: a backward with 2 launches where the backward of stage 0, instruction 1 "
         "has "
         "1: all of a kind need as many",
         {NJ_BACKWARD, 1410, 2}},
        {"stage 1, instruction 0, launch 1: 0 SMs: at least 1 is needed",
         {NJ_FORWARD, 1410, 2, {{NJ_LAUNCH_DEFAULT}, {NJ_LAUNCH_AT, 0, 0, 0}}}},
        {"stage 1, instruction 0, launch 0: kernel number 5: 0 to 4 is needed",
         {NJ_FORWARD, 1410, 2, {{NJ_LAUNCH_AT, (NjLaunchKernel)5, 0, 3}}}},
        {"stage 1, instruction 0, launch 1: mode number 3: 0 to 2 is needed",
         {NJ_FORWARD, 1410, 2, {{NJ_LAUNCH_DEFAULT}, {(NjLaunchMode)3, 0, 0, 3}}}},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_auto(NjPlan) plan = {0};
        make_plan(&rows[i].other, &plan);
        const gboolean valid = nj_plan_validate(&plan, &error);
        if (rows[i].message == NULL)
            nj_assert_ok(valid, error);
        else
            nj_assert_error(error, rows[i].message);
    }

    GError *error = NULL;
    g_auto(NjPlan) empty = {0};
    ck_assert(!nj_plan_validate(&empty, &error));
    nj_assert_error(error, "no stages: at least one is needed");
    nj_plan_init(&empty, 1);
    ck_assert(!nj_plan_validate(&empty, &error));
    nj_assert_error(error, "stage 0: no instructions: at least one is needed");
    ck_assert(!nj_plan_has_launches(&empty));
}
END_TEST

START_TEST(launch_tokens_round_trip)
{
    static const struct {
        const char *token;
        NjLaunch launch;
    } good[] = {
        {"default", {NJ_LAUNCH_DEFAULT}},
        {"sequential", {NJ_LAUNCH_SEQUENTIAL}},
        {"norm_0@12", {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 12}},
        {"linear_1@3", {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_LINEAR, 1, 3}},
        {"rope_0@30", {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ROPE, 0, 30}},
        {"attn_0@1", {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ATTENTION, 0, 1}},
        {"activation_10@108", {NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_ACTIVATION, 10, 108}},
    };
    for (guint i = 0; i < G_N_ELEMENTS(good); i++) {
        NjLaunch launch;
        ck_assert_msg(nj_launch_parse(good[i].token, &launch), "%s", good[i].token);
        ck_assert_msg(nj_launch_equal(&launch, &good[i].launch), "%s", good[i].token);
        g_autoptr(GString) out = g_string_new(NULL);
        nj_launch_append(&launch, out);
        ck_assert_str_eq(out->str, good[i].token);
    }
    static const char *const bad[] = {"",         "norm",      "norm@12",           "norm_@12",  "norm_0",
                                      "norm_0@",  "norm_0@0",  "norm_0@-1",         "norm_-1@3", "norm_0@1.5",
                                      "Norm_0@3", "gemm_0@3",  "norm_0@3 ",         " norm_0@3", "norm_0@3@3",
                                      "defaults", "norm_0x@3", "norm_0@99999999999"};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        NjLaunch launch;
        ck_assert_msg(!nj_launch_parse(bad[i], &launch), "'%s' was read", bad[i]);
    }
}
END_TEST

START_TEST(instruction_names)
{
    NjInstructionKind kind;
    ck_assert(nj_instruction_kind_parse("backward", &kind) && kind == NJ_BACKWARD);
    ck_assert(nj_instruction_kind_parse("forward", &kind) && kind == NJ_FORWARD);
    ck_assert(!nj_instruction_kind_parse("Forward", &kind));
    ck_assert_str_eq(nj_instruction_kind_name(NJ_FORWARD), "forward");
    ck_assert_int_eq(nj_instruction_kind_letter(NJ_BACKWARD), 'B');
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *tests = tcase_create("plan");
    tcase_add_test(tests, copy_is_equal_and_separate);
    tcase_add_test(tests, every_difference_counts);
    tcase_add_test(tests, validation_says_what_is_wrong);
    tcase_add_test(tests, launch_tokens_round_trip);
    tcase_add_test(tests, instruction_names);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
