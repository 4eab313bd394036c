// SPDX-License-Identifier: MIT
// Published against simulated reductions: a row a configuration and method, a panel a metric, the two values
// joined by a line. From a comparison, or from the CSV of `run`.
#include "plots/plot.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

typedef struct {
    guint table; // index of the table the cell is in
    char *row;   // "Llama 3.2 3B tp8 8 x 4096, Kareus"
    guint metric;
    double simulated, published, rerun; // %, NaN: none
    gboolean none_published;            // "none": no plan qualified
} Cell;

static void cell_clear(gpointer data)
{
    g_free(((Cell *)data)->row);
}

static double value_of(const NjCellValue *cell)
{
    return cell->state == NJ_CELL_VALUE ? cell->value : (double)NAN;
}

static char *row_name(const char *model, const char *parallelism, int microbatch_size, int seq_len,
                      NjMethod method)
{
    static const char *const names[NJ_N_METHODS] = {"Megatron-LM", "M+Perseus", "N+Perseus", "Kareus"};
    return g_strdup_printf("%s %s %d x %d, %s", model, parallelism, microbatch_size, seq_len, names[method]);
}

static gboolean from_comparison(NjComparison *comparison, guint jobs, GArray *cells, GError **error)
{
    if (!nj_comparison_run(comparison, jobs, NULL, NULL, error))
        return FALSE;
    for (guint i = 0; i < comparison->cells->len; i++) {
        const NjComparisonCell *from = &g_array_index(comparison->cells, NjComparisonCell, i);
        const NjComparisonConfiguration *configuration =
            comparison->configurations->pdata[from->configuration];
        const NjWorkload *w = &configuration->workload;
        g_autofree char *degrees = nj_parallelism_format(&w->parallelism, FALSE);
        const Cell cell = {
            .table = from->table,
            .row = row_name(w->arch.title, degrees, w->microbatch_size, w->seq_len, from->method),
            .metric = from->metric,
            .simulated = value_of(&from->simulated),
            .published = value_of(&from->published),
            .rerun = value_of(&from->rerun),
            .none_published = from->published.state == NJ_CELL_NONE,
        };
        g_array_append_val(cells, cell);
    }
    return TRUE;
}

static gboolean parse_value(const char *text, double *value)
{
    char *end;
    *value = (double)NAN;
    if (*text == '\0' || g_str_equal(text, "none"))
        return TRUE;
    *value = g_ascii_strtod(text, &end);
    return *end == '\0';
}

enum { TABLE, MODEL, PARALLELISM, MICROBATCH_SIZE, SEQ_LEN, METHOD, METRIC, SIMULATED, PUBLISHED, N_CSV };

static gboolean take_csv_row(const NjCsv *csv, guint row, const int *at, GPtrArray *tables, Cell *cell,
                             GError **error)
{
    char **fields = csv->rows[row];
    NjMethod method;
    gint64 microbatch_size, seq_len;
    *cell = (Cell){.rerun = (double)NAN, .metric = NJ_N_METRICS};
    if (!nj_csv_integer(csv, row, at[MICROBATCH_SIZE], 1, G_MAXINT, &microbatch_size, error) ||
        !nj_csv_integer(csv, row, at[SEQ_LEN], 1, G_MAXINT, &seq_len, error))
        return FALSE;
    for (guint m = 0; m < NJ_N_METRICS; m++)
        if (g_str_equal(fields[at[METRIC]], nj_metric_name((NjMetric)m)))
            cell->metric = m;
    if (!nj_method_parse(fields[at[METHOD]], &method) || cell->metric == NJ_N_METRICS ||
        !parse_value(fields[at[SIMULATED]], &cell->simulated) ||
        !parse_value(fields[at[PUBLISHED]], &cell->published)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s:%u: method, metric or a value is none that 'nanojoule run --format csv' writes",
                    csv->path, csv->line_numbers[row]);
        return FALSE;
    }
    for (cell->table = 0; cell->table < tables->len; cell->table++)
        if (g_str_equal(tables->pdata[cell->table], fields[at[TABLE]]))
            break;
    if (cell->table == tables->len)
        g_ptr_array_add(tables, fields[at[TABLE]]);
    cell->none_published = g_str_equal(fields[at[PUBLISHED]], "none");
    cell->row =
        row_name(fields[at[MODEL]], fields[at[PARALLELISM]], (int)microbatch_size, (int)seq_len, method);
    return TRUE;
}

static gboolean from_csv(const NjCsv *csv, GArray *cells, GError **error)
{
    static const char *const names[N_CSV] = {"table",           "model",         "parallelism",
                                             "microbatch_size", "seq_len",       "method",
                                             "metric",          "simulated_pct", "published_pct"};
    g_autoptr(GPtrArray) tables = g_ptr_array_new();
    int at[N_CSV];
    for (guint i = 0; i < N_CSV; i++)
        if ((at[i] = nj_csv_require(csv, names[i], error)) < 0)
            return FALSE;
    for (guint row = 0; row < csv->n_rows; row++) {
        Cell cell;
        if (!take_csv_row(csv, row, at, tables, &cell, error))
            return FALSE;
        g_array_append_val(cells, cell);
    }
    return TRUE;
}

static gboolean was_published(const Cell *cell)
{
    return isfinite(cell->published) || cell->none_published;
}

// Rows of which something was published, in order. Two tables may have a row of the same name for different
// metrics: it becomes one.
static GPtrArray *find_rows(const GArray *cells)
{
    GPtrArray *rows = g_ptr_array_new();
    for (guint i = 0; i < cells->len; i++) {
        const Cell *cell = &g_array_index(cells, Cell, i);
        gboolean known = !was_published(cell);
        for (guint r = 0; r < rows->len && !known; r++)
            known = g_str_equal(rows->pdata[r], cell->row);
        if (!known)
            g_ptr_array_add(rows, cell->row);
    }
    return rows;
}

static int position_of(const GPtrArray *rows, const char *name)
{
    for (guint r = 0; r < rows->len; r++)
        if (g_str_equal(rows->pdata[r], name))
            return (int)r;
    return -1;
}

static void fill(const GArray *cells, const GPtrArray *rows, NjFigure *figure)
{
    gboolean used[NJ_N_METRICS] = {FALSE};
    int panel_of[NJ_N_METRICS], n_panels = 0;
    double sum = 0;
    guint n = 0;
    for (guint i = 0; i < cells->len; i++)
        used[g_array_index(cells, Cell, i).metric] |= was_published(&g_array_index(cells, Cell, i));
    for (guint m = 0; m < NJ_N_METRICS; m++)
        panel_of[m] = used[m] ? n_panels++ : -1;
    nj_figure_begin_block(figure, "cells",
                          "panel row simulated_pct published_pct rerun_pct none_published none_simulated");
    for (guint i = 0; i < cells->len; i++) {
        const Cell *cell = &g_array_index(cells, Cell, i);
        if (!was_published(cell))
            continue;
        nj_figure_add_integer(figure, panel_of[cell->metric]);
        nj_figure_add_integer(figure, position_of(rows, cell->row));
        nj_figure_add_real(figure, cell->simulated);
        nj_figure_add_real(figure, cell->published);
        nj_figure_add_real(figure, cell->rerun);
        nj_figure_add_integer(figure, cell->none_published);
        nj_figure_add_integer(figure, !cell->none_published && !isfinite(cell->simulated));
        nj_figure_end_row(figure);
        if (isfinite(cell->simulated) && isfinite(cell->published)) {
            sum += fabs(cell->simulated - cell->published);
            n++;
        }
    }
    nj_figure_end_block(figure);
    nj_figure_begin_block(figure, "rows", "row name");
    for (guint r = 0; r < rows->len; r++) {
        nj_figure_add_integer(figure, (int)r);
        nj_figure_add_text(figure, rows->pdata[r]);
        nj_figure_end_row(figure);
    }
    nj_figure_end_block(figure);
    nj_figure_begin_block(figure, "metrics", "panel name");
    for (guint m = 0; m < NJ_N_METRICS; m++) {
        if (panel_of[m] < 0)
            continue;
        static const char *const names[NJ_N_METRICS] = {"time", "energy", "energy at equal time",
                                                        "time at equal energy"};
        nj_figure_add_integer(figure, panel_of[m]);
        nj_figure_add_text(figure, names[m]);
        nj_figure_end_row(figure);
    }
    nj_figure_end_block(figure);
    nj_figure_set_integer(figure, "n_panels", n_panels);
    nj_figure_set_integer(figure, "n_rows", (int)rows->len);
    g_autofree char *title = g_strdup_printf(
        "Published and simulated reductions: %u cells, mean difference %.1f points", n, n > 0 ? sum / n : 0);
    nj_figure_set_text(figure, "plot_title", title);
    figure->width = 920;
    figure->height = 140 + 19 * (int)rows->len;
}

static gboolean build(NjPlotInput *input, const NjPlotOptions *options, NjFigure *figure, GError **error)
{
    g_autoptr(GArray) cells = g_array_new(FALSE, TRUE, sizeof(Cell));
    g_array_set_clear_func(cells, cell_clear);
    if (!(input->type == NJ_INPUT_COMPARISON
              ? from_comparison(&input->comparison, options->jobs, cells, error)
              : from_csv(input->csv, cells, error)))
        return FALSE;
    g_autoptr(GPtrArray) rows = find_rows(cells);
    if (rows->len == 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: nothing of it was published: no cells to compare",
                    input->path);
        return FALSE;
    }
    fill(cells, rows, figure);
    return TRUE;
}

const NjPlotKind nj_plot_tables = {
    .name = "tables",
    .summary = "published against simulated reductions, cell by cell",
    .reads = {[NJ_INPUT_COMPARISON] = TRUE, [NJ_INPUT_TABLE] = TRUE},
    .build = build,
};
