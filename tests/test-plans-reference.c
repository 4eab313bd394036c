// SPDX-License-Identifier: MIT
// The published frequency plans replayed: how far the model is from the planner's figures.
#include "scenarios/replay.h"
#include "tests/testing.h"

#include <math.h>

// The profile behind these rows is odd (a tail out to 20 s); they are compared nowhere.
#define ODD_ROWS "perseus/llama-3.2-3b/cp2tp4/mbs8/seq8192/*"

typedef struct {
    double time, energy, time_abs, energy_abs;
    guint n;
} Errors;

static void count(Errors *errors, double time, double energy)
{
    errors->n++;
    errors->time += time;
    errors->energy += energy;
    errors->time_abs += fabs(time);
    errors->energy_abs += fabs(energy);
}

START_TEST(published_plans)
{
    g_autofree char *path = nj_test_reference("plans.csv");
    if (path == NULL)
        return;
    g_autoptr(GError) error = NULL;
    g_autoptr(NjPlanTable) plans = nj_plan_table_read(path, &error);
    nj_assert_ok(plans != NULL, error);
    g_auto(NjGpu) gpu = {0};
    nj_assert_ok(nj_gpu_load(&gpu, "a100-sxm4-40gb", &error), error);
    g_autoptr(NjReplay) replay = nj_replay_new(&gpu, FALSE);
    g_autoptr(GHashTable) groups = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    Errors all = {0};

    for (guint i = 0; i < plans->n_rows; i++) {
        const NjPlanRow *row = &plans->rows[i];
        if (g_pattern_match_simple(ODD_ROWS, row->plan_id))
            continue;
        NjReplayFigures figures;
        nj_assert_ok(nj_replay_row(replay, row, &figures, &error), error);
        const double time = 100 * (figures.time_s / row->time_s - 1);
        const double energy = 100 * (figures.dynamic_energy_j / row->dynamic_energy_j - 1);
        g_autofree char *configuration = nj_plan_row_configuration(row);
        g_autofree char *key = g_strdup_printf("%s, %s", configuration, nj_method_name(row->method));
        Errors *group = g_hash_table_lookup(groups, key);
        if (group == NULL) {
            group = g_new0(Errors, 1);
            g_hash_table_insert(groups, g_strdup(key), group);
        }
        count(group, time, energy);
        count(&all, time, energy);
    }
    ck_assert_uint_eq(all.n, 136);
    ck_assert_msg(all.time_abs / all.n <= 1.6, "time: %.2f %%", all.time_abs / all.n);
    ck_assert_msg(all.energy_abs / all.n <= 2.5, "dynamic energy: %.2f %%", all.energy_abs / all.n);

    GHashTableIter iter;
    gpointer key, value;
    g_hash_table_iter_init(&iter, groups);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        const Errors *group = value;
        ck_assert_msg(fabs(group->time / group->n) <= 4, "%s: time %+.2f %%", (char *)key,
                      group->time / group->n);
        ck_assert_msg(fabs(group->energy / group->n) <= 6, "%s: dynamic energy %+.2f %%", (char *)key,
                      group->energy / group->n);
    }
}
END_TEST

// Instructions extended from few layers, as fits do, against the whole.
START_TEST(few_layers_stand_for_all)
{
    g_autofree char *path = nj_test_reference("plans.csv");
    if (path == NULL)
        return;
    g_autoptr(NjPlanTable) plans = nj_plan_table_read(path, NULL);
    g_auto(NjGpu) gpu = {0};
    ck_assert(nj_gpu_load(&gpu, "a100-sxm4-40gb", NULL));
    g_autoptr(NjReplay) whole = nj_replay_new(&gpu, FALSE);
    g_autoptr(NjReplay) quick = nj_replay_new(&gpu, TRUE);
    for (guint i = 0; i < plans->n_rows; i++) {
        NjReplayFigures a, b;
        ck_assert(nj_replay_row(whole, &plans->rows[i], &a, NULL));
        ck_assert(nj_replay_row(quick, &plans->rows[i], &b, NULL));
        ck_assert_double_eq_tol(b.time_s / a.time_s, 1, 1e-3);
        ck_assert_double_eq_tol(b.dynamic_energy_j / a.dynamic_energy_j, 1, 1e-3);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plans-reference");
    TCase *tests = tcase_create("plans-reference");
    tcase_add_test(tests, published_plans);
    tcase_add_test(tests, few_layers_stand_for_all);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
