// SPDX-License-Identifier: MIT
// Pareto sets, their hulls and sums, against brute force over everything.
#include "schedules/pareto.h"
#include "tests/testing.h"

#include <math.h>

static NjParetoPoint *at(const GArray *points, guint i)
{
    return &g_array_index(points, NjParetoPoint, i);
}

static GArray *new_points(void)
{
    return g_array_new(FALSE, FALSE, sizeof(NjParetoPoint));
}

static void add(GArray *points, double time_s, double effective_j)
{
    const NjParetoPoint point = {.time_s = time_s, .effective_j = effective_j, .choice = points->len};
    g_array_append_val(points, point);
}

// Small whole numbers: many ties, equal points and points on a line, and exact arithmetic.
static GArray *random_points(GRand *rand, guint n)
{
    GArray *points = new_points();
    for (guint i = 0; i < n; i++)
        add(points, g_rand_int_range(rand, 0, 8), g_rand_int_range(rand, -6, 6));
    return points;
}

static gboolean better(const NjParetoPoint *a, const NjParetoPoint *b)
{
    return a->time_s <= b->time_s && a->effective_j <= b->effective_j &&
           (a->time_s < b->time_s || a->effective_j < b->effective_j);
}

// Whether a point of the list belongs to the Pareto set: of equal points the first does.
static gboolean is_kept(const GArray *points, guint i)
{
    const NjParetoPoint *point = at(points, i);
    for (guint j = 0; j < points->len; j++) {
        const NjParetoPoint *other = at(points, j);
        if (better(other, point) ||
            (j < i && other->time_s == point->time_s && other->effective_j == point->effective_j))
            return FALSE;
    }
    return TRUE;
}

START_TEST(prunes_as_brute_force)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    guint n_kept = 0, n_all = 0;
    for (guint round = 0; round < 3000; round++) {
        g_autoptr(GArray) all = random_points(rand, (guint)g_rand_int_range(rand, 0, 14));
        g_autoptr(GArray) pruned = g_array_copy(all);
        nj_pareto_prune(pruned);
        guint n = 0;
        for (guint i = 0; i < all->len; i++)
            n += is_kept(all, i);
        ck_assert_uint_eq(pruned->len, n);
        for (guint k = 0; k < pruned->len; k++) {
            const NjParetoPoint *point = at(pruned, k), *original = at(all, point->choice);
            ck_assert(is_kept(all, point->choice));
            ck_assert(point->time_s == original->time_s && point->effective_j == original->effective_j);
            if (k > 0)
                ck_assert(at(pruned, k - 1)->time_s < point->time_s &&
                          at(pruned, k - 1)->effective_j > point->effective_j);
        }
        n_kept += n;
        n_all += all->len;
    }
    ck_assert(n_kept > 3000 && n_kept < n_all / 2); // both kinds were there
}
END_TEST

// Whether some straight line between two others passes at the point or below.
static gboolean above_a_line(const GArray *points, guint i)
{
    const NjParetoPoint *p = at(points, i);
    for (guint a = 0; a < i; a++) {
        for (guint b = i + 1; b < points->len; b++) {
            const NjParetoPoint *left = at(points, a), *right = at(points, b);
            // Multiplied out: whole numbers stay exact.
            if ((p->effective_j - left->effective_j) * (right->time_s - left->time_s) >=
                (right->effective_j - left->effective_j) * (p->time_s - left->time_s))
                return TRUE;
        }
    }
    return FALSE;
}

START_TEST(hull_as_brute_force)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    guint n_dropped = 0;
    for (guint round = 0; round < 3000; round++) {
        g_autoptr(GArray) set = random_points(rand, (guint)g_rand_int_range(rand, 0, 30));
        nj_pareto_prune(set);
        g_autoptr(GArray) hull = g_array_copy(set);
        nj_pareto_hull(hull);
        guint k = 0;
        for (guint i = 0; i < set->len; i++) {
            if (above_a_line(set, i))
                continue;
            ck_assert_uint_lt(k, hull->len);
            ck_assert_uint_eq(at(hull, k)->choice, at(set, i)->choice);
            k++;
        }
        ck_assert_uint_eq(k, hull->len);
        n_dropped += set->len - hull->len;
    }
    ck_assert_uint_gt(n_dropped, 300);
}
END_TEST

START_TEST(hull_by_hand)
{
    //  10 o
    //   6   x        (2, 6) is above the line from (0, 10) to (4, 1)
    //   1       o
    //   0         o  (6, 0.5) is on the line from (4, 1) to (8, 0): dropped, as it gives nothing new
    g_autoptr(GArray) set = new_points();
    static const double points[][2] = {{0, 10}, {2, 6}, {4, 1}, {6, 0.5}, {8, 0}};
    for (guint i = 0; i < G_N_ELEMENTS(points); i++)
        add(set, points[i][0], points[i][1]);
    nj_pareto_hull(set);
    ck_assert_uint_eq(set->len, 3);
    ck_assert_uint_eq(at(set, 0)->choice, 0);
    ck_assert_uint_eq(at(set, 1)->choice, 2);
    ck_assert_uint_eq(at(set, 2)->choice, 4);
}
END_TEST

// Every way to take one point of each set, into all.
static void add_products(GArray *const *sets, const double *weights, guint n_sets, guint k, NjParetoPoint sum,
                         GArray *all)
{
    if (k == n_sets) {
        sum.choice = all->len;
        g_array_append_val(all, sum);
        return;
    }
    for (guint i = 0; i < sets[k]->len; i++) {
        NjParetoPoint next = sum;
        next.time_s += weights[k] * at(sets[k], i)->time_s;
        next.effective_j += weights[k] * at(sets[k], i)->effective_j;
        add_products(sets, weights, n_sets, k + 1, next, all);
    }
}

START_TEST(sums_as_the_cross_product)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    for (guint round = 0; round < 1000; round++) {
        GArray *sets[4], *originals[4];
        double weights[4];
        const guint n_sets = (guint)g_rand_int_range(rand, 1, 5);
        for (guint s = 0; s < n_sets; s++) {
            originals[s] = random_points(rand, (guint)g_rand_int_range(rand, 1, 8));
            sets[s] = g_array_copy(originals[s]);
            nj_pareto_prune(sets[s]);
            weights[s] = g_rand_int_range(rand, 1, 4);
        }
        g_autoptr(GArray) all = new_points();
        add_products(sets, weights, n_sets, 0, (NjParetoPoint){0}, all);
        nj_pareto_prune(all);

        NjParetoSum sum;
        nj_pareto_sum_init(&sum, sets, weights, n_sets);
        const GArray *points = nj_pareto_sum_points(&sum);
        ck_assert_uint_eq(points->len, all->len);
        for (guint k = 0; k < points->len; k++) {
            ck_assert(at(points, k)->time_s == at(all, k)->time_s);
            ck_assert(at(points, k)->effective_j == at(all, k)->effective_j);
            // The choices behind a point, of what the caller numbered, add up to it.
            guint choices[4];
            double time_s = 0, effective_j = 0;
            nj_pareto_sum_choices(&sum, k, choices);
            for (guint s = 0; s < n_sets; s++) {
                ck_assert_uint_lt(choices[s], originals[s]->len);
                time_s += weights[s] * at(originals[s], choices[s])->time_s;
                effective_j += weights[s] * at(originals[s], choices[s])->effective_j;
            }
            ck_assert(time_s == at(points, k)->time_s && effective_j == at(points, k)->effective_j);
        }
        nj_pareto_sum_clear(&sum);
        for (guint s = 0; s < n_sets; s++) {
            g_array_unref(sets[s]);
            g_array_unref(originals[s]);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pareto");
    TCase *tcase = tcase_create("pareto");
    tcase_add_test(tcase, prunes_as_brute_force);
    tcase_add_test(tcase, hull_as_brute_force);
    tcase_add_test(tcase, hull_by_hand);
    tcase_add_test(tcase, sums_as_the_cross_product);
    suite_add_tcase(suite, tcase);
    return nj_test_run(suite);
}
