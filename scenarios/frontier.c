// SPDX-License-Identifier: MIT
#include "scenarios/frontier.h"

#include "sim/error.h"

static void clear_plan(gpointer plan)
{
    nj_executed_plan_clear(plan);
}

void nj_frontier_clear(NjFrontier *frontier)
{
    g_clear_pointer(&frontier->plans, g_array_unref);
}

guint nj_protocol_positions(guint count, guint positions[15])
{
    guint all[15], n = 0, kept = 0;
    const guint stride = (count + 14) / 15;
    for (guint k = 15; k-- > 0;)
        if (k * stride < count)
            all[n++] = count - 1 - k * stride;
    for (guint i = 0; i < n; i++)
        if (i > 8 || i % 2 != 0)
            positions[kept++] = all[i];
    return kept;
}

static void choose_positions(guint count, guint n_points, GArray *positions)
{
    if (n_points == 0) {
        guint protocol[15];
        g_array_append_vals(positions, protocol, nj_protocol_positions(count, protocol));
    }
    const guint n = MIN(n_points, count), last = count - 1;
    for (guint i = 0; i < n; i++) {
        const guint position = n == 1 ? last : (guint)((guint64)i * last / (n - 1));
        g_array_append_val(positions, position);
    }
    if (positions->len == 0)
        g_array_append_val(positions, last);
}

static gboolean is_stopped(const volatile int *stop, GError **error)
{
    if (stop == NULL || *stop == 0)
        return FALSE;
    g_set_error_literal(error, NJ_ERROR, NJ_ERROR_STOPPED, "stopped");
    return TRUE;
}

gboolean nj_frontier_execute(NjPlanning *planning, NjMethod method, guint n_points, const volatile int *stop,
                             NjFrontier *frontier, GError **error)
{
    g_autoptr(GArray) positions = g_array_new(FALSE, FALSE, sizeof(guint));
    choose_positions(nj_planning_count(planning), n_points, positions);
    *frontier = (NjFrontier){method, g_array_new(FALSE, TRUE, sizeof(NjExecutedPlan))};
    g_array_set_clear_func(frontier->plans, clear_plan);
    for (guint i = 0; i < positions->len; i++) {
        NjExecutedPlan plan;
        if (is_stopped(stop, error) ||
            !nj_planning_plan(planning, g_array_index(positions, guint, i), &plan, error)) {
            nj_frontier_clear(frontier);
            return FALSE;
        }
        g_array_append_val(frontier->plans, plan);
    }
    return TRUE;
}

gboolean nj_frontier_run(const NjWorkload *workload, NjMethod method, const NjPipelineSchedule *schedule,
                         const NjFrontierOptions *options, NjFrontier *frontier, GError **error)
{
    if (is_stopped(options->stop, error))
        return FALSE;
    g_autoptr(NjPlanning) planning = nj_planning_new(workload, method, schedule, options, error);
    return planning != NULL &&
           nj_frontier_execute(planning, method, options->n_points, options->stop, frontier, error);
}

static const NjExecutedPlan *plan_at(const NjFrontier *frontier, guint i)
{
    return &g_array_index(frontier->plans, NjExecutedPlan, i);
}

const NjExecutedPlan *nj_frontier_fastest(const NjFrontier *frontier)
{
    const NjExecutedPlan *best = plan_at(frontier, 0);
    for (guint i = 1; i < frontier->plans->len; i++)
        if (plan_at(frontier, i)->time_s < best->time_s)
            best = plan_at(frontier, i);
    return best;
}

const NjExecutedPlan *nj_frontier_least_energy(const NjFrontier *frontier)
{
    const NjExecutedPlan *best = plan_at(frontier, 0);
    for (guint i = 1; i < frontier->plans->len; i++)
        if (plan_at(frontier, i)->energy_j < best->energy_j)
            best = plan_at(frontier, i);
    return best;
}
