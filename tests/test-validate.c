// SPDX-License-Identifier: MIT
#include "models/kernel-time.h"
#include "scenarios/validate.h"
#include "tests/testing.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

static const NjValidateOptions no_options = {0};

static NjValidation *validate_text(const char *text, const NjValidateOptions *options, GError **error)
{
    ck_assert(g_file_set_contents("./rows.csv", text, -1, NULL));
    NjValidation *validation = nj_validation_new("./rows.csv", options, error);
    g_remove("./rows.csv");
    return validation;
}

// Runs the program; transfers what it printed.
static int run_program(const char *const *arguments, char **out, char **err)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_ptr_array_add(argv, (gpointer)g_getenv("NANOJOULE"));
    for (; *arguments != NULL; arguments++)
        g_ptr_array_add(argv, (gpointer)*arguments);
    g_ptr_array_add(argv, NULL);
    int status;
    GError *error = NULL;
    nj_assert_ok(g_spawn_sync(NULL, (char **)argv->pdata, NULL, G_SPAWN_DEFAULT, NULL, NULL, out, err,
                              &status, &error),
                 error);
    ck_assert(g_spawn_check_wait_status(status, NULL) || WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(statistics)
{
    NjKernelConstants constants;
    GError *error = NULL;
    nj_assert_ok(nj_kernel_constants_load(&constants, "a100", &error), error);
    const double predicted_ms =
        1e3 * nj_gemm_time(&constants, &constants.measured_hardware, 108, 512, 512, 512).total_s;
    nj_kernel_constants_clear(&constants);

    // Errors of the predictions: -50, -10, 0, +10, +100 %.
    static const double ratios[] = {0.5, 0.9, 1, 1.1, 2};
    g_autoptr(GString) text = g_string_new("m,n,k,latency_ms\n");
    for (guint i = 0; i < G_N_ELEMENTS(ratios); i++) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(text, "512,512,512,%s\n",
                               g_ascii_dtostr(number, sizeof number, predicted_ms / ratios[i]));
    }
    g_autoptr(NjValidation) validation = validate_text(text->str, &no_options, &error);
    nj_assert_ok(validation != NULL, error);
    const NjErrorSummary summary = nj_validation_summary(validation, NULL, NULL);
    ck_assert_uint_eq(summary.n_rows, 5);
    ck_assert_double_eq_tol(summary.mean_pct, 10, 1e-9);
    ck_assert_double_eq_tol(summary.mean_abs_pct, 34, 1e-9);
    ck_assert_double_eq_tol(summary.median_abs_pct, 10, 1e-9);
    ck_assert_double_eq_tol(summary.p90_abs_pct, 50 + 0.6 * 50, 1e-9);
    ck_assert_double_eq_tol(summary.p99_abs_pct, 50 + 0.96 * 50, 1e-9);
    ck_assert_double_eq_tol(summary.max_abs_pct, 100, 1e-9);
    ck_assert_uint_eq(nj_validation_summary(validation, "bar", "< 1 GFLOP").n_rows, 5);
    ck_assert_uint_eq(nj_validation_summary(validation, "bar", ">= 1 GFLOP").n_rows, 0);
}
END_TEST

// Every row is in one group of each kind; groups come in order.
START_TEST(groups)
{
    static const struct {
        const char *text, *groups; // kind=value:rows
    } rows[] = {
        {"m,n,k,latency_ms\n8192,8192,8192,4\n1,32,32,0.0025\n100,1000,5000,0.01\n",
         "overall=-:3 bar=< 1 GFLOP:1 bar=>= 1 GFLOP:2 size=< 0.01 GFLOP:1 size=1-10 GFLOP:1 size=>= 1000 "
         "GFLOP:1 "
         "m=<= 64:1 m=65-512:1 m=> 512:1"},
        {"head_dim,kv_heads,heads,seq_len,batch,latency_ms\n128,8,8,512,1,0.1\n128,2,8,4096,16,1\n",
         "overall=-:2 bar=< 1024 tokens:1 bar=>= 1024 tokens:1 seq_len=512:1 seq_len=4096:1 batch=1:1 "
         "batch=16:1 "
         "kv_heads=< heads:1 kv_heads== heads:1"},
        {"collective,dtype,gpus,message_elements,latency_ms\nalltoall,int8,8,999999,1\nall_reduce,half,2,"
         "500000,1\n"
         "all_gather,float,4,1,1\nreduce_scatter,bfloat16,2,500000000,1\n",
         "overall=-:4 bar=< 1 MB:2 bar=>= 1 MB:2 size=< 0.001 MB:1 size=0.1-1 MB:1 size=1-10 MB:1 size=>= "
         "100 MB:1 "
         "collective=all_reduce:1 collective=all_gather:1 collective=reduce_scatter:1 collective=alltoall:1 "
         "gpus=2:2 gpus=4:1 gpus=8:1 dtype=float:1 dtype=bfloat16:1 dtype=half:1 dtype=int8:1"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_autoptr(NjValidation) validation = validate_text(rows[i].text, &no_options, &error);
        nj_assert_ok(validation != NULL, error);
        g_autoptr(NjTable) table = nj_validation_summary_table(FALSE);
        nj_validation_add_summary(validation, table, FALSE);
        g_autoptr(GString) seen = g_string_new(NULL);
        for (guint row = 0; row < nj_table_n_rows(table); row++)
            g_string_append_printf(seen, "%s%s=%s:%d", row > 0 ? " " : "", nj_table_get_text(table, row, 0),
                                   row > 0 ? nj_table_get_text(table, row, 1) : "-",
                                   (int)nj_table_get_integer(table, row, 2));
        ck_assert_str_eq(seen->str, rows[i].groups);
    }
}
END_TEST

START_TEST(bad_rows)
{
#define GEMM "m,n,k,latency_ms\n8,8,8,0.01\n"
#define ATTENTION "batch,seq_len,heads,kv_heads,head_dim,latency_ms\n"
#define COLLECTIVE "collective,dtype,gpus,message_elements,latency_ms\n"
    static const struct {
        const char *text, *message;
    } rows[] = {
        {GEMM "8,8,8,0\n", "./rows.csv:3: latency_ms = '0': a number above 0 is needed"},
        {GEMM "8,8,8,nan\n", "./rows.csv:3: latency_ms = 'nan': a number of at least 0 is needed"},
        {GEMM "8,8,8,-1\n", "./rows.csv:3: latency_ms = '-1': a number of at least 0 is needed"},
        {GEMM "8,0,8,1\n", "./rows.csv:3: n = '0': an integer from 1 to 1073741824 is needed"},
        {GEMM "8,8,1.5,1\n", "./rows.csv:3: k = '1.5': an integer from 1 to 1073741824 is needed"},
        {GEMM "8,8,8\n", "./rows.csv:3: 3 fields where the header has 4"},
        {"m,n,k,latency_ms\n", "./rows.csv: no rows behind the header"},
        {ATTENTION "1,512,12,8,128,1\n", "./rows.csv:2: kv_heads = '8': a divisor of heads is needed"},
        {COLLECTIVE "broadcast,half,2,8,1\n",
         "./rows.csv:2: collective = 'broadcast': all_reduce, all_gather, "
         "reduce_scatter or alltoall is needed"},
        {COLLECTIVE "alltoall,fp8,2,8,1\n",
         "./rows.csv:2: dtype = 'fp8': half, bfloat16, float or int8 is needed"},
        {COLLECTIVE "alltoall,half,1,8,1\n", "./rows.csv:2: gpus = '1': an integer from 2 to 1024 is needed"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        ck_assert_ptr_null(validate_text(rows[i].text, &no_options, &error));
        nj_assert_error(error, rows[i].message);
    }
}
END_TEST

// The message lists all forms, so only its ends are fixed.
START_TEST(unknown_headers)
{
    static const char *const headers[] = {"m,n,latency_ms", "m,n,k,latency_ms,power"};
    for (guint i = 0; i < G_N_ELEMENTS(headers); i++) {
        g_autofree char *text = g_strconcat(headers[i], "\n", NULL);
        g_autoptr(GError) error = NULL;
        ck_assert_ptr_null(validate_text(text, &no_options, &error));
        g_autofree char *start =
            g_strdup_printf("./rows.csv:1: unknown header %s; known: m,n,k,latency_ms (gemm); ", headers[i]);
        ck_assert_msg(g_str_has_prefix(error->message, start), "%s", error->message);
        ck_assert_ptr_nonnull(
            strstr(error->message, "; collective,dtype,gpus,message_elements,latency_ms (collective)"));
    }
}
END_TEST

START_TEST(bad_options)
{
    GError *error = NULL;
    const NjValidateOptions no_kernels = {.kernels = "abacus"}, no_gpu = {.gpu = "./abacus.ini"};
    ck_assert_ptr_null(validate_text(GEMM, &no_kernels, &error));
    nj_assert_error(error, "abacus: not in models/kernels; shipped: a100, h100; or give the path of a .ini file");
    ck_assert_ptr_null(validate_text(GEMM, &no_gpu, &error));
    ck_assert_ptr_nonnull(error);
    ck_assert_msg(g_str_has_prefix(error->message, "./abacus.ini: "), "%s", error->message);
    g_clear_error(&error);
}
END_TEST

// Another GPU than the measured one: its peaks count, and the report says so.
START_TEST(another_gpu)
{
    GError *error = NULL;
    const NjValidateOptions options = {.gpu = "a100-sxm4-40gb"};
    // Streams a matrix of 2 GB: 1555 GB/s of HBM instead of 2039, and a launch that is the same.
    static const char text[] = "m,n,k,latency_ms\n1,65536,16384,1.3\n";
    g_autoptr(NjValidation) with = validate_text(text, &options, &error);
    nj_assert_ok(with != NULL, error);
    g_autoptr(NjValidation) without = validate_text(text, &no_options, &error);
    nj_assert_ok(without != NULL, error);
    ck_assert_str_eq(nj_validation_note(with),
                     "Constants measured on NVIDIA A100-SXM4-80GB are carried over to NVIDIA "
                     "A100-SXM4-40GB by its peaks.");
    ck_assert_ptr_null(nj_validation_note(without));
    g_autoptr(NjTable) slow = nj_validation_row_table(with), fast = nj_validation_row_table(without);
    ck_assert_double_eq_tol(nj_table_get_real(slow, 0, 1) / nj_table_get_real(fast, 0, 1), 2039.0 / 1555,
                            0.02);
}
END_TEST

START_TEST(row_output)
{
    g_autofree char *path = nj_test_fixture("validate/collective.csv");
    const char *const arguments[] = {"validate", path, "--format", "csv", NULL};
    g_autofree char *out = NULL, *err = NULL;
    ck_assert_int_eq(run_program(arguments, &out, &err), 0);
    ck_assert_str_eq(err, "");
    g_auto(GStrv) lines = g_strsplit(out, "\n", -1);
    ck_assert_uint_eq(g_strv_length(lines), 4);
    ck_assert_str_eq(lines[0], "row,latency_ms,ref_latency_ms");
    static const double measured[] = {2.8, 0.66};
    for (guint i = 0; i < G_N_ELEMENTS(measured); i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i + 1], ",", -1);
        ck_assert_uint_eq(g_strv_length(fields), 3);
        ck_assert_int_eq(atoi(fields[0]), (int)i + 1);
        ck_assert_double_eq_tol(g_ascii_strtod(fields[1], NULL) / measured[i], 1, 0.1);
        ck_assert_double_eq(g_ascii_strtod(fields[2], NULL), measured[i]);
    }
    ck_assert_str_eq(lines[3], "");
}
END_TEST

START_TEST(summary_output)
{
    g_autofree char *gemm = nj_test_fixture("validate/gemm.csv");
    g_autofree char *collective = nj_test_fixture("validate/collective.csv");
    const char *const as_text[] = {"validate", gemm, collective, NULL};
    const char *const as_json[] = {"validate", "--format", "json", gemm, collective, NULL};
    g_autofree char *text = NULL, *json = NULL, *again = NULL, *err = NULL;
    ck_assert_int_eq(run_program(as_text, &text, NULL), 0);
    g_autofree char *heading = g_strdup_printf(
        "%s: bf16 GEMMs of m x n x k alone on a GPU, error of the prediction\n\ngroup ", gemm);
    ck_assert_msg(g_str_has_prefix(text, heading), "%s", text);
    ck_assert_ptr_nonnull(strstr(text, collective));

    ck_assert_int_eq(run_program(as_json, &json, &err), 0);
    ck_assert_str_eq(err, "");
    g_autofree char *first = g_strdup_printf("\"file\": \"%s\"", gemm);
    ck_assert_msg(strstr(json, first) != NULL, "%s", json);
    ck_assert_ptr_nonnull(strstr(json, "\"group\": \"overall\""));
    ck_assert_int_eq(run_program(as_json, &again, NULL), 0);
    ck_assert_str_eq(json, again);
}
END_TEST

START_TEST(wrong_use)
{
    static const struct {
        const char *arguments[6];
        int status;
        const char *message; // first line of standard error
    } rows[] = {
        {{"validate", "a.csv", "b.csv", "--format", "csv"},
         2,
         "nanojoule: validate: --format csv prints the rows of one file; 2 files are given"},
        {{"validate", "a.csv", "--format", "yaml"}, 2, NULL},
        {{"validate"}, 2, NULL},
        {{"validate", "/nowhere.csv"}, 1, NULL},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *out = NULL, *err = NULL;
        ck_assert_int_eq(run_program(rows[i].arguments, &out, &err), rows[i].status);
        ck_assert_str_eq(out, "");
        ck_assert_msg(g_str_has_prefix(err, "nanojoule: "), "%s", err);
        if (rows[i].message != NULL) {
            g_auto(GStrv) lines = g_strsplit(err, "\n", 2);
            ck_assert_str_eq(lines[0], rows[i].message);
        }
    }
}
END_TEST

START_TEST(never_crashes)
{
    static const char *const texts[] = {GEMM "4096,4096,4096,1\n",
                                        ATTENTION "4,1024,8,2,128,0.5\n1,16,4,4,128,0.02\n",
                                        COLLECTIVE "all_reduce,half,8,4096,0.03\nalltoall,int8,2,9,0.01\n"};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        for (guint32 seed = 0; seed < 1000; seed++) {
            g_autofree char *text = nj_test_mutate(texts[i], seed);
            g_autoptr(GError) error = NULL;
            g_autoptr(NjValidation) validation = validate_text(text, &no_options, &error);
            ck_assert((validation == NULL) == (error != NULL));
            if (validation != NULL)
                ck_assert(isfinite(nj_validation_summary(validation, NULL, NULL).max_abs_pct));
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validate");
    TCase *tests = tcase_create("validate");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, statistics);
    tcase_add_test(tests, groups);
    tcase_add_test(tests, bad_rows);
    tcase_add_test(tests, unknown_headers);
    tcase_add_test(tests, bad_options);
    tcase_add_test(tests, another_gpu);
    tcase_add_test(tests, row_output);
    tcase_add_test(tests, summary_output);
    tcase_add_test(tests, wrong_use);
    tcase_add_test(tests, never_crashes);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
