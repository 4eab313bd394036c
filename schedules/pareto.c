// SPDX-License-Identifier: MIT
#include "schedules/pareto.h"

static gint compare(gconstpointer a, gconstpointer b)
{
    const NjParetoPoint *x = a, *y = b;
    if (x->time_s != y->time_s)
        return x->time_s < y->time_s ? -1 : 1;
    if (x->effective_j != y->effective_j)
        return x->effective_j < y->effective_j ? -1 : 1;
    if (x->prefix != y->prefix)
        return x->prefix < y->prefix ? -1 : 1;
    return x->choice < y->choice ? -1 : x->choice > y->choice;
}

static NjParetoPoint *at(const GArray *points, guint i)
{
    return &g_array_index(points, NjParetoPoint, i);
}

void nj_pareto_prune(GArray *points)
{
    guint kept = 0;
    g_array_sort(points, compare);
    for (guint i = 0; i < points->len; i++)
        if (kept == 0 || at(points, i)->effective_j < at(points, kept - 1)->effective_j)
            *at(points, kept++) = *at(points, i);
    g_array_set_size(points, kept);
}

void nj_pareto_hull(GArray *points)
{
    guint kept = 0;
    for (guint i = 0; i < points->len; i++) {
        const NjParetoPoint next = *at(points, i);
        while (kept >= 2) {
            const NjParetoPoint *a = at(points, kept - 2), *b = at(points, kept - 1);
            // b stays only below the line from a to next.
            const double slope_ab = (b->effective_j - a->effective_j) / (b->time_s - a->time_s);
            const double slope_an = (next.effective_j - a->effective_j) / (next.time_s - a->time_s);
            if (slope_ab < slope_an)
                break;
            kept--;
        }
        *at(points, kept++) = next;
    }
    g_array_set_size(points, kept);
}

void nj_pareto_sum_init(NjParetoSum *sum, GArray *const *sets, const double *weights, guint n_sets)
{
    g_assert(n_sets > 0);
    sum->n_sets = n_sets;
    sum->sums = g_new(GArray *, n_sets);
    for (guint k = 0; k < n_sets; k++) {
        g_assert(sets[k]->len > 0);
        GArray *points = g_array_new(FALSE, FALSE, sizeof(NjParetoPoint));
        const guint n_prefixes = k == 0 ? 1 : sum->sums[k - 1]->len;
        for (guint p = 0; p < n_prefixes; p++) {
            const NjParetoPoint prefix = k == 0 ? (NjParetoPoint){0} : *at(sum->sums[k - 1], p);
            for (guint i = 0; i < sets[k]->len; i++) {
                const NjParetoPoint *option = at(sets[k], i);
                const NjParetoPoint point = {
                    .time_s = prefix.time_s + weights[k] * option->time_s,
                    .effective_j = prefix.effective_j + weights[k] * option->effective_j,
                    .choice = option->choice,
                    .prefix = p,
                };
                g_array_append_val(points, point);
            }
        }
        nj_pareto_prune(points);
        sum->sums[k] = points;
    }
}

void nj_pareto_sum_clear(NjParetoSum *sum)
{
    for (guint k = 0; k < sum->n_sets; k++)
        g_array_unref(sum->sums[k]);
    g_clear_pointer(&sum->sums, g_free);
    sum->n_sets = 0;
}

const GArray *nj_pareto_sum_points(const NjParetoSum *sum)
{
    return sum->sums[sum->n_sets - 1];
}

void nj_pareto_sum_choices(const NjParetoSum *sum, guint point, guint *choices)
{
    for (guint k = sum->n_sets; k-- > 0;) {
        const NjParetoPoint *here = at(sum->sums[k], point);
        choices[k] = here->choice;
        point = here->prefix;
    }
}
