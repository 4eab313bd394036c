// SPDX-License-Identifier: MIT
#include "models/data.h"
#include "models/kernel-constants.h"
#include "tests/testing.h"

#include <glib/gstdio.h>
#include <string.h>

// Loads the shipped file with one text replaced by another; removes the copy.
static gboolean load_changed(const char *from, const char *to, NjKernelConstants *constants, GError **error)
{
    g_autofree char *shipped = nj_data_find("models/kernels/a100.ini");
    g_autofree char *text = NULL;
    ck_assert(g_file_get_contents(shipped, &text, NULL, NULL));
    ck_assert_msg(strstr(text, from) != NULL, "'%s' is not in the shipped file", from);
    g_auto(GStrv) parts = g_strsplit(text, from, 2);
    g_autofree char *changed = g_strjoinv(to, parts);
    ck_assert(g_file_set_contents("./changed.ini", changed, -1, NULL));
    const gboolean loaded = nj_kernel_constants_load(constants, "./changed.ini", error);
    g_remove("./changed.ini");
    return loaded;
}

START_TEST(loads_the_shipped_file)
{
    g_auto(NjKernelConstants) constants = {0};
    GError *error = NULL;
    nj_assert_ok(nj_kernel_constants_load(&constants, "a100", &error), error);
    ck_assert_str_eq(constants.measured_on, "NVIDIA A100-SXM4-80GB");
    ck_assert_int_eq(constants.measured_hardware.sm_count, 108);
    ck_assert_double_eq(constants.gemm.arithmetic_efficiency, 0.981);
    ck_assert_double_eq(constants.collective.end_share[NJ_COLLECTIVE_ALLTOALL], 0.576);
}
END_TEST

START_TEST(errors_name_what_would_be_right)
{
    static const struct {
        const char *from, *to, *message;
    } rows[] = {
        {"arithmetic_efficiency = 0.981", "arithmetic_efficiency = 1.2",
         "./changed.ini: [gemm] arithmetic_efficiency = 1.2: a number from 0.001 to 0.999 is needed"},
        {"launch_us = 2.405", "launch_us = 2.4 us",
         "./changed.ini: [gemm] launch_us = 2.4 us: a number from 0 to 1000 us is needed"},
        {"sm_count = 108", "sm_count = 0",
         "./changed.ini: [measured] sm_count = 0: an integer from 1 to 1024 SMs is needed"},
        {"simple_share = 0.791", "simple_share = nan",
         "./changed.ini: [collective] simple_share = nan: a number from 0.001 to 0.999 is needed"},
        {"tail_share = 0.503", "",
         "./changed.ini: [attention] tail_share: missing; needed: share of the longest "
         "tile that stays exposed"},
        {"tail_share = 0.503", "tail_share = 0.503\ntail = 3",
         "./changed.ini: [attention] tail: unknown key; known keys: launch_us, arithmetic_efficiency, "
         "tail_share, "
         "q_passes, kv_passes"},
        {"[attention]", "[attn]",
         "./changed.ini: [attn]: unknown group; known groups: measured, gemm, attention, collective"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        NjKernelConstants constants;
        GError *error = NULL;
        ck_assert_msg(!load_changed(rows[i].from, rows[i].to, &constants, &error), "%s", rows[i].to);
        nj_assert_error(error, rows[i].message);
    }
    NjKernelConstants constants;
    GError *error = NULL;
    ck_assert(!nj_kernel_constants_load(&constants, "b200", &error));
    nj_assert_error(error, "b200: not in models/kernels; shipped: a100, h100; or give the path of a .ini file");
}
END_TEST

// Every field can be set from a file and has bounds that say something.
START_TEST(fields_are_complete)
{
    guint n_fields;
    const NjField *fields = nj_kernel_constants_fields(&n_fields);
    gsize reals = 0;
    for (guint i = 0; i < n_fields; i++)
        if (fields[i].type == NJ_FIELD_REAL) {
            ck_assert_msg(fields[i].minimum < fields[i].maximum, "%s", fields[i].key);
            ck_assert_msg(fields[i].unit[0] != '\0', "%s has no unit", fields[i].key);
            reals++;
        }
    // measured_on and, padded to a double, sm_count are the only members that are no double.
    ck_assert_uint_eq(reals, (sizeof(NjKernelConstants) - sizeof(char *)) / sizeof(double) - 1);
}
END_TEST

START_TEST(collective_names)
{
    for (int kind = 0; kind < NJ_N_COLLECTIVES; kind++) {
        NjCollectiveKind parsed;
        ck_assert(nj_collective_parse(nj_collective_name((NjCollectiveKind)kind), &parsed));
        ck_assert_int_eq((int)parsed, kind);
    }
    NjCollectiveKind parsed;
    ck_assert(!nj_collective_parse("broadcast", &parsed));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel-constants");
    TCase *tests = tcase_create("kernel-constants");
    tcase_add_test(tests, loads_the_shipped_file);
    tcase_add_test(tests, errors_name_what_would_be_right);
    tcase_add_test(tests, fields_are_complete);
    tcase_add_test(tests, collective_names);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
