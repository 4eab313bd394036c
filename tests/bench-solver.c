// SPDX-License-Identifier: MIT
// How long the solver takes for whole frontiers with 18 frequencies, beside lowtime v0.3.0 (Rust core): its
// times are CPU seconds on two cores, measured by others (oracle/timings.csv of the reference data; for the
// largest, timed on a busy machine, the lower figure of its README). lowtime's frontier holds a plan every 1,
// 2 and 10 ms; here the frontier is the bound at every time, and 12 plans spread over it. Run: meson test -C
// build --benchmark --verbose
#include "tests/pipeline-cases.h"
#include "tests/testing.h"

#include <stdio.h>

#define N_PLANS 12
#define N_RUNS 5 // the fastest counts: the machine may be busy

typedef struct {
    const char *name;
    guint n_stages, n_microbatches;
    double lowtime_s;
    double bar_s; // the frontier and its plans take no longer
} Bench;

static const Bench BENCHES[] = {
    {"s2m8", 2, 8, 3.56, 0.005},
    {"s8m32", 8, 32, 87.19, 0.3},
    {"s8m128", 8, 128, 1250, 2},
};

static double seconds_since(gint64 start_us)
{
    return (double)(g_get_monotonic_time() - start_us) * 1e-6;
}

static double make_plans(NjSolver *solver, double static_w)
{
    guint n_points;
    const NjFrontierPoint *points = nj_solver_points(solver, &n_points);
    const double first_s = points[0].time_s, last_s = points[n_points - 1].time_s;
    double worst = 0;
    for (guint j = 0; j < N_PLANS; j++) {
        const double time_s = first_s + (last_s - first_s) * j / (N_PLANS - 1);
        g_autoptr(NjSolverPlan) plan = nj_solver_plan(solver, time_s, NULL);
        const double gap_j = plan->effective_j - plan->bound_effective_j;
        worst = MAX(worst, gap_j / (plan->bound_effective_j + static_w * time_s));
    }
    return worst;
}

// Returns whether the bar was met.
static gboolean run(const Bench *bench)
{
    g_autofree char *file = g_strdup_printf("oracle/profile_%s.csv", bench->name);
    g_autofree char *path = nj_test_reference(file);
    g_autoptr(PipelineProfile) profile =
        path != NULL ? pipeline_profile_read(path, NULL) : pipeline_profile_made_up(bench->n_stages);
    g_autoptr(NjDag) dag = pipeline_1f1b(bench->n_stages, bench->n_microbatches);
    double bound_s = G_MAXDOUBLE, plans_s = G_MAXDOUBLE, worst = 0;
    guint n_points = 0;
    for (guint j = 0; j < N_RUNS; j++) {
        gint64 start_us = g_get_monotonic_time();
        g_autoptr(NjSolver) solver = nj_solver_new(dag, profile->n_sets, profile->sets, NULL);
        bound_s = MIN(bound_s, seconds_since(start_us));
        start_us = g_get_monotonic_time();
        worst = make_plans(solver, STATIC_W_PER_STAGE * bench->n_stages);
        plans_s = MIN(plans_s, seconds_since(start_us));
        nj_solver_points(solver, &n_points);
    }
    const double total_s = bound_s + plans_s;
    printf("%u stages x %3u microbatches: frontier %8.2f ms (%4u breakpoints) + %u plans %8.2f ms = %8.2f "
           "ms, bar "
           "%g ms, lowtime %g s (%.0f times as long); largest gap %.3f %%\n",
           bench->n_stages, bench->n_microbatches, 1e3 * bound_s, n_points, N_PLANS, 1e3 * plans_s,
           1e3 * total_s, 1e3 * bench->bar_s, bench->lowtime_s, bench->lowtime_s / total_s, 100 * worst);
    return total_s <= bench->bar_s;
}

int main(void)
{
    gboolean met = TRUE;
    for (guint j = 0; j < G_N_ELEMENTS(BENCHES); j++)
        met &= run(&BENCHES[j]);
    return met ? EXIT_SUCCESS : EXIT_FAILURE;
}
