// SPDX-License-Identifier: MIT
#include "schedules/dag.h"

#include "sim/error.h"

// Fills one side's neighbour lists by counting: the lists keep the order in which the edges were given.
static void fill_neighbours(guint n_tasks, guint n_edges, const guint *key, const guint *value, guint *start,
                            guint *list)
{
    for (guint j = 0; j < n_edges; j++)
        start[key[j] + 1]++;
    for (guint i = 0; i < n_tasks; i++)
        start[i + 1] += start[i];
    g_autofree guint *next = g_memdup2(start, sizeof(guint) * (n_tasks + 1));
    for (guint j = 0; j < n_edges; j++)
        list[next[key[j]]++] = value[j];
}

// Kahn's algorithm, first in first out. Returns how many tasks could be ordered: all, unless there is a
// cycle.
static guint sort_topologically(NjDag *dag, guint *waiting)
{
    guint n_ordered = 0;
    for (guint i = 0; i < dag->n_tasks; i++) {
        waiting[i] = dag->pred_start[i + 1] - dag->pred_start[i];
        if (waiting[i] == 0)
            dag->order[n_ordered++] = i;
    }
    for (guint done = 0; done < n_ordered; done++) {
        const guint i = dag->order[done];
        for (guint j = dag->succ_start[i]; j < dag->succ_start[i + 1]; j++)
            if (--waiting[dag->succ[j]] == 0)
                dag->order[n_ordered++] = dag->succ[j];
    }
    return n_ordered;
}

// A task on a cycle: from any task left over, going back along left-over predecessors n_tasks times ends on
// one.
static guint task_on_cycle(const NjDag *dag, const guint *waiting)
{
    guint i = 0;
    while (waiting[i] == 0)
        i++;
    for (guint steps = 0; steps < dag->n_tasks; steps++) {
        guint j = dag->pred_start[i];
        while (waiting[dag->pred[j]] == 0)
            j++;
        i = dag->pred[j];
    }
    return i;
}

NjDag *nj_dag_new(guint n_tasks, const guint *option_set, guint n_edges, const guint *from, const guint *to,
                  GError **error)
{
    if (n_tasks == 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "task graph: there is no task");
        return NULL;
    }
    for (guint j = 0; j < n_edges; j++)
        if (from[j] >= n_tasks || to[j] >= n_tasks) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "task graph: edge %u goes from task %u to task %u, tasks are 0 to %u", j, from[j],
                        to[j], n_tasks - 1);
            return NULL;
        }

    g_autoptr(NjDag) dag = g_new0(NjDag, 1);
    dag->n_tasks = n_tasks;
    dag->n_edges = n_edges;
    dag->option_set = g_memdup2(option_set, sizeof(guint) * n_tasks);
    dag->succ_start = g_new0(guint, n_tasks + 1);
    dag->pred_start = g_new0(guint, n_tasks + 1);
    dag->succ = g_new(guint, n_edges);
    dag->pred = g_new(guint, n_edges);
    dag->order = g_new(guint, n_tasks);
    fill_neighbours(n_tasks, n_edges, from, to, dag->succ_start, dag->succ);
    fill_neighbours(n_tasks, n_edges, to, from, dag->pred_start, dag->pred);

    g_autofree guint *waiting = g_new(guint, n_tasks);
    if (sort_topologically(dag, waiting) < n_tasks) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "task graph: the edges form a cycle through task %u: nothing on it could ever start",
                    task_on_cycle(dag, waiting));
        return NULL;
    }
    return g_steal_pointer(&dag);
}

void nj_dag_free(NjDag *dag)
{
    if (dag == NULL)
        return;
    g_free(dag->option_set);
    g_free(dag->succ_start);
    g_free(dag->succ);
    g_free(dag->pred_start);
    g_free(dag->pred);
    g_free(dag->order);
    g_free(dag);
}

gint64 nj_dag_longest_path(const NjDag *dag, const gint64 *duration, gint64 *start)
{
    g_autofree gint64 *own = start == NULL ? g_new(gint64, dag->n_tasks) : NULL;
    gint64 *begin = start == NULL ? own : start;
    gint64 last = 0;
    for (guint k = 0; k < dag->n_tasks; k++) {
        const guint i = dag->order[k];
        begin[i] = 0;
        for (guint j = dag->pred_start[i]; j < dag->pred_start[i + 1]; j++)
            begin[i] = MAX(begin[i], begin[dag->pred[j]] + duration[dag->pred[j]]);
        last = MAX(last, begin[i] + duration[i]);
    }
    return last;
}

double nj_dag_longest_path_s(const NjDag *dag, const double *duration_s, double *start_s)
{
    g_autofree double *own = start_s == NULL ? g_new(double, dag->n_tasks) : NULL;
    double *begin = start_s == NULL ? own : start_s;
    double last = 0;
    for (guint k = 0; k < dag->n_tasks; k++) {
        const guint i = dag->order[k];
        begin[i] = 0;
        for (guint j = dag->pred_start[i]; j < dag->pred_start[i + 1]; j++)
            begin[i] = MAX(begin[i], begin[dag->pred[j]] + duration_s[dag->pred[j]]);
        last = MAX(last, begin[i] + duration_s[i]);
    }
    return last;
}
