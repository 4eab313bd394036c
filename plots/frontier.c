// SPDX-License-Identifier: MIT
// Time against energy of every method; arrows say what Kareus saves against Megatron-LM + Perseus at its
// fastest time (iso-time) and at its least energy (iso-energy), as the published comparison does. Several
// workloads are panels of one figure. Published reductions, where a comparison has them, stand as points:
// applied to the simulated reference, for no absolute figures were published.
#include "plots/plot.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

#define MAX_PANELS 12

typedef struct {
    double time_s, energy_j;
} Point;

typedef struct {
    char *title;
    GArray *points[NJ_N_METHODS]; // Point
    double published[2];          // Kareus' iso-time and iso-energy reductions, % or NaN
} Panel;

static void panel_clear(gpointer data)
{
    Panel *panel = data;
    g_free(panel->title);
    for (guint m = 0; m < NJ_N_METHODS; m++)
        g_array_unref(panel->points[m]);
}

// Transfer none: the panel lives in the array.
static Panel *add_panel(GArray *panels, char *title)
{
    Panel panel = {.title = title, .published = {(double)NAN, (double)NAN}};
    for (guint m = 0; m < NJ_N_METHODS; m++)
        panel.points[m] = g_array_new(FALSE, FALSE, sizeof(Point));
    g_array_append_val(panels, panel);
    return &g_array_index(panels, Panel, panels->len - 1);
}

static int compare_times(gconstpointer a, gconstpointer b)
{
    const Point *x = a, *y = b;
    return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

static void take_frontier(Panel *panel, const NjFrontier *frontier)
{
    for (guint i = 0; i < frontier->plans->len; i++) {
        const NjExecutedPlan *plan = &g_array_index(frontier->plans, NjExecutedPlan, i);
        const Point point = {plan->time_s, plan->energy_j};
        g_array_append_val(panel->points[frontier->method], point);
    }
}

static gboolean from_scenario(const NjScenario *scenario, GArray *panels, GError **error)
{
    const NjFrontierOptions options = {.step_s = NJ_FRONTIER_STEP_S,
                                       .n_points = 12,
                                       .point_to_point = scenario->point_to_point,
                                       .optimizer = scenario->optimizer};
    Panel *panel = add_panel(panels, nj_plot_title(&scenario->workload));
    for (guint m = 0; m < NJ_N_METHODS; m++) {
        g_auto(NjFrontier) frontier = {0};
        g_autoptr(GError) reason = NULL;
        if (nj_frontier_run(&scenario->workload, (NjMethod)m, scenario->schedule, &options, &frontier,
                            &reason)) {
            take_frontier(panel, &frontier);
        } else if (!g_error_matches(reason, NJ_ERROR, NJ_ERROR_IMPOSSIBLE)) {
            g_propagate_prefixed_error(error, g_steal_pointer(&reason), "%s: ", scenario->path);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean from_comparison(NjComparison *comparison, guint jobs, GArray *panels, GError **error)
{
    if (!nj_comparison_run(comparison, jobs, NULL, NULL, error))
        return FALSE;
    for (guint i = 0; i < comparison->configurations->len; i++) {
        const NjComparisonConfiguration *configuration = comparison->configurations->pdata[i];
        Panel *panel = add_panel(panels, nj_plot_title(&configuration->workload));
        for (guint m = 0; m < NJ_N_METHODS; m++)
            if (configuration->frontiers[m].plans != NULL)
                take_frontier(panel, &configuration->frontiers[m]);
        for (guint c = 0; c < comparison->cells->len; c++) {
            const NjComparisonCell *cell = &g_array_index(comparison->cells, NjComparisonCell, c);
            if (cell->configuration != i || cell->method != NJ_METHOD_KAREUS ||
                cell->published.state != NJ_CELL_VALUE)
                continue;
            if (cell->metric == NJ_METRIC_ISO_TIME)
                panel->published[0] = cell->published.value;
            else if (cell->metric == NJ_METRIC_ISO_ENERGY)
                panel->published[1] = cell->published.value;
        }
    }
    return TRUE;
}

static int need_column(const NjTable *table, const char *path, const char *name, GError **error)
{
    const int column = nj_table_find_column(table, name);
    if (column < 0)
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s: no column %s: method, time_s and energy_j are needed", path, name);
    return column;
}

// A point of a sweep in words: its values on the axes, which stand between point and status.
static char *describe_point(const NjTable *points, guint row)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const int status = nj_table_find_column(points, "status");
    for (int c = 1; c < status; c++) {
        const NjColumn *column = nj_table_column(points, (guint)c);
        g_string_append(text, text->len > 0 ? ", " : "");
        if (column->type == NJ_COLUMN_TEXT)
            g_string_append(text, nj_table_get_text(points, row, (guint)c));
        else
            g_string_append_printf(text, "%s %g", column->name, nj_plot_number(points, row, (guint)c));
    }
    return g_strdup(text->len > 0 ? text->str : "the sweep's one point");
}

// Titles of the workloads to show, by point (gint64 * -> char *); NULL for a table without a sweep's points.
static GHashTable *find_points(NjPlotInput *input, const NjPlotOptions *options, GError **error)
{
    g_autoptr(GHashTable) titles = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    g_autoptr(NjTable) points = nj_plot_rows(input, "points", options, error);
    if (points == NULL)
        return NULL;
    for (guint row = 0; row < nj_table_n_rows(points); row++) {
        const gint64 point = nj_table_get_integer(points, row, 0);
        g_hash_table_insert(titles, g_memdup2(&point, sizeof point), describe_point(points, row));
    }
    return g_steal_pointer(&titles);
}

// The method, time and energy of rows, and their workload.
typedef struct {
    NjTable *rows; // not owned
    int method, time, energy, point;
} Columns;

static gboolean find_columns(NjTable *rows, const char *path, Columns *columns, GError **error)
{
    *columns = (Columns){.rows = rows, .point = nj_table_find_column(rows, "point")};
    return (columns->method = need_column(rows, path, "method", error)) >= 0 &&
           (columns->time = need_column(rows, path, "time_s", error)) >= 0 &&
           (columns->energy = need_column(rows, path, "energy_j", error)) >= 0;
}

static gboolean method_of(const Columns *columns, const char *path, guint row, NjMethod *method,
                          GError **error)
{
    const gboolean text = nj_table_column(columns->rows, (guint)columns->method)->type == NJ_COLUMN_TEXT;
    const char *name = text ? nj_table_get_text(columns->rows, row, (guint)columns->method) : NULL;
    if (name != NULL && nj_method_parse(name, method))
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                "%s: method '%s': megatron, megatron+perseus, nanobatching+perseus or kareus is needed", path,
                name != NULL ? name : "");
    return FALSE;
}

// Rows with method, time_s, energy_j, and point where there are several workloads. --where chooses points of
// a store, rows of a table.
static gboolean from_rows(NjPlotInput *input, const NjPlotOptions *options, GArray *panels, GError **error)
{
    const NjPlotOptions all = {.where = input->type == NJ_INPUT_TABLE ? options->where : NULL};
    g_autoptr(NjTable) rows = nj_plot_rows(input, "frontiers", &all, error);
    g_autoptr(GHashTable) titles = NULL;
    Columns columns;
    if (rows == NULL || !find_columns(rows, input->path, &columns, error))
        return FALSE;
    if (input->type == NJ_INPUT_STORE && (titles = find_points(input, options, error)) == NULL)
        return FALSE;
    gint64 last = -1;
    for (guint row = 0; row < nj_table_n_rows(rows); row++) {
        const gint64 id = columns.point >= 0 ? (gint64)nj_plot_number(rows, row, (guint)columns.point) : 0;
        const char *title = titles != NULL ? g_hash_table_lookup(titles, &id) : NULL;
        const Point point = {nj_plot_number(rows, row, (guint)columns.time),
                             nj_plot_number(rows, row, (guint)columns.energy)};
        NjMethod method;
        if (!method_of(&columns, input->path, row, &method, error))
            return FALSE;
        if ((titles != NULL && title == NULL) || !isfinite(point.time_s) || !isfinite(point.energy_j))
            continue;
        if (panels->len == 0 || id != last)
            add_panel(panels, title != NULL        ? g_strdup(title)
                              : columns.point >= 0 ? g_strdup_printf("point %" G_GINT64_FORMAT, id)
                                                   : g_strdup("Time and energy of an iteration"));
        last = id;
        g_array_append_val(g_array_index(panels, Panel, panels->len - 1).points[method], point);
    }
    if (panels->len > 0)
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: no plans of a frontier%s", input->path,
                options->where != NULL ? " meet --where" : " in it");
    return FALSE;
}

static void add_arrow(NjFigure *figure, guint panel, const char *kind, Point from, Point to, double percent)
{
    g_autofree char *label =
        g_strdup_printf("%+.1f %% %s", percent, g_str_equal(kind, "iso-time") ? "energy" : "time");
    nj_figure_add_integer(figure, (int)panel);
    nj_figure_add_text(figure, kind);
    nj_figure_add_real(figure, from.time_s);
    nj_figure_add_real(figure, from.energy_j / 1e3);
    nj_figure_add_real(figure, to.time_s);
    nj_figure_add_real(figure, to.energy_j / 1e3);
    nj_figure_add_text(figure, label);
    nj_figure_end_row(figure);
}

// The two plans of Megatron-LM + Perseus that others are compared with.
static gboolean find_references(const Panel *panel, Point *fastest, Point *thriftiest)
{
    const GArray *points = panel->points[NJ_METHOD_MEGATRON_PERSEUS];
    *fastest = *thriftiest = (Point){HUGE_VAL, HUGE_VAL};
    for (guint i = 0; i < points->len; i++) {
        const Point *point = &g_array_index(points, Point, i);
        if (point->time_s < fastest->time_s)
            *fastest = *point;
        if (point->energy_j < thriftiest->energy_j)
            *thriftiest = *point;
    }
    return points->len > 0;
}

static void add_arrows(NjFigure *figure, guint number, const Panel *panel)
{
    Point fastest, thriftiest;
    if (!find_references(panel, &fastest, &thriftiest))
        return;
    double least_j = HUGE_VAL, least_s = HUGE_VAL;
    for (guint i = 0; i < panel->points[NJ_METHOD_KAREUS]->len; i++) {
        const Point *point = &g_array_index(panel->points[NJ_METHOD_KAREUS], Point, i);
        if (point->time_s <= fastest.time_s)
            least_j = fmin(least_j, point->energy_j);
        if (point->energy_j <= thriftiest.energy_j)
            least_s = fmin(least_s, point->time_s);
    }
    if (isfinite(least_j))
        add_arrow(figure, number, "iso-time", fastest, (Point){fastest.time_s, least_j},
                  100 * (least_j / fastest.energy_j - 1));
    if (isfinite(least_s))
        add_arrow(figure, number, "iso-energy", thriftiest, (Point){least_s, thriftiest.energy_j},
                  100 * (least_s / thriftiest.time_s - 1));
}

static void add_published(NjFigure *figure, guint number, const Panel *panel)
{
    Point fastest, thriftiest;
    if (!find_references(panel, &fastest, &thriftiest))
        return;
    const Point points[2] = {{fastest.time_s, fastest.energy_j * (1 - panel->published[0] / 100)},
                             {thriftiest.time_s * (1 - panel->published[1] / 100), thriftiest.energy_j}};
    for (guint i = 0; i < 2; i++) {
        if (!isfinite(panel->published[i]))
            continue;
        nj_figure_add_integer(figure, (int)number);
        nj_figure_add_real(figure, points[i].time_s);
        nj_figure_add_real(figure, points[i].energy_j / 1e3);
        nj_figure_end_row(figure);
    }
}

static void fill(GArray *panels, NjFigure *figure)
{
    gboolean any_published = FALSE;
    nj_figure_begin_block(figure, "plans", "panel method time_s energy_kj");
    for (guint p = 0; p < panels->len; p++) {
        Panel *panel = &g_array_index(panels, Panel, p);
        for (guint m = 0; m < NJ_N_METHODS; m++) {
            g_array_sort(panel->points[m], compare_times);
            for (guint i = 0; i < panel->points[m]->len; i++) {
                const Point *point = &g_array_index(panel->points[m], Point, i);
                nj_figure_add_integer(figure, (int)p);
                nj_figure_add_integer(figure, (int)m);
                nj_figure_add_real(figure, point->time_s);
                nj_figure_add_real(figure, point->energy_j / 1e3);
                nj_figure_end_row(figure);
            }
        }
        any_published = any_published || isfinite(panel->published[0]) || isfinite(panel->published[1]);
    }
    nj_figure_end_block(figure);
    nj_figure_begin_block(figure, "arrows", "panel kind from_s from_kj to_s to_kj label");
    for (guint p = 0; p < panels->len; p++)
        add_arrows(figure, p, &g_array_index(panels, Panel, p));
    nj_figure_end_block(figure);
    nj_figure_begin_block(figure, "published", "panel time_s energy_kj");
    for (guint p = 0; p < panels->len; p++)
        add_published(figure, p, &g_array_index(panels, Panel, p));
    nj_figure_end_block(figure);
    nj_figure_begin_block(figure, "titles", "panel title");
    for (guint p = 0; p < panels->len; p++) {
        nj_figure_add_integer(figure, (int)p);
        nj_figure_add_text(figure, g_array_index(panels, Panel, p).title);
        nj_figure_end_row(figure);
    }
    nj_figure_end_block(figure);
    nj_figure_set_integer(figure, "n_panels", (int)panels->len);
    nj_figure_set_integer(figure, "any_published", any_published);
    nj_figure_set_text(figure, "plot_title",
                       panels->len > 1 ? "Time and energy of an iteration, executed plans"
                                       : g_array_index(panels, Panel, 0).title);
    const int n_rows = panels->len == 1 ? 1 : (int)(panels->len + 1) / 2;
    nj_figure_set_integer(figure, "n_rows", n_rows);
    nj_figure_set_integer(figure, "n_across", panels->len == 1 ? 1 : 2);
    figure->height = panels->len == 1 ? 460 : 92 + 300 * n_rows;
}

static gboolean build(NjPlotInput *input, const NjPlotOptions *options, NjFigure *figure, GError **error)
{
    g_autoptr(GArray) panels = g_array_new(FALSE, TRUE, sizeof(Panel));
    g_array_set_clear_func(panels, panel_clear);
    const gboolean ok = input->type == NJ_INPUT_SCENARIO ? from_scenario(&input->scenario, panels, error)
                        : input->type == NJ_INPUT_COMPARISON
                            ? from_comparison(&input->comparison, options->jobs, panels, error)
                            : from_rows(input, options, panels, error);
    if (!ok)
        return FALSE;
    if (panels->len > MAX_PANELS) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "%s: %u workloads: a figure has room for %d; choose some with --where", input->path,
                    panels->len, MAX_PANELS);
        return FALSE;
    }
    fill(panels, figure);
    return TRUE;
}

const NjPlotKind nj_plot_frontier = {
    .name = "frontier",
    .summary = "time against energy of every method, several workloads as panels",
    .reads = {TRUE, TRUE, TRUE, TRUE},
    .build = build,
};
