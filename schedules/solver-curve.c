// SPDX-License-Identifier: MIT
#include "schedules/solver-private.h"

#include "sim/error.h"
#include <math.h>

// The sum of the slowest times of all tasks becomes at most this many ticks: far below what a gint64 holds,
// and below 2^53, so that ticks are exact in a double too.
#define MAX_TOTAL_TICKS 1e15
// The sum of the steepest slopes of all tasks stays below this.
#define MAX_TOTAL_SLOPE 1e18
// Two options of one task closer in time than this share of it are one option but for noise: their slope may
// be beyond all measure, and to scale by it would take the digits from all others.
#define NOISE 1e-9

static gboolean check_sets(const NjDag *dag, guint n_sets, const NjOptionSet *sets, GError **error)
{
    for (guint i = 0; i < dag->n_tasks; i++)
        if (dag->option_set[i] >= n_sets) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "frontier solver: task %u refers to option set %u, there are %u", i,
                        dag->option_set[i], n_sets);
            return FALSE;
        } else if (sets[dag->option_set[i]].n_options == 0) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "frontier solver: task %u has no option: option set %u is empty", i,
                        dag->option_set[i]);
            return FALSE;
        }
    for (guint s = 0; s < n_sets; s++)
        for (guint k = 0; k < sets[s].n_options; k++) {
            const NjOption option = sets[s].options[k];
            if (!isfinite(option.time_s) || option.time_s < 0) {
                g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                            "frontier solver: option %u of option set %u takes %g s, it must be a finite "
                            "number of at least 0",
                            k, s, option.time_s);
                return FALSE;
            }
            if (!isfinite(option.effective_j)) {
                g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                            "frontier solver: option %u of option set %u costs %g J, it must be a finite "
                            "number",
                            k, s, option.effective_j);
                return FALSE;
            }
        }
    return TRUE;
}

static double choose_ticks_per_s(const NjDag *dag, const NjOptionSet *sets)
{
    double total_s = 0;
    for (guint i = 0; i < dag->n_tasks; i++) {
        const NjOptionSet *set = &sets[dag->option_set[i]];
        double slowest_s = 0;
        for (guint k = 0; k < set->n_options; k++)
            slowest_s = MAX(slowest_s, set->options[k].time_s);
        total_s += slowest_s;
    }
    return total_s > 0 ? pow(10, floor(log10(MAX_TOTAL_TICKS / total_s))) : 1;
}

// Rounded up, but for what is only the binary representation of a decimal.
static gint64 to_ticks(double time_s, double ticks_per_s)
{
    return (gint64)ceil(time_s * ticks_per_s * (1 - 2 * DBL_EPSILON));
}

typedef struct {
    gint64 ticks;
    double energy_j;
    guint option;
} Candidate;

static int compare_candidates(const void *left, const void *right)
{
    const Candidate *a = left, *b = right;
    if (a->ticks != b->ticks)
        return a->ticks < b->ticks ? -1 : 1;
    if (a->energy_j < b->energy_j)
        return -1;
    if (a->energy_j > b->energy_j)
        return 1;
    return a->option < b->option ? -1 : a->option > b->option;
}

// Keeps every option that no other one beats in both time and energy; of equal ones the first.
static void keep_pareto(NjCurve *curve, const NjOptionSet *set, double ticks_per_s)
{
    g_autofree Candidate *candidates = g_new(Candidate, set->n_options);
    for (guint k = 0; k < set->n_options; k++)
        candidates[k] =
            (Candidate){to_ticks(set->options[k].time_s, ticks_per_s), set->options[k].effective_j, k};
    qsort(candidates, set->n_options, sizeof *candidates, compare_candidates);
    curve->ticks = g_new(gint64, set->n_options);
    curve->energy_j = g_new(double, set->n_options);
    curve->option = g_new(guint, set->n_options);
    for (guint k = 0; k < set->n_options; k++) {
        if (curve->n_pareto > 0 && candidates[k].energy_j >= curve->energy_j[curve->n_pareto - 1])
            continue;
        curve->ticks[curve->n_pareto] = candidates[k].ticks;
        curve->energy_j[curve->n_pareto] = candidates[k].energy_j;
        curve->option[curve->n_pareto++] = candidates[k].option;
    }
}

// Energy saved a tick from Pareto option a to the slower b.
static double slope_between(const NjCurve *curve, guint a, guint b)
{
    return (curve->energy_j[a] - curve->energy_j[b]) / (double)(curve->ticks[b] - curve->ticks[a]);
}

static void keep_hull(NjCurve *curve)
{
    curve->hull = g_new(guint, curve->n_pareto);
    for (guint k = 0; k < curve->n_pareto; k++) {
        while (curve->n_hull >= 2 &&
               slope_between(curve, curve->hull[curve->n_hull - 2], curve->hull[curve->n_hull - 1]) <=
                   slope_between(curve, curve->hull[curve->n_hull - 1], k))
            curve->n_hull--;
        curve->hull[curve->n_hull++] = k;
    }
}

// Slopes fall along the hull: its steepest is the first, or the first that is no noise.
static double steepest_slope(const NjCurve *curve, double noise)
{
    for (guint k = 1; k < curve->n_hull; k++) {
        const gint64 slower = curve->ticks[curve->hull[k]];
        if ((double)(slower - curve->ticks[curve->hull[k - 1]]) > noise * (double)slower)
            return slope_between(curve, curve->hull[k - 1], curve->hull[k]);
    }
    return 0;
}

// Makes slopes integers. Neighbours that thereby become equal are one piece: the point between them is
// dropped.
static void scale_slopes(NjCurve *curve, double scale, double limit)
{
    curve->slope = g_new0(gint64, curve->n_hull);
    const guint n_hull = curve->n_hull;
    curve->n_hull = 1;
    for (guint k = 1; k < n_hull; k++) {
        gint64 slope;
        for (;; curve->n_hull--) {
            const double exact = slope_between(curve, curve->hull[curve->n_hull - 1], curve->hull[k]);
            slope = MAX(1, llround(MIN(exact * scale, limit)));
            if (curve->n_hull == 1 || slope < curve->slope[curve->n_hull - 1])
                break;
        }
        curve->hull[curve->n_hull] = curve->hull[k];
        curve->slope[curve->n_hull++] = slope;
    }
}

// Scaled slope of the steepest piece of all that are no noise, where there is one.
static double choose_slope_scale(const NjCurves *curves, double limit)
{
    double credible = 0, steepest = 0;
    for (guint s = 0; s < curves->n_curves; s++) {
        credible = MAX(credible, steepest_slope(&curves->curves[s], NOISE));
        steepest = MAX(steepest, steepest_slope(&curves->curves[s], 0));
    }
    if (steepest == 0)
        return 1;
    return limit / 2 / (credible > 0 ? credible : steepest);
}

NjCurves *nj_curves_new(const NjDag *dag, guint n_sets, const NjOptionSet *sets, GError **error)
{
    if (!check_sets(dag, n_sets, sets, error))
        return NULL;
    NjCurves *curves = g_new0(NjCurves, 1);
    curves->n_curves = n_sets;
    curves->curves = g_new0(NjCurve, n_sets);
    curves->ticks_per_s = choose_ticks_per_s(dag, sets);
    for (guint i = 0; i < dag->n_tasks; i++) {
        NjCurve *curve = &curves->curves[dag->option_set[i]];
        if (curve->n_pareto == 0) {
            keep_pareto(curve, &sets[dag->option_set[i]], curves->ticks_per_s);
            keep_hull(curve);
        }
    }

    const double limit = MAX_TOTAL_SLOPE / dag->n_tasks;
    curves->slope_scale = choose_slope_scale(curves, limit);
    for (guint s = 0; s < n_sets; s++)
        if (curves->curves[s].n_pareto > 0)
            scale_slopes(&curves->curves[s], curves->slope_scale, limit);
    return curves;
}

void nj_curves_free(NjCurves *curves)
{
    if (curves == NULL)
        return;
    for (guint s = 0; s < curves->n_curves; s++) {
        g_free(curves->curves[s].ticks);
        g_free(curves->curves[s].energy_j);
        g_free(curves->curves[s].option);
        g_free(curves->curves[s].hull);
        g_free(curves->curves[s].slope);
    }
    g_free(curves->curves);
    g_free(curves);
}

double nj_curve_energy_j(const NjCurve *curve, gint64 ticks)
{
    guint k = curve->n_hull - 1; // few points: search from the slow end
    while (k > 0 && curve->ticks[curve->hull[k]] > ticks)
        k--;
    const guint a = curve->hull[k];
    if (k + 1 == curve->n_hull)
        return curve->energy_j[a];
    return curve->energy_j[a] -
           slope_between(curve, a, curve->hull[k + 1]) * (double)(ticks - curve->ticks[a]);
}
