// SPDX-License-Identifier: MIT
#include "schedules/profile.h"
#include "sim/error.h"
#include "tests/testing.h"

#include <string.h>

START_TEST(reads_any_order_and_names)
{
    GError *error = NULL;
    g_autoptr(NjProfile) profile = nj_profile_parse("p.csv",
                                                    "energy,time,frequency,instruction,stage\n"
                                                    "30,0.1,1410,B,1\n"
                                                    "20,0.2,900.0,F,1\n"
                                                    "10.5,0.3,1410,backward,0\n"
                                                    "0,1e-3,1410,forward,0\n",
                                                    &error);
    nj_assert_ok(profile != NULL, error);
    ck_assert_uint_eq(profile->n_stages, 2);
    ck_assert_uint_eq(profile->n_rows, 4);
    ck_assert(!nj_profile_has_launches(profile));
    ck_assert_uint_eq(profile->rows[1].stage, 1);
    ck_assert_int_eq(profile->rows[1].instruction.kind, NJ_FORWARD);
    ck_assert_uint_eq(profile->rows[1].instruction.freq_mhz, 900);
    ck_assert_double_eq(profile->rows[1].time_s, 0.2);
    ck_assert_double_eq(profile->rows[1].energy_j, 20);
    ck_assert_uint_eq(profile->rows[1].line, 3);
    ck_assert_int_eq(profile->rows[2].instruction.kind, NJ_BACKWARD);

    g_autofree char *text = nj_profile_format(profile);
    ck_assert_str_eq(text, "stage,instruction,frequency,time,energy\n"
                           "1,backward,1410,0.1,30.0\n"
                           "1,forward,900,0.2,20.0\n"
                           "0,backward,1410,0.3,10.5\n"
                           "0,forward,1410,0.001,0.0\n");
}
END_TEST

START_TEST(launches_round_trip)
{
    GError *error = NULL;
    g_autofree char *path = nj_test_fixture("profiles/launches.csv");
    g_autoptr(NjProfile) profile = nj_profile_read(path, &error);
    nj_assert_ok(profile != NULL, error);
    ck_assert(nj_profile_has_launches(profile));
    const NjPlanInstruction *second = &profile->rows[1].instruction;
    ck_assert_uint_eq(second->n_launches, 2);
    ck_assert(nj_launch_equal(&second->launches[0], &(NjLaunch){NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 12}));
    ck_assert(nj_launch_equal(&second->launches[1], &(NjLaunch){NJ_LAUNCH_AT, NJ_LAUNCH_KERNEL_NORM, 0, 6}));

    g_autofree char *text = NULL;
    g_autofree char *again = nj_profile_format(profile);
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    ck_assert_str_eq(again, text);
}
END_TEST

#define HEADER "stage,instruction,frequency,time,energy\n"
#define WITH_LAUNCH "stage,instruction,frequency,time,energy,launch\n"

START_TEST(errors_name_line_and_what_is_right)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"stage,instruction,frequency,time\n",
         "p.csv:1: no column 'energy'; the header has stage,instruction,frequency,time"},
        {"stage,instruction,frequency,time,energy,lanuch\n",
         "p.csv:1: column 'lanuch' is not known: stage, instruction, frequency, time, energy and launch are"},
        {"stage,instruction,frequency,time,energy,time\n", "p.csv:1: column 'time' is there twice"},
        {HEADER, "p.csv: no measurements: at least two rows are needed"},
        {HEADER "-1,forward,1410,1,1\n", "p.csv:2: stage = '-1': an integer from 0 to 2147483646 is needed"},
        {HEADER "0,sideways,1410,1,1\n",
         "p.csv:2: instruction = 'sideways': forward or backward (F, B) is needed"},
        {HEADER "0,FB,1410,1,1\n", "p.csv:2: instruction = 'FB': forward or backward (F, B) is needed"},
        {HEADER "0,forward,0,1,1\n", "p.csv:2: frequency = '0': a frequency in whole MHz above 0 is needed"},
        {HEADER "0,forward,1.41e-1,1,1\n",
         "p.csv:2: frequency = '1.41e-1': a frequency in whole MHz above 0 is needed"},
        {HEADER "0,forward,1410.5,1,1\n",
         "p.csv:2: frequency = '1410.5': a frequency in whole MHz above 0 is needed"},
        {HEADER "0,forward,1410,nan,1\n", "p.csv:2: time = 'nan': a time in seconds above 0 is needed"},
        {HEADER "0,forward,1410,0,1\n", "p.csv:2: time = '0': a time in seconds above 0 is needed"},
        {HEADER "0,forward,1410,1,1\n0,backward,1410,-1,1\n",
         "p.csv:3: time = '-1': a time in seconds above 0 is needed"},
        {HEADER "0,forward,1410,1 s,1\n", "p.csv:2: time = '1 s': a time in seconds above 0 is needed"},
        {HEADER "0,forward,1410,1,NaN\n",
         "p.csv:2: energy = 'NaN': an energy in joules of at least 0 is needed"},
        {HEADER "0,forward,1410,1,inf\n",
         "p.csv:2: energy = 'inf': an energy in joules of at least 0 is needed"},
        {HEADER "0,forward,1410,1,-0.5\n",
         "p.csv:2: energy = '-0.5': an energy in joules of at least 0 is needed"},
        {HEADER "0,forward,1410,1,\n", "p.csv:2: energy = '': an energy in joules of at least 0 is needed"},
        {HEADER "0,forward,1410,1,1\n0,backward,1410,1,1\n\n0,F,1410,2,2\n",
         "p.csv:5: stage 0 forward at 1410 MHz again, as in line 2: each combination may come once"},
        {WITH_LAUNCH "0,forward,1410,1,1,\"norm_0@3,default\"\n0,forward,1410,1,1,\"norm_0@3,default\"\n",
         "p.csv:3: stage 0 forward at 1410 MHz norm_0@3,default again, as in line 2: each combination may "
         "come "
         "once"},
        {HEADER "0,forward,1410,1,1\n1,forward,1410,1,1\n1,backward,1410,1,1\n",
         "p.csv: no backward of stage 0: every stage from 0 to 1 needs a forward and a backward"},
        {HEADER "0,forward,1410,1,1\n0,backward,1410,1,1\n2147483646,backward,1410,1,1\n",
         "p.csv: no forward of stage 1: every stage from 0 to 2147483646 needs a forward and a backward"},
        {WITH_LAUNCH "0,forward,1410,1,1,norm_0\n",
         "p.csv:2: launch: launch 'norm_0': KERNEL_INDEX@SMS with KERNEL of norm, linear, rope, attn, "
         "activation (such as norm_0@12), sequential or default is needed"},
        {WITH_LAUNCH "0,forward,1410,1,1,norm_0@3\n0,backward,900,1,1,\n0,forward,900,1,1,\n",
         "p.csv:4: a forward with 0 launches where that of line 2 has 1: all of a kind need as many"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        ck_assert_msg(nj_profile_parse("p.csv", rows[i].text, &error) == NULL, "%s", rows[i].message);
        nj_assert_error(error, rows[i].message);
    }
    GError *error = NULL;
    ck_assert_ptr_null(nj_profile_read("/nowhere/profile.csv", &error));
    ck_assert_ptr_nonnull(strstr(error->message, "/nowhere/profile.csv"));
    g_clear_error(&error);
}
END_TEST

START_TEST(damaged_profiles_never_crash)
{
    g_autofree char *path = nj_test_fixture("profiles/launches.csv");
    g_autofree char *text = NULL;
    guint read = 0, refused = 0;
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    for (guint32 seed = 0; seed < 10000; seed++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *damaged = nj_test_mutate(text, seed);
        g_autoptr(NjProfile) profile = nj_profile_parse("p.csv", damaged, &error);
        if (profile == NULL) {
            ck_assert_msg(g_str_has_prefix(error->message, "p.csv:"), "%s", error->message);
            refused++;
            continue;
        }
        g_autofree char *once = nj_profile_format(profile);
        g_autoptr(NjProfile) back = nj_profile_parse("p.csv", once, &error);
        nj_assert_ok(back != NULL, error);
        g_autofree char *twice = nj_profile_format(back);
        ck_assert_str_eq(twice, once);
        read++;
    }
    ck_assert_msg(read > 20 && refused > 5000, "%u read, %u refused", read, refused);
}
END_TEST

START_TEST(reference_profiles)
{
    static const struct {
        const char *name;
        guint n_stages;
    } rows[] = {
        {"oracle/profile_s2m8.csv", 2}, {"oracle/profile_s4m8.csv", 4}, {"oracle/profile_s8m32.csv", 8}};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_autofree char *path = nj_test_reference(rows[i].name);
        if (path == NULL)
            return;
        g_autoptr(NjProfile) profile = nj_profile_read(path, &error);
        nj_assert_ok(profile != NULL, error);
        ck_assert_uint_eq(profile->n_stages, rows[i].n_stages);
        ck_assert_uint_eq(profile->n_rows, rows[i].n_stages * 2 * 18);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile");
    TCase *tests = tcase_create("profile");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, reads_any_order_and_names);
    tcase_add_test(tests, launches_round_trip);
    tcase_add_test(tests, errors_name_line_and_what_is_right);
    tcase_add_test(tests, damaged_profiles_never_crash);
    tcase_add_test(tests, reference_profiles);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
