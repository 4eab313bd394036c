// SPDX-License-Identifier: MIT
// How Kareus' reductions against Megatron-LM + Perseus move when one constant of the GPU moves by 10 % down
// or up. Both methods are planned anew each time: a plan is made for the hardware it runs on.
#include "plots/plot.h"
#include "sim/error.h"

#include <math.h>

#define CHANGE 0.1
#define MAX_SHOWN 14
#define N_POINTS 40 // of a frontier: the published ten would show which point is near, not the trend

enum { ISO_TIME, ISO_ENERGY, N_REDUCTIONS };
enum { BASE, LOW, HIGH, N_SIDES };

typedef struct {
    double pct[N_REDUCTIONS];
    GError *error;
} Reductions;

typedef struct {
    const NjField *field; // NULL: nothing changes
    double factor;
    Reductions result;
} Task;

static gboolean run_method(const NjScenario *scenario, const NjWorkload *workload, NjMethod method,
                           NjFrontier *frontier, GError **error)
{
    const NjFrontierOptions options = {.step_s = NJ_FRONTIER_STEP_S,
                                       .n_points = N_POINTS,
                                       .point_to_point = scenario->point_to_point,
                                       .optimizer = scenario->optimizer};
    return nj_frontier_run(workload, method, scenario->schedule, &options, frontier, error);
}

static void run_task(gpointer data, gpointer user)
{
    Task *task = data;
    const NjScenario *scenario = user;
    NjWorkload workload = scenario->workload; // shares its texts, which nothing changes
    if (task->field != NULL) {
        double *value = G_STRUCT_MEMBER_P(&workload.gpu, task->field->offset);
        *value = fmin(fmax(*value * task->factor, task->field->minimum), task->field->maximum);
    }
    g_auto(NjFrontier) megatron = {0}, perseus = {0}, kareus = {0};
    if (!run_method(scenario, &workload, NJ_METHOD_MEGATRON, &megatron, &task->result.error) ||
        !run_method(scenario, &workload, NJ_METHOD_MEGATRON_PERSEUS, &perseus, &task->result.error) ||
        !run_method(scenario, &workload, NJ_METHOD_KAREUS, &kareus, &task->result.error))
        return;
    const NjMetric metrics[N_REDUCTIONS] = {NJ_METRIC_ISO_TIME, NJ_METRIC_ISO_ENERGY};
    for (guint i = 0; i < N_REDUCTIONS; i++) {
        const NjCellValue value = nj_metric_value(metrics[i], &kareus, &megatron, &perseus);
        task->result.pct[i] = value.state == NJ_CELL_VALUE ? value.value : (double)NAN;
    }
}

// Fields that are constants of the model, real and not zero: what 10 % of means something.
static GPtrArray *find_fields(const NjGpu *gpu)
{
    GPtrArray *found = g_ptr_array_new();
    guint n;
    const NjField *fields = nj_gpu_fields(&n);
    for (guint i = 0; i < n; i++)
        if (fields[i].type == NJ_FIELD_REAL && g_str_equal(fields[i].group, "model") &&
            G_STRUCT_MEMBER(double, gpu, fields[i].offset) != 0)
            g_ptr_array_add(found, (gpointer)&fields[i]);
    return found;
}

// A constant that 10 % would take beyond its bounds goes as far as they are.
static gboolean is_bounded(const NjGpu *gpu, const NjField *field)
{
    const double value = G_STRUCT_MEMBER(double, gpu, field->offset);
    return value * (1 - CHANGE) < field->minimum || value * (1 + CHANGE) > field->maximum;
}

// The largest move of either reduction, in points.
static double largest_move(const Task *pair, const Reductions *base)
{
    double largest = 0;
    for (guint i = 0; i < N_REDUCTIONS; i++)
        for (guint side = 0; side < 2; side++)
            largest = fmax(largest, fabs(pair[side].result.pct[i] - base->pct[i]));
    return largest;
}

static int compare_moves(gconstpointer a, gconstpointer b, gpointer user)
{
    const Task *x = *(Task *const *)a, *y = *(Task *const *)b;
    const double mx = largest_move(x, user), my = largest_move(y, user);
    return (mx < my) - (mx > my);
}

static void fill(const NjScenario *scenario, const Task *tasks, guint n_fields, NjFigure *figure)
{
    const Reductions *base = &tasks[0].result;
    g_autoptr(GPtrArray) pairs = g_ptr_array_new();
    for (guint i = 0; i < n_fields; i++)
        g_ptr_array_add(pairs, (gpointer)&tasks[1 + 2 * i]);
    g_ptr_array_sort_with_data(pairs, compare_moves, (gpointer)base);
    const guint n_shown = MIN(pairs->len, MAX_SHOWN);
    double span = 0;
    gboolean any_bounded = FALSE;
    nj_figure_begin_block(figure, "moves", "panel row low_points high_points");
    for (guint panel = 0; panel < N_REDUCTIONS; panel++) {
        for (guint row = 0; row < n_shown; row++) {
            const Task *pair = pairs->pdata[row];
            nj_figure_add_integer(figure, (int)panel);
            nj_figure_add_integer(figure, (int)row);
            nj_figure_add_real(figure, pair[0].result.pct[panel] - base->pct[panel]);
            nj_figure_add_real(figure, pair[1].result.pct[panel] - base->pct[panel]);
            nj_figure_end_row(figure);
            span = fmax(span, largest_move(pair, base));
        }
    }
    nj_figure_end_block(figure);
    nj_figure_begin_block(figure, "constants", "row name");
    for (guint row = 0; row < n_shown; row++) {
        nj_figure_add_integer(figure, (int)row);
        const NjField *field = ((const Task *)pairs->pdata[row])->field;
        const gboolean bounded = is_bounded(&scenario->workload.gpu, field);
        g_autofree char *name = g_strconcat(field->key, bounded ? " *" : "", NULL);
        any_bounded = any_bounded || bounded;
        nj_figure_add_text(figure, name);
        nj_figure_end_row(figure);
    }
    nj_figure_end_block(figure);
    g_autofree char *title = nj_plot_title(&scenario->workload);
    g_autofree char *full = g_strdup_printf("Kareus against Megatron-LM + Perseus, %s; %u of %u constants",
                                            title, n_shown, n_fields);
    nj_figure_set_text(figure, "plot_title", full);
    nj_figure_set_real(figure, "base_iso_time", base->pct[ISO_TIME]);
    nj_figure_set_real(figure, "base_iso_energy", base->pct[ISO_ENERGY]);
    nj_figure_set_integer(figure, "any_bounded", any_bounded);
    nj_figure_set_integer(figure, "n_shown", (int)n_shown);
    nj_figure_set_real(figure, "span", fmax(span, 0.1));
    figure->height = 150 + 22 * (int)n_shown;
}

static gboolean build(NjPlotInput *input, const NjPlotOptions *options, NjFigure *figure, GError **error)
{
    NjScenario *scenario = &input->scenario;
    g_autoptr(GPtrArray) fields = find_fields(&scenario->workload.gpu);
    const guint n = 1 + 2 * fields->len;
    g_autofree Task *tasks = g_new0(Task, n);
    GThreadPool *pool = g_thread_pool_new(run_task, scenario, (int)MAX(options->jobs, 1), TRUE, NULL);
    for (guint i = 0; i < n; i++) {
        if (i > 0)
            tasks[i] = (Task){.field = fields->pdata[(i - 1) / 2],
                              .factor = (i - 1) % 2 == 0 ? 1 - CHANGE : 1 + CHANGE};
        g_thread_pool_push(pool, &tasks[i], NULL);
    }
    g_thread_pool_free(pool, FALSE, TRUE);
    gboolean ok = TRUE;
    for (guint i = 0; i < n; i++) {
        if (tasks[i].result.error == NULL)
            continue;
        if (ok)
            g_propagate_prefixed_error(error, g_steal_pointer(&tasks[i].result.error),
                                       "%s: ", scenario->path);
        g_clear_error(&tasks[i].result.error);
        ok = FALSE;
    }
    if (ok)
        fill(scenario, tasks, fields->len, figure);
    return ok;
}

const NjPlotKind nj_plot_sensitivity = {
    .name = "sensitivity",
    .summary = "how Kareus' reductions move when a constant moves by 10 %",
    .reads = {[NJ_INPUT_SCENARIO] = TRUE},
    .build = build,
};
