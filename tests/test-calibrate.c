// SPDX-License-Identifier: MIT
// Fits to sets whose figures are a plain function of the constants, so that the truth is known; and what
// measurement files are refused for.
#include "scenarios/calibrate.h"
#include "sim/error.h"
#include "tests/testing.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#define N_ROWS 24
#define N_CONFIGURATIONS 4

static NjGpu gpu;

static void load_gpu(void)
{
    ck_assert(nj_gpu_load(&gpu, "a100-sxm4-40gb", NULL));
    // Round priors; widths follow from them.
    gpu.gemm_share = 0.8;
    gpu.hbm_efficiency = 0.8;
    gpu.gemm_w = 400;
    gpu.hbm_w = 50;
    gpu.link_w = 40;
}

static void clear_gpu(void)
{
    nj_gpu_clear(&gpu);
}

// Row i: arithmetic and traffic of different parts, and so little of the link that it drowns in the noise
// that a fit reckons with. Every configuration has six rows.
static double time_s(const NjGpu *g, guint i)
{
    return (1.0 + i % 5) / g->gemm_share + (1.0 + i % 7) / g->hbm_efficiency;
}

static double energy_j(const NjGpu *g, guint i)
{
    return (1.0 + i % 5) * g->gemm_w + (1.0 + i % 7) * g->hbm_w + 0.02 * (i % 3) * g->link_w;
}

static gboolean predict(const NjMeasurementSet *set, const NjGpu *g, double *predicted, GError **error)
{
    (void)error;
    for (guint i = 0; i < set->measurements->len / 2; i++) {
        predicted[2 * i] = time_s(g, i);
        predicted[2 * i + 1] = energy_j(g, i);
    }
    return TRUE;
}

static gboolean fails(const NjMeasurementSet *set, const NjGpu *g, double *predicted, GError **error)
{
    (void)g;
    (void)predicted;
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: cannot be predicted", set->path);
    return FALSE;
}

// What a GPU with these constants would have measured. Rows are kept in truth's order.
static NjMeasurementSet *measure(const NjGpu *truth, guint n_rows)
{
    NjMeasurementSet *set = g_new0(NjMeasurementSet, 1);
    set->path = g_strdup("made");
    set->measurements = g_array_new(FALSE, TRUE, sizeof(NjMeasurement));
    set->configurations = g_ptr_array_new_with_free_func(g_free);
    set->predict = predict;
    for (guint c = 0; c < N_CONFIGURATIONS; c++)
        g_ptr_array_add(set->configurations, g_strdup_printf("c%u", c));
    for (guint i = 0; i < n_rows; i++) {
        const guint c = i * N_CONFIGURATIONS / N_ROWS;
        const NjMeasurement rows[] = {{NJ_FIGURE_TIME, c, time_s(truth, i), i + 2},
                                      {NJ_FIGURE_ENERGY, c, energy_j(truth, i), i + 2}};
        g_array_append_vals(set->measurements, rows, 2);
    }
    return set;
}

static NjMeasurement *measurement(NjMeasurementSet *set, guint i)
{
    return &g_array_index(set->measurements, NjMeasurement, i);
}

static const char *const four[] = {"gemm_share", "hbm_efficiency", "gemm_w", "hbm_w", NULL};
static const char *const five[] = {"gemm_share", "hbm_efficiency", "gemm_w", "hbm_w", "link_w", NULL};

static NjGpu other_gpu(void)
{
    NjGpu truth = gpu;
    truth.gemm_share = 0.7;
    truth.hbm_efficiency = 0.75;
    truth.gemm_w = 300;
    truth.hbm_w = 70;
    truth.link_w = 60;
    return truth;
}

static const NjConstant *constant(const NjCalibration *calibration, const char *key)
{
    for (guint i = 0; i < calibration->constants->len; i++) {
        const NjConstant *c = &g_array_index(calibration->constants, NjConstant, i);
        if (g_str_equal(c->field->key, key))
            return c;
    }
    ck_abort_msg("no constant %s", key);
    return NULL;
}

static NjCalibrationInput input_of(NjMeasurementSet *const *set, const char *const *free_names)
{
    return (NjCalibrationInput){.gpu = &gpu, .sets = set, .n_sets = 1, .free_names = free_names, .jobs = 1};
}

START_TEST(finds_constants_back)
{
    const NjGpu truth = other_gpu();
    GError *error = NULL;
    g_autoptr(NjMeasurementSet) set = measure(&truth, N_ROWS);
    const NjCalibrationInput input = input_of(&set, five);
    g_auto(NjCalibration) result = {0};
    nj_assert_ok(nj_calibrate(&input, &result, &error), error);
    static const struct {
        const char *key;
        double value;
    } rows[] = {{"gemm_share", 0.7}, {"hbm_efficiency", 0.75}, {"gemm_w", 300}, {"hbm_w", 70}};
    ck_assert_uint_eq(result.constants->len, 5);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const NjConstant *c = constant(&result, rows[i].key);
        ck_assert_msg(fabs(c->value / rows[i].value - 1) < (i < 2 ? 0.005 : 0.02), "%s: %g", rows[i].key,
                      c->value);
        ck_assert_msg(c->determined && c->error > 0 && c->error < 0.06 * c->value, "%s: error %g",
                      rows[i].key, c->error);
    }
    // The figures say next to nothing about link_w: it keeps its prior, and that is said.
    const NjConstant *link_w = constant(&result, "link_w");
    ck_assert(!link_w->determined);
    ck_assert_double_eq(link_w->value, 40);

    const NjGpu fitted = nj_calibration_apply(&result, &gpu);
    ck_assert_double_eq(fitted.gemm_w, constant(&result, "gemm_w")->value);
    ck_assert_double_eq(fitted.link_w, 40);
    ck_assert_double_eq(fitted.clock_w, gpu.clock_w); // was not free

    ck_assert_uint_eq(result.errors->len, N_CONFIGURATIONS + 1);
    for (guint i = 0; i <= N_CONFIGURATIONS; i++) {
        const NjErrors *errors = &g_array_index(result.errors, NjErrors, i);
        g_autofree char *name = i < N_CONFIGURATIONS ? g_strdup_printf("c%u", i) : g_strdup("all");
        ck_assert_str_eq(errors->configuration, name);
        for (guint k = 0; k < NJ_N_FIGURES; k++) {
            ck_assert_uint_eq(errors->n[k], i < N_CONFIGURATIONS ? 6 : 24);
            ck_assert_double_lt(errors->mean_abs[k], 0.005);
            ck_assert_double_le(fabs(errors->mean[k]), errors->mean_abs[k]);
        }
    }
}
END_TEST

START_TEST(any_number_of_threads_gives_the_same_bytes)
{
    const NjGpu truth = other_gpu();
    NjCalibration results[2];
    g_autoptr(NjMeasurementSet) set = measure(&truth, N_ROWS);
    for (guint i = 0; i < 2; i++) {
        NjCalibrationInput input = input_of(&set, five);
        input.jobs = 1 + i;
        ck_assert(nj_cross_validate(&input, &results[i], NULL));
    }
    ck_assert_uint_eq(results[0].constants->len, results[1].constants->len);
    for (guint i = 0; i < results[0].constants->len; i++) {
        const NjConstant *a = &g_array_index(results[0].constants, NjConstant, i);
        const NjConstant *b = &g_array_index(results[1].constants, NjConstant, i);
        ck_assert_ptr_eq(a->field, b->field);
        ck_assert_double_eq(a->value, b->value);
        ck_assert_double_eq(a->error, b->error);
    }
    for (guint i = 0; i <= N_CONFIGURATIONS; i++) {
        const NjErrors *a = &g_array_index(results[0].left_out, NjErrors, i);
        const NjErrors *b = &g_array_index(results[1].left_out, NjErrors, i);
        ck_assert_mem_eq(a->mean, b->mean, sizeof a->mean);
        ck_assert_mem_eq(a->mean_abs, b->mean_abs, sizeof a->mean_abs);
    }
    for (guint i = 0; i < 2; i++)
        nj_calibration_clear(&results[i]);
}
END_TEST

START_TEST(outliers_count_little)
{
    const NjGpu truth = other_gpu();
    g_autoptr(NjMeasurementSet) set = measure(&truth, N_ROWS);
    measurement(set, 10)->measured *= 1.5; // a time
    measurement(set, 21)->measured *= 1.5; // an energy
    const NjCalibrationInput input = input_of(&set, four);
    g_auto(NjCalibration) result = {0};
    ck_assert(nj_calibrate(&input, &result, NULL));
    // Plain least squares would be off by some 2 % in every figure.
    ck_assert_double_eq_tol(constant(&result, "gemm_share")->value / 0.7, 1, 0.01);
    ck_assert_double_eq_tol(constant(&result, "gemm_w")->value / 300, 1, 0.01);
}
END_TEST

// Three quarters of the rows are one configuration's, measured on boards that draw 6 % more. It counts as one
// of four, not as three quarters; and its time, which boards have no part in, is fitted as well as before.
START_TEST(a_configuration_has_an_offset_of_its_own)
{
    const NjGpu truth = other_gpu();
    g_autoptr(NjMeasurementSet) set = measure(&truth, N_ROWS);
    for (guint i = 0; i < N_ROWS; i++) {
        const guint c = i < 18 ? 0 : 1 + (i - 18) / 2;
        measurement(set, 2 * i)->configuration = measurement(set, 2 * i + 1)->configuration = c;
        if (c == 0)
            measurement(set, 2 * i + 1)->measured *= 1.06;
    }
    const NjCalibrationInput input = input_of(&set, four);
    g_auto(NjCalibration) result = {0};
    ck_assert(nj_calibrate(&input, &result, NULL));
    const double high = constant(&result, "gemm_w")->value / 300 - 1;
    ck_assert_msg(high > 0.01 && high < 0.03, "gemm_w %.3f too high", high);
    ck_assert_double_eq_tol(constant(&result, "gemm_share")->value / 0.7, 1, 0.005);
    // Predictions know no offsets: the error of what was measured elsewhere is shown in full.
    const NjErrors *errors = &g_array_index(result.errors, NjErrors, 0);
    ck_assert_double_lt(errors->mean[NJ_FIGURE_ENERGY], -0.025);
}
END_TEST

// The host's constants belong to the software: free by name only.
START_TEST(constants_of_the_software_are_kept)
{
    static const char *const named[] = {"gemm_share", "dispatch_us", NULL};
    const NjGpu truth = other_gpu();
    g_autoptr(NjMeasurementSet) set = measure(&truth, N_ROWS);
    for (guint i = 0; i < 2; i++) {
        const NjCalibrationInput input = input_of(&set, i == 0 ? NULL : named);
        g_auto(NjCalibration) result = {0};
        ck_assert(nj_calibrate(&input, &result, NULL));
        guint n_of_the_host = 0;
        for (guint k = 0; k < result.constants->len; k++)
            n_of_the_host +=
                g_str_has_prefix(g_array_index(result.constants, NjConstant, k).field->key, "dispatch_");
        ck_assert_uint_eq(n_of_the_host, i);
    }
}
END_TEST

START_TEST(constants_stay_within_their_bounds)
{
    NjGpu truth = other_gpu();
    truth.hbm_efficiency = 1.1;
    g_autoptr(NjMeasurementSet) set = measure(&truth, N_ROWS);
    const NjCalibrationInput input = input_of(&set, four);
    g_auto(NjCalibration) result = {0};
    ck_assert(nj_calibrate(&input, &result, NULL));
    const NjConstant *c = constant(&result, "hbm_efficiency");
    ck_assert_double_le(c->value, c->field->maximum);
    ck_assert_double_gt(c->value, 0.9 * c->field->maximum);
}
END_TEST

// Configuration c3 was measured on slower hardware: the fit to everything hides half of it, a fit without c3
// shows it.
START_TEST(cross_validation_predicts_what_it_did_not_see)
{
    const NjGpu truth = other_gpu();
    g_autoptr(NjMeasurementSet) set = measure(&truth, N_ROWS);
    for (guint i = 18; i < 24; i++)
        measurement(set, 2 * i)->measured *= 1.04;
    const NjCalibrationInput input = input_of(&set, four);
    g_auto(NjCalibration) fitted = {0}, validated = {0};
    ck_assert(nj_calibrate(&input, &fitted, NULL));
    ck_assert(nj_cross_validate(&input, &validated, NULL));
    const NjErrors *seen = &g_array_index(fitted.errors, NjErrors, 3);
    const NjErrors *unseen = &g_array_index(validated.left_out, NjErrors, 3);
    ck_assert_double_eq_tol(unseen->mean[NJ_FIGURE_TIME], 1 / 1.04 - 1, 0.004);
    ck_assert_double_lt(fabs(seen->mean[NJ_FIGURE_TIME]), fabs(unseen->mean[NJ_FIGURE_TIME]) - 0.003);
    ck_assert_uint_eq(unseen->n[NJ_FIGURE_TIME], 6);
    ck_assert_uint_eq(g_array_index(validated.left_out, NjErrors, N_CONFIGURATIONS).n[NJ_FIGURE_TIME], 24);
    ck_assert_ptr_null(fitted.left_out);
    ck_assert_double_eq(g_array_index(validated.errors, NjErrors, 3).mean[NJ_FIGURE_TIME],
                        seen->mean[NJ_FIGURE_TIME]);
    // Constants are those of the fit to everything.
    for (const char *const *name = four; *name != NULL; name++)
        ck_assert_double_eq(constant(&validated, *name)->value, constant(&fitted, *name)->value);
}
END_TEST

START_TEST(one_configuration_cannot_be_left_out)
{
    const NjGpu truth = other_gpu();
    GError *error = NULL;
    NjCalibration result;
    g_autoptr(NjMeasurementSet) set = measure(&truth, N_ROWS / N_CONFIGURATIONS);
    g_ptr_array_set_size(set->configurations, 1);
    const NjCalibrationInput input = input_of(&set, four);
    ck_assert(!nj_cross_validate(&input, &result, &error));
    ck_assert_int_eq(error->code, NJ_ERROR_INPUT);
    nj_assert_error(
        error,
        "--cross-validate: all measurements are of one configuration (c0); with it left out nothing is "
        "left to fit: at least two are needed");
}
END_TEST

static void count_messages(gpointer user, const char *message)
{
    ck_assert_ptr_nonnull(message);
    ++*(guint *)user;
}

START_TEST(refuses)
{
    static const char *const unknown[] = {"gemm_share", "gemm_shares", NULL};
    static const char *const of_the_chip[] = {"sm_count", NULL}; // a fact, not a constant
    static const int stop = 1;
    const struct {
        const char *label;
        const char *const *free_names, *const *fix_names;
        guint n_rows;
        gboolean fail;
        const int *stop;
        int code;
        const char *message;
    } rows[] = {
        {"unknown, free", unknown, NULL, N_ROWS, FALSE, NULL, NJ_ERROR_USAGE,
         "--free gemm_shares: no such constant in group [model] of a GPU file"},
        {"unknown, fixed", NULL, unknown, N_ROWS, FALSE, NULL, NJ_ERROR_USAGE,
         "--fix gemm_shares: no such constant in group [model] of a GPU file"},
        {"not of the model", of_the_chip, NULL, N_ROWS, FALSE, NULL, NJ_ERROR_USAGE,
         "--free sm_count: no such constant in group [model] of a GPU file"},
        {"too few", four, NULL, 1, FALSE, NULL, NJ_ERROR_INPUT,
         "2 measurements for 4 free constants: at least one constant must be free, and as many measurements "
         "as constants are needed (free fewer with --free)"},
        {"none free", four, four, N_ROWS, FALSE, NULL, NJ_ERROR_INPUT,
         "48 measurements for 0 free constants: at least one constant must be free, and as many measurements "
         "as constants are needed (free fewer with --free)"},
        {"no prediction", four, NULL, N_ROWS, TRUE, NULL, NJ_ERROR_INPUT, "made: cannot be predicted"},
        {"stopped", four, NULL, N_ROWS, FALSE, &stop, NJ_ERROR_STOPPED, "stopped; nothing was written"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        guint n_messages = 0;
        NjCalibration result;
        const NjGpu truth = other_gpu();
        g_autoptr(NjMeasurementSet) set = measure(&truth, rows[i].n_rows);
        set->predict = rows[i].fail ? fails : predict;
        NjCalibrationInput input = input_of(&set, rows[i].free_names);
        input.fix_names = rows[i].fix_names;
        input.stop = rows[i].stop;
        input.progress = count_messages;
        input.user = &n_messages;
        ck_assert_msg(!nj_calibrate(&input, &result, &error), "%s", rows[i].label);
        ck_assert_msg(error->code == rows[i].code, "%s: code %d", rows[i].label, error->code);
        nj_assert_error(error, rows[i].message);
    }
}
END_TEST

START_TEST(fixed_constants_are_left_out)
{
    static const char *const fixed[] = {"gemm_w", "hbm_w", NULL};
    const NjGpu truth = other_gpu();
    guint n_messages = 0;
    g_autoptr(NjMeasurementSet) set = measure(&truth, N_ROWS);
    NjCalibrationInput input = input_of(&set, four);
    input.fix_names = fixed;
    input.progress = count_messages;
    input.user = &n_messages;
    g_auto(NjCalibration) result = {0};
    ck_assert(nj_calibrate(&input, &result, NULL));
    ck_assert_uint_eq(result.constants->len, 2);
    ck_assert_double_eq_tol(constant(&result, "gemm_share")->value / 0.7, 1, 0.003);
    ck_assert_uint_eq(n_messages, 3); // a round each
}
END_TEST

#define PLANS                                                                                                \
    "plan_id,method,model,cp,tp,microbatch_size,seq_len,pipeline_stages,microbatches,time_s,"                \
    "dynamic_energy_j,total_energy_j,stage0_freq_mhz\n"
#define ROW(id, time, energy, freqs)                                                                         \
    id ",megatron+perseus,llama-3.2-1b,1,8,8,4096,1,1," time "," energy ",," freqs "\n"
#define PROFILE "stage,instruction,frequency,time,energy\n"

static const char *const scenario = "[workload]\nmodel = llama-3.2-1b\nseq_len = 4096\nmicrobatch_size = 8\n"
                                    "microbatches = 2\n[cluster]\ngpu = a100-sxm4-40gb\nparallelism = tp8\n"
                                    "pipeline_stages = 1\n[execution]\nmethod = megatron+perseus\n";

// What no figure depends on stays at its prior, even where nothing else is free.
START_TEST(nothing_determined)
{
    static const char *const alone[] = {"clock_w", NULL};
    gboolean (*const ways[])(const NjCalibrationInput *, NjCalibration *, GError **) = {nj_calibrate,
                                                                                        nj_cross_validate};
    const NjGpu truth = other_gpu();
    for (guint i = 0; i < G_N_ELEMENTS(ways); i++) {
        GError *error = NULL;
        g_autoptr(NjMeasurementSet) set = measure(&truth, N_ROWS);
        const NjCalibrationInput input = input_of(&set, alone);
        g_auto(NjCalibration) result = {0};
        nj_assert_ok(ways[i](&input, &result, &error), error);
        ck_assert(!constant(&result, "clock_w")->determined);
        ck_assert_double_eq(constant(&result, "clock_w")->value, gpu.clock_w);
        // The errors are the prior's.
        double mean = 0;
        for (guint k = 0; k < N_ROWS; k++)
            mean += (time_s(&gpu, k) / time_s(&truth, k) - 1) / N_ROWS;
        ck_assert_double_eq_tol(g_array_index(result.errors, NjErrors, N_CONFIGURATIONS).mean[NJ_FIGURE_TIME],
                                mean, 1e-9);
    }
}
END_TEST

// How a prediction goes wrong at one of its calls.
typedef struct {
    gint n_calls;          // atomic
    gint fail_at, stop_at; // call that fails, or during which Ctrl-C comes; 0: none
    volatile int stop;
} Calls;

static gboolean predict_until(const NjMeasurementSet *set, const NjGpu *g, double *predicted, GError **error)
{
    Calls *calls = set->data;
    const gint call = g_atomic_int_add(&calls->n_calls, 1) + 1;
    if (call == calls->stop_at)
        calls->stop = 1;
    if (call == calls->fail_at)
        return fails(set, g, predicted, error);
    return predict(set, g, predicted, error);
}

static gboolean cross_validate_with(Calls *calls, GError **error)
{
    const NjGpu truth = other_gpu();
    g_autoptr(NjMeasurementSet) set = measure(&truth, N_ROWS);
    NjCalibrationInput input = input_of(&set, four);
    g_auto(NjCalibration) result = {0};
    set->predict = predict_until;
    set->data = calls;
    input.jobs = 2;
    input.stop = &calls->stop;
    return nj_cross_validate(&input, &result, error);
}

// In a residual, in a column of the Jacobian, in the last evaluation.
START_TEST(fails_and_stops_at_any_moment)
{
    Calls whole = {0};
    ck_assert(cross_validate_with(&whole, NULL));
    ck_assert_int_gt(whole.n_calls, 50);
    for (gint at = whole.n_calls; at >= 1; at -= 3) {
        GError *error = NULL;
        Calls failing = {.fail_at = at}, stopping = {.stop_at = at};
        ck_assert_msg(!cross_validate_with(&failing, &error), "call %d fails", at);
        nj_assert_error(error, "made: cannot be predicted");
        ck_assert_msg(!cross_validate_with(&stopping, &error), "stopped at call %d", at);
        ck_assert(g_error_matches(error, NJ_ERROR, NJ_ERROR_STOPPED));
        nj_assert_error(error, "stopped; nothing was written");
    }
}
END_TEST

START_TEST(files_of_measurements)
{
    static const struct {
        const char *label, *text, *skip;
        gboolean with_scenario;
        const char *message; // NULL: read; "PATH" stands for the file, "SCENARIO" for the scenario
    } rows[] = {
        {"plans", PLANS ROW("a", "1.5", "300", "F1410 B900"), NULL, FALSE, NULL},
        {"a profile", PROFILE "0,forward,1410,1,1\n0,backward,900,1,1\n", NULL, TRUE, NULL},
        {"the same plan within the noise",
         PLANS ROW("a", "1.5", "300", "F1410 B900") ROW("b", "1.6", "290", "F1410 B900"), NULL, FALSE, NULL},
        {"unknown header", "a,b\n1,2\n", NULL, FALSE,
         "PATH:1: a header of no known form of measurements; needed are the columns "
         "plan_id,method,time_s,dynamic_energy_j,stage0_freq_mhz or stage,instruction,frequency,time,energy "
         "or kernel,frequency,time"},
        {"zero time", PLANS ROW("a", "0", "300", "F1410 B900"), NULL, FALSE,
         "PATH:2: time_s = '0': a number above 0, or nothing, is needed"},
        {"no time", PLANS ROW("a", "", "300", "F1410 B900"), NULL, FALSE,
         "PATH:2: time_s: a measurement must be a number above 0"},
        {"NaN", PLANS ROW("a", "1.5", "nan", "F1410 B900"), NULL, FALSE,
         "PATH:2: dynamic_energy_j = 'nan': a number above 0, or nothing, is needed"},
        {"no energy", PLANS ROW("a", "1.5", "", "F1410 B900"), NULL, FALSE,
         "PATH:2: dynamic_energy_j: a measurement must be a number above 0"},
        {"all skipped", PLANS ROW("a/b", "1.5", "300", "F1410 B900"), "a/*", FALSE,
         "PATH: no rows of measurements"},
        {"a skipped row is not looked at",
         PLANS ROW("a/b", "", "300", "F1410 B900") ROW("c", "1.5", "300", "F1410 B900"), "a/*", FALSE, NULL},
        {"the same plan, another time",
         PLANS ROW("a", "1.5", "300", "F1410 B900") ROW("b", "1.8", "300", "F1410 B900"), NULL, FALSE,
         "PATH:3: the plan of line 2 again, with time_s 20.0 % off: measurements of one plan must agree "
         "within 10 %"},
        {"the same plan, another energy",
         PLANS ROW("a", "1.5", "300", "F1410 B900") ROW("b", "1.5", "240", "F1410 B900"), NULL, FALSE,
         "PATH:3: the plan of line 2 again, with dynamic_energy_j 20.0 % off: measurements of one plan must "
         "agree within 10 %"},
        {"a profile of what?", PROFILE "0,forward,1410,1,1\n0,backward,900,1,1\n", NULL, FALSE,
         "calibrate: PATH is an instruction profile: --scenario must say what was run"},
        {"a stage too many",
         PROFILE "0,forward,1410,1,1\n0,backward,900,1,1\n1,forward,1410,1,1\n1,backward,900,1,1\n", NULL,
         TRUE, "PATH:4: stage 1: SCENARIO has 1 stages"},
        {"a frequency the GPU lacks", PROFILE "0,forward,1400,1,1\n0,backward,900,1,1\n", NULL, TRUE,
         "PATH:2: frequency = 1400: NVIDIA A100-SXM4-40GB has 900 to 1410 MHz in steps of 30"},
        {"no energy in a profile", PROFILE "0,forward,1410,1,0\n0,backward,900,1,1\n", NULL, TRUE,
         "PATH:2: energy: a measurement must be a number above 0"},
    };
    g_autofree char *folder = g_dir_make_tmp("nanojoule-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "m.csv", NULL);
    g_autofree char *scenario_path = g_build_filename(folder, "s.ini", NULL);
    ck_assert(g_file_set_contents(scenario_path, scenario, -1, NULL));
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        ck_assert(g_file_set_contents(path, rows[i].text, -1, NULL));
        const NjMeasurementOptions options = {&gpu, rows[i].with_scenario ? scenario_path : NULL,
                                              rows[i].skip};
        g_autoptr(NjMeasurementSet) set = nj_measurements_read(path, &options, &error);
        if (rows[i].message == NULL) {
            ck_assert_msg(set != NULL, "%s: %s", rows[i].label, error != NULL ? error->message : "");
            double predicted[4];
            ck_assert_uint_le(set->measurements->len, G_N_ELEMENTS(predicted));
            nj_assert_ok(set->predict(set, &gpu, predicted, &error), error);
            for (guint k = 0; k < set->measurements->len; k++)
                ck_assert_msg(predicted[k] > 0, "%s", rows[i].label);
            continue;
        }
        ck_assert_msg(set == NULL, "%s", rows[i].label);
        g_autoptr(GString) wanted = g_string_new(rows[i].message);
        g_string_replace(wanted, "PATH", path, 0);
        g_string_replace(wanted, "SCENARIO", scenario_path, 0);
        nj_assert_error(error, wanted->str);
    }
    g_remove(path);
    g_remove(scenario_path);
    g_rmdir(folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calibrate");
    TCase *tests = tcase_create("calibrate");
    tcase_add_checked_fixture(tests, load_gpu, clear_gpu);
    tcase_add_test(tests, finds_constants_back);
    tcase_add_test(tests, any_number_of_threads_gives_the_same_bytes);
    tcase_add_test(tests, outliers_count_little);
    tcase_add_test(tests, a_configuration_has_an_offset_of_its_own);
    tcase_add_test(tests, constants_of_the_software_are_kept);
    tcase_add_test(tests, constants_stay_within_their_bounds);
    tcase_add_test(tests, cross_validation_predicts_what_it_did_not_see);
    tcase_add_test(tests, one_configuration_cannot_be_left_out);
    tcase_add_test(tests, fixed_constants_are_left_out);
    tcase_add_test(tests, refuses);
    tcase_add_test(tests, nothing_determined);
    tcase_add_test(tests, fails_and_stops_at_any_moment);
    tcase_add_test(tests, files_of_measurements);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
