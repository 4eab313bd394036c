// SPDX-License-Identifier: MIT
// From the bound to a plan of real options. The bound gives every task a duration between two options.
// Rounded (down, or to the nearest), repaired where the longest path is too long now, and with the slack
// handed back to whoever saves most by it, these are good plans; then two kinds of exchange make them better
// until none helps: speed one task up and hand the time back to others, and slow one task down and repair
// elsewhere. Starting from the bound at a few times around the one asked for gives other mixtures of the same
// options; the best of all is taken.
//
// Everything is local: a task's change moves earliest and latest starts only as far as they really move, and
// only tasks so touched are looked at again. Choices are pruned by the bound's prices: a plan's gap to the
// bound is at least the reduced cost of each of its options, so an option whose reduced cost is no less than
// the present gap is in no better plan. Work is counted, not timed, so that a plan never depends on the
// machine.
#include "schedules/solver-private.h"

#include <math.h>
#include <string.h>

// Units of work for one plan (a start recomputed or a candidate looked at, about 10 ns): this much, or this
// much a task where that is more. Measured on 1F1B with 18 frequencies, 8 stages x 128 microbatches: twice as
// much takes half as long again and lowers the largest gap from 0.26 to 0.23 % of total energy, half as much
// raises it to 0.29 %.
#define WORK_LIMIT 250000
#define WORK_LIMIT_PER_TASK 1000
// Repairs within one exchange before it is given up.
#define MAX_REPAIRS 40
// Energy differences below this share of all energy are rounding errors.
#define NEGLIGIBLE 1e-12

struct NjRounder {
    guint n_tasks;
    guint *task_at; // [n_tasks] tasks here are numbered in topological order: which one it is in the graph
    guint *pred_start, *pred, *succ_start, *succ;
    const NjCurve **curve; // [n_tasks]
    gint64 step;
    double negligible_j;

    // The plan at work. Slack of a task is latest - earliest; it is negative on a path that is too long.
    gint64 deadline;
    guint *chosen;    // [n_tasks] Pareto option
    gint64 *duration; // [n_tasks]
    gint64 *earliest; // [n_tasks] start
    gint64 *latest;   // [n_tasks] start
    double energy_j;

    // What the bound says.
    const double *price; // by task of the graph
    double bound_j;
    double *least_priced_j; // [n_tasks] min over options of energy + price x time

    guint64 *pending; // bit set over tasks whose start must be recomputed
    gboolean *is_touched;
    guint *touched; // tasks whose slack changed since forget_touched()
    guint n_touched;
    gboolean *is_settled;    // [n_tasks] no exchange of the task helped since something near it moved
    gint64 *earliest_before; // [n_tasks] of touched tasks, as they were when forgotten last
    gint64 *latest_before;   // [n_tasks]
    GArray *undo;            // Change: options before the exchange at work
    gint64 work;
    gint64 work_limit;
};

typedef struct {
    guint task;
    guint option;
} Change;

static void copy_neighbours(guint n_tasks, const guint *task_at, const guint *place, const guint *from_start,
                            const guint *from, guint *start, guint *list)
{
    for (guint k = 0; k < n_tasks; k++) {
        const guint i = task_at[k];
        start[k + 1] = start[k];
        for (guint j = from_start[i]; j < from_start[i + 1]; j++)
            list[start[k + 1]++] = place[from[j]];
    }
}

NjRounder *nj_rounder_new(const NjDag *dag, const NjCurves *curves)
{
    NjRounder *planner = g_new0(NjRounder, 1);
    const guint n = planner->n_tasks = dag->n_tasks;
    planner->work_limit = MAX(WORK_LIMIT, WORK_LIMIT_PER_TASK * (gint64)n);
    planner->task_at = g_memdup2(dag->order, sizeof(guint) * n);
    g_autofree guint *place = g_new(guint, n);
    for (guint k = 0; k < n; k++)
        place[planner->task_at[k]] = k;
    planner->pred_start = g_new0(guint, n + 1);
    planner->pred = g_new(guint, dag->n_edges);
    planner->succ_start = g_new0(guint, n + 1);
    planner->succ = g_new(guint, dag->n_edges);
    copy_neighbours(n, planner->task_at, place, dag->pred_start, dag->pred, planner->pred_start,
                    planner->pred);
    copy_neighbours(n, planner->task_at, place, dag->succ_start, dag->succ, planner->succ_start,
                    planner->succ);

    planner->curve = g_new(const NjCurve *, n);
    gint64 range = 0, n_steps = 0;
    double total_j = 0;
    for (guint k = 0; k < n; k++) {
        const NjCurve *curve = &curves->curves[dag->option_set[planner->task_at[k]]];
        planner->curve[k] = curve;
        range += curve->ticks[curve->n_pareto - 1] - curve->ticks[0];
        total_j += MAX(fabs(curve->energy_j[0]), fabs(curve->energy_j[curve->n_pareto - 1]));
        n_steps += curve->n_pareto - 1;
    }
    planner->step = n_steps > 0 ? range / n_steps : 0;
    planner->negligible_j = NEGLIGIBLE * total_j;

    planner->chosen = g_new(guint, n);
    planner->duration = g_new(gint64, n);
    planner->earliest = g_new(gint64, n);
    planner->latest = g_new(gint64, n);
    planner->least_priced_j = g_new(double, n);
    planner->pending = g_new0(guint64, n / 64 + 1);
    planner->is_touched = g_new0(gboolean, n);
    planner->touched = g_new(guint, n);
    planner->is_settled = g_new(gboolean, n);
    planner->earliest_before = g_new(gint64, n);
    planner->latest_before = g_new(gint64, n);
    planner->undo = g_array_new(FALSE, FALSE, sizeof(Change));
    return planner;
}

void nj_rounder_free(NjRounder *planner)
{
    if (planner == NULL)
        return;
    g_free(planner->task_at);
    g_free(planner->pred_start);
    g_free(planner->pred);
    g_free(planner->succ_start);
    g_free(planner->succ);
    g_free(planner->curve);
    g_free(planner->chosen);
    g_free(planner->duration);
    g_free(planner->earliest);
    g_free(planner->latest);
    g_free(planner->least_priced_j);
    g_free(planner->pending);
    g_free(planner->is_touched);
    g_free(planner->touched);
    g_free(planner->is_settled);
    g_free(planner->earliest_before);
    g_free(planner->latest_before);
    g_array_unref(planner->undo);
    g_free(planner);
}

gint64 nj_rounder_step(const NjRounder *planner)
{
    return planner->step;
}

static gint64 slack_of(const NjRounder *planner, guint k)
{
    return planner->latest[k] - planner->earliest[k];
}

static gint64 find_earliest(const NjRounder *planner, guint k)
{
    gint64 earliest = 0;
    for (guint j = planner->pred_start[k]; j < planner->pred_start[k + 1]; j++) {
        const guint before = planner->pred[j];
        earliest = MAX(earliest, planner->earliest[before] + planner->duration[before]);
    }
    return earliest;
}

static gint64 find_latest(const NjRounder *planner, guint k)
{
    gint64 end = planner->deadline;
    for (guint j = planner->succ_start[k]; j < planner->succ_start[k + 1]; j++)
        end = MIN(end, planner->latest[planner->succ[j]]);
    return end - planner->duration[k];
}

static void touch(NjRounder *planner, guint k)
{
    if (!planner->is_touched[k]) {
        planner->is_touched[k] = TRUE;
        planner->earliest_before[k] = planner->earliest[k];
        planner->latest_before[k] = planner->latest[k];
        planner->touched[planner->n_touched++] = k;
    }
}

static void forget_touched(NjRounder *planner)
{
    g_array_set_size(planner->undo, 0);
    while (planner->n_touched > 0)
        planner->is_touched[planner->touched[--planner->n_touched]] = FALSE;
}

static void mark_pending(NjRounder *planner, guint k)
{
    planner->pending[k / 64] |= (guint64)1 << k % 64;
}

// Earliest starts after task k, in topological order: a later task is pending only behind the present one.
static void move_earliest(NjRounder *planner, guint k)
{
    guint first = G_MAXUINT, last = 0; // words of the bit set that may hold pending tasks
    for (guint j = planner->succ_start[k]; j < planner->succ_start[k + 1]; j++) {
        mark_pending(planner, planner->succ[j]);
        first = MIN(first, planner->succ[j] / 64);
        last = MAX(last, planner->succ[j] / 64);
    }
    for (guint word = first; word <= last && word != G_MAXUINT; word++)
        while (planner->pending[word] != 0) {
            const guint at = 64 * word + (guint)__builtin_ctzll(planner->pending[word]);
            planner->pending[word] &= planner->pending[word] - 1;
            planner->work++;
            const gint64 earliest = find_earliest(planner, at);
            if (earliest == planner->earliest[at])
                continue;
            touch(planner, at);
            planner->earliest[at] = earliest;
            for (guint j = planner->succ_start[at]; j < planner->succ_start[at + 1]; j++) {
                mark_pending(planner, planner->succ[j]);
                last = MAX(last, planner->succ[j] / 64);
            }
        }
}

// Latest starts of task k and before, likewise backwards.
static void move_latest(NjRounder *planner, guint k)
{
    mark_pending(planner, k);
    guint first = k / 64;
    for (guint word = first;; word--) {
        while (planner->pending[word] != 0) {
            const guint bit = 63 - (guint)__builtin_clzll(planner->pending[word]);
            const guint at = 64 * word + bit;
            planner->pending[word] &= ~((guint64)1 << bit);
            planner->work++;
            const gint64 latest = find_latest(planner, at);
            if (latest == planner->latest[at])
                continue;
            touch(planner, at);
            planner->latest[at] = latest;
            for (guint j = planner->pred_start[at]; j < planner->pred_start[at + 1]; j++) {
                mark_pending(planner, planner->pred[j]);
                first = MIN(first, planner->pred[j] / 64);
            }
        }
        if (word == first)
            break;
    }
}

static void choose(NjRounder *planner, guint k, guint option)
{
    const NjCurve *curve = planner->curve[k];
    const Change before = {k, planner->chosen[k]};
    g_array_append_val(planner->undo, before);
    planner->energy_j += curve->energy_j[option] - curve->energy_j[planner->chosen[k]];
    planner->chosen[k] = option;
    planner->duration[k] = curve->ticks[option];
    touch(planner, k);
    move_earliest(planner, k);
    move_latest(planner, k);
}

// Takes everything since forget_touched() back.
static void undo_all(NjRounder *planner, double energy_before_j)
{
    for (guint j = planner->undo->len; j-- > 0;) {
        const Change before = g_array_index(planner->undo, Change, j);
        planner->chosen[before.task] = before.option;
        planner->duration[before.task] = planner->curve[before.task]->ticks[before.option];
    }
    g_array_set_size(planner->undo, 0);
    for (guint t = 0; t < planner->n_touched; t++) {
        const guint k = planner->touched[t];
        planner->earliest[k] = planner->earliest_before[k];
        planner->latest[k] = planner->latest_before[k];
    }
    planner->energy_j = energy_before_j;
}

// Makes planner->chosen the plan at work; every task counts as touched.
static void begin_plan(NjRounder *planner)
{
    forget_touched(planner);
    planner->energy_j = 0;
    for (guint k = 0; k < planner->n_tasks; k++) {
        planner->duration[k] = planner->curve[k]->ticks[planner->chosen[k]];
        planner->energy_j += planner->curve[k]->energy_j[planner->chosen[k]];
        planner->earliest[k] = find_earliest(planner, k);
        touch(planner, k);
    }
    for (guint k = planner->n_tasks; k-- > 0;)
        planner->latest[k] = find_latest(planner, k);
    planner->work += planner->n_tasks;
}

// Slows touched tasks down, the one that saves most first, until none fits into its slack.
static void hand_back(NjRounder *planner)
{
    for (;;) {
        double best_j = planner->negligible_j;
        guint best = 0, best_option = 0;
        planner->work += planner->n_touched;
        for (guint t = 0; t < planner->n_touched; t++) {
            const guint k = planner->touched[t];
            const NjCurve *curve = planner->curve[k];
            const gint64 longest = planner->duration[k] + slack_of(planner, k);
            guint option = planner->chosen[k];
            while (option + 1 < curve->n_pareto && curve->ticks[option + 1] <= longest)
                option++;
            const double saved_j = curve->energy_j[planner->chosen[k]] - curve->energy_j[option];
            if (saved_j > best_j) {
                best_j = saved_j;
                best = k;
                best_option = option;
            }
        }
        if (best_j <= planner->negligible_j)
            return;
        choose(planner, best, best_option);
    }
}

// Speeds touched tasks on too long paths up, cheapest a tick first, never `except`, until no path is too
// long. Returns FALSE where that cannot be done below limit_j.
static gboolean repair(NjRounder *planner, guint except, double limit_j, guint max_repairs)
{
    for (guint n_repairs = 0;; n_repairs++) {
        double best_j_per_tick = G_MAXDOUBLE;
        guint best = G_MAXUINT, best_option = 0;
        gboolean is_late = FALSE;
        planner->work += planner->n_touched;
        for (guint t = 0; t < planner->n_touched; t++) {
            const guint k = planner->touched[t];
            const gint64 late = -slack_of(planner, k);
            if (late <= 0)
                continue;
            is_late = TRUE;
            const guint chosen = planner->chosen[k];
            if (k == except || chosen == 0)
                continue;
            const NjCurve *curve = planner->curve[k];
            guint option = chosen - 1;
            while (option > 0 && planner->duration[k] - curve->ticks[option] < late)
                option--;
            const double won = (double)MIN(planner->duration[k] - curve->ticks[option], late);
            const double j_per_tick = (curve->energy_j[option] - curve->energy_j[chosen]) / won;
            if (j_per_tick < best_j_per_tick) {
                best_j_per_tick = j_per_tick;
                best = k;
                best_option = option;
            }
        }
        if (!is_late)
            return TRUE;
        if (best == G_MAXUINT || n_repairs == max_repairs || planner->energy_j > limit_j)
            return FALSE;
        choose(planner, best, best_option);
    }
}

// Whether an option can be part of a plan better than the one of energy_j.
static gboolean may_be_better(const NjRounder *planner, guint k, guint option, double energy_j)
{
    const NjCurve *curve = planner->curve[k];
    const double priced_j =
        curve->energy_j[option] + planner->price[planner->task_at[k]] * (double)curve->ticks[option];
    return priced_j - planner->least_priced_j[k] < energy_j - planner->bound_j;
}

// One exchange that begins at task k. Keeps it and returns TRUE where it saves energy.
static gboolean exchange(NjRounder *planner, guint k, gboolean slower)
{
    const double before_j = planner->energy_j;
    const guint chosen = planner->chosen[k];
    if (slower ? chosen + 1 == planner->curve[k]->n_pareto : chosen == 0)
        return FALSE;
    const guint option = slower ? chosen + 1 : chosen - 1;
    if (!may_be_better(planner, k, option, before_j))
        return FALSE;
    forget_touched(planner);
    choose(planner, k, option);
    // A repair may cost more than the slower task saves: some of it is handed back.
    const double limit_j = before_j + 2 * (before_j - planner->energy_j);
    if (!slower || repair(planner, k, limit_j, MAX_REPAIRS)) {
        hand_back(planner);
        if (planner->energy_j < before_j - planner->negligible_j)
            return TRUE;
    }
    undo_all(planner, before_j);
    return FALSE;
}

static gboolean is_finished(const NjRounder *planner)
{
    return planner->work > planner->work_limit ||
           planner->energy_j - planner->bound_j <= planner->negligible_j;
}

// Tries both exchanges of a task. Where one helps, those around it are to be looked at again.
static gboolean improve_task(NjRounder *planner, guint k)
{
    planner->is_settled[k] = TRUE;
    if (!exchange(planner, k, FALSE) && !exchange(planner, k, TRUE))
        return FALSE;
    for (guint t = 0; t < planner->n_touched; t++)
        planner->is_settled[planner->touched[t]] = FALSE;
    return TRUE;
}

// Exchanges until none helps. The kind that repairs costs more work and saves less: with `faster_first` the
// other kind goes over all tasks once before, so that on a large graph the work is not used up on the way. A
// task of which nothing helped is left alone until something moves that it touches: where it fails, it most
// often fails again.
static void improve(NjRounder *planner, gboolean faster_first)
{
    memset(planner->is_settled, 0, planner->n_tasks * sizeof *planner->is_settled);
    if (faster_first)
        for (guint k = 0; k < planner->n_tasks && !is_finished(planner); k++)
            exchange(planner, k, FALSE);
    for (gboolean is_better = TRUE; is_better;) {
        is_better = FALSE;
        for (guint k = 0; k < planner->n_tasks && !is_finished(planner); k++)
            is_better |= !planner->is_settled[k] && improve_task(planner, k);
    }
}

// Rounds the target's durations to options: down, or to the nearest.
static void round_target(NjRounder *planner, const NjTarget *target, gboolean nearest)
{
    for (guint k = 0; k < planner->n_tasks; k++) {
        const NjCurve *curve = planner->curve[k];
        const gint64 duration = target->duration[planner->task_at[k]];
        guint option = curve->n_pareto - 1;
        while (option > 0 && curve->ticks[option] > duration)
            option--;
        if (nearest && option + 1 < curve->n_pareto &&
            curve->ticks[option + 1] - duration < duration - curve->ticks[option])
            option++;
        planner->chosen[k] = option;
    }
}

static void set_prices(NjRounder *planner, const double *price, double bound_j)
{
    planner->price = price;
    planner->bound_j = bound_j;
    for (guint k = 0; k < planner->n_tasks; k++) {
        const NjCurve *curve = planner->curve[k];
        planner->least_priced_j[k] = G_MAXDOUBLE;
        for (guint option = 0; option < curve->n_pareto; option++)
            planner->least_priced_j[k] =
                MIN(planner->least_priced_j[k],
                    curve->energy_j[option] + price[planner->task_at[k]] * (double)curve->ticks[option]);
    }
}

// Whether the rounded target was a start before: the same start ends in the same plan.
static gboolean is_known_start(const NjRounder *planner, guint n_known, guint64 *known)
{
    guint64 hash = 14695981039346656037u; // FNV-1a
    for (guint k = 0; k < planner->n_tasks; k++)
        hash = (hash ^ planner->chosen[k]) * 1099511628211u;
    known[n_known] = hash;
    for (guint j = 0; j < n_known; j++)
        if (known[j] == hash)
            return TRUE;
    return FALSE;
}

double nj_rounder_plan(NjRounder *planner, gint64 ticks, guint n_targets, const NjTarget *targets,
                       const double *price, double bound_j, guint *chosen)
{
    planner->deadline = ticks;
    planner->work = 0;
    set_prices(planner, price, bound_j);
    g_autofree guint64 *known = g_new(guint64, 2 * n_targets);
    double best_j = G_MAXDOUBLE;
    for (guint start = 0; start < 2 * n_targets; start++) {
        if (start > 0 && (planner->work > planner->work_limit || best_j - bound_j <= planner->negligible_j))
            break;
        round_target(planner, &targets[start / 2], start % 2 == 1);
        if (is_known_start(planner, start, known))
            continue;
        begin_plan(planner);
        if (!repair(planner, G_MAXUINT, G_MAXDOUBLE, G_MAXUINT))
            continue;
        hand_back(planner);
        improve(planner, start == 0);
        if (planner->energy_j < best_j - planner->negligible_j) {
            best_j = planner->energy_j;
            for (guint k = 0; k < planner->n_tasks; k++)
                chosen[planner->task_at[k]] = planner->chosen[k];
        }
    }
    g_assert(best_j < G_MAXDOUBLE); // the first start, rounded down, needs no repair
    return best_j;
}

gint64 nj_rounder_time(NjRounder *planner, const guint *chosen)
{
    gint64 end = 0;
    for (guint k = 0; k < planner->n_tasks; k++) {
        planner->duration[k] = planner->curve[k]->ticks[chosen[planner->task_at[k]]];
        planner->earliest[k] = find_earliest(planner, k);
        end = MAX(end, planner->earliest[k] + planner->duration[k]);
    }
    return end;
}
