// SPDX-License-Identifier: MIT
#include "scenarios/calibrate.h"

#include "sim/error.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

// Noise of a measured figure, relative standard deviation. Figures of neighbouring plans come from the same
// profile and err together; the deviations are wide enough for that.
static const double figure_sigma[NJ_N_FIGURES] = {[NJ_FIGURE_TIME] = 0.015, [NJ_FIGURE_ENERGY] = 0.04};

// What all figures of a configuration have in common, relative standard deviation: another day, other GPUs,
// another temperature. Boards of one type differ by a few percent in power; clocks are locked, so that time
// has nothing of the kind. Every configuration has its offset, which the fit takes out and a prediction
// leaves out.
static const double configuration_sigma[NJ_N_FIGURES] = {[NJ_FIGURE_TIME] = 0, [NJ_FIGURE_ENERGY] = 0.03};

#define HUBER_K 1.5        // residuals beyond so many sigma count linearly
#define REWEIGHTS 3        // rounds of reweighting
#define MAX_ITERATIONS 60  // of a round
#define ENOUGH 1e-3        // a round ends when a step lowers chi2 by less than this share
#define STEP 1e-3          // of a finite difference, in widths of the prior
#define BOUND_PENALTY 20.0 // residual per width outside the bounds
#define DETERMINED 0.8     // of the prior's width: a constant known less well than this keeps its prior
#define WIDTH_SHARE 0.3    // of the prior value, where the table below has no other width

// Widths of priors as shares of the value: how well a constant is known before training runs are looked at.
static const struct {
    const char *key;
    double share;
} prior_widths[] = {
    {"gemm_share", 0.08},               // published runs reach 0.84 to 0.93 of the rate alone
    {"attention_forward_share", 0.15},  // implementations of flash attention differ by about this much
    {"attention_backward_share", 0.15}, // same
    {"hbm_efficiency", 0.08},           // stream benchmarks to element-wise kernels: 0.7 to 0.92
    {"kernel_gap_us", 0.5},             // 2 to 6 us between kernels of a stream
    {"embedding_token_us", 0.3},        // an access to HBM takes 0.3 to 0.8 us
    {"allreduce_share", 0.05},          // bus bandwidth is measured alone
    {"allgather_share", 0.5},           // with the copies around it
    {"allreduce_latency_ms", 1.0},      // launch and ranks that come late: tens to hundreds of us
    {"allgather_latency_ms", 1.0},      // same
    {"overlapped_allgather_ms", 1.0},
    {"overlapped_allreduce_ms", 1.0},
    {"saturation_sms", 0.5},     // a channel moves 20 to 60 GB/s
    {"collective_sms", 0.3},     // 16 to 32 channels
    {"hbm_freq_exponent", 0.5},  // the memory's clock is its own, the way to it is not
    {"link_freq_exponent", 1.0}, // same; and SMs copy
    {"overlap_gemm", 0.15},      // 1.0 to 1.5 in published co-runs of kernels and collectives
    {"overlap_attention", 0.15},
    {"overlap_memory", 0.2},
    {"overlap_comm_gemm", 0.15},
    {"overlap_comm_memory", 0.2},
    {"gemm_w", 0.25}, // the board's limit bounds them
    {"attention_w", 0.25},
    {"link_w", 0.4},
    {"collective_sm_w", 0.5},
    {"dispatch_us", 0.6},           // a Python loop over kernels: 20 to 150 us
    {"dispatch_partition_us", 1.0}, // same, with modules, streams and events
    {"dispatch_sequential_us", 1.0},
};

// The host's time belongs to the software, not to the GPU, and few configurations are bound by it: kept
// unless it is freed by name.
static const char *const of_the_software[] = {"dispatch_us", "dispatch_partition_us",
                                              "dispatch_sequential_us", NULL};

typedef struct {
    const NjCalibrationInput *input;
    GArray *constants;             // NjConstant
    guint n_measurements;          // over all sets
    guint n_configurations;        // same
    gint left_out;                 // configuration (counted over all sets) that gets no weight, or -1
    const guint *configuration_of; // [n_measurements] counted over all sets
    double *weights;               // [n_measurements] robust weights
    GError *failure;               // of an evaluation, the first
    GMutex lock;
} Fit;

static double *member(NjGpu *gpu, const NjField *field)
{
    return (double *)(gpointer)((char *)gpu + field->offset);
}

static gboolean in_list(const char *const *names, const char *name)
{
    for (; names != NULL && *names != NULL; names++)
        if (g_str_equal(*names, name))
            return TRUE;
    return FALSE;
}

static const NjField *find_constant(const char *name)
{
    guint n;
    const NjField *fields = nj_gpu_fields(&n);
    for (guint i = 0; i < n; i++)
        if (g_str_equal(fields[i].group, "model") && g_str_equal(fields[i].key, name))
            return &fields[i];
    return NULL;
}

static gboolean check_names(const char *option, const char *const *names, GError **error)
{
    for (; names != NULL && *names != NULL; names++) {
        if (find_constant(*names) != NULL)
            continue;
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "%s %s: no such constant in group [model] of a GPU file",
                    option, *names);
        return FALSE;
    }
    return TRUE;
}

static GArray *choose_constants(const NjCalibrationInput *input)
{
    guint n;
    const NjField *fields = nj_gpu_fields(&n);
    GArray *constants = g_array_new(FALSE, TRUE, sizeof(NjConstant));
    for (guint i = 0; i < n; i++) {
        const NjField *field = &fields[i];
        if (!g_str_equal(field->group, "model") || field->type != NJ_FIELD_REAL ||
            (input->free_names != NULL ? !in_list(input->free_names, field->key)
                                       : in_list(of_the_software, field->key)) ||
            in_list(input->fix_names, field->key))
            continue;
        NjGpu gpu = *input->gpu;
        const double prior = *member(&gpu, field);
        double width = WIDTH_SHARE * fabs(prior);
        for (guint k = 0; k < G_N_ELEMENTS(prior_widths); k++)
            if (g_str_equal(prior_widths[k].key, field->key))
                width = prior_widths[k].share * fabs(prior);
        if (width == 0)
            width = 0.05 * MIN(field->maximum - field->minimum, 1.0);
        const NjConstant constant = {.field = field, .prior = prior, .width = width, .value = prior};
        g_array_append_val(constants, constant);
    }
    return constants;
}

static NjConstant *constant_at(const Fit *fit, guint i)
{
    return &g_array_index(fit->constants, NjConstant, i);
}

// Scaled variables: (value - prior) / width. Outside the bounds the bound is taken; a penalty pulls back.
static NjGpu gpu_at(const Fit *fit, const gsl_vector *x)
{
    NjGpu gpu = *fit->input->gpu;
    for (guint i = 0; i < fit->constants->len; i++) {
        const NjConstant *c = constant_at(fit, i);
        const double value = c->prior + c->width * gsl_vector_get(x, i);
        *member(&gpu, c->field) = CLAMP(value, c->field->minimum, c->field->maximum);
    }
    return gpu;
}

static void fail(Fit *fit, GError *error)
{
    g_mutex_lock(&fit->lock);
    if (fit->failure == NULL)
        fit->failure = error;
    else
        g_error_free(error);
    g_mutex_unlock(&fit->lock);
}

static gboolean stopped(const Fit *fit)
{
    return fit->input->stop != NULL && *fit->input->stop;
}

// Logarithms of predicted over measured, all sets one after the other.
static gboolean predict_logs(Fit *fit, const NjGpu *gpu, double *logs)
{
    guint at = 0;
    for (guint s = 0; s < fit->input->n_sets; s++) {
        const NjMeasurementSet *set = fit->input->sets[s];
        GError *error = NULL;
        if (!set->predict(set, gpu, logs + at, &error)) {
            fail(fit, error);
            return FALSE;
        }
        for (guint i = 0; i < set->measurements->len; i++, at++)
            logs[at] = log(logs[at] / g_array_index(set->measurements, NjMeasurement, i).measured);
    }
    return TRUE;
}

static NjFigure figure_of(const Fit *fit, guint at)
{
    for (guint s = 0; s < fit->input->n_sets; s++) {
        const GArray *measurements = fit->input->sets[s]->measurements;
        if (at < measurements->len)
            return g_array_index(measurements, NjMeasurement, at).figure;
        at -= measurements->len;
    }
    g_assert_not_reached();
}

static guint n_residuals(const Fit *fit)
{
    return fit->n_measurements + 2 * fit->constants->len + NJ_N_FIGURES * fit->n_configurations;
}

// Takes the offset that a configuration's figures have in common out of their residuals; offsets weighed by
// their own deviation become residuals, too. For given constants the best offset is a weighted mean, shrunk.
static void take_out_offsets(const Fit *fit, gsl_vector *f, guint first)
{
    g_autofree double *weight = g_new0(double, NJ_N_FIGURES * fit->n_configurations);
    g_autofree double *offset = g_new0(double, NJ_N_FIGURES * fit->n_configurations);
    for (guint i = 0; i < fit->n_measurements; i++) {
        const guint at = NJ_N_FIGURES * fit->configuration_of[i] + figure_of(fit, i);
        weight[at] += fit->weights[i];
        offset[at] += sqrt(fit->weights[i]) * gsl_vector_get(f, i);
    }
    for (guint at = 0; at < NJ_N_FIGURES * fit->n_configurations; at++) {
        const NjFigure figure = at % NJ_N_FIGURES;
        const double sigmas = configuration_sigma[figure] / figure_sigma[figure];
        offset[at] = sigmas > 0 ? offset[at] / (weight[at] + 1 / (sigmas * sigmas)) : 0;
        gsl_vector_set(f, first + at, sigmas > 0 ? offset[at] / sigmas : 0);
    }
    for (guint i = 0; i < fit->n_measurements; i++) {
        const guint at = NJ_N_FIGURES * fit->configuration_of[i] + figure_of(fit, i);
        gsl_vector_set(f, i, gsl_vector_get(f, i) - sqrt(fit->weights[i]) * offset[at]);
    }
}

// Residuals: measurements in sigmas, then priors, then bounds, then offsets of configurations.
static int residuals(const gsl_vector *x, void *user, gsl_vector *f)
{
    Fit *fit = user;
    const guint n = fit->n_measurements, p = fit->constants->len;
    const NjGpu gpu = gpu_at(fit, x);
    g_autofree double *logs = g_new(double, n);
    if (stopped(fit) || !predict_logs(fit, &gpu, logs))
        return GSL_EFAILED;
    for (guint i = 0; i < n; i++)
        gsl_vector_set(f, i, sqrt(fit->weights[i]) * logs[i] / figure_sigma[figure_of(fit, i)]);
    for (guint i = 0; i < p; i++) {
        const NjConstant *c = constant_at(fit, i);
        const double value = c->prior + c->width * gsl_vector_get(x, i);
        const double outside = fmax(0, value - c->field->maximum) + fmax(0, c->field->minimum - value);
        gsl_vector_set(f, n + i, gsl_vector_get(x, i));
        gsl_vector_set(f, n + p + i, BOUND_PENALTY * outside / c->width);
    }
    take_out_offsets(fit, f, n + 2 * p);
    return GSL_SUCCESS;
}

typedef struct {
    Fit *fit;
    const gsl_vector *x, *f;
    gsl_matrix *jacobian;
    int status;
} Columns;

static void jacobian_column(gpointer data, gpointer user)
{
    const guint i = GPOINTER_TO_UINT(data) - 1;
    Columns *columns = user;
    gsl_vector *x = gsl_vector_alloc(columns->x->size), *f = gsl_vector_alloc(columns->f->size);
    gsl_vector_memcpy(x, columns->x);
    // At the upper bound a step up would see nothing but the bound.
    const NjConstant *c = constant_at(columns->fit, i);
    const gboolean at_bound = c->prior + c->width * (gsl_vector_get(x, i) + STEP) > c->field->maximum;
    const double step = at_bound ? -STEP : STEP;
    gsl_vector_set(x, i, gsl_vector_get(x, i) + step);
    const int status = residuals(x, columns->fit, f);
    if (status == GSL_SUCCESS) {
        gsl_vector_sub(f, columns->f);
        gsl_vector_scale(f, 1 / step);
        gsl_matrix_set_col(columns->jacobian, i, f);
    } else {
        g_mutex_lock(&columns->fit->lock);
        columns->status = status;
        g_mutex_unlock(&columns->fit->lock);
    }
    gsl_vector_free(x);
    gsl_vector_free(f);
}

// Forward differences, a column a job. Columns are independent, so the result is the same for any number of
// jobs.
static int jacobian(const gsl_vector *x, void *user, gsl_matrix *j)
{
    Fit *fit = user;
    gsl_vector *f = gsl_vector_alloc(j->size1);
    Columns columns = {fit, x, f, j, residuals(x, fit, f)};
    if (columns.status == GSL_SUCCESS) {
        GThreadPool *pool =
            g_thread_pool_new(jacobian_column, &columns, (gint)MAX(fit->input->jobs, 1), FALSE, NULL);
        for (guint i = 0; i < fit->constants->len; i++)
            g_thread_pool_push(pool, GUINT_TO_POINTER(i + 1), NULL);
        g_thread_pool_free(pool, FALSE, TRUE);
    }
    gsl_vector_free(f);
    return columns.status;
}

static void reweight(Fit *fit, const gsl_vector *f)
{
    for (guint i = 0; i < fit->n_measurements; i++) {
        if ((gint)fit->configuration_of[i] == fit->left_out) {
            fit->weights[i] = 0;
            continue;
        }
        const double z = fabs(gsl_vector_get(f, i)) / sqrt(fit->weights[i]);
        fit->weights[i] = z <= HUBER_K ? 1.0 : HUBER_K / z;
    }
}

// Standard errors from the curvature at the solution, scaled by the noise that is left.
static void take_solution(Fit *fit, const gsl_multifit_nlinear_workspace *work)
{
    const guint p = fit->constants->len;
    gsl_matrix *covariance = gsl_matrix_alloc(p, p);
    gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(work), 0.0, covariance);
    const gsl_vector *f = gsl_multifit_nlinear_residual(work);
    double chi2 = 0, n = 0;
    for (guint i = 0; i < fit->n_measurements; i++) {
        chi2 += gsl_vector_get(f, i) * gsl_vector_get(f, i);
        n += fit->weights[i] > 0;
    }
    const double scale = sqrt(fmax(1.0, chi2 / fmax(n - p, 1.0)));
    const gsl_vector *x = gsl_multifit_nlinear_position(work);
    for (guint i = 0; i < p; i++) {
        NjConstant *c = constant_at(fit, i);
        const double sigma = sqrt(gsl_matrix_get(covariance, i, i)); // in widths
        c->value = CLAMP(c->prior + c->width * gsl_vector_get(x, i), c->field->minimum, c->field->maximum);
        c->error = c->width * sigma * scale;
        c->determined = sigma < DETERMINED;
    }
    gsl_matrix_free(covariance);
}

static gboolean set_failure(Fit *fit, int status, GError **error)
{
    if (stopped(fit)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_STOPPED, "stopped; nothing was written");
        g_clear_error(&fit->failure);
    } else if (fit->failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&fit->failure));
    } else {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "the fit failed: %s", gsl_strerror(status));
    }
    return FALSE;
}

static double chi2_of(const gsl_multifit_nlinear_workspace *work)
{
    double chi2;
    gsl_blas_ddot(gsl_multifit_nlinear_residual(work), gsl_multifit_nlinear_residual(work), &chi2);
    return chi2;
}

static gboolean run_fit(Fit *fit, GError **error)
{
    const guint n = fit->n_measurements, p = fit->constants->len;
    gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
    parameters.trs = gsl_multifit_nlinear_trs_lm;
    gsl_multifit_nlinear_workspace *work =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &parameters, n_residuals(fit), p);
    gsl_multifit_nlinear_fdf system = {
        .f = residuals, .df = jacobian, .n = n_residuals(fit), .p = p, .params = fit};
    gsl_vector *x = gsl_vector_alloc(p);
    for (guint i = 0; i < p; i++)
        gsl_vector_set(
            x, i, (constant_at(fit, i)->value - constant_at(fit, i)->prior) / constant_at(fit, i)->width);
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    int status = GSL_SUCCESS;

    for (guint i = 0; i < n; i++)
        fit->weights[i] = (gint)fit->configuration_of[i] == fit->left_out ? 0.0 : 1.0;
    for (guint round = 0; round < REWEIGHTS && status == GSL_SUCCESS; round++) {
        status = gsl_multifit_nlinear_init(x, &system, work);
        double chi2 = chi2_of(work), before = HUGE_VAL;
        for (guint i = 0; i < MAX_ITERATIONS && status == GSL_SUCCESS && before - chi2 > ENOUGH * chi2; i++) {
            before = chi2;
            status = gsl_multifit_nlinear_iterate(work);
            chi2 = chi2_of(work);
        }
        // No further progress within rounding is a solution, too.
        if (status == GSL_ENOPROG && fit->failure == NULL && !stopped(fit))
            status = GSL_SUCCESS;
        if (status != GSL_SUCCESS)
            break;
        gsl_vector_memcpy(x, gsl_multifit_nlinear_position(work));
        if (fit->input->progress != NULL) {
            g_autofree char *message =
                g_strdup_printf("round %u of %u: chi2 %.1f", round + 1, REWEIGHTS, chi2);
            fit->input->progress(fit->input->user, message);
        }
        reweight(fit, gsl_multifit_nlinear_residual(work));
    }
    if (status == GSL_SUCCESS && !stopped(fit))
        take_solution(fit, work);
    else
        set_failure(fit, status, error);
    const gboolean ok = status == GSL_SUCCESS && !stopped(fit);
    gsl_set_error_handler(handler);
    gsl_vector_free(x);
    gsl_multifit_nlinear_free(work);
    return ok;
}

static GArray *errors_new(const NjCalibrationInput *input)
{
    GArray *errors = g_array_new(FALSE, TRUE, sizeof(NjErrors));
    for (guint s = 0; s < input->n_sets; s++) {
        for (guint i = 0; i < input->sets[s]->configurations->len; i++) {
            const NjErrors row = {.configuration = g_strdup(input->sets[s]->configurations->pdata[i])};
            g_array_append_val(errors, row);
        }
    }
    const NjErrors all = {.configuration = g_strdup("all")};
    g_array_append_val(errors, all);
    return errors;
}

static void count_error(NjErrors *errors, NjFigure figure, double relative)
{
    const double n = ++errors->n[figure];
    errors->mean[figure] += (relative - errors->mean[figure]) / n;
    errors->mean_abs[figure] += (fabs(relative) - errors->mean_abs[figure]) / n;
}

// The GPU with these constants' values.
static NjGpu apply(const GArray *constants, const NjGpu *gpu)
{
    NjGpu applied = *gpu;
    for (guint i = 0; i < constants->len; i++) {
        const NjConstant *c = &g_array_index(constants, NjConstant, i);
        *member(&applied, c->field) = c->value;
    }
    return applied;
}

// Counts the fit's errors: on one configuration only, or on all (-1).
static gboolean count_errors(Fit *fit, gint only, GArray *errors, GError **error)
{
    const NjGpu gpu = apply(fit->constants, fit->input->gpu);
    g_autofree double *logs = g_new(double, fit->n_measurements);
    if (!predict_logs(fit, &gpu, logs))
        return set_failure(fit, GSL_EFAILED, error);
    for (guint i = 0; i < fit->n_measurements; i++) {
        const guint configuration = fit->configuration_of[i];
        if (only >= 0 && configuration != (guint)only)
            continue;
        const double relative = expm1(logs[i]);
        count_error(&g_array_index(errors, NjErrors, configuration), figure_of(fit, i), relative);
        count_error(&g_array_index(errors, NjErrors, errors->len - 1), figure_of(fit, i), relative);
    }
    return TRUE;
}

static guint count_measurements(const NjCalibrationInput *input, guint *configuration_of)
{
    guint at = 0, first = 0;
    for (guint s = 0; s < input->n_sets; s++) {
        const NjMeasurementSet *set = input->sets[s];
        for (guint i = 0; i < set->measurements->len; i++, at++)
            if (configuration_of != NULL)
                configuration_of[at] =
                    first + g_array_index(set->measurements, NjMeasurement, i).configuration;
        first += set->configurations->len;
    }
    return at;
}

static gboolean fit_init(Fit *fit, const NjCalibrationInput *input, guint **configuration_of, GError **error)
{
    *fit = (Fit){.input = input, .left_out = -1};
    if (!check_names("--free", input->free_names, error) || !check_names("--fix", input->fix_names, error))
        return FALSE;
    fit->n_measurements = count_measurements(input, NULL);
    fit->constants = choose_constants(input);
    if (fit->constants->len == 0 || fit->n_measurements < fit->constants->len) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%u measurements for %u free constants: at least one constant must be free, and as many "
                    "measurements as constants are needed (free fewer with --free)",
                    fit->n_measurements, fit->constants->len);
        g_array_unref(fit->constants);
        return FALSE;
    }
    *configuration_of = g_new(guint, fit->n_measurements);
    count_measurements(input, *configuration_of);
    fit->configuration_of = *configuration_of;
    for (guint i = 0; i < input->n_sets; i++)
        fit->n_configurations += input->sets[i]->configurations->len;
    fit->weights = g_new(double, fit->n_measurements);
    g_mutex_init(&fit->lock);
    return TRUE;
}

static void fit_clear(Fit *fit)
{
    g_free(fit->weights);
    g_clear_pointer(&fit->constants, g_array_unref);
    g_clear_error(&fit->failure);
    g_mutex_clear(&fit->lock);
}

static void errors_free(GArray *errors)
{
    for (guint i = 0; i < errors->len; i++)
        g_free(g_array_index(errors, NjErrors, i).configuration);
    g_array_unref(errors);
}

// Moves the constants that the data does not determine, at their priors, from the fit to kept.
static gboolean drop_undetermined(Fit *fit, GArray *kept)
{
    gboolean dropped = FALSE;
    for (guint i = fit->constants->len; i-- > 0;) {
        NjConstant *c = constant_at(fit, i);
        if (c->determined)
            continue;
        c->value = c->prior;
        g_array_append_val(kept, *c);
        g_array_remove_index(fit->constants, i);
        dropped = TRUE;
    }
    return dropped;
}

static gboolean calibrate(const NjCalibrationInput *input, gboolean leave_out, NjCalibration *result,
                          GError **error)
{
    Fit fit;
    g_autofree guint *configuration_of = NULL;
    if (!fit_init(&fit, input, &configuration_of, error))
        return FALSE;
    GArray *errors = errors_new(input), *left_out = leave_out ? errors_new(input) : NULL;
    g_autoptr(GArray) kept = g_array_new(FALSE, FALSE, sizeof(NjConstant));
    gboolean ok;
    // What is not determined stays at its prior; the others are fitted again with it there.
    do {
        ok = fit.constants->len == 0 || run_fit(&fit, error);
    } while (ok && drop_undetermined(&fit, kept));

    ok = ok && count_errors(&fit, -1, errors, error);
    g_autoptr(GArray) solution = g_array_copy(fit.constants);
    for (guint i = 0; ok && leave_out && i + 1 < errors->len; i++) {
        fit.left_out = (gint)i;
        if (input->progress != NULL) {
            g_autofree char *message =
                g_strdup_printf("without %s", g_array_index(errors, NjErrors, i).configuration);
            input->progress(input->user, message);
        }
        ok =
            (fit.constants->len == 0 || run_fit(&fit, error)) && count_errors(&fit, (gint)i, left_out, error);
    }
    if (ok && stopped(&fit))
        ok = set_failure(&fit, GSL_EFAILED, error);
    if (ok) {
        g_array_append_vals(solution, kept->data, kept->len);
        *result = (NjCalibration){g_steal_pointer(&solution), errors, left_out};
    } else {
        errors_free(errors);
        g_clear_pointer(&left_out, errors_free);
    }
    fit_clear(&fit);
    return ok;
}

gboolean nj_calibrate(const NjCalibrationInput *input, NjCalibration *result, GError **error)
{
    return calibrate(input, FALSE, result, error);
}

gboolean nj_cross_validate(const NjCalibrationInput *input, NjCalibration *result, GError **error)
{
    guint n_configurations = 0;
    for (guint i = 0; i < input->n_sets; i++)
        n_configurations += input->sets[i]->configurations->len;
    if (n_configurations < 2) {
        g_set_error(
            error, NJ_ERROR, NJ_ERROR_INPUT,
            "--cross-validate: all measurements are of one configuration (%s); with it left out nothing is "
            "left to fit: at least two are needed",
            n_configurations > 0 ? (const char *)input->sets[0]->configurations->pdata[0] : "none");
        return FALSE;
    }
    return calibrate(input, TRUE, result, error);
}

void nj_calibration_clear(NjCalibration *calibration)
{
    g_clear_pointer(&calibration->constants, g_array_unref);
    if (calibration->errors != NULL)
        errors_free(g_steal_pointer(&calibration->errors));
    g_clear_pointer(&calibration->left_out, errors_free);
}

NjGpu nj_calibration_apply(const NjCalibration *calibration, const NjGpu *gpu)
{
    return apply(calibration->constants, gpu);
}
