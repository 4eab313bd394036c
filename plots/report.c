// SPDX-License-Identifier: MIT
#include "plots/report.h"

#include "models/data.h"
#include "plots/plot.h"
#include "scenarios/query.h"

#include <math.h>
#include <string.h>

#define MAX_ROWS 1000   // of all points
#define MAX_BEST 10     // points of least energy
#define MAX_FRONTIERS 4 // figures get long

static const char style[] =
    "body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff;margin:0 auto;padding:1rem;"
    "max-width:62rem;overflow-wrap:anywhere}"
    "h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}"
    ".wide{overflow:auto;max-height:44rem}.wide svg{min-width:34rem;max-width:100%;height:auto;display:block}"
    "table{border-collapse:collapse;font-size:.85rem;overflow-wrap:normal}"
    "th,td{padding:.2rem .6rem;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}"
    "th{text-align:right;vertical-align:bottom}td.text,th.text{text-align:left}"
    "pre{background:#f5f5f5;padding:.6rem;overflow-x:auto;font-size:.8rem}";

typedef struct {
    NjStore *store;
    const char *path;
    NjTable *points; // all
    GString *out;
    guint n_figures;
} Page;

static void append_escaped(GString *out, const char *text)
{
    g_autofree char *escaped = g_markup_escape_text(text, -1);
    g_string_append(out, escaped);
}

static void add_heading(Page *page, const char *text)
{
    g_string_append(page->out, "<h2>");
    append_escaped(page->out, text);
    g_string_append(page->out, "</h2>\n");
}

static void add_paragraph(Page *page, const char *text)
{
    g_string_append(page->out, "<p>");
    append_escaped(page->out, text);
    g_string_append(page->out, "</p>\n");
}

static void add_text(Page *page, const char *text)
{
    g_string_append(page->out, "<pre>");
    append_escaped(page->out, text);
    g_string_append(page->out, "</pre>\n");
}

static void add_header_row(GString *out, const NjTable *table)
{
    g_string_append(out, "<tr>");
    for (guint c = 0; c < nj_table_n_columns(table); c++) {
        const NjColumn *column = nj_table_column(table, c);
        g_autofree char *description = g_markup_escape_text(column->description, -1);
        g_string_append_printf(out, "<th%s title=\"%s\">",
                               column->type == NJ_COLUMN_TEXT ? " class=\"text\"" : "", description);
        append_escaped(out, column->name);
        if (*column->unit != '\0' && !g_str_equal(column->unit, "1")) {
            g_string_append(out, "<br/>(");
            append_escaped(out, column->unit);
            g_string_append_c(out, ')');
        }
        g_string_append(out, "</th>");
    }
    g_string_append(out, "</tr>\n");
}

static void add_cell(GString *out, const NjTable *table, guint row, guint column)
{
    const NjColumn *described = nj_table_column(table, column);
    if (described->type == NJ_COLUMN_TEXT) {
        g_string_append(out, "<td class=\"text\">");
        if (!nj_table_is_missing(table, row, column))
            append_escaped(out, nj_table_get_text(table, row, column));
    } else {
        g_string_append(out, "<td>");
        const double value = nj_plot_number(table, row, column);
        if (isfinite(value))
            g_string_append_printf(out, "%.*f", described->type == NJ_COLUMN_REAL ? described->digits : 0,
                                   value);
    }
    g_string_append(out, "</td>");
}

static void add_table(Page *page, const NjTable *table)
{
    g_string_append(page->out, "<div class=\"wide\"><table>\n<thead>");
    add_header_row(page->out, table);
    g_string_append(page->out, "</thead>\n<tbody>\n");
    for (guint row = 0; row < nj_table_n_rows(table); row++) {
        g_string_append(page->out, "<tr>");
        for (guint c = 0; c < nj_table_n_columns(table); c++)
            add_cell(page->out, table, row, c);
        g_string_append(page->out, "</tr>\n");
    }
    g_string_append(page->out, "</tbody></table></div>\n");
}

// Figures of one page must not share ids, and a page has one prolog, its own.
static void add_svg(Page *page, const char *svg)
{
    static const char *const marks[] = {"id=\"", "id='", "url(#", "href='#", "href=\"#"};
    g_autoptr(GString) text = g_string_new(strstr(svg, "<svg"));
    for (guint i = 0; i < G_N_ELEMENTS(marks); i++) {
        g_autofree char *own = g_strdup_printf("%sf%u-", marks[i], page->n_figures);
        g_string_replace(text, marks[i], own, 0);
    }
    page->n_figures++;
    g_string_append(page->out, "<div class=\"wide\">");
    g_string_append(page->out, text->str);
    g_string_append(page->out, "</div>\n");
}

static gboolean add_figure(Page *page, const NjPlotKind *kind, const NjPlotOptions *options, GError **error)
{
    g_auto(NjFigure) figure = {0};
    NjPlotInput input = {.path = page->path, .type = NJ_INPUT_STORE, .store = page->store};
    nj_figure_init(&figure);
    if (!kind->build(&input, options, &figure, error))
        return FALSE;
    g_autofree char *svg = nj_figure_draw_svg(&figure, kind->name, error);
    if (svg == NULL)
        return FALSE;
    add_svg(page, svg);
    return TRUE;
}

static guint first_of_results(const NjTable *points)
{
    return (guint)nj_table_find_column(points, "status");
}

// Points that exist by a column, least first.
static GArray *sort_points(const NjTable *points, const char *name)
{
    const guint column = (guint)nj_table_find_column(points, name);
    GArray *rows = nj_query_sort(points, column, FALSE);
    while (rows->len > 0 && nj_table_is_missing(points, g_array_index(rows, guint, rows->len - 1), column))
        g_array_set_size(rows, rows->len - 1);
    return rows;
}

static void add_best(Page *page, const GArray *order)
{
    static const char *const names[] = {"time_s",          "tokens_per_s", "energy_j", "energy_per_token_j",
                                        "power_average_w", "mfu"};
    g_autoptr(GArray) columns = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint c = 0; c < first_of_results(page->points); c++)
        g_array_append_val(columns, c);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const guint column = (guint)nj_table_find_column(page->points, names[i]);
        g_array_append_val(columns, column);
    }
    g_autoptr(NjTable) best = nj_query_pick(page->points, order, columns, MAX_BEST);
    add_heading(page, "Least energy of a token");
    add_table(page, best);
}

static guint count_values(const NjTable *points, guint column)
{
    g_autoptr(GHashTable) values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint row = 0; row < nj_table_n_rows(points); row++)
        g_hash_table_add(values, nj_table_column(points, column)->type == NJ_COLUMN_TEXT
                                     ? g_strdup(nj_table_get_text(points, row, column))
                                     : g_strdup_printf("%.17g", nj_plot_number(points, row, column)));
    return g_hash_table_size(values);
}

// The two numeric axes of most values, else any; FALSE where fewer than two vary.
static gboolean choose_axes(const NjTable *points, guint *x, guint *y)
{
    guint best[2] = {0, 0}, axes[2] = {0, 0};
    for (guint c = 1; c < first_of_results(points); c++) {
        const guint n = count_values(points, c);
        const guint weight = n < 2 ? 0 : n + (nj_table_column(points, c)->type == NJ_COLUMN_TEXT ? 0 : 1000);
        if (weight > best[0]) {
            best[1] = best[0];
            axes[1] = axes[0];
            best[0] = weight;
            axes[0] = c;
        } else if (weight > best[1]) {
            best[1] = weight;
            axes[1] = c;
        }
    }
    *x = MIN(axes[0], axes[1]);
    *y = MAX(axes[0], axes[1]);
    return best[1] > 0;
}

// The other axes held at a row's values, as a condition; NULL where there are none.
static char *hold_others(const NjTable *points, guint row, guint x, guint y)
{
    g_autoptr(GString) where = g_string_new(NULL);
    for (guint c = 1; c < first_of_results(points); c++) {
        if (c == x || c == y)
            continue;
        const NjColumn *column = nj_table_column(points, c);
        g_string_append_printf(where, "%s%s=", where->len > 0 ? " and " : "", column->name);
        if (column->type == NJ_COLUMN_TEXT)
            g_string_append_printf(where, "'%s'", nj_table_get_text(points, row, c));
        else
            g_string_append_printf(where, "%.17g", nj_plot_number(points, row, c));
    }
    return where->len > 0 ? g_strdup(where->str) : NULL;
}

static gboolean add_heatmaps(Page *page, guint best, GError **error)
{
    static const char *const values[] = {"energy_per_token_j", "tokens_per_s"};
    guint x, y;
    if (!choose_axes(page->points, &x, &y))
        return TRUE;
    g_autofree char *where = hold_others(page->points, best, x, y);
    add_heading(page, "Around the point of least energy of a token");
    for (guint i = 0; i < G_N_ELEMENTS(values); i++) {
        const NjPlotOptions options = {
            .where = where,
            .x = nj_table_column(page->points, x)->name,
            .y = nj_table_column(page->points, y)->name,
            .value = values[i],
        };
        if (!add_figure(page, &nj_plot_heatmap, &options, error))
            return FALSE;
    }
    return TRUE;
}

// Of the points of least energy that have plans.
static gboolean add_frontiers(Page *page, const GArray *order, GError **error)
{
    const int table = nj_store_find_table(page->store, "frontiers", NULL);
    if (table < 0 || nj_store_n_rows(page->store, (guint)table) == 0)
        return TRUE;
    add_heading(page, "Frontiers");
    for (guint i = 0; i < MIN(order->len, MAX_FRONTIERS); i++) {
        const guint row = g_array_index(order, guint, i);
        g_autofree char *where = g_strdup_printf("point=%.0f", nj_plot_number(page->points, row, 0));
        if (!add_figure(page, &nj_plot_frontier, &(NjPlotOptions){.where = where}, error))
            return FALSE;
    }
    return TRUE;
}

static void add_points(Page *page)
{
    g_autoptr(GArray) rows = nj_query_sort(page->points, 0, FALSE);
    g_autoptr(GArray) columns = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint c = 0; c < nj_table_n_columns(page->points); c++)
        g_array_append_val(columns, c);
    g_autoptr(NjTable) shown = nj_query_pick(page->points, rows, columns, MAX_ROWS);
    add_heading(page, "All points");
    if (rows->len > MAX_ROWS) {
        g_autofree char *note =
            g_strdup_printf("The first %d of %u; 'nanojoule show' has them all.", MAX_ROWS, rows->len);
        add_paragraph(page, note);
    }
    add_table(page, shown);
}

// Where a scenario's name leads: a shipped file, or a path. Transfer full.
static char *find_input(const char *name)
{
    static const char *const folders[] = {"models/gpus", "models/archs", "models/stacks"};
    for (guint i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *relative = g_strdup_printf("%s/%s.ini", folders[i], name);
        char *path = nj_data_find(relative);
        if (path != NULL)
            return path;
    }
    return g_strdup(name);
}

// A data file as it was when the numbers were computed, or a word on why it is not shown.
static void add_input(Page *page, const char *name, const char *hash)
{
    g_autofree char *file = find_input(name);
    g_autofree char *text = NULL;
    gsize size = 0;
    g_string_append(page->out, "<details><summary>");
    append_escaped(page->out, name);
    g_string_append(page->out, "</summary>\n");
    if (!g_file_get_contents(file, &text, &size, NULL)) {
        add_paragraph(page, "This file is not there, seen from here.");
    } else {
        g_autofree char *now = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, size);
        if (g_str_equal(now, hash))
            add_text(page, text);
        else
            add_paragraph(page, "This file has changed since the numbers were computed.");
    }
    g_string_append_printf(page->out, "<p>SHA-256 %s</p></details>\n", hash);
}

static void add_origin(Page *page, const NjStoreInfo *info)
{
    add_heading(page, "Scenario");
    add_text(page, info->text);
    add_heading(page, "Constants and where they come from");
    g_auto(GStrv) lines = g_strsplit(info->inputs, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        char *space = strrchr(*line, ' ');
        if (space == NULL)
            continue;
        *space = '\0';
        add_input(page, *line, space + 1);
    }
}

static gboolean fill(Page *page, GError **error)
{
    const NjStoreInfo *info = nj_store_info(page->store);
    g_autoptr(GArray) order = sort_points(page->points, "energy_per_token_j");
    g_autofree char *name = g_path_get_basename(page->path);
    g_autofree char *summary =
        g_strdup_printf("%u points of %" G_GINT64_FORMAT ", %u of them possible; computed by nanojoule %s.",
                        nj_table_n_rows(page->points), info->n_points, order->len, info->version);
    g_string_append(page->out, "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n"
                               "<head><meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
                               "content=\"width=device-width, initial-scale=1\"/>\n<title>");
    append_escaped(page->out, name);
    g_string_append_printf(page->out, "</title>\n<style>%s</style></head>\n<body>\n<h1>", style);
    append_escaped(page->out, name);
    g_string_append(page->out, "</h1>\n");
    add_paragraph(page, summary);
    if (order->len > 0) {
        add_best(page, order);
        if (!add_heatmaps(page, g_array_index(order, guint, 0), error) || !add_frontiers(page, order, error))
            return FALSE;
    }
    add_points(page);
    add_origin(page, info);
    g_string_append(page->out, "</body></html>\n");
    return TRUE;
}

char *nj_report_html(NjStore *store, const char *path, GError **error)
{
    const int index = nj_store_find_table(store, "points", error);
    if (index < 0)
        return NULL;
    g_autoptr(NjTable) points = nj_query_read(store, (guint)index, NULL, error);
    if (points == NULL)
        return NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    Page page = {store, path, points, out, 0};
    return fill(&page, error) ? g_strdup(out->str) : NULL;
}
