// SPDX-License-Identifier: MIT
// The solver against two slow references on random graphs: a linear programme (GLPK), which knows all options
// and nothing of hulls or flows, for the bound; and all combinations of options for plans.
#include "tests/solver-checks.h"

#include <glpk.h>

typedef struct {
    NjDag *dag;
    guint n_sets;
    NjOptionSet *sets;
    NjOption *options; // what the sets point to
} Instance;

typedef enum {
    TIES,   // times and energies are small integers: many equal slopes and lengths
    CONVEX, // as profiles are
    NOISE,  // any time with any energy
    MIXED,  // sets whose energies differ by factors of a million
} OptionKind;

static void instance_clear(Instance *instance)
{
    nj_dag_free(instance->dag);
    g_free(instance->sets);
    g_free(instance->options);
}

static NjOption random_option(GRand *rand, OptionKind kind, double scale)
{
    const double x = g_rand_double(rand);
    switch (kind) {
    case TIES:
        return (NjOption){g_rand_int_range(rand, 0, 5), g_rand_int_range(rand, -3, 6)};
    case CONVEX:
        return (NjOption){0.1 + x * scale, scale * (1.5 - x) * (1.5 - x)};
    case NOISE:
    case MIXED:
        break;
    }
    return (NjOption){0.1 + x, scale * g_rand_double_range(rand, -1, 1)};
}

static Instance random_instance(GRand *rand, OptionKind kind, guint max_tasks, guint max_options)
{
    Instance instance = {0};
    const guint n_tasks = (guint)g_rand_int_range(rand, 1, (gint32)max_tasks + 1);
    const guint n_sets = instance.n_sets = (guint)g_rand_int_range(rand, 1, 5);
    instance.sets = g_new0(NjOptionSet, n_sets);
    instance.options = g_new0(NjOption, n_sets * max_options);
    for (guint s = 0; s < n_sets; s++) {
        const double scale = kind == MIXED ? pow(10, g_rand_double_range(rand, -3, 3)) : 1 + s;
        instance.sets[s].n_options = (guint)g_rand_int_range(rand, 1, (gint32)max_options + 1);
        instance.sets[s].options = instance.options + s * max_options;
        for (guint k = 0; k < instance.sets[s].n_options; k++)
            instance.options[s * max_options + k] = random_option(rand, kind, scale);
    }
    g_autofree guint *set = g_new(guint, n_tasks);
    g_autofree guint *label = g_new0(guint, n_tasks); // so that task numbers are in no useful order
    for (guint i = 0; i < n_tasks; i++) {
        set[i] = (guint)g_rand_int_range(rand, 0, (gint32)n_sets);
        const guint j = (guint)g_rand_int_range(rand, 0, (gint32)i + 1);
        label[i] = label[j];
        label[j] = i;
    }
    g_autofree guint *from = g_new(guint, n_tasks * n_tasks);
    g_autofree guint *to = g_new(guint, n_tasks * n_tasks);
    guint n_edges = 0;
    const double density = g_rand_double_range(rand, 0, 0.7);
    for (guint a = 0; a < n_tasks; a++)
        for (guint b = a + 1; b < n_tasks; b++)
            if (g_rand_double(rand) < density) {
                from[n_edges] = label[a];
                to[n_edges++] = label[b];
            }
    GError *error = NULL;
    instance.dag = nj_dag_new(n_tasks, set, n_edges, from, to, &error);
    nj_assert_ok(instance.dag != NULL, error);
    return instance;
}

// Least effective energy when options may be mixed: a share w >= 0 of every option of every task, starts p >=
// 0, p_b >= p_a + sum w t along every edge, every end <= time_s.
static double solve_linear_programme(const Instance *instance, double time_s)
{
    const NjDag *dag = instance->dag;
    glp_prob *lp = glp_create_prob();
    glp_set_obj_dir(lp, GLP_MIN);
    g_autofree int *first_share = g_new(int, dag->n_tasks);
    for (guint i = 0; i < dag->n_tasks; i++) { // columns 1..n: starts
        glp_add_cols(lp, 1);
        glp_set_col_bnds(lp, (int)i + 1, GLP_LO, 0, 0);
    }
    int indices[64];
    double values[64];
    for (guint i = 0; i < dag->n_tasks; i++) {
        const NjOptionSet *set = &instance->sets[dag->option_set[i]];
        first_share[i] = glp_add_cols(lp, (int)set->n_options);
        for (guint k = 0; k < set->n_options; k++) {
            glp_set_col_bnds(lp, first_share[i] + (int)k, GLP_LO, 0, 0);
            glp_set_obj_coef(lp, first_share[i] + (int)k, set->options[k].effective_j);
            indices[k + 1] = first_share[i] + (int)k;
            values[k + 1] = 1;
        }
        const int row = glp_add_rows(lp, 1);
        glp_set_row_bnds(lp, row, GLP_FX, 1, 1);
        glp_set_mat_row(lp, row, (int)set->n_options, indices, values);
    }
    for (guint i = 0; i < dag->n_tasks; i++) {
        const NjOptionSet *set = &instance->sets[dag->option_set[i]];
        for (guint k = 0; k < set->n_options; k++) {
            indices[k + 2] = first_share[i] + (int)k;
            values[k + 2] = set->options[k].time_s;
        }
        indices[1] = (int)i + 1;
        values[1] = 1;
        int row = glp_add_rows(lp, 1);
        glp_set_row_bnds(lp, row, GLP_UP, 0, time_s);
        glp_set_mat_row(lp, row, (int)set->n_options + 1, indices, values);
        for (guint j = dag->succ_start[i]; j < dag->succ_start[i + 1]; j++) {
            const int last = (int)set->n_options + 2;
            indices[last] = (int)dag->succ[j] + 1;
            values[last] = -1;
            row = glp_add_rows(lp, 1);
            glp_set_row_bnds(lp, row, GLP_UP, 0, 0);
            glp_set_mat_row(lp, row, last, indices, values);
        }
    }
    glp_smcp parameters;
    glp_init_smcp(&parameters);
    parameters.msg_lev = GLP_MSG_OFF;
    parameters.tol_bnd = 1e-10;
    parameters.tol_dj = 1e-10;
    ck_assert_int_eq(glp_simplex(lp, &parameters), 0);
    ck_assert_int_eq(glp_get_status(lp), GLP_OPT);
    const double energy_j = glp_get_obj_val(lp);
    glp_delete_prob(lp);
    return energy_j;
}

static double energy_scale(const Instance *instance)
{
    double scale_j = 0;
    for (guint i = 0; i < instance->dag->n_tasks; i++) {
        const NjOptionSet *set = &instance->sets[instance->dag->option_set[i]];
        double largest_j = 0;
        for (guint k = 0; k < set->n_options; k++)
            largest_j = MAX(largest_j, fabs(set->options[k].effective_j));
        scale_j += largest_j;
    }
    return scale_j;
}

START_TEST(bound_is_the_linear_programmes)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(20260101);
    guint n_points_seen = 0;
    for (guint trial = 0; trial < 1200; trial++) {
        Instance instance = trial % 75 == 0 ? random_instance(rand, trial / 75 % 4, 60, 18)
                                            : random_instance(rand, trial % 4, 14, 8);
        GError *error = NULL;
        g_autoptr(NjSolver) solver = nj_solver_new(instance.dag, instance.n_sets, instance.sets, &error);
        nj_assert_ok(solver != NULL, error);
        g_autofree char *label = g_strdup_printf("trial %u", trial);
        check_shape(solver, instance.dag, instance.sets, label);
        guint n_points;
        const NjFrontierPoint *points = nj_solver_points(solver, &n_points);
        n_points_seen += n_points;
        // Both ends, beyond, breakpoints and between.
        for (guint j = 0; j <= 6; j++) {
            const double first_s = points[0].time_s, last_s = points[n_points - 1].time_s;
            const double time_s = j == 5   ? points[n_points / 2].time_s
                                  : j == 6 ? last_s + 1
                                           : first_s + (last_s - first_s) * j / 4;
            double bound_j = 0;
            nj_assert_ok(nj_solver_bound(solver, time_s, &bound_j, &error), error);
            const double lp_j = solve_linear_programme(&instance, time_s);
            ck_assert_msg(fabs(bound_j - lp_j) <= 1e-7 * energy_scale(&instance),
                          "trial %u, %u tasks, %.15g s: bound %.12g, linear programme %.12g", trial,
                          instance.dag->n_tasks, time_s, bound_j, lp_j);
            g_autoptr(NjSolverPlan) plan = nj_solver_plan(solver, time_s, &error);
            nj_assert_ok(plan != NULL, error);
            check_plan(plan, instance.dag, instance.sets, time_s, label);
        }
        instance_clear(&instance);
    }
    ck_assert_uint_gt(n_points_seen, 5 * 1200); // frontiers with something to get wrong
}
END_TEST

// All combinations: the least time, and the least energy no later than time_s.
static double best_of_all(const Instance *instance, double time_s)
{
    const NjDag *dag = instance->dag;
    g_autofree guint *option = g_new0(guint, dag->n_tasks);
    g_autofree double *duration_s = g_new(double, dag->n_tasks);
    double best_j = G_MAXDOUBLE;
    for (;;) {
        double energy_j = 0;
        for (guint i = 0; i < dag->n_tasks; i++) {
            duration_s[i] = instance->sets[dag->option_set[i]].options[option[i]].time_s;
            energy_j += instance->sets[dag->option_set[i]].options[option[i]].effective_j;
        }
        if (energy_j < best_j && nj_dag_longest_path_s(dag, duration_s, NULL) <= time_s + 1e-12)
            best_j = energy_j;
        guint i = 0;
        while (i < dag->n_tasks && ++option[i] == instance->sets[dag->option_set[i]].n_options)
            option[i++] = 0;
        if (i == dag->n_tasks)
            return best_j;
    }
}

START_TEST(plans_are_nearly_the_best_of_all)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(4);
    guint n_plans = 0, n_best = 0;
    for (guint trial = 0; trial < 400; trial++) {
        Instance instance = random_instance(rand, trial % 4, 6, 4);
        const double scale_j = energy_scale(&instance);
        GError *error = NULL;
        g_autoptr(NjSolver) solver = nj_solver_new(instance.dag, instance.n_sets, instance.sets, &error);
        nj_assert_ok(solver != NULL, error);
        guint n_points;
        const NjFrontierPoint *points = nj_solver_points(solver, &n_points);
        for (guint j = 0; j <= 5; j++) {
            const double time_s = points[0].time_s + (points[n_points - 1].time_s - points[0].time_s) * j / 5;
            g_autoptr(NjSolverPlan) plan = nj_solver_plan(solver, time_s, &error);
            nj_assert_ok(plan != NULL, error);
            const double best_j = best_of_all(&instance, time_s);
            ck_assert_msg(plan->bound_effective_j <= best_j + 1e-9 * scale_j,
                          "trial %u: bound above the best", trial);
            ck_assert_msg(plan->effective_j >= best_j - 1e-9 * scale_j, "trial %u: better than the best",
                          trial);
            n_plans++;
            n_best += plan->effective_j <= best_j + 1e-9 * scale_j;
        }
        instance_clear(&instance);
    }
    ck_assert_msg(n_best >= 0.99 * n_plans, "%u of %u plans are the best", n_best, n_plans);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("solver-exact");
    TCase *tcase = tcase_create("solver-exact");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, bound_is_the_linear_programmes);
    tcase_add_test(tcase, plans_are_nearly_the_best_of_all);
    suite_add_tcase(suite, tcase);
    return nj_test_run(suite);
}
